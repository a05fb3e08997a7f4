"""The shell's commands: those of kafka-metadata-shell, plus at, log, voters and epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from jobs.time_travel import shell_quorum
from jobs.time_travel.moment import FORMS, InvalidMomentError, image_at, iso, parse_moment
from jobs.time_travel.source import MetadataSource, voters_at
from kraft_core.image import change_text, tree
from kraft_core.image.glob import compile_glob
from kraft_core.image.image import Image
from kraft_core.image.kinds import BY_NAME

_GAP = 2


class CommandError(ValueError):
    """The command cannot be executed; the message states why."""


@dataclass
class Session:
    """The user's position in the log (image) and in the tree (directory).

    width: of the terminal in characters, None without one. lines: the input so far.
    """

    source: MetadataSource
    image: Image
    directory: tree.Path = ()
    width: int | None = None
    lines: list[str] = field(default_factory=list[str])
    interactive: bool = False

    @property
    def root(self) -> tree.Directory:
        return tree.root(self.image)


@dataclass(frozen=True)
class CommandOutput:
    """text: line by line. data: the same for JSON. errors: one per path that is missing or unsuitable."""

    text: Callable[[], Iterator[str]]
    data: Callable[[], Any]
    errors: tuple[str, ...] = ()


Found = list[tuple[tree.Path, tree.Node]]


def resolve(session: Session, path: str) -> tree.Path:
    """A path as typed, resolved from the root: . and .. are applied, repeated slashes are one."""
    parts: list[str] = [] if path.startswith("/") else list(session.directory)
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def text_of(path: tree.Path) -> str:
    return "/" + "/".join(path)


def cat(session: Session, targets: Sequence[str]) -> CommandOutput:
    found, errors = _find(session, "cat", targets)
    leaves = [(path, node) for path, node in found if isinstance(node, tree.Leaf)]
    errors += [
        f"cat: {text_of(path)}: Is a directory" for path, node in found if isinstance(node, tree.Directory)
    ]
    return CommandOutput(
        lambda: (leaf.text for _, leaf in leaves),
        lambda: {text_of(path): leaf.data for path, leaf in leaves},
        tuple(errors),
    )


def cd(session: Session, targets: Sequence[str]) -> CommandOutput:
    found, errors = _find(session, "cd", targets or ["/"])
    for path, node in found:
        if isinstance(node, tree.Leaf):
            errors.append(f"cd: {text_of(path)}: not a directory.")
        else:
            session.directory = path
    return _output([], {"directory": text_of(session.directory)}, errors)


def pwd(session: Session, _: Sequence[str]) -> CommandOutput:
    where = text_of(session.directory)
    return _output([where], {"directory": where})


def ls(session: Session, targets: Sequence[str]) -> CommandOutput:
    found, errors = _find(session, "ls", targets or ["."])
    files = [path[-1] for path, node in found if isinstance(node, tree.Leaf)]
    directories = [(path, node) for path, node in found if isinstance(node, tree.Directory)]

    def text() -> Iterator[str]:
        yield from in_columns(files, session.width)
        headed = bool(files) or len(directories) > 1
        for position, (path, node) in enumerate(directories):
            if headed:
                yield from [""] if files or position else []
                yield f"{path[-1] if path else '/'}:"
            yield from in_columns(sorted(node.names()), session.width)

    def data() -> dict[str, Any]:
        listed: dict[str, Any] = {text_of(path): None for path, node in found if isinstance(node, tree.Leaf)}
        return listed | {text_of(path): sorted(node.names()) for path, node in directories}

    return CommandOutput(text, data, tuple(errors))


def find(session: Session, targets: Sequence[str]) -> CommandOutput:
    starts: list[tuple[str, tree.Node]] = []
    errors: list[str] = []
    for target in targets or ["."]:
        found, missing = _find(session, "find", [target])
        errors += missing
        named = all(compile_glob(part) is None for part in target.split("/"))
        starts += [(target if named else text_of(path), node) for path, node in found]

    def below() -> Iterator[str]:
        for start, node in starts:
            yield from _below(start, node)

    return CommandOutput(below, lambda: list(below()), tuple(errors))


def show_tree(session: Session, targets: Sequence[str]) -> CommandOutput:
    found, errors = _find(session, "tree", targets)

    def text() -> Iterator[str]:
        for _, node in found:
            yield from tree_lines(node)

    return CommandOutput(
        text, lambda: {text_of(path): tree.to_json(node) for path, node in found}, tuple(errors)
    )


def tree_lines(node: tree.Node, depth: int = 0) -> Iterator[str]:
    """A node and its descendants, indented by two spaces per level (ShellNodePrinter)."""
    if isinstance(node, tree.Leaf):
        yield "  " * depth + node.text
        return
    for name, child in node.children():
        yield f"{'  ' * depth}{name}:"
        yield from tree_lines(child, depth + 1)


def at(session: Session, moments: Sequence[str]) -> CommandOutput:
    if moments:
        try:
            newest = _newest(session)
            session.image = image_at(session.source, parse_moment(moments[0], newest), newest)
        except InvalidMomentError as error:
            raise CommandError(f"at: {error}") from None
    image = session.image
    where = f"offset {image.offset}, epoch {image.leader_epoch}, {iso(image.timestamp)}"
    opened = ", a metadata transaction is open" if image.in_transaction else ""
    data = {
        "offset": image.offset,
        "leader_epoch": image.leader_epoch,
        "timestamp": image.timestamp,
        "in_transaction": image.in_transaction,
        "last_offset": session.source.last_offset,
    }
    return _output([f"{where}{opened}; the newest offset is {session.source.last_offset}"], data)


def log(session: Session, targets: Sequence[str]) -> CommandOutput:
    """The changes of the things under the paths, up to the session's offset."""
    patterns = [resolve(session, target) for target in targets or ["."]]

    def text() -> Iterator[str]:
        for event in session.source.events(patterns, session.image.offset):
            when = iso(event.timestamp) if event.is_exact else f"at or before {iso(event.timestamp)}"
            yield (
                f"{event.offset:>8}  epoch {event.leader_epoch}  {when}"
                f"  {event.record_type}  {text_of(event.path)}  "
                + change_text.what_changed(event.kind, event.before, event.after)
            )

    def data() -> list[dict[str, Any]]:
        return [
            {
                "offset": event.offset,
                "leader_epoch": event.leader_epoch,
                "timestamp": event.timestamp,
                "is_exact": event.is_exact,
                "record_type": event.record_type,
                "path": text_of(event.path),
                "before": None if event.before is None else BY_NAME[event.kind].row(event.before),
                "after": None if event.after is None else BY_NAME[event.kind].row(event.after),
            }
            for event in session.source.events(patterns, session.image.offset)
        ]

    return CommandOutput(text, data)


