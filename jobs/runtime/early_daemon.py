"""Spark's daemon of Python workers, started while the JVM starts: its imports take as long as that does.

Spark itself starts it with the first task that needs Python, and the task waits.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from transforms.worker_daemon import SOCKET

MODULE = "transforms.worker_daemon"
_OF_WORKERS = "spark.executorEnv."


def start_early(settings: Mapping[str, str]) -> dict[str, str]:
    """Start the daemon of a session on this machine. Returns the settings with which Spark finds it.

    It ends with Spark's JVM, or with this process if no task has asked for it. None is started where the
    user's settings name another daemon or another Python.
    """
    python = settings.get("spark.pyspark.python") or os.environ["PYSPARK_PYTHON"]
    if settings.get("spark.python.daemon.module") != MODULE or python != sys.executable:
        return {}
    folder = tempfile.TemporaryDirectory(prefix="kraftlake-workers-", ignore_cleanup_errors=True)
    path = Path(folder.name) / "socket"
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, "--early", str(path)],
        # It ends when this pipe does. What it prints is not a result.
        stdin=subprocess.PIPE,
        stdout=2,
        env=os.environ | _variables(settings),
        # Ctrl-C is for this process to handle.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    atexit.register(_end, process, folder)
    return {_OF_WORKERS + SOCKET: str(path)}


def _end(process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    assert process.stdin is not None, "it is a pipe"
    process.stdin.close()
    folder.cleanup()


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Those that Python and its libraries heed when they start, as Spark sets them for workers."""
    own = {k.removeprefix(_OF_WORKERS): v for k, v in settings.items() if k.startswith(_OF_WORKERS)}
    return {"PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"), "OMP_NUM_THREADS": "1", **own}
