"""python -m jobs.archive_classes: make the class archive of this environment, as `make setup` does."""

from __future__ import annotations

import sys

from jobs.runtime.class_archive import archive_of, make, unused, unwanted
from jobs.runtime.java import java_of
from jobs.runtime.outcome import Failure
from jobs.runtime.output import warn_line
from jobs.runtime.session import local_command


def main() -> int:
    """Make it, unless sessions can use the one that is there. Returns an exit code."""
    try:
        command = local_command(java_of())
        if unwanted(command) is None and unused(command) is not None:
            warn_line("compiling the kernel, archiving Spark's classes for faster starts")
            make(archive_of(command))
    except Failure as failure:
        # Everything runs without it.
        warn_line(f"class archive: {failure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
