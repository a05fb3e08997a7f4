"""kraftlake export: the metadata of a moment as YAML, or as commands that recreate it; without Spark."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_lines, printable, warn_line
from jobs.time_travel.moment import FORMS
from jobs.time_travel.opened_moment import OpenedMoment, add_source, opened_moment

if TYPE_CHECKING:
    from kraft_core.desired.state import DesiredState

EXAMPLES = """examples:
  kraftlake export /backup/node-1 > desired.yaml
  kraftlake export --at 2026-11-21T03:00 --lake /data/lake --cluster prod-1 > desired.yaml
  kraftlake export --as commands /backup/node-1 > make.sh
  BOOTSTRAP_SERVER=new-1:9092 COMMAND_CONFIG=admin.properties bash make.sh
  kraftlake export --as commands --placement /backup/node-1 > make.sh

The commands are those of Kafka's bin folder, which must be on the PATH; they need an administrator's
permissions. Passwords of SCRAM users, secret configs and delegation tokens cannot be exported: what is
missing is listed at the end, and on stderr. --placement keeps the brokers of each partition; the new cluster
must have brokers with these ids, which configs of single brokers need, too.
exit codes: 0 success, even if something cannot be exported; 1 part of the log could not be read, so that its
content is not known; 2 wrong path or moment, 3 nothing readable"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--at", metavar="MOMENT", help=f"{FORMS} (default: end)")
    parser.add_argument(
        "--as",
        dest="form",
        choices=("yaml", "commands"),
        default="yaml",
        help="a file for diff --desired, or a script for bash (default: yaml)",
    )
    parser.add_argument("--placement", action="store_true", help="keep the brokers of each partition")
    add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Print the state. Raises Failure."""
    from kraft_core.desired.of_image import left_out, state_in

    at = opened_moment(args)
    state = state_in(at.image)
    written, missing = (_yaml if args.form == "yaml" else _commands)(at, state, args.placement)
    print_lines(written)
    for line in [*missing, *left_out(at.image)]:
        print_lines([f"# not exported: {printable(line)}"])
        warn_line(f"not exported: {line}")
    print_lines(f"# not known: {printable(doubt)}" for doubt in at.doubts)
    return ExitCode.FOUND if at.doubts else ExitCode.FINE


Written = tuple[Iterable[str], Sequence[str]]
"""The lines of a file, and what of the state is not in them."""


def _yaml(at: OpenedMoment, state: DesiredState, placement: bool) -> Written:
    from kraft_core.desired.write_yaml import secrets_of, yaml_lines

    return [f"# {printable(at.words)}", *yaml_lines(state, placement=placement)], list(secrets_of(state))


def _commands(at: OpenedMoment, state: DesiredState, placement: bool) -> Written:
    from kraft_core.desired.commands import Commands, format_flags, preamble

    commands = Commands(state, placement=placement)
    made = list(commands.lines())
    head = [
        "#!/usr/bin/env bash",
        f"# {printable(at.words)}",
        "# Its feature levels: format the empty cluster's controllers with",
        f"#   kafka-storage.sh format {format_flags(state)} ...",
    ]
    return [*head, *preamble(made), *made], commands.left_out
