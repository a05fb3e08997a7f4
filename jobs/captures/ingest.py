"""Ingest captured controller directories: the way from planned copies to rows of the lake.

Order of writes: the big tables (load), then what is derived from them, then captures and segments as the
commit mark. An append skips what its table holds, so a killed run is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from jobs.captures.known_copies import KnownCopies
from jobs.captures.lives import keep_apart
from jobs.captures.load import load
from jobs.captures.new_captures import NewCaptures, known_now, new_captures
from jobs.captures.planning import TRIES, ReadPlan, planned_again, without
from jobs.captures.scan import DAMAGE, scan_files
from jobs.runtime.run_record import RunRecord
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.wording import count
from transforms.ingest.capture_rows import (
    better_row,
    capture_rows,
    copy_columns,
    fullest_segments,
    segment_rows,
)
from transforms.ingest.checkpoints import with_lost_values
from transforms.ingest.failing_files import FilesRefusedError, Load, failing_files, without_files
from transforms.ingest.followed import COMPARED, is_superseded
from transforms.ingest.known_files import IngestFiles, select_files
from transforms.ingest.new_batches import has_lost_values, kraft_versions, lost_values
from transforms.ingest.unchanged import CapturesChangedError, check_fetched, check_files
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.isolation import is_of_task
from transforms.lake.lake import Lake
from transforms.lake.lives import expanded, kafka_id
from transforms.lake.spark_rows import interpreted, to_rows
from transforms.lake.storage import shown_configs
from transforms.lake.tables import BROKER_DIRECTORIES, CAPTURES, LOADED, OBSERVATIONS, SEGMENTS
from transforms.quality.findings import observation_rows

# Of less, Spark holds at most some 100,000 rows of batches.
FEW_BYTES = 64 * 1024 * 1024
# Fetches files that will be opened (transforms.ingest.inputs); returns those that are not what was planned.
Fetch = Callable[[Iterable[Path]], Collection[Path]]


@dataclass(slots=True)
class PendingCommit:
    """Rows of captures, segments, observations and brokers' directories that the run will commit last.

    counts: what it counted. kafka_ids: the cluster ids of meta.properties that captures and segments are of.
    """

    captures: dict[str, Row] = field(default_factory=dict)
    segments: list[Row] = field(default_factory=list)
    observations: list[Row] = field(default_factory=list)
    broker_directories: list[Row] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    kafka_ids: set[str] = field(default_factory=set[str])

    @property
    def clusters(self) -> set[str]:
        rows = (*self.captures.values(), *self.observations, *self.broker_directories)
        return {row["cluster_id"] for row in rows}

    def add(self, row: Row, known: Row | None) -> None:
        """Add a row of captures where it says more than other copies of the capture and the known row."""
        other = self.captures.get(row["capture_id"], known)
        best = better_row(other, row) if other else row
        if best != known:
            self.captures[row["capture_id"]] = best


def ingest_unchanged(
    lake: Lake, plan: ReadPlan, known: KnownCopies, record: RunRecord, fetch: Fetch
) -> PendingCommit:
    """`ingest`, where captures that change while they are read are planned again.

    Those that change under each of TRIES tries are left for the next run. known: as of new_captures.
    """
    tries = 0
    while True:
        try:
            return ingest(lake, plan, new_captures(lake.path, plan, known), record, fetch)
        except CapturesChangedError as error:
            tries += 1
            left_out = len(plan.left_out)
            plan = planned_again(plan, error.copies) if tries < TRIES else without(plan, error.copies)
            for copy in error.copies:
                record.progress.say(f"changed while it was read: {copy.directory.path}")
            for line in plan.left_out[left_out:]:
                record.progress.say(f"left out: {line}")


def ingest(
    lake: Lake,
    plan: ReadPlan,
    new: NewCaptures,
    record: RunRecord,
    fetch: Fetch,
) -> PendingCommit:
    """Read the new captures of the plan and write the big tables. Returns what remains to be committed.

    Raises CapturesChangedError, and has written nothing, where files are not what was planned.
    """
    if not new.unread:
        return without_reading(plan, new)
    files = select_files(lake.path, new.unread, plan.selection.verify)
    check_fetched(files, fetch(files.paths))
    captures, segments, counts = read_apart(lake, files, record, plan.selection.verify)
    new = known_now(lake.path, new)
    pending = without_reading(plan, new)
    pending.counts |= counts
    for row in captures:
        pending.add(row, new.known.get(row["capture_id"]))
    # What was read again without news stays as it was.
    held = {_key(row): row for row in new.segments}
    pending.segments = [row for row in fullest_segments(segments) if not _is_held(row, held.get(_key(row)))]
    return pending


def _key(segment: Row) -> tuple[str, int]:
    return segment["capture_id"], segment["base_offset"]


def _is_held(segment: Row, held: Row | None) -> bool:
    """Whether a row of segments is the held one, or less of the segment was read than for that."""
    if held is None or segment["bytes_read"] > held["bytes_read"]:
        return False
    names = segment.keys() - {column.name for column in LOADED}
    return segment["bytes_read"] < held["bytes_read"] or all(segment[n] == held[n] for n in names)


def without_reading(plan: ReadPlan, new: NewCaptures) -> PendingCommit:
    """What needs no further file to be opened: describe outputs, copies of brokers' directories, and more
    reliable times of known captures.
    """
    counts = {
        "captures": len(plan.captures),
        "captures_read": len(new.unread),
        "left_out": len(plan.left_out),
        "unreadable": plan.unreadable,
        "ignored_files": plan.ignored_files,
        "describe_outputs": len(plan.described),
        "describe_outputs_read": len(new.described),
    }
    kafka_ids = {copy.who.cluster_id for copy in new.unread} | set(map(kafka_id, new.known.values()))
    pending = PendingCommit(counts=counts, kafka_ids=kafka_ids)
    for file in new.described:
        pending.observations += observation_rows(file.cluster_id, file.observation_id, file.observations)
    pending.broker_directories += [each.row for each in new.broker_dirs]
    for copy in plan.captures:
        row = new.known.get(copy.capture_id)
        if row is not None:
            pending.add(row | copy_columns(copy, row), row)
    return pending


def read_apart(
    lake: Lake, files: IngestFiles, record: RunRecord, verify: bool
) -> tuple[list[Row], list[Row], dict[str, int]]:
    """`read_files`, without files that fail a task or are refused; their clusters are noted as failed."""
    try:
        return read_files(lake, files, record)
    except FilesRefusedError as error:
        faults = error.faults
    except Exception as error:
        if not is_of_task(error):
            raise
        with record.progress.stage("find the failing file"), _checked(files):
            faults = failing_files(lake.spark, files, Load(shown_configs(lake.path), record.columns))
        if not faults:
            raise
    for number, found in faults.items():
        copy = files.copies[number]
        for fault in found:
            record.progress.say(f"unreadable: {copy.directory.path}/{fault.file}: {fault.reason}")
            record.failed[copy.who.cluster_id] = f"could not be read: {fault.file}: {fault.reason}"
    return read_apart(
        lake, select_files(lake.path, without_files(files.copies, faults), verify), record, verify
    )


def read_files(
    lake: Lake, files: IngestFiles, record: RunRecord
) -> tuple[list[Row], list[Row], dict[str, int]]:
    """Scan the files and write the big tables. Returns rows of captures and of segments, and counts."""
    with interpreted(lake.spark) if files.size_bytes < FEW_BYTES else nullcontext():
        return _read_files(lake, files, record)


def _read_files(
    lake: Lake, files: IngestFiles, record: RunRecord
) -> tuple[list[Row], list[Row], dict[str, int]]:
    read = {"files": len(files.paths), "bytes": files.size_bytes}
    with (
        record.progress.stage("scan", f"{count(read['files'], 'file')}, {count(read['bytes'], 'byte')}"),
        _checked(files),
    ):
        scan = scan_files(lake.spark, files)
    damage = scan.damage
    try:
        with _checked(files):
            files, scan = keep_apart(lake, files, scan, record)
        with record.progress.stage("write records"):
            with _checked(files):
                written = load(lake, files, scan, record.columns, lambda: check_files(files))
            versions = kraft_versions(lake, files)
            if scan.ranges and has_lost_values(lake, files):
                damage += files.located(to_rows(lost_values(lake, scan.pieces, files).select(*DAMAGE)))
    finally:
        scan.release()
    ranges = files.ranges(scan.ranges)
    checkpoints = with_lost_values(lake.path, [*scan.checkpoints, *files.known_checkpoints])
    captures = capture_rows(files.copies, ranges, checkpoints, damage, versions)
    segments = segment_rows(ranges, {(d["copy"], d["file"]) for d in damage})
    captures, segments = ([row | record.columns for row in rows] for rows in (captures, segments))
    return captures, segments, written | read


@contextmanager
def _checked(files: IngestFiles) -> Iterator[None]:
    """Where reading fails because a file changed, CapturesChangedError: a worker dies of one that shrinks."""
    try:
        yield
    except CapturesChangedError:
        raise
    except Exception:
        check_files(files)
        raise


def commit(lake: Lake, pending: PendingCommit, run_columns: Row) -> None:
    """Write observations, brokers' directories, segments and, last of all, captures.

    From then on their content is known.
    """
    if pending.observations:
        lake.put(OBSERVATIONS, [row | run_columns for row in pending.observations], by="observation_id")
    if pending.broker_directories:
        rows = [row | run_columns for row in pending.broker_directories]
        lake.put(BROKER_DIRECTORIES, rows, by="capture_id")
    if not (pending.segments or pending.captures):
        return
    # A capture's id comes of its cluster id, too: no other one has its rows.
    clusters = expanded(lake.path, pending.kafka_ids)
    if pending.segments:
        lake.put(SEGMENTS, pending.segments, by="capture_id", clusters=clusters)
    if pending.captures:
        lake.put(CAPTURES, list(pending.captures.values()), by="capture_id", clusters=clusters)
        remove_superseded(lake, pending.captures.values())


def remove_superseded(lake: Lake, captures: Iterable[Row]) -> None:
    """Remove what the lake holds of a followed log besides the captures that have it all."""
    followed = [row for row in captures if row["node_id"] == FOLLOWED_NODE_ID]
    if not followed:
        return
    held = rows_with(lake.path, CAPTURES, COMPARED, directory_id={row["directory_id"] for row in followed})
    gone = [row["capture_id"] for row in held if is_superseded(row, followed)]
    if gone:
        for table in (CAPTURES, SEGMENTS):
            lake.writer.replace_where(table, among({"capture_id": gone}))
