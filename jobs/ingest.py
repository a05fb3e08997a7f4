"""kraftlake ingest: read captures into the lake without deriving anything."""

from __future__ import annotations

import argparse

from jobs import arguments
from jobs.run import read_captures

EXAMPLES = """examples:
  kraftlake ingest --captures /backup/controllers --lake /data/lake
  kraftlake derive --lake /data/lake"""

add_arguments = arguments.add_captures


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    return read_captures(args, derive=False)
