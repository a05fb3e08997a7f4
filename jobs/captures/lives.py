"""Keep the lives of a cluster id apart: each is a separate cluster to all tables (transforms.lake.lives).

Which lives there are depends on all captures of the id, so that captures that the lake holds may become those
of another life, and their rows move. Table lives is written first and says what was meant: a move that was
interrupted is completed by the next run. The clusters whose rows change are derived again (begin_change).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.captures.scan import Scan
from jobs.runtime.run_record import RunRecord
from transforms.ingest.captured_lives import CapturedLives, ScannedLogs, captured_lives
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.unchanged import check_files
from transforms.lake.arrow_rows import Row, to_arrow
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.lives import captured_life_ids, kafka_id, life_id
from transforms.lake.spark_rows import parse_type, to_frame
from transforms.lake.tables import BATCHES, CAPTURES, LIVES, RECORDS, SEGMENTS, SNAPSHOT_RECORDS, SNAPSHOTS
from transforms.quality.derived_counts import begin_change

# By capture id the columns cluster_id and life of its rows.
Targets = Mapping[str, tuple[str, str | None]]
CHECKPOINT = ("end_offset", "leader_epoch", "content_digest")
_RANGES = "STRUCT<old_id: STRING, epoch: INT, first: BIGINT, end: BIGINT, new_id: STRING>"
_CHECKPOINTS = "STRUCT<end_offset: BIGINT, leader_epoch: INT, content_digest: STRING, new_id: STRING>"


def keep_apart(lake: Lake, files: IngestFiles, scan: Scan, record: RunRecord) -> tuple[IngestFiles, Scan]:
    """The files and their scan under the ids of their lives. Moves rows of the lake whose life changes."""
    checkpoints = [*scan.checkpoints, *files.known_checkpoints]
    logs = ScannedLogs(files, files.ranges(scan.ranges), checkpoints, scan.pieces)
    every = captured_lives(lake.path, files.clusters, logs)
    if not all(each.is_plain for each in every):
        check_files(files)  # what changed while it was read shows nothing
    note_lives(lake, every, record)
    targets = {id_: target for each in every if len(each.lives) > 1 for id_, target in each.targets.items()}
    if not targets:
        return files, scan
    found = with_lives(files, targets)
    share_checkpoints(lake, every, found.known_checkpoints)
    return found, replace(scan, checkpoints=_renamed(scan.checkpoints, found))


def settle_lives(lake: Lake, record: RunRecord) -> None:
    """Complete what an interrupted run began, and note which lives the captures show that the lake holds."""
    noted = rows_with(lake.path, LIVES)
    ids = {row["kafka_cluster_id"] for row in noted} | set(map(kafka_id, captured_life_ids(lake.path)))
    if not ids:
        return
    targets = {
        capture_id: (row["cluster_id"], None if _is_only(row) else row["life"])
        for row in noted
        for capture_id in row["capture_ids"]
    }
    for each in captured_lives(lake.path, ids, None):
        held = each.held()
        move(lake, held, {row["capture_id"]: targets.get(row["capture_id"], _own(row)) for row in held})
    note_lives(lake, captured_lives(lake.path, ids, None), record)


def _is_only(row: Row) -> bool:
    """Whether a row of LIVES is of the only life of its cluster id."""
    return row["cluster_id"] == row["kafka_cluster_id"]


def _own(row: Row) -> tuple[str, str | None]:
    return row["cluster_id"], row["life"]


def note_lives(lake: Lake, every: Iterable[CapturedLives], record: RunRecord) -> None:
    """Write table lives and move the rows of captures whose life is another one than their rows say."""
    for each in every:
        name = each.kafka_cluster_id
        noted = rows_with(lake.path, LIVES, kafka_cluster_id=[name])
        if each.is_plain and not noted:
            continue
        held = each.held()
        rows = each.rows(held)
        several = rows if len(each.lives) > 1 else []
        if each.is_settled and _by_id(noted) == _by_id(several):
            continue
        changed = {row["cluster_id"] for row in (*noted, *held, *rows)}
        begin_change(lake.writer, changed, record.columns)
        _write_lives(lake, name, rows)
        move(lake, held, each.targets)
        if not several:
            _write_lives(lake, name, [])


def _by_id(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["cluster_id"])


def _write_lives(lake: Lake, kafka_cluster_id: str, rows: Sequence[Row]) -> None:
    where = among({"kafka_cluster_id": [kafka_cluster_id]})
    lake.create(LIVES)
    lake.writer.replace_where(LIVES, where, to_arrow(rows, LIVES.arrow_schema))


# --- the files of an ingest ---


def with_lives(files: IngestFiles, targets: Targets) -> IngestFiles:
    """The files, their copies under the ids of their lives."""
    copies = []
    for copy in files.copies:
        cluster_id, life = targets.get(copy.capture_id, (copy.who.cluster_id, None))
        copies.append(replace(copy, who=replace(copy.who, cluster_id=cluster_id), life=life))
    segments = {id(s): replace(s, capture=copies[s.copy]) for s in files.segments}
    found = replace(
        files,
        copies=copies,
        segments=list(segments.values()),
        opened=[segments[id(s)] for s in files.opened],
        checkpoints=[replace(c, capture=copies[c.copy]) for c in files.checkpoints],
    )
    return replace(found, known_checkpoints=_renamed(files.known_checkpoints, found))


def _renamed(checkpoints: Iterable[Row], files: IngestFiles) -> list[Row]:
    """Rows with `copy`, under the ids of the files' copies."""
    return [row | {"cluster_id": files.copies[row["copy"]].who.cluster_id} for row in checkpoints]


