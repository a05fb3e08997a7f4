"""Captured checkpoint files: one row each, and their records."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame

from kraft_core.columnar.schema import RECORDS
from kraft_core.columnar.timestamps import representable
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import OF_NEWER_KAFKA
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.format.snapshot import cut_off, parse_name, read_snapshot
from transforms.ingest.scanning import FILES
from transforms.ingest.spark_frames import per_file
from transforms.lake import delta_rs, table_files
from transforms.lake.arrow_rows import Row
from transforms.lake.spark_tasks import map_in_arrow
from transforms.lake.storage.location import Location
from transforms.lake.table_files import Task
from transforms.lake.tables import SNAPSHOT_RECORDS, Table

MOMENT = pa.timestamp("ms", tz="UTC")
VOTERS = pa.list_(
    pa.struct(
        [
            ("voter_id", pa.int32()),
            ("directory_id", pa.string()),
            (
                "endpoints",
                pa.list_(pa.struct([("name", pa.string()), ("host", pa.string()), ("port", pa.int32())])),
            ),
            ("min_kraft_version", pa.int16()),
            ("max_kraft_version", pa.int16()),
        ]
    )
)
DAMAGE = pa.list_(
    pa.struct(
        [
            ("position", pa.int64()),
            ("size_bytes", pa.int64()),
            ("sha256", pa.string()),
            ("reason", pa.string()),
        ]
    )
)
CHECKPOINTS = pa.schema(
    [
        FILES.field("file_number"),
        ("end_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("content_digest", pa.string()),
        ("kind", pa.string()),
        ("complete", pa.bool_()),
        ("header_at", MOMENT),
        ("last_contained_log_at", MOMENT),
        ("kraft_version", pa.int16()),
        ("voters", VOTERS),
        ("size_bytes", pa.int64()),
        ("damage", DAMAGE),
    ]
)
SNAPSHOT_KEY = ("cluster_id", "end_offset", "leader_epoch", "content_digest")
KEY_COLUMNS = [pa.field("cluster_id", pa.string()), *(CHECKPOINTS.field(name) for name in SNAPSHOT_KEY[1:])]
# A condition on records by which the statistics of row groups rule out nearly all of them.
IS_LOST = ds.field("unread_reason").is_valid() & ~ds.field("unread_reason").isin(OF_NEWER_KAFKA)
# The columns of records that are those of DAMAGE; of checkpoints, the position is that in the file.
LOST = ("unread_position", "unread_size_bytes", "value_sha256", "unread_reason")
# The records of a checkpoint count offsets of their own: here they are the position.
DECODED = pa.schema(
    [
        *KEY_COLUMNS,
        ("position", pa.int64()),
        *(f for f in RECORDS if f.name not in ("offset", "leader_epoch")),
    ]
)


def read_checkpoints(files: DataFrame) -> DataFrame:
    """Checkpoint files (rows of FILES) to one row each (rows of CHECKPOINTS)."""
    return map_in_arrow(files, per_file(read_checkpoint, CHECKPOINTS), CHECKPOINTS)


def read_checkpoint(file: Row) -> Iterator[pa.RecordBatch]:
    """The row of one checkpoint file; a file that cannot be opened is damage."""
    row = {"file_number": file["file_number"]} | snapshot_id(file["path"])
    try:
        with mapped(file["path"]) as buf:
            row |= _content(buf, is_of_formatting=row["kind"] == "bootstrap")
    except OSError as error:
        row |= _unreadable(file["size_bytes"], error)
    yield pa.RecordBatch.from_pylist([row], schema=CHECKPOINTS)


def snapshot_id(path: str) -> Row:
    """End offset, epoch and kind by the file's name."""
    named = parse_name(path.rsplit("/", 1)[-1])
    if named is None or named.end_offset == 0:
        return {"end_offset": 0, "leader_epoch": 0, "kind": "bootstrap"}
    return {"end_offset": named.end_offset, "leader_epoch": named.leader_epoch, "kind": "snapshot"}


def _content(buf: Any, *, is_of_formatting: bool) -> Row:
    """The columns that the bytes of a checkpoint give."""
    snapshot = read_snapshot(buf)
    missing = cut_off(snapshot, len(buf)) if is_of_formatting else None
    damage = [*snapshot.damage, *([missing] if missing else [])]
    values = {record.type: record.value for record in snapshot.control_records if record.value is not None}
    voters = values.get("KRaftVoters")
    version = values.get("KRaftVersion")
    return {
        "content_digest": hashlib.sha256(buf).hexdigest(),
        "complete": snapshot.complete,
        "header_at": _moment_column(snapshot.header.timestamp if snapshot.header else None),
        "last_contained_log_at": _moment_column(snapshot.last_contained_log_timestamp),
        "kraft_version": version["kRaftVersion"] if version else None,
        "voters": [_voter_column(v) for v in voters["voters"]] if voters else None,
        "size_bytes": len(buf),
        "damage": [_damage(d.position, d.size_bytes, d.sha256, d.reason) for d in damage],
    }


