"""Captured checkpoint files: one row each for what they are, and their records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from kraft_core.columnar.schema import RECORDS
from kraft_core.columnar.timestamps import representable
from kraft_core.format.mapped_file import mapped
from kraft_core.format.snapshot import parse_name, read_snapshot
from transforms.ingest.scanning import FILES, per_file
from transforms.lake import table_files
from transforms.lake.table_files import Task

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
    return files.mapInArrow(per_file(read_checkpoint, CHECKPOINTS), from_arrow_schema(CHECKPOINTS))


def read_checkpoint(file: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """What one checkpoint file is; a file that cannot be opened is damage."""
    row = {"file_number": file["file_number"]} | snapshot_id(file["path"])
    try:
        with mapped(file["path"]) as buf:
            row |= content(buf)
    except OSError as error:
        row |= unreadable(file["size_bytes"], error)
    yield pa.RecordBatch.from_pylist([row], schema=CHECKPOINTS)


def snapshot_id(path: str) -> dict[str, Any]:
    """End offset, epoch and kind by the file's name."""
    named = parse_name(path.rsplit("/", 1)[-1])
    if named is None or named.end_offset == 0:
        return {"end_offset": 0, "leader_epoch": 0, "kind": "bootstrap"}
    return {"end_offset": named.end_offset, "leader_epoch": named.leader_epoch, "kind": "snapshot"}


def content(buf: Any) -> dict[str, Any]:
    """What the bytes of a checkpoint say."""
    snapshot = read_snapshot(buf)
    said = {record.type: record.value for record in snapshot.control_records if record.value is not None}
    voters = said.get("KRaftVoters")
    version = said.get("KRaftVersion")
    return {
        "content_digest": hashlib.sha256(buf).hexdigest(),
        "complete": snapshot.complete,
        "header_at": moment_column(snapshot.header.timestamp if snapshot.header else None),
        "last_contained_log_at": moment_column(snapshot.last_contained_log_timestamp),
        "kraft_version": version["kRaftVersion"] if version else None,
        "voters": [voter_column(v) for v in voters["voters"]] if voters else None,
        "size_bytes": len(buf),
        "damage": [damage(d.position, d.size_bytes, d.sha256, d.reason) for d in snapshot.damage],
    }


def voter_column(voter: Mapping[str, Any]) -> dict[str, Any]:
    """A voter of a VotersRecord as a value of the tables' voters columns."""
    feature = voter["kRaftVersionFeature"]
    return {
        "voter_id": voter["voterId"],
        "directory_id": voter["voterDirectoryId"],
        "endpoints": [{k: e[k] for k in ("name", "host", "port")} for e in voter["endpoints"]],
        "min_kraft_version": feature["minSupportedVersion"],
        "max_kraft_version": feature["maxSupportedVersion"],
    }


def moment_column(ms: int | None) -> int | None:
    """A time that a checkpoint tells, in ms, as the tables' columns can hold it."""
    return None if ms is None else representable(ms)


def unreadable(size_bytes: int, error: OSError) -> dict[str, Any]:
    """A checkpoint that could not be opened."""
    reason = f"unreadable: {error.strerror or error}"
    return {"complete": False, "size_bytes": size_bytes, "damage": [damage(0, size_bytes, None, reason)]}


def damage(position: int, size_bytes: int, sha256: str | None, reason: str) -> dict[str, Any]:
    return {"position": position, "size_bytes": size_bytes, "sha256": sha256, "reason": reason}


def decode_checkpoints(checkpoints: DataFrame, write: Callable[[Task], Task]) -> DataFrame:
    """The records of checkpoints, one row of (key, path) each, in what `write` makes of rows of DECODED: rows
    of table_files.FILES.
    """
    decode = write(per_file(decode_checkpoint, DECODED))
    return checkpoints.mapInArrow(decode, from_arrow_schema(table_files.FILES))


def decode_checkpoint(checkpoint: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """The records of one checkpoint."""
    # Loads the compiled kernel, which the process that plans has no need of.
    from kraft_core.columnar.fast import decode

    for records in decode(checkpoint["path"]):
        key = [pa.repeat(pa.scalar(checkpoint[f.name], f.type), len(records)) for f in KEY_COLUMNS]
        kept = [records[name] for name in DECODED.names[len(key) + 1 :]]
        yield pa.RecordBatch.from_arrays([*key, records["offset"], *kept], schema=DECODED)