# --- rows of the lake ---


def move(lake: Lake, held: Sequence[Row], targets: Targets) -> None:
    """Put the rows of captures under the ids of their lives; captures (rows of CAPTURED) go last."""
    ids = sorted({row["cluster_id"] for row in held} | {targets[row["capture_id"]][0] for row in held})
    if all(row["cluster_id"] == targets[row["capture_id"]][0] for row in held):
        return
    ranges = _frame(lake, _moved_ranges(held, targets), _RANGES)
    for table, offset in ((BATCHES, "base_offset"), (RECORDS, "batch_base_offset")):
        rows = lake.read(table).where(in_clusters(ids))
        inside = (F.col(offset) >= F.col("first")) & (F.col(offset) < F.col("end"))
        same = (F.col("cluster_id") == F.col("old_id")) & (F.col("leader_epoch") == F.col("epoch")) & inside
        moved = _under_new_ids(rows.join(F.broadcast(ranges), same, "left"))
        lake.replace(table, moved.dropDuplicates(list(table.key)), ids)
    wanted = {(*_checkpoint(s), targets[row["capture_id"]][0]) for row in held for s in row["snapshots"]}
    _share(lake, wanted, ids)
    for table in (SEGMENTS, CAPTURES):
        found = rows_with(lake.path, table, cluster_id=ids)
        lake.replace_few(table, to_arrow([_with_target(r, targets) for r in found], table.arrow_schema), ids)


def share_checkpoints(lake: Lake, every: Iterable[CapturedLives], known: Sequence[Row]) -> None:
    """Rows of checkpoints that another life of their cluster id holds, too. known: rows of new captures."""
    for each in every:
        ids = sorted({life_id(each.kafka_cluster_id, life.name) for life in each.lives})
        rows = [row for row in known if row["cluster_id"] in ids]
        held = rows_with(
            lake.path,
            SNAPSHOTS,
            ["cluster_id", *CHECKPOINT],
            cluster_id=ids,
            content_digest={row["content_digest"] for row in rows},
        )
        present = {(*_checkpoint(row), row["cluster_id"]) for row in held}
        wanted = {(*_checkpoint(row), row["cluster_id"]) for row in rows}
        if wanted - present:
            _share(lake, wanted | present, ids)


def _share(lake: Lake, wanted: Iterable[tuple[int, int, str, str]], ids: Sequence[str]) -> None:
    """Put rows of checkpoints under the wanted ids: of CHECKPOINT and new_id."""
    names = (*CHECKPOINT, "new_id")
    places = _frame(lake, (dict(zip(names, each, strict=True)) for each in sorted(wanted)), _CHECKPOINTS)
    for table in (SNAPSHOT_RECORDS, SNAPSHOTS):
        if lake.exists(table):
            rows = lake.read(table).where(in_clusters(ids))
            moved = _under_new_ids(rows.join(F.broadcast(places), list(CHECKPOINT), "left"))
            lake.replace(table, moved.dropDuplicates(list(table.key)), ids)


def _checkpoint(row: Row) -> tuple[int, int, str]:
    return row["end_offset"], row["leader_epoch"], row["content_digest"]


def _moved_ranges(held: Iterable[Row], targets: Targets) -> Iterator[Row]:
    """Rows of _RANGES: what captures hold of each epoch under their old ids; none overlap."""
    every = sorted(
        (
            row["cluster_id"],
            targets[row["capture_id"]][0],
            run["leader_epoch"],
            run["first_offset"],
            run["end_offset"],
        )
        for row in held
        for run in row["epoch_ranges"]
    )
    last: Row | None = None
    for old_id, new_id, epoch, first, end in every:
        place = {"old_id": old_id, "new_id": new_id, "epoch": epoch}
        if last and last | place == last and first <= last["end"]:
            last["end"] = max(last["end"], end)
            continue
        if last:
            yield last
        last = place | {"first": first, "end": end}
    if last:
        yield last


def _frame(lake: Lake, rows: Iterable[Row], type_: str) -> DataFrame:
    schema = parse_type(type_)
    assert isinstance(schema, StructType)
    return to_frame(lake.spark, rows, schema)


def _under_new_ids(rows: DataFrame) -> DataFrame:
    return rows.withColumn("cluster_id", F.coalesce("new_id", "cluster_id"))


def _with_target(row: Row, targets: Targets) -> Row:
    """A row of captures or segments under the id of its life."""
    if row["capture_id"] not in targets:
        return row
    cluster_id, life = targets[row["capture_id"]]
    return row | {"cluster_id": cluster_id} | ({"life": life} if "life" in row else {})
