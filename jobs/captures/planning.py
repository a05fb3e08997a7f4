"""Plan a run: find and identify controller directories, skip with a reason those that cannot be identified.

A directory whose log cannot be read is a capture, too: it shows that nothing is known about that replica.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jobs.captures.broker_dirs import CapturedBrokerDir, find_broker_dirs
from jobs.captures.describe_files import DescribeFile, find_describe_files
from jobs.captures.given_clusters import NONE_GIVEN, GivenClusters
from jobs.runtime.outcome import ExitCode, Failure, UnknownCluster
from jobs.runtime.progress import Counted
from kraft_core.format.capture import capture_id, captured_at, identified_files, identity, missing_ids
from kraft_core.format.controller_dir import (
    ControllerDir,
    fault_lines,
    find_controller_dirs,
    read_controller_dir,
)
from kraft_core.format.errors import FileChangedError
from kraft_core.format.log_dirs import UnreadPath
from transforms.ingest.capture_rows import captured_at_rank
from transforms.ingest.captured_files import CaptureCopy, identity_of

# How often a directory that changes while it is read is identified again; then it is left for the next run.
TRIES = 3
GOES_ON_CHANGING = f"changed during each of {TRIES} attempts to read it; left for the next run"


@dataclass(frozen=True, slots=True)
class Selection:
    """The captures that the command line selects; None where a flag is not given.

    cluster_id: of directories that contain none; given: of whatever lies below a path. unreadable: files
    below the paths that could not be unpacked or fetched, with the reason. verify: read everything again,
    known or not.
    """

    paths: tuple[Path, ...]
    clusters: frozenset[str] = field(default_factory=frozenset)
    cluster_id: str | None = None
    given: GivenClusters = NONE_GIVEN
    node_id: int | None = None
    captured_at: int | None = None
    verify: bool = False
    unreadable: Mapping[Path, str] = field(default_factory=dict)

    def cluster_of(self, path: Path, own: str | None) -> str | None:
        """The cluster id of what lies at a path, whose meta.properties has its own one, or none."""
        return self.given.of(path) or own or self.cluster_id


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Copies of captures, describe outputs and brokers' directories beside them, and what is not read."""

    selection: Selection
    captures: tuple[CaptureCopy, ...]
    left_out: tuple[UnreadPath, ...]
    ignored_files: int = 0
    described: tuple[DescribeFile, ...] = ()
    broker_dirs: tuple[CapturedBrokerDir, ...] = ()

    @property
    def unreadable(self) -> int:
        """How many paths exist, but could not be listed, opened or read: no table says what they hold."""
        return sum(each.is_unreadable for each in self.left_out)

    @property
    def clusters(self) -> set[str]:
        return {c.who.cluster_id for c in self.captures}

    @property
    def size_bytes(self) -> int:
        """Bytes of the segments and checkpoints, known ones included."""
        return sum(f.size_bytes for c in self.captures for f in c.files)

    @property
    def faults(self) -> Iterator[str]:
        """Lines about files of the captures that could not be read, or are invalid."""
        for copy in self.captures:
            yield from fault_lines(copy.directory)


def plan(
    selection: Selection, left_out_before: Iterable[UnreadPath] = (), counted: Counted | None = None
) -> ReadPlan:
    """Find and identify the captures; `left_out_before`: paths that could not be searched.

    counted: counts the directories. Raises Failure for a wrong path or where nothing can be identified.
    """
    for path in selection.paths:
        if not path.exists():
            raise Failure(f"{path} does not exist: give a folder that contains controller directories")
    found = find_controller_dirs(selection.paths, selection.unreadable)
    without_log = [each.path for each in found.without_log]
    brokers = find_broker_dirs(without_log, selection.clusters, selection.cluster_of, selection.unreadable)
    others = (each for each in found.without_log if each.path not in brokers.paths)
    left_out = [*left_out_before, *found.refused, *others, *brokers.left_out]
    with ThreadPoolExecutor(8) as threads:
        identifying = threads.map(lambda d: identified(d, selection), found.directories)
        planned = list((counted or Counted()).each(identifying, len(found.directories)))
    captures: list[CaptureCopy] = []
    for item in planned:
        if isinstance(item, UnreadPath):
            left_out.append(item)
        elif not selection.clusters or item.who.cluster_id in selection.clusters:
            captures.append(item)
    if not captures:
        raise _nothing_to_read(selection, found.directories, left_out)
    if all(_is_nothing_readable(copy.directory) for copy in captures):
        lines = [*_left_out(left_out), *(line for c in captures for line in fault_lines(c.directory))]
        raise Failure(f"no log under {_where(selection)} can be read", ExitCode.NOTHING_READABLE, lines)
    ignored = sum(len(c.directory.deleted) + len(c.directory.unfinished) for c in captures)
    captures.sort(key=_by_capture)
    described = find_describe_files(
        selection.paths, selection.clusters, selection.given.of, selection.unreadable
    )
    left_out += described.left_out
    return ReadPlan(selection, tuple(captures), tuple(left_out), ignored, described.files, brokers.found)


