"""python -m jobs.archive_classes [WORDS OF A RUN]: make the class archive, as `make setup` does.

With the arguments of a `run` (--lake among them), that is run, too, and its session then makes the archive: a
new user waits for one session instead of two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jobs.cli import main as kraftlake
from jobs.runtime.class_archive import archive_of, make, run_and_make, unused, unwanted
from jobs.runtime.java import java_of
from jobs.runtime.outcome import Failure
from jobs.runtime.output import warn_line
from jobs.runtime.session import local_command
from jobs.runtime.settings import read_settings


def main(words: Sequence[str]) -> int:
    """Make it, unless sessions can use the one that is there. Returns an exit code: the run's."""
    try:
        command = local_command(java_of())
        if unwanted(command) is None and unused(command) is not None:
            if words and read_settings(None).file is None:
                return run_and_make(archive_of(command), words)
            warn_line("compiling the kernel, archiving Spark's classes for faster starts")
            make(archive_of(command))
    except Failure as failure:
        # Everything runs without it.
        warn_line(f"class archive: {failure}")
    return kraftlake(["run", *words]) if words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
