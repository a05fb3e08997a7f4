"""One damaged input a seed: its kind, and the limits of time and memory that reading it keeps."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa

from tests.mutations.clusters import check_cluster
from tests.mutations.logs import check_checkpoint, check_segment
from tests.mutations.packed import check_archive
from tests.mutations.side_files import check_describe, check_settings, check_side_file

Check = Callable[[Random, Path], int]
# Kinds of input, and how many of 100 are of it.
KINDS: dict[str, tuple[Check, int]] = {
    "segment": (check_segment, 7),
    "checkpoint": (check_checkpoint, 3),
    "cluster": (check_cluster, 1),
    "side file": (check_side_file, 45),
    "describe": (check_describe, 16),
    "settings": (check_settings, 10),
    "archive": (check_archive, 18),
}
MOST_SECONDS = 10
# What reading an input of so many bytes may hold: a batch of 16 MiB unpacked, and its records as objects.
BYTES_A_BYTE, MOST_BYTES = 100, 128 * 1024 * 1024
MEASURED_ONE_OF = 100


def check(seed: int, folder: Path, kind: str | None = None) -> None:
    """Reads the input of a seed; raises whatever goes wrong."""
    rng = Random(seed)
    drawn = rng.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
    read, _ = KINDS[kind or drawn]
    with _time_limit():
        if seed % MEASURED_ONE_OF:
            read(rng, folder)
        else:
            _measured(read, rng, folder)


def check_all(first: int, count: int, kind: str | None = None) -> list[str]:
    """A line for each seed whose input is not read as it ought to be, with how to repeat it."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="kraftlake-mutations-") as folder:
        KINDS["segment"][0](Random(first), Path(folder))  # the first one compiles the kernel
        for seed in range(first, first + count):
            started = time.monotonic()
            try:
                check(seed, Path(folder), kind)
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(at.filename).name}, line {at.lineno}, {time.monotonic() - started:.1f} s"
                again = f"python -m tests.mutations --from {seed} --count 1"
                again += f" --kind '{kind}'" if kind else ""
                failures.append(f"seed {seed}: {type(error).__name__}: {error} ({where}): {again}")
    return failures


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {MOST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _measured(read: Check, rng: Random, folder: Path) -> None:
    pool = pa.default_memory_pool()
    tracemalloc.start()
    try:
        before = pool.bytes_allocated()
        size = read(rng, folder)
        peak = tracemalloc.get_traced_memory()[1] + pool.bytes_allocated() - before
    finally:
        tracemalloc.stop()
    assert peak <= MOST_BYTES + BYTES_A_BYTE * size, f"{peak} bytes for an input of {size}"
