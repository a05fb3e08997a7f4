"""kraftlake version: the versions of kraftlake and its dependencies, without Spark."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

from jobs.runtime.command_parser import kraftlake_version
from jobs.runtime.java import java_of, release_name
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_line
from transforms.lake.storage import FORMAT_VERSION

EXAMPLES = """examples:
  kraftlake version
  kraftlake --version"""

PACKAGES = {"PySpark": "pyspark", "Delta": "delta-spark", "delta-rs": "deltalake"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none of its own."""


def run(_: argparse.Namespace) -> int:
    """Print the versions. Returns the exit code."""
    print_line(f"kraftlake {kraftlake_version()}")
    print_line(f"lake format {FORMAT_VERSION}")
    print_line(f"Python {platform.python_version()}")
    for name, package in PACKAGES.items():
        print_line(f"{name} {version(package)}")
    print_line(f"Java {_java()}")
    return ExitCode.FINE


def _java() -> str:
    try:
        return release_name(java_of())
    except Failure as wrong:
        return f"not usable: {wrong}"
