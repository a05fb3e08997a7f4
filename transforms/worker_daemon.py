"""Spark's daemon of Python workers in a local session: it imports once what each of them would import.

Workers are forked from it. In a cluster it is Spark's own: modules may reach a worker with its first task.

A job whose tasks are sure to come starts it early, beside the JVM (jobs.runtime.early_daemon), as its imports
take as long as the JVM's start. The process that Spark starts later then passes to it what Spark gave it, and
waits for its end.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

# Names the socket of a daemon that was started early.
SOCKET = "KRAFTLAKE_WORKER_DAEMON"
_STREAMS = (0, 1, 2)
_TAKEN = b"\1"


def main(words: Sequence[str]) -> None:
    """words: as Spark starts it, the module of its workers; of an early daemon, --early and its socket."""
    if words[0] == "--early":
        _wait_for_spark(Path(words[1]))
    elif (path := os.environ.pop(SOCKET, None)) is not None and _passed_on(path):
        return
    else:
        _import_modules()
    from pyspark import daemon

    daemon.manager()


def _import_modules() -> None:
    """Import what the tasks of all jobs import, and load the compiled kernel."""
    import gc

    import pandas  # noqa: F401 (Arrow imports it when it makes a first array of numbers)
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.worker  # noqa: F401

    import transforms.histories.replay_tasks
    import transforms.live.quorum
    import transforms.quality.snapshot_checks  # noqa: F401
    from kraft_core.columnar import fast
    from transforms.ingest import spark_frames  # noqa: F401

    # Compiled functions are loaded at their first call.
    assert not list(fast.decode_bytes(b""))
    # Workers look for garbage after each task: not among these.
    gc.collect()
    gc.freeze()


def _passed_on(path: str) -> bool:
    """Pass this process's arguments, variables and streams to an early daemon and wait until that ends.

    False if there is none, or it ends before it takes them.
    """
    passed = json.dumps({"words": sys.argv, "variables": dict(os.environ), "path": sys.path})
    with socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect(path)
            socket.send_fds(daemon, [b"\0"], _STREAMS)
            daemon.sendall(passed.encode())
            daemon.shutdown(socket.SHUT_WR)
            if daemon.recv(1) != _TAKEN:
                return False
        except OSError:
            return False
        with suppress(OSError):
            daemon.recv(1)
        return True


def _wait_for_spark(path: Path) -> None:
    """Import, and take the place of the process that Spark starts. Ends with the job that started it."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(str(path))
        except OSError:
            sys.exit()  # the path is too long for a socket: Spark's own imports, too
        listening.listen()
        _import_modules()
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(listening, select.POLLIN)
        if 0 in (ready for ready, _ in poll.poll()):
            sys.exit()
        asking, _ = listening.accept()
    path.unlink()
    _, streams, _, _ = socket.recv_fds(asking, 1, len(_STREAMS))
    with asking.makefile("rb") as file:
        passed: dict[str, Any] = json.load(file)
    sys.argv, sys.path[:] = passed["words"], passed["path"]
    os.environ.clear()
    os.environ.update(passed["variables"])
    for stream, own in zip(streams, _STREAMS, strict=True):
        os.dup2(stream, own)
        os.close(stream)
    asking.sendall(_TAKEN)
    # Open while the daemon runs, in which it stays; a worker that outlives it holds nobody up.
    os.register_at_fork(after_in_child=asking.close)


if __name__ == "__main__":
    main(sys.argv[1:])
