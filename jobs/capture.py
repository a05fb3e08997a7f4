"""kraftlake capture: copy the metadata log directories of running controllers."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.captures.broker_copies import copy_broker_dir
from jobs.captures.copying import CopyError, copy_controller
from jobs.runtime.crash import failure_of
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_line, warn_line
from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME, LOST_AND_FOUND

EXAMPLES = """examples:
  kraftlake capture /var/lib/kafka/metadata --to /backup/controllers
  kraftlake capture /mnt/controller-1 --to /backup/controllers --host controller-1.example.org
  kraftlake capture --broker-dirs /data/kafka-1 /data/kafka-2 --to /backup/brokers

The controller keeps running, and nothing is written to its directory. Each copy is a folder
TO/CLUSTER/node-N/TIME with a capture.json, reported as one JSON line; kraftlake run --captures TO reads it.
With --broker-dirs, copies in TO/CLUSTER/broker-N/TIME show which partitions a broker holds, without messages:
for plan start-broker and restore, and for kraftlake run, which finds replicas that the metadata does not
assign. Copy all brokers first, and the controllers at least 10 s after the last broker: without such newer
captures of the controllers, the state of the partitions is undecided.
exit codes: 0 all were copied, 1 some were not, 2 wrong usage, 3 none were copied, 75 the target is full"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sources",
        type=local_path,
        nargs="+",
        metavar="PATH",
        help="a controller's metadata.log.dir (by default the first of its log.dirs), local or mounted; with "
        "--broker-dirs, a broker's log.dirs",
    )
    parser.add_argument(
        "--broker-dirs",
        action="store_true",
        help="the paths are log directories of brokers: copy their ids and the list of their partitions, "
        "without messages",
    )
    parser.add_argument("--to", type=local_path, required=True, metavar="PATH", help="folder for the copies")
    parser.add_argument(
        "--host",
        default=socket.gethostname(),
        metavar="HOST",
        help="host name of the controller or broker (default: this host)",
    )


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure for a wrong path."""
    if args.to.exists() and not args.to.is_dir():
        raise Failure(f"--to {args.to} is not a folder")
    if args.broker_dirs:
        moment = datetime.now(UTC)
        return _copy_each(args.sources, args.to, lambda source: _broker(source, args.to, moment, args.host))
    directories, left_out = _controller_dirs(args.sources, args.to)
    for line in left_out:
        warn_line(f"kraftlake capture: {line}")
    sources = [directory.path for directory in directories]
    code = _copy_each(sources, args.to, lambda source: _controller(source, args.to, args.host))
    return ExitCode.FOUND if code == ExitCode.FINE and left_out else code


def _copy_each(sources: Sequence[Path], target: Path, copy: Callable[[Path], dict[str, Any]]) -> int:
    """Copy each source, and print what `copy` says of it as a line. Returns the exit code."""
    copied = 0
    for source in sources:
        try:
            line = copy(source)
        except (CopyError, OSError) as error:
            full = failure_of(error, target)
            if full is not None and full.exit_code == ExitCode.TRY_AGAIN:
                raise full from None
            warn_line(f"kraftlake capture: {source}: {_words(error)}")
            continue
        copied += 1
        print_line(json_line(line))
        sys.stdout.flush()
    if not copied:
        return ExitCode.NOTHING_READABLE
    return ExitCode.FINE if copied == len(sources) else ExitCode.FOUND


def _controller(source: Path, target: Path, host: str) -> dict[str, Any]:
    copy = copy_controller(source, target, host)
    return {"path": str(copy.path), **copy.capture, "bytes": copy.size_bytes}


def _broker(source: Path, target: Path, moment: datetime, host: str) -> dict[str, Any]:
    if target.resolve().is_relative_to(source.resolve()):
        raise CopyError(f"{target} is inside it")
    copy = copy_broker_dir(source, target, moment, host)
    line = {"path": str(copy.path), "broker_id": copy.broker_id, "partitions": copy.partitions}
    return {**line, "source": str(source.absolute())}


def _words(error: CopyError | OSError) -> str:
    """Which file could not be copied or written, and why, without the number of the error."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _controller_dirs(sources: list[Path], target: Path) -> tuple[list[ControllerDir], list[str]]:
    """The controller directories at or below the sources, each once, and a line for whatever was left out: a
    source without any, as of a controller that lost its disk, and a folder that cannot be listed.

    Raises Failure for a wrong path, or if there are no directories.
    """
    for source in sources:
        if not source.is_dir():
            raise Failure(f"{source} is not a folder: give a controller's metadata.log.dir")
        if target.resolve().is_relative_to(source.resolve()):
            raise Failure(f"{target} is inside {source}: copies must be outside the controller's directory")
    directories: dict[Path, ControllerDir] = {}
    empty: list[Path] = []
    skipped: list[str] = []
    for source in sources:
        found = find_controller_dirs([source])
        directories |= {each.path.resolve(): each for each in found.directories}
        without = () if found.directories else found.without_log
        refused = (each for each in found.refused if each.path.name != LOST_AND_FOUND)
        skipped += map(str, (*refused, *without))
        if not found.directories:
            empty.append(source)
    if not directories:
        raise Failure(_no_log_below(empty), ExitCode.NOTHING_READABLE, skipped)
    return list(directories.values()), [*skipped, *([_no_log_below(empty)] if empty else [])]


def _no_log_below(sources: list[Path]) -> str:
    where = ", ".join(map(str, sources))
    return f"no {LOG_DIR_NAME} at or below {where}: give a controller's metadata.log.dir"
