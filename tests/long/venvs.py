"""Pythons of their own, with packages from PyPI that the project itself does not need."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

Ask = Callable[..., Any]


def installed(folder: Path, *packages: str) -> Ask:
    """Install packages; a function that runs a script there and returns what it prints last as JSON."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    subprocess.run(command, check=True)

    def ask(script: str, *arguments: str | Path) -> Any:
        done = subprocess.run(
            [python, "-c", script, *arguments],
            env=os.environ | {"AIRFLOW_HOME": str(folder / "airflow"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return ask
