"""kraftlake version: the versions of kraftlake and of what it runs on, without Spark."""

from __future__ import annotations

import argparse
import platform

from jobs.runtime.command_parser import kraftlake_version
from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_line
from transforms.lake.storage import FORMAT_VERSION

EXAMPLES = """examples:
  kraftlake version
  kraftlake --version"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def run(_: argparse.Namespace) -> int:
    """Print the versions. Returns the exit code."""
    print_line(f"kraftlake {kraftlake_version()}")
    print_line(f"lake format {FORMAT_VERSION}")
    print_line(f"Python {platform.python_version()}")
    return ExitCode.FINE