def planned_again(plan: ReadPlan, changed: Iterable[CaptureCopy]) -> ReadPlan:
    """The plan with the captures that have changed as they are now."""
    selection = plan.selection
    again: list[CaptureCopy] = []
    left_out: list[UnreadPath] = []
    for copy in changed:
        log_dir = copy.directory.log_dir
        if not os.path.lexists(log_dir):
            left_out.append(UnreadPath(log_dir, "it no longer exists"))
            continue
        found = identified(read_controller_dir(log_dir, selection.unreadable), selection)
        if isinstance(found, UnreadPath):
            left_out.append(found)
        elif not selection.clusters or found.who.cluster_id in selection.clusters:
            again.append(found)
    return _replaced(plan, changed, again, left_out)


def without(plan: ReadPlan, changed: Iterable[CaptureCopy]) -> ReadPlan:
    """The plan without the captures that keep changing."""
    left_out = [UnreadPath(copy.directory.path, GOES_ON_CHANGING) for copy in changed]
    return _replaced(plan, changed, (), left_out)


def _replaced(
    plan: ReadPlan,
    gone: Iterable[CaptureCopy],
    captures: Iterable[CaptureCopy],
    left_out: Iterable[UnreadPath],
) -> ReadPlan:
    paths = {copy.directory.log_dir for copy in gone}
    kept = [copy for copy in plan.captures if copy.directory.log_dir not in paths]
    return replace(
        plan,
        captures=tuple(sorted([*kept, *captures], key=_by_capture)),
        left_out=(*plan.left_out, *left_out),
    )


def _by_capture(copy: CaptureCopy) -> tuple[Any, ...]:
    """Copies of one capture together, the one with the most reliable time first."""
    rank = captured_at_rank(copy.captured_at_source, copy.captured_at)
    return copy.capture_id, rank, str(copy.directory.path)


def identified(directory: ControllerDir, selection: Selection) -> CaptureCopy | UnreadPath:
    """The copy that a directory is, or why it is none. One that changes meanwhile is read again."""
    if not all(map(_is_text, (directory.path, directory.log_dir))):
        return _unread(directory, "its path is not UTF-8, and cannot be stored in a table: rename it")
    for _ in range(TRIES):
        try:
            return _identified(directory, selection)
        except (FileChangedError, FileNotFoundError):
            directory = read_controller_dir(directory.log_dir, selection.unreadable)
    return _unread(directory, GOES_ON_CHANGING)


def _unread(directory: ControllerDir, reason: str) -> UnreadPath:
    return UnreadPath(directory.path, reason, is_unreadable=bool(directory.unreadable))


def _identified(directory: ControllerDir, selection: Selection) -> CaptureCopy | UnreadPath:
    """The same. FileChangedError, FileNotFoundError: it has changed."""
    given = selection.given.of(directory.path)
    who = identity(directory, selection.cluster_id, selection.node_id, given)
    if who is None and _is_nothing_readable(directory):
        return _unread(directory, "; ".join(fault_lines(directory)))
    if who is None:
        faults = (f" ({fault.reason})" for fault in directory.faults if fault.file == "meta.properties")
        missing = missing_ids(directory)
        flags = {"no cluster id": "it with --cluster-id", "no node id": "it with --node-id"}
        give = flags.get(missing, "them with --cluster-id and --node-id")
        return _unread(directory, f"{missing} in meta.properties{next(faults, '')}; give {give}")
    directory, files = identified_files(directory)
    moment, source = captured_at(directory, selection.captured_at)
    id_ = capture_id(who, directory, files)
    bootstrap = identity_of(directory.bootstrap)
    return CaptureCopy(who, id_, moment, source, directory, tuple(files), bootstrap)


def _is_text(path: Path) -> bool:
    """Whether a path is Unicode: to a file system it may be any bytes."""
    return not any("\ud800" <= char <= "\udfff" for char in str(path))


def _is_nothing_readable(directory: ControllerDir) -> bool:
    return not (directory.log_readable or directory.segments or directory.checkpoints)


def _nothing_to_read(
    selection: Selection, directories: Iterable[ControllerDir], left_out: list[UnreadPath]
) -> Failure:
    """Why there is nothing to read: wrong usage where a flag would help, else nothing readable."""
    where = _where(selection)
    if selection.clusters and directories:
        wanted = sorted(selection.clusters)
        found = {d.meta.cluster_id for d in directories if d.meta is not None and d.meta.cluster_id}
        words = f"no capture under {where} is of cluster {', '.join(wanted)}"
        return UnknownCluster(words, wanted[0], found)
    if any(flag in each.reason for each in left_out for flag in ("--cluster-id", "--node-id")):
        return Failure(
            f"no capture under {where} contains its cluster id and its node id", details=_left_out(left_out)
        )
    sentence = f"no controller directory (one that contains __cluster_metadata-0) under {where}"
    return Failure(sentence, ExitCode.NOTHING_READABLE, _left_out(left_out))


def _where(selection: Selection) -> str:
    return ", ".join(map(str, selection.paths))


def _left_out(paths: Iterable[UnreadPath]) -> list[str]:
    return [f"left out: {path}" for path in paths]