def voters(session: Session, _: Sequence[str]) -> CommandOutput:
    sets, offset = session.source.voter_sets(), session.image.offset
    in_force = voters_at(session.source, offset)
    return CommandOutput(
        lambda: shell_quorum.voter_lines(sets, in_force, offset), lambda: shell_quorum.voter_data(sets)
    )


def epochs(session: Session, _: Sequence[str]) -> CommandOutput:
    found = session.source.epochs()
    return CommandOutput(lambda: shell_quorum.epoch_lines(found), lambda: shell_quorum.epoch_data(found))


def history(session: Session, counts: Sequence[str]) -> CommandOutput:
    if not session.interactive:
        raise CommandError("history: only an interactive shell has a history")
    if counts and not counts[0].isdecimal():
        raise CommandError(f"history: {counts[0]!r} is not a number of entries")
    entries = list(enumerate(session.lines))[-int(counts[0]) :] if counts else list(enumerate(session.lines))
    shown = [] if counts and int(counts[0]) == 0 else entries
    return _output([f"{number:5d}  {line}" for number, line in shown], [line for _, line in shown])


def help_(_: Session, __: Sequence[str]) -> CommandOutput:
    lines = [f"{command.usage:<24}{command.summary}" for command in COMMANDS.values()]
    return _output(
        ["The cluster's metadata as a tree of names, at any offset.", "", *lines],
        {name: command.summary for name, command in COMMANDS.items()},
    )


def man(_: Session, names: Sequence[str]) -> CommandOutput:
    command = COMMANDS.get(names[0])
    if command is None:
        raise CommandError(f"man: unknown command {names[0]}. Type help to get a list of commands.")
    lines = [f"{names[0]}: {command.summary}", "", f"usage: {command.usage}", *command.notes]
    return _output(lines, {"name": names[0], "summary": command.summary, "usage": command.usage})


