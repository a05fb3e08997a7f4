"""kraftlake ingest: read captures into the lake without deriving anything."""

from __future__ import annotations

import argparse

from jobs import arguments
from jobs.run import read_captures

EXAMPLES = """examples:
  kraftlake ingest --captures /backup/controllers --lake /data/lake
  kraftlake derive --lake /data/lake"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_captures(parser)
    # What is read is judged when it is derived.
    parser.set_defaults(fail_on="never")


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    return read_captures(args, derive=False)
