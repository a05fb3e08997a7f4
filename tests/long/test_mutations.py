"""A million damaged inputs. MUTATIONS_FROM and MUTATIONS_COUNT choose other seeds, or the rest of a run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

INPUTS = 1_000_000
PROCESSES = 2


@pytest.mark.long
def test_a_million_damaged_inputs() -> None:
    first = os.environ.get("MUTATIONS_FROM", "10000")
    count = os.environ.get("MUTATIONS_COUNT", str(INPUTS))
    command = ["-m", "tests.mutations", "--from", first, "--count", count, "--processes", str(PROCESSES)]
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        failures = [line for line in map(str.rstrip, run.stdout) if print(line) or line.startswith("seed ")]
    assert failures == []
    assert run.returncode == 0