@dataclass(frozen=True)
class Command:
    """arguments: minimum and maximum (None: unlimited). paths: whether they are paths of the tree."""

    run: Callable[[Session, Sequence[str]], CommandOutput]
    usage: str
    summary: str
    arguments: tuple[int, int | None] = (0, None)
    paths: bool = False
    notes: tuple[str, ...] = ()


_GLOBS = "A path may contain *, ? and {a,b}; without a leading / it is relative to the working directory."

COMMANDS: Mapping[str, Command] = {
    "at": Command(
        at,
        "at [MOMENT]",
        "Show or set the moment as of which all other commands read the metadata.",
        (0, 1),
        notes=(f"A moment is {FORMS}.",),
    ),
    "cat": Command(cat, "cat PATH...", "Show the contents of metadata nodes.", (1, None), True, (_GLOBS,)),
    "cd": Command(cd, "cd [PATH]", "Set the current working directory.", (0, 1), True),
    "epochs": Command(epochs, "epochs", "Show the leader epochs of the metadata log.", (0, 0)),
    "exit": Command(lambda _, __: _output([], None), "exit", "Leave the shell.", (0, 0)),
    "find": Command(find, "find [PATH...]", "List everything below the paths.", (0, None), True, (_GLOBS,)),
    "help": Command(help_, "help", "Show all commands.", (0, 0)),
    "history": Command(history, "history [COUNT]", "Show the commands typed so far.", (0, 1)),
    "log": Command(
        log,
        "log [PATH...]",
        "Show the changes under the paths, up to the current moment.",
        (0, None),
        True,
        (_GLOBS, "The path may be one that no longer exists, or does not exist yet."),
    ),
    "ls": Command(ls, "ls [PATH...]", "List metadata nodes.", (0, None), True, (_GLOBS,)),
    "man": Command(man, "man COMMAND", "Show the help text for a command.", (1, 1)),
    "pwd": Command(pwd, "pwd", "Print the current working directory.", (0, 0)),
    "tree": Command(
        show_tree, "tree PATH...", "Show nodes and their descendants as a tree.", (1, None), True, (_GLOBS,)
    ),
    "voters": Command(
        voters,
        "voters",
        "Show the voter sets of the metadata quorum; a star marks the one in force.",
        (0, 0),
        notes=("Only several replicas can prove whether a set is committed: see kraftlake run.",),
    ),
}


def execute(session: Session, typed: Sequence[str]) -> CommandOutput:
    """Runs one command. Raises CommandError."""
    name, arguments = typed[0], list(typed[1:])
    command = COMMANDS.get(name)
    if command is None:
        raise CommandError(f"Unknown command specified: {name}. Type help to get a list of commands.")
    fewest, most = command.arguments
    if len(arguments) < fewest or (most is not None and len(arguments) > most):
        raise CommandError(f"usage: {command.usage}")
    return command.run(session, arguments)


def _find(session: Session, command: str, targets: Sequence[str]) -> tuple[Found, list[str]]:
    found: Found = []
    errors: list[str] = []
    for target in targets:
        matches = list(tree.find(session.root, resolve(session, target)))
        found += matches
        if not matches:
            errors.append(f"{command}: {target}: no such file or directory.")
    return found, errors


def _below(path: str, node: tree.Node) -> Iterator[str]:
    yield path
    if isinstance(node, tree.Directory):
        for name, child in node.children():
            yield from _below(f"{path.rstrip('/')}/{name}", child)


def _newest(session: Session) -> int:
    """The time of the newest record, ms."""
    last = session.source.append_before(session.source.last_offset + 1)
    return session.image.timestamp if last is None else last


def _output(lines: Sequence[str], data: Any, errors: Sequence[str] = ()) -> CommandOutput:
    return CommandOutput(lambda: iter(lines), lambda: data, tuple(errors))


def in_columns(names: Sequence[str], width: int | None) -> Iterator[str]:
    """Names in as many columns as fit, sorted down the columns, as in ls.

    width: in characters; None: one name per line.
    """
    if width is None:
        yield from (name.rstrip() for name in names)
        return
    for height in range(1, len(names) + 1):
        columns = [names[start : start + height] for start in range(0, len(names), height)]
        widths = [max(map(len, column)) + _GAP for column in columns]
        if height == len(names) or sum(widths) <= width:
            for row in zip_longest(*columns, fillvalue=""):
                yield "".join(name.ljust(room) for name, room in zip(row, widths, strict=True)).rstrip()
            return
