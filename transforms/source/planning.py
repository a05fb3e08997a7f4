"""From paths to partitions: which ranges of which files a task reads.

Folders are searched while the query is planned. An archive is read by one task, which unpacks it; files
in an object store are fetched by the task that reads them, and deleted when it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.datasource import InputPartition

from kraft_core.format.capture import identity
from kraft_core.format.controller_dir import (
    CheckpointFile,
    ControllerDir,
    Discovery,
    SegmentFile,
    find_controller_dirs,
    is_of_log,
)
from kraft_core.format.log_dirs import UnreadPath
from kraft_core.messages.uuid_text import ZERO_UUID
from transforms.ingest.archives import is_archive
from transforms.ingest.captured_files import FILES_PER_TASK
from transforms.ingest.decoding import LEAST_RANGE_BYTES, RANGE_BYTES
from transforms.ingest.inputs import SCHEME, InputError, Inputs, opened_inputs
from transforms.lake.arrow_rows import Row
from transforms.source.columns import LOG, SNAPSHOT
from transforms.source.errors import SourceError
from transforms.source.filters import Wanted
from transforms.source.options import FileOptions
from transforms.source.rows import Origin

# Into how many tasks a few files are divided, where a range would be smaller than RANGE_BYTES.
USUAL_TASKS = 16
MOST_NAMED, MOST_NODES = 3, 20
NO_IDS = "meta.properties has no cluster id or node id: not read, because option clusterId or nodeId is given"


@dataclass(frozen=True, slots=True)
class FileRange:
    """A part of a file: the batches that begin from position `start` on, before `end`.

    path: on this machine, or the URL that it is fetched from. first_offset: of a segment, by its name.
    """

    origin: Origin
    path: str
    size_bytes: int
    first_offset: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Unread:
    """A file or folder of which nothing is read, and why."""

    origin: Origin
    reason: str

    @property
    def row(self) -> Row:
        """As damage."""
        return {
            "position": 0,
            "size_bytes": 0,
            "sha256": None,
            "reason": self.reason,
            "lost_from_offset": None,
            "lost_to_offset": None,
        }


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What is read of some paths. found: the cluster and node of each controller directory there.

    chosen: how many of these are read.
    """

    pieces: tuple[FileRange, ...]
    unread: tuple[Unread, ...]
    found: tuple[tuple[str | None, int | None], ...]
    chosen: int


@dataclass(frozen=True)
class FilesPart(InputPartition):
    """Pieces of files, one after the other, and what is not read."""

    pieces: tuple[FileRange, ...]
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True)
class PathPart(InputPartition):
    """A path that one task searches, such as an archive. is_all: whether the query reads nothing else."""

    name: str
    is_all: bool


def partitions(options: FileOptions, wanted: Wanted) -> list[InputPartition]:
    """Raises SourceError for a path that is not there, or where there is nothing to read."""
    archives = [name for name in options.paths if is_packed(name)]
    others = [name for name in options.paths if name not in archives]
    parts: list[InputPartition] = [PathPart(name, len(options.paths) == 1) for name in archives]
    if others:
        found = planned(others, options, wanted)
        if not found.found and not archives:
            raise nothing_found(others, found.unread)
        if not found.chosen and not found.unread and not archives:
            raise _none_chosen(others, options, found)
        parts += divided(found)
    return parts or [FilesPart(())]


def is_packed(name: str) -> bool:
    """Whether a path is an archive. Raises SourceError where nothing is there, or may not be searched."""
    if SCHEME.match(name):
        return is_archive(name)
    try:
        if not Path(name).exists():
            raise SourceError(f"{name} does not exist: give a folder that contains controller directories")
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror or error}") from None
    return is_archive(name) and Path(name).is_file()


def planned(names: Sequence[str], options: FileOptions, wanted: Wanted) -> FoundFiles:
    """What is to be read below folders and URLs. Raises SourceError."""
    try:
        with opened_inputs(names, None) as inputs:
            return plan_of(inputs, options, wanted)
    except InputError as error:
        raise SourceError(str(error)) from None


def plan_of(inputs: Inputs, options: FileOptions, wanted: Wanted) -> FoundFiles:
    """What is to be read of opened inputs."""
    found = find_controller_dirs(inputs.roots, inputs.unreadable)
    pieces: list[FileRange] = []
    chosen = 0
    unread = unread_of(found, inputs)
    for directory in found.directories:
        who = selected(directory, options, inputs)
        if isinstance(who, Unread):
            unread.append(who)
        elif who is not None:
            chosen += 1
            pieces += _pieces(directory, who, inputs, options, wanted)
            unread += _faults(directory, who, inputs)
    ids = tuple(_ids(directory) for directory in found.directories)
    return FoundFiles(tuple(pieces), tuple(unread), ids, chosen)


def unread_of(found: Discovery, inputs: Inputs) -> list[Unread]:
    """What could not be searched; where there is no controller directory at all, also what has none."""
    refused = (*found.refused, *(() if found.directories else found.without_log))
    return [_unread(each, inputs) for each in (*refused, *inputs.left_out)]


