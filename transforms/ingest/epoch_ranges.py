"""The runs of a captured log: maximal stretches of one epoch, from the headers of its batches.

Spark collapses headers to one piece a file and stretch; pieces are then joined across files, so that where a
segment was rolled makes no difference. What Python sees grows with elections, not with batches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FileEpochRange:
    """A stretch of one epoch; field meanings as in captures.runs. `digest` is a 64-bit signed number.

    first_batch, last_batch: hashes that tell its first and last batch from others, kept in no table.
    """

    leader_epoch: int
    first_offset: int
    end_offset: int
    digest: int
    first_appended_at: datetime
    last_appended_at: datetime
    first_batch_end_offset: int
    first_data_end_offset: int | None
    first_data_appended_at: datetime | None
    batches: int
    size_bytes: int
    first_batch: int | None = field(default=None, compare=False)
    last_batch: int | None = field(default=None, compare=False)


# Stretches that agree in these hold the same batches.
SAME = itemgetter("first_offset", "end_offset", "leader_epoch", "digest", "batches", "size_bytes")
KEPT = tuple(name for name in FileEpochRange.__slots__ if name not in ("first_batch", "last_batch"))


def run_pieces(headers: DataFrame) -> DataFrame:
    """One row a file and stretch: the columns of Piece; all damage of a file is a row without an epoch.

    `headers` are scanned batches with their run_index within the file. The digest is the XOR of one hash a
    batch, so that pieces can be joined without their batches.
    """
    end = F.col("last_offset") + 1
    data = ~F.col("is_control")
    identity = F.xxhash64("base_offset", "leader_epoch", "crc", "size_bytes")
    return headers.groupBy("file_number", "run_index", "leader_epoch").agg(
        F.min("base_offset").alias("first_offset"),
        F.max(end).alias("end_offset"),
        F.bit_xor(identity).alias("digest"),
        F.min_by("appended_at", "base_offset").alias("first_appended_at"),
        F.max("appended_at").alias("last_appended_at"),
        F.min_by(end, "base_offset").alias("first_batch_end_offset"),
        F.min_by(F.when(data, end), F.when(data, F.col("base_offset"))).alias("first_data_end_offset"),
        F.min_by(F.when(data, F.col("appended_at")), F.when(data, F.col("base_offset"))).alias(
            "first_data_appended_at"
        ),
        F.count("*").alias("batches"),
        F.sum("size_bytes").alias("size_bytes"),
        F.min_by(identity, "base_offset").alias("first_batch"),
        F.max_by(identity, "base_offset").alias("last_batch"),
    )


def overlap(pieces: Iterable[Row], log_of: Callable[[int], Hashable]) -> bool:
    """Whether two stretches (rows of run_pieces) of one log share an offset: else they share no batch.

    log_of: to which log a file's batches belong, by the file's number.
    """
    logs: dict[Hashable, list[tuple[int, int]]] = {}
    for piece in pieces:
        logs.setdefault(log_of(piece["file_number"]), []).append((piece["first_offset"], piece["end_offset"]))
    followed = chain.from_iterable(pairwise(sorted(held)) for held in logs.values())
    return any(following < end for (_, end), (following, _) in followed)


def of_distinct_files(pieces: Iterable[Row], log_of: Callable[[int], Hashable]) -> list[Row]:
    """The stretches without those of files that hold the same batches as another file of their log."""
    files: dict[int, list[Row]] = {}
    for piece in pieces:
        files.setdefault(piece["file_number"], []).append(piece)
    first: dict[Hashable, list[Row]] = {}
    for number in sorted(files):
        held = tuple(sorted(map(SAME, files[number])))
        first.setdefault((log_of(number), held), files[number])
    return list(chain.from_iterable(first.values()))


def join_pieces(pieces: Iterable[FileEpochRange]) -> list[FileEpochRange]:
    """The runs of one captured log: pieces that follow each other in one epoch become one."""
    runs: list[FileEpochRange] = []
    for piece in sorted(set(pieces), key=lambda p: (p.first_offset, p.leader_epoch, p.end_offset, p.digest)):
        last = runs[-1] if runs else None
        if last and last.leader_epoch == piece.leader_epoch and last.end_offset == piece.first_offset:
            runs[-1] = joined(last, piece)
        else:
            runs.append(piece)
    return runs


def joined(first: FileEpochRange, second: FileEpochRange) -> FileEpochRange:
    """Two pieces of one epoch that follow each other, as one."""
    has_data = first.first_data_end_offset is not None
    return replace(
        first,
        end_offset=second.end_offset,
        digest=first.digest ^ second.digest,
        last_appended_at=max(first.last_appended_at, second.last_appended_at),
        first_data_end_offset=first.first_data_end_offset if has_data else second.first_data_end_offset,
        first_data_appended_at=first.first_data_appended_at if has_data else second.first_data_appended_at,
        batches=first.batches + second.batches,
        size_bytes=first.size_bytes + second.size_bytes,
        last_batch=second.last_batch,
    )
