"""Permissions that bind: root may read everything, so a test that is root acts as nobody, in a fork."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
NOBODY = 65534


def unprivileged(work: Callable[[], Value]) -> Value:
    """What `work` returns as a user who is bound by permissions."""
    if os.geteuid() != 0:
        return work()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    assert answer, "it failed as nobody: see its traceback"
    return pickle.loads(answer)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user may search, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="kraftlake-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