def nothing_found(names: Sequence[str], unread: Sequence[Unread]) -> SourceError:
    """Why there is nothing to read."""
    reasons = "".join(f"; {each.origin.file}: {each.reason}" for each in unread[:MOST_NAMED])
    return SourceError(
        f"no controller directory (one that contains __cluster_metadata-0) under {', '.join(names)}{reasons}"
    )


def _none_chosen(names: Sequence[str], options: FileOptions, found: FoundFiles) -> SourceError:
    """Options that choose none of the captures."""
    cluster, node = options.cluster_id, options.node_id
    wanted = [] if cluster is None else [f"cluster {cluster}"]
    wanted += [] if node is None else [f"node {node}"]
    clusters = sorted({each for each, _ in found.found if each})
    nodes = sorted({each for of, each in found.found if each is not None and cluster in (None, of)})
    hint = f"; there is {', '.join(clusters[:MOST_NAMED])}"
    if cluster is None or cluster in clusters:
        hint = f"; there are nodes {', '.join(map(str, nodes[:MOST_NODES]))}"
    return SourceError(f"no capture under {', '.join(names)} is of {' and '.join(wanted)}{hint}")


def _ids(directory: ControllerDir) -> tuple[str | None, int | None]:
    meta = directory.meta
    return (None, None) if meta is None else (meta.cluster_id, meta.node_id)


def _named(path: Path | str, inputs: Inputs) -> str:
    """A path, or a line about one, as its user knows it. A name may be any bytes; in a row it is text."""
    return inputs.named(str(path)).encode(errors="backslashreplace").decode()


def _unread(path: UnreadPath, inputs: Inputs) -> Unread:
    origin = Origin(None, None, None, LOG, _named(path.path, inputs))
    return Unread(origin, f"unreadable: {_named(path.reason, inputs)}")


def selected(directory: ControllerDir, options: FileOptions, inputs: Inputs) -> Origin | Unread | None:
    """Whose the directory is, None if that is not asked for."""
    who = identity(directory)
    meta = directory.meta
    named = Origin(
        (meta and meta.cluster_id) or None,
        meta.node_id if meta else None,
        (meta and meta.directory_id) or ZERO_UUID,
        file=_named(directory.path, inputs),
    )
    if who is None and (options.cluster_id is not None or options.node_id is not None):
        return Unread(named, NO_IDS)
    is_asked = options.cluster_id in (None, named.cluster_id) and options.node_id in (None, named.node_id)
    return named if is_asked else None


def _pieces(
    directory: ControllerDir, who: Origin, inputs: Inputs, options: FileOptions, wanted: Wanted
) -> Iterator[FileRange]:
    bootstrap = () if directory.bootstrap is None else (directory.bootstrap,)
    for file in (*directory.segments, *directory.checkpoints, *bootstrap):
        origin = _origin(file, who, inputs)
        if origin.source in options.include and wanted.from_(origin):
            first = file.base_offset if isinstance(file, SegmentFile) else 0
            yield FileRange(origin, inputs.source_of(file.path), file.size_bytes, first, 0, file.size_bytes)


def _origin(file: SegmentFile | CheckpointFile, who: Origin, inputs: Inputs) -> Origin:
    name = _named(file.path, inputs)
    if isinstance(file, SegmentFile):
        return Origin(who.cluster_id, who.node_id, who.directory_id, LOG, name)
    end, epoch = (0, 0) if file.id is None else (file.id.end_offset, file.id.leader_epoch)
    return Origin(who.cluster_id, who.node_id, who.directory_id, SNAPSHOT, name, end - 1, epoch)


def _faults(directory: ControllerDir, who: Origin, inputs: Inputs) -> Iterator[Unread]:
    """The segments, checkpoints and folders of the log that cannot be read."""
    for fault in filter(is_of_log, directory.unreadable):
        name = _named(directory.path / fault.file, inputs)
        origin = Origin(who.cluster_id, who.node_id, who.directory_id, LOG, name)
        yield Unread(origin, f"unreadable: {fault.reason}")


def divided(plan: FoundFiles) -> list[InputPartition]:
    """The pieces in parts of like size; what lies in a store is fetched whole, by one task."""
    size = sum(piece.size_bytes for piece in plan.pieces)
    most = max(LEAST_RANGE_BYTES, min(RANGE_BYTES, size // USUAL_TASKS))
    pieces = (part for piece in plan.pieces for part in ranges_of(piece, most))
    parts = [FilesPart(tuple(held)) for held in _packed(pieces, most)]
    if plan.unread:
        parts.append(FilesPart((), plan.unread))
    return list[InputPartition](parts)


def ranges_of(piece: FileRange, most: int) -> Iterator[FileRange]:
    """A file in ranges of that size."""
    if SCHEME.match(piece.path) or piece.size_bytes <= most:
        yield piece
        return
    for start in range(0, piece.size_bytes, most):
        end = min(start + most, piece.size_bytes)
        yield FileRange(piece.origin, piece.path, piece.size_bytes, piece.first_offset, start, end)


def _packed(pieces: Iterable[FileRange], most: int) -> Iterator[list[FileRange]]:
    """Successive pieces together, as far as they fit."""
    held: list[FileRange] = []
    size = 0
    for piece in pieces:
        own = piece.end - piece.start
        if held and (size + own > most or len(held) == FILES_PER_TASK):
            yield held
            held, size = [], 0
        held.append(piece)
        size += own
    if held:
        yield held
