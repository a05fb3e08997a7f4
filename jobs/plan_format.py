"""plan format: what kafka-storage would write into a node's log directories, or why it refuses."""

from __future__ import annotations

import argparse
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.plan_text import listed, risk_words, risks_and_steps, step_lines
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_answer
from kraft_core.messages.releases import Release, release_of

if TYPE_CHECKING:
    from kraft_core.plan.format import FormatAnswer
    from kraft_core.storage.formatter import FormatRequest
    from kraft_core.storage.log_dirs import LogDir

META_PROPERTIES = "meta.properties"
_KNOWN = ("4.3", "4.4")
FORMAT_OPTIONS = (
    "server_properties",
    "root",
    "tool",
    "release_version",
    "feature",
    "add_scram",
    "ignore_formatted",
    "standalone",
    "no_initial_controllers",
    "initial_controllers",
)


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `plan format`: those of kafka-storage format, with their names."""
    group = parser.add_argument_group("format")
    group.add_argument(
        "--server-properties", type=local_path, metavar="FILE", help="the node's configuration file"
    )
    group.add_argument(
        "--root",
        type=local_path,
        metavar="FOLDER",
        help="a copy of the node's files, in which its log directories are looked up (default: this machine)",
    )
    group.add_argument(
        "--tool", metavar="RELEASE", help=f"release of kafka-storage to imitate (default: {_KNOWN[0]})"
    )
    group.add_argument("--release-version", metavar="VERSION", help="release of the initial feature levels")
    group.add_argument("--feature", action="append", default=[], metavar="NAME=LEVEL", help="repeatable")
    group.add_argument("--add-scram", action="append", default=[], metavar="CREDENTIAL", help="repeatable")
    group.add_argument(
        "--ignore-formatted",
        action="store_true",
        help="format only the directories that are not formatted yet",
    )
    quorum = group.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", action="store_true", help="as the only voter of a new quorum")
    quorum.add_argument("--no-initial-controllers", action="store_true", help="as a node that joins a quorum")
    quorum.add_argument(
        "--initial-controllers", metavar="ID@HOST:PORT:DIRECTORY_ID,...", help="the voters of a new quorum"
    )


def run(args: argparse.Namespace) -> int:
    """Print the verdict. Raises Failure."""
    tool = args.tool or _KNOWN[0]
    request, release = _request(args), release_of(tool)
    if release is None or release.name not in _KNOWN:
        raise Failure(f"kafka-storage of {tool} is not known; known releases: {', '.join(_KNOWN)}")
    if args.root is not None and not args.root.is_dir():
        # In a folder that is not there every directory would be missing, and formatting it safe.
        raise Failure(f"--root {args.root} is not a folder", ExitCode.NOTHING_READABLE)
    answer = answer_of(args.server_properties, args.root, request, release)
    print_answer(args.format, lambda: as_json(answer), lines(answer))
    return ExitCode.FINE if answer.answer.verdict == "safe" else ExitCode.FOUND


def _request(args: argparse.Namespace) -> FormatRequest:
    """Raises Failure."""
    if len(args.words) != 1:
        raise Failure("format takes the cluster id; see the examples of --help")
    if args.server_properties is None:
        raise Failure("format takes --server-properties FILE, the node's configuration")
    from kraft_core.storage.formatter import FormatRequest

    return FormatRequest(
        args.words[0],
        args.release_version,
        tuple(args.feature),
        args.standalone,
        args.no_initial_controllers,
        args.initial_controllers,
        tuple(args.add_scram),
        args.ignore_formatted,
    )


def answer_of(file: Path, root: Path | None, request: FormatRequest, release: Release) -> FormatAnswer:
    """The answer for a configuration file. Raises Failure."""
    from kraft_core.format.side_files import InvalidSideFileError, read_properties
    from kraft_core.plan.format import NodeToFormat, plan_format
    from kraft_core.storage.node_config import read_node_config
    from kraft_core.storage.tool_error import ToolError

    try:
        entries = read_properties(file.read_text(encoding="latin-1"))
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", ExitCode.NOTHING_READABLE) from None
    except InvalidSideFileError as error:
        raise Failure(f"{file}: {error}", ExitCode.NOTHING_READABLE) from None
    try:
        paths = read_node_config(entries, release).log_dirs
    except ToolError:
        paths = ()
    found = {path: read_log_dir(Path(path) if root is None else root / path.lstrip("/")) for path in paths}
    return plan_format(NodeToFormat(entries, str(file), found), request, release)


def read_log_dir(path: Path) -> LogDir:
    """What is at the path of a log directory."""
    from kraft_core.storage.log_dirs import LogDir

    # Not by Path.exists, which takes a part of the path that is a file, and from Python 3.14 on one that may
    # not be searched, for a directory that is not there.
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return LogDir(exists=False, is_directory=False, is_dangling=path.is_symlink())
    except NotADirectoryError as error:
        return LogDir(exists=False, is_directory=False, unreadable=error.strerror)
    except OSError as error:
        return LogDir(unreadable=error.strerror or str(error))
    if not stat.S_ISDIR(mode):
        return LogDir(is_directory=False)
    try:
        others = tuple(sorted(each.name for each in path.iterdir() if each.name != META_PROPERTIES))
        return LogDir(meta=_content(path / META_PROPERTIES), other_names=others)
    except OSError as error:
        return LogDir(unreadable=error.strerror or str(error))


def _content(meta: Path) -> bytes | None:
    """None where the file is not there. Raises OSError."""
    try:
        return meta.read_bytes()
    except FileNotFoundError:
        return None


def lines(answer: FormatAnswer) -> Iterator[str]:
    """The answer as text."""
    found = answer.answer
    yield f"{found.verdict.replace('_', ' ').upper()}: {found.reason}"
    if answer.thrown is not None:
        yield f"  Kafka's tool prints the stack trace of {answer.thrown}"
    yield f"asked: {found.question}"
    yield from listed("writes", answer.writes)
    yield from listed("prints", answer.prints)
    if answer.info is not None:
        yield from listed(
            f"kafka-storage info now, exit code {answer.info.exit_code}",
            [line.rstrip() for line in answer.info.lines if line],
        )
    yield from listed("missing", found.missing)
    yield from listed("risks", risk_words(found.risks))
    yield from step_lines(found.steps)


def as_json(answer: FormatAnswer) -> dict[str, Any]:
    """The answer as JSON: stable keys."""
    found, info = answer.answer, answer.info
    return {
        "question": found.question,
        "verdict": found.verdict,
        "reason": found.reason,
        "exception": answer.thrown,
        "error_message": found.error_text,
        "writes": list(answer.writes),
        "prints": list(answer.prints),
        "info": None if info is None else {"exit_code": info.exit_code, "lines": list(info.lines)},
        "missing": list(found.missing),
        **risks_and_steps(found.risks, found.steps),
    }