def _voter_column(voter: Mapping[str, Any]) -> Row:
    """A voter of a VotersRecord as a value of the tables' voters columns."""
    feature = voter["kRaftVersionFeature"]
    return {
        "voter_id": voter["voterId"],
        "directory_id": voter["voterDirectoryId"],
        "endpoints": [{k: e[k] for k in ("name", "host", "port")} for e in voter["endpoints"]],
        "min_kraft_version": feature["minSupportedVersion"],
        "max_kraft_version": feature["maxSupportedVersion"],
    }


def _moment_column(ms: int | None) -> int | None:
    """A time of a checkpoint in ms, within the range of the tables' columns."""
    return None if ms is None else representable(ms)


def _unreadable(size_bytes: int, error: OSError) -> Row:
    """A checkpoint that could not be opened."""
    reason = f"unreadable: {error.strerror or error}"
    return {"complete": False, "size_bytes": size_bytes, "damage": [_damage(0, size_bytes, None, reason)]}


def _damage(position: int, size_bytes: int, sha256: str | None, reason: str) -> Row:
    return {"position": position, "size_bytes": size_bytes, "sha256": sha256, "reason": reason}


def decode_checkpoints(
    checkpoints: DataFrame, write: Callable[[Task], Task], allowed: Set[str] = NONE_ALLOWED
) -> DataFrame:
    """Decode checkpoints (rows of SNAPSHOT_KEY and path) and write their records.

    `write` makes rows of table_files.FILES from rows of DECODED. allowed: as in secrets.is_secret_config.
    """
    decode = write(per_file(partial(decode_checkpoint, allowed=allowed), DECODED))
    return map_in_arrow(checkpoints, decode, table_files.FILES)


def decode_checkpoint(checkpoint: Row, allowed: Set[str]) -> Iterator[pa.RecordBatch]:
    """The records of one checkpoint."""
    # Loads the compiled kernel, which the planning process does not need.
    from kraft_core.columnar.fast import decode

    for records in decode(checkpoint["path"], allowed=allowed):
        key = [pa.repeat(pa.scalar(checkpoint[f.name], f.type), len(records)) for f in KEY_COLUMNS]
        kept = [records[name] for name in DECODED.names[len(key) + 1 :]]
        yield pa.RecordBatch.from_arrays([*key, records["offset"], *kept], schema=DECODED)


# --- what the lake holds of them ---


def unknown_checkpoints(lake: Location, table: Table, rows: Iterable[Row]) -> list[Row]:
    """Of rows of CHECKPOINTS with cluster_id and path, one for each checkpoint that a table holds nothing of.

    Those that could not be opened have no key and are not among them.
    """
    ordered = sorted((r for r in rows if r["content_digest"]), key=lambda r: r["path"], reverse=True)
    distinct = {snapshot_key(r): r for r in ordered}
    if not delta_rs.exists(lake, table):
        return list(distinct.values())
    digests = {row["content_digest"] for row in distinct.values()}
    held = delta_rs.arrow_with(lake, table, SNAPSHOT_KEY, content_digest=digests)
    known = {snapshot_key(row) for row in held.group_by(list(SNAPSHOT_KEY)).aggregate([]).to_pylist()}
    return [row for key, row in distinct.items() if key not in known]


def snapshot_key(row: Row) -> tuple[Any, ...]:
    """The key of a row of CHECKPOINTS with cluster_id."""
    return tuple(row[name] for name in SNAPSHOT_KEY)


def with_lost_values(lake: Location, rows: Sequence[Row]) -> list[Row]:
    """Rows of CHECKPOINTS with cluster_id, of which the lake holds the records: the same, with the values of
    records that could not be decoded among their damage.
    """
    digests = {row["content_digest"] for row in rows} - {None}
    if not digests:
        return list(rows)
    lost: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    columns = (*SNAPSHOT_KEY, "position", *LOST)
    found = delta_rs.rows_with(lake, SNAPSHOT_RECORDS, columns, IS_LOST, content_digest=digests)
    for each in sorted(found, key=lambda each: each["position"]):
        lost[snapshot_key(each)].append(_damage(*(each[name] for name in LOST)))
    return [row | {"damage": [*row["damage"], *lost.get(snapshot_key(row), ())]} for row in rows]
