"""Parts of a log that a follower read: cut between batches, and packed for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from kraft_core.format.batch import BatchHeader
from kraft_core.wire.batches import whole_batches
from kraft_core.wire.follower import LogPart, Part, Position, SnapshotPart
from transforms.source.columns import LOG, SNAPSHOT

# What a task decodes. Spark passes it on with the task.
PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LivePiece:
    """Batches of a cluster. first_offset: records below it are left out.

    last_offset, leader_epoch: of a snapshot, what is used as offset and epoch of its records.
    """

    cluster_id: str
    content: bytes
    source: str = LOG
    first_offset: int = 0
    last_offset: int | None = None
    leader_epoch: int | None = None


class LivePartition(InputPartition):
    """What one task decodes."""

    def __init__(self, pieces: tuple[LivePiece, ...]) -> None:
        self.pieces = pieces

    def __repr__(self) -> str:
        # The pieces hold records.
        return f"LivePartition({len(self.pieces)} pieces)"


def records_in(part: Part) -> int:
    """How many offsets a part covers; a snapshot counts as one."""
    return part.end.offset - part.first_offset if isinstance(part, LogPart) else 1


def cut(part: LogPart, offset: int) -> tuple[LogPart | None, LogPart]:
    """The batches that end at an offset or below (None: none does), and the others, of which there is one."""
    count = sum(1 for batch in part.batches if batch.next_offset <= offset)
    if not count:
        return None, part
    at = part.batches[count].position
    last = part.batches[count - 1]
    end = Position(last.next_offset, last.leader_epoch, part.end.led_in, crc=last.crc)
    moved = tuple(batch._replace(position=batch.position - at) for batch in part.batches[count:])
    below = replace(part, end=end, records=part.records[:at], batches=part.batches[:count])
    return below, replace(part, first_offset=end.offset, records=part.records[at:], batches=moved)


def end_within(parts: Iterable[Part], start: int, wanted: int, target: int | None) -> Position | None:
    """Where a trigger ends that takes this many records of parts, and at least one batch; None without parts.

    target: an offset beyond which nothing is taken.
    """
    taken, end = 0, None
    for part in parts:
        if isinstance(part, SnapshotPart):
            taken, end = taken + 1, part.end
        else:
            for batch in part.batches:
                size = batch.next_offset - max(batch.base_offset, start)
                beyond = target is not None and batch.next_offset > target
                if beyond or (end is not None and taken + size > wanted):
                    return end
                taken += size
                end = Position(batch.next_offset, batch.leader_epoch, part.end.led_in, crc=batch.crc)
        if taken >= wanted:
            break
    return end


def pieces(cluster_id: str, part: Part) -> Iterator[LivePiece]:
    """A part in pieces of whole batches."""
    if isinstance(part, LogPart):
        for content in _split(part.records, part.batches):
            yield LivePiece(cluster_id, content, LOG, part.first_offset)
        return
    end, epoch = part.snapshot_id.end_offset, part.snapshot_id.leader_epoch
    for content in _split(part.content, tuple(whole_batches(part.content))):
        yield LivePiece(cluster_id, content, SNAPSHOT, 0, end - 1, epoch)


def _split(content: bytes, batches: tuple[BatchHeader, ...]) -> Iterator[bytes]:
    start = 0
    for batch in batches:
        if batch.end - start > PIECE_BYTES and batch.position > start:
            yield content[start : batch.position]
            start = batch.position
    if batches:
        yield content[start : batches[-1].end]


def packed(made: Iterable[LivePiece]) -> Iterator[LivePartition]:
    """The pieces in partitions of about PIECE_BYTES: those of many quiet clusters share one."""
    held: list[LivePiece] = []
    size = 0
    for piece in made:
        if held and size + len(piece.content) > PIECE_BYTES:
            yield LivePartition(tuple(held))
            held, size = [], 0
        held.append(piece)
        size += len(piece.content)
    if held:
        yield LivePartition(tuple(held))
