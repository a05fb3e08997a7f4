"""kraftlake config: check the settings, and print those in force."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator

from jobs.arguments import add_format
from jobs.runtime.expectation_names import check_expectations
from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import json_line, print_line
from jobs.runtime.settings import NAMED, SHOWN_CONFIGS, Settings, apply
from kraft_core.format.secrets import HIDDEN

# Of Spark's settings: what Spark itself redacts (the default of spark.redaction.regex), and more.
_SECRET = re.compile(
    r"secret|password|passphrase|token|credential|access[.]?key|account[.]?key", re.IGNORECASE
)

EXAMPLES = """examples:
  kraftlake config
  kraftlake config --config /etc/kraftlake.toml
  kraftlake config --format json

docs/kraftlake.toml documents every setting. The file is given by --config, else by the variable
KRAFTLAKE_CONFIG, else it is ./kraftlake.toml. A flag on the command line overrides it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_format(parser, "text", "json")


def run(args: argparse.Namespace) -> int:
    """Print the settings. Returns the exit code. Raises Failure if they are invalid."""
    settings: Settings = args.settings
    others = list(_defaults(settings))
    check_expectations(settings)
    if args.format == "json":
        spark = {"spark": _spark(settings)} if settings.spark else {}
        file = settings.file and str(settings.file)
        print_line(json_line({"file": file, **settings.content, **spark}, default=str))
        return ExitCode.FINE
    print_line(f"# from {settings.file}" if settings.file else "# no file; these are the defaults")
    for name in NAMED:
        if name in settings.flags:
            print_line(f"{name} = {json.dumps(settings.flags[name])}")
    if settings.shown_configs:
        print_line(f"{SHOWN_CONFIGS} = {json.dumps(settings.content[SHOWN_CONFIGS])}")
    for line in others:
        print_line(f"# {line}")
    for cluster in settings.clusters:
        print_line(f"[clusters.{cluster.name}]")
        for key in ("id", "environment", "owner", "bootstrap_controllers", "command_config"):
            if (value := getattr(cluster, key)) is not None:
                print_line(f"{key} = {json.dumps(value)}")
        if cluster.paths:
            print_line(f"paths = {json.dumps(cluster.paths)}")
    if settings.spark:
        print_line("[spark]")
        for name, value in _spark(settings).items():
            print_line(f"{json.dumps(name)} = {json.dumps(value)}")
    for suite, expectations in settings.expectations.items():
        for name, changes in expectations.items():
            print_line(f"[expectations.{suite}.{name}]")
            for key, value in changes.items():
                print_line(f"{key} = {json.dumps(value)}")
    return ExitCode.FINE


def _spark(settings: Settings) -> dict[str, str]:
    """Spark's settings as they may be shown: keys of object stores stand there."""
    return {name: HIDDEN if _SECRET.search(name) else value for name, value in settings.spark.items()}


def _defaults(settings: Settings) -> Iterator[str]:
    """The flags that the file does not set, with their defaults. Raises Failure for an invalid value."""
    from jobs import cli, run
    from jobs.arguments import add_evidence_age

    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    run.add_arguments(parser)
    add_evidence_age(parser)
    cli.add_settings(parser)
    apply(parser, settings)
    for name in NAMED:
        if name not in settings.flags:
            value = parser.get_default(name)
            yield f"{name} is not set" if value is None else f"{name} = {json.dumps(value)} by default"
