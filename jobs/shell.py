"""kraftlake shell: the cluster's metadata as a tree of names, at any offset or time, without Spark."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence

from jobs.arguments import add_format
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_answer, warn_line
from jobs.time_travel.moment import InvalidMomentError, image_at, parse_moment
from jobs.time_travel.open_source import add_lake_arguments, open_captured, open_lake, warn
from jobs.time_travel.opened_moment import add_path
from jobs.time_travel.shell_commands import COMMANDS, CommandError, CommandOutput, Session, execute, resolve
from kraft_core.image import tree

EXAMPLES = """examples:
  kraftlake shell /backup/node-1
  kraftlake shell /backup/node-1 ls /image/topics/byName
  kraftlake shell --at-time 2026-11-21T03:12 /backup/node-1 cat '/image/topics/byName/orders/*'
  kraftlake shell --format json /backup/node-1 log /image/configs/TOPIC:orders
  kraftlake shell 00000000000000003692-0000000009.checkpoint tree /image/cluster
  kraftlake shell --lake /data/lake --cluster prod-1 --at-offset 1894 ls /image/topics/byName

SCRAM credentials, token ids and the values of secret configs are never shown.
Of commands on standard input all are run, and the exit code tells if one failed.
exit codes: 0 success, 2 wrong path or command, 3 nothing readable"""

_PROMPT = ">> "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_options(parser)
    add_path(parser)
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help=f"one of {', '.join(COMMANDS)}; without a command the shell is interactive",
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_lake_arguments(parser)
    moment = parser.add_mutually_exclusive_group()
    moment.add_argument("--at-offset", metavar="N", help="start after the record at this offset")
    moment.add_argument("--at-time", metavar="TIME", help="start at this time, UTC unless it has a zone")
    add_format(parser, "text", "json")


def run(args: argparse.Namespace) -> int:
    """Run one command, or an interactive session. Raises Failure."""
    typed = _take_options(args)
    if args.lake is None and args.source is None:
        raise Failure("give a controller directory, a segment or a checkpoint, or a lake with --lake")
    if args.lake is None:
        source = open_captured(args.source, args.settings.shown_configs)
    else:
        source = open_lake(args.lake, args.cluster)
    try:
        image = source.image_at()
        wanted = args.at_offset or args.at_time
        if wanted is not None:
            image = image_at(source, parse_moment(wanted, image.timestamp), image.timestamp)
    except (InvalidMomentError, ValueError) as error:
        raise Failure(str(error)) from None
    warn(source.notes, image)
    session = Session(source, image)
    if typed:
        return _run_one(session, typed, args.format)
    session.interactive = True
    failed = False
    for line in _typed_lines(session):
        session.lines.append(line)
        if line.split() == ["exit"]:
            break
        failed |= not _run_line(session, line, args.format)
    return ExitCode.USAGE if failed and not sys.stdin.isatty() else ExitCode.FINE


def _take_options(args: argparse.Namespace) -> Sequence[str]:
    """Parse options after the path, too, which argparse assigns to the command."""
    parser = argparse.ArgumentParser(prog="kraftlake shell", add_help=False)
    _add_options(parser)
    # Only before the command: after it, a word with dashes is an argument of the command.
    leading = next((i for i, word in enumerate(args.command) if word in COMMANDS), len(args.command))
    given = ("lake", "cluster", "at_offset", "at_time", "format")
    parser.set_defaults(**{name: getattr(args, name) for name in given})
    _, unknown = parser.parse_known_args(args.command[:leading], args)
    typed = [*unknown, *args.command[leading:]]
    # With a lake there is no path: the first word belongs to the command.
    return typed if args.lake is None or args.source is None else [str(args.source), *typed]


def _run_one(session: Session, typed: Sequence[str], form: str) -> int:
    try:
        output = execute(session, typed)
    except CommandError as error:
        raise Failure(str(error)) from None
    _print(output, form)
    return ExitCode.USAGE if output.errors else ExitCode.FINE


def _run_line(session: Session, line: str, form: str) -> bool:
    """Run one line of an interactive or piped session. Returns whether it succeeded."""
    try:
        typed = shlex.split(line)
        if typed:
            session.width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            output = execute(session, typed)
            _print(output, form)
            return not output.errors
    except (CommandError, ValueError) as error:
        warn_line(error)
        return False
    except KeyboardInterrupt:
        warn_line("^C")
    return True


def _print(output: CommandOutput, form: str) -> None:
    print_answer(form, output.data, output.text())
    sys.stdout.flush()
    for error in output.errors:
        warn_line(error)


def _typed_lines(session: Session) -> Iterator[str]:
    """The lines of the terminal or of standard input, up to its end."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        _set_up_readline(session)
    while True:
        try:
            line = input(_prompt(session) if is_terminal else "")
        except EOFError:
            return
        except KeyboardInterrupt:
            warn_line("^C")
            continue
        if line.strip():
            yield line


def _prompt(session: Session) -> str:
    is_past = session.image.offset < session.source.last_offset
    return f"@{session.image.offset} {_PROMPT}" if is_past else _PROMPT


def _set_up_readline(session: Session) -> None:
    with contextlib.suppress(ImportError):  # a Python built without it still reads lines
        import readline

        readline.set_completer_delims(" \t")
        readline.parse_and_bind("tab: complete")
        readline.set_completer(
            lambda text, state: next(
                iter(completions(session, readline.get_line_buffer(), text)[state:]), None
            )
        )


def completions(session: Session, line: str, word: str) -> list[str]:
    """Completions of the word being typed: commands, or paths of the tree."""
    before = line[: len(line) - len(word)].split()
    if not before:
        return [f"{name} " for name in COMMANDS if name.startswith(word)]
    if before[0] == "man":
        return [name for name in COMMANDS if name.startswith(word)]
    if before[0] not in COMMANDS or not COMMANDS[before[0]].paths:
        return []
    parent, slash, beginning = word.rpartition("/")
    where = resolve(session, (parent + slash) or ".")
    return sorted(
        f"{parent}{slash}{name}{'/' if isinstance(child, tree.Directory) else ''}"
        for _, node in tree.find(session.root, where)
        if isinstance(node, tree.Directory)
        for name in node.names()
        if name.startswith(beginning) and (child := node.child(name)) is not None
    )
