"""kraftlake config: print the settings in force, and where each comes from."""

from __future__ import annotations

import argparse
import json

from jobs.outcome import ExitCode
from jobs.settings import NAMED, Settings

EXAMPLES = """examples:
  kraftlake config
  kraftlake config --config /etc/kraftlake.toml
  kraftlake config --format json
docs/kraftlake.toml shows every setting with what it means. The file is the one of --config, else of the
variable KRAFTLAKE_CONFIG, else ./kraftlake.toml; a flag on the command line wins over it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")


def run(args: argparse.Namespace) -> int:
    """Prints the settings. Returns the exit code."""
    settings: Settings = args.settings
    if args.format == "json":
        print(json.dumps({"file": settings.file and str(settings.file), **settings.content}, default=str))
        return ExitCode.FINE
    print(
        f"# from {settings.file}" if settings.file else "# no file: what each verb's --help says is in force"
    )
    for name in NAMED:
        if name in settings.flags:
            print(f"{name} = {json.dumps(settings.flags[name])}")
    for cluster in settings.clusters:
        print(f"[clusters.{cluster.name}]")
        for key in ("id", "environment", "owner"):
            if (value := getattr(cluster, key)) is not None:
                print(f"{key} = {json.dumps(value)}")
    if settings.spark:
        print("[spark]")
        for name, value in settings.spark.items():
            print(f"{json.dumps(name)} = {json.dumps(value)}")
    for suite, expectations in settings.expectations.items():
        for name, changes in expectations.items():
            print(f"[expectations.{suite}.{name}]")
            for key, value in changes.items():
                print(f"{key} = {json.dumps(value)}")
    return ExitCode.FINE
