"""Where Python processes that Kraftlake starts find its modules, whatever the working folder holds."""

from __future__ import annotations

import os
import site
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]  # or a wheel, which is a zip file


def own_path(given: str) -> str:
    """PYTHONPATH with the folder of our packages in front of those given; as given where they are installed.

    An installed package is found without it, and others beside it may have the name of a standard module.
    """
    installed = [Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())]
    return given if _ROOT in installed else os.pathsep.join(filter(None, (str(_ROOT), given)))


def with_own_path(environ: dict[str, str]) -> dict[str, str]:
    """The variables of a process that imports nothing from its working folder (PYTHONSAFEPATH)."""
    return environ | {"PYTHONSAFEPATH": "1", "PYTHONPATH": own_path(environ.get("PYTHONPATH", ""))}
