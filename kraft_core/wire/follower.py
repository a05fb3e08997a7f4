"""What an observer asks next, given the answers: the committed log of a quorum, batch by batch, exactly once.

Its position is always committed, as an answer's records count only below that answer's own high watermark:
the uncommitted tail is asked for again, so its truncation needs no undoing. It follows leaders of rising
epochs only, each of which has every record committed before (KIP-595, Leader Election): a divergence at its
position is a broken promise, not a truncation. It names the epoch of the record below its position, and of
every leader it asks for the batch below it, too: the epoch alone does not tell a quorum that was formatted
anew, as that leads in epoch 1 again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from kraft_core.format.batch import BatchHeader
from kraft_core.format.snapshot import read_snapshot
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.epochs import EpochEnd
from kraft_core.wire.batches import must_follow, whole_batches
from kraft_core.wire.errors import LostHistoryError, RecordsGoneError, RefusedError, WireError, error_name
from kraft_core.wire.observing import (
    MAX_FETCH_BYTES,
    WHO_LEADS,
    FetchAnswer,
    FetchAsk,
    KnownLeader,
    NodeAddress,
    SnapshotAnswer,
    SnapshotAsk,
)

Edge = Literal["earliest", "latest"]
_LED_ELSEWHERE = (
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
_NO_SUCH_LOG = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
# Snapshots are read into memory.
MAX_SNAPSHOT_BYTES = 1 << 30

A_BROKER = (
    "it is a broker, and brokers do not serve the metadata log: give the addresses of controllers (those "
    "in controller.quorum.bootstrap.servers)"
)


@dataclass(frozen=True, slots=True)
class Position:
    """offset: the next to read. leader_epoch: of the record below it, None if that is not known.

    led_in: the newest epoch of a leader that is known to have had all below it; 0 for none. snapshot_end: of
    the snapshot (exclusive) that was read last, where no record of the log was read after it; else 0.
    crc: of the batch that ends at the offset, None if that is not known.
    """

    offset: int
    leader_epoch: int | None = None
    led_in: int = 0
    snapshot_end: int = 0
    crc: int | None = None


@dataclass(frozen=True, slots=True)
class LogPart:
    """Committed batches in their order. records: their bytes; batches: their headers, positions in records.

    first_offset: inclusive; the first batch may begin below it. end: the position after them.
    """

    first_offset: int
    end: Position
    records: bytes
    batches: tuple[BatchHeader, ...]


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A whole snapshot. content: a checkpoint's bytes. wanted: the offset at which the log was wanted.

    end: where the log begins, and the reading goes on.
    """

    snapshot_id: EpochEnd
    content: bytes
    wanted: int
    end: Position


Part = LogPart | SnapshotPart
Ask = FetchAsk | SnapshotAsk


class LogFollower:
    """Reads one quorum's log. Of each ask() the answer goes to take(), a failure to failed().

    position: None until the quorum has answered where the log begins or ends. high_watermark: the largest
    that a leader stated, -1 for none. misses: answers and failures in a row that named no leader to ask. why:
    what the last of them was, in words.
    """

    def __init__(
        self,
        bootstrap: Sequence[NodeAddress],
        start: Edge | Position,
        *,
        fail_on_data_loss: bool = True,
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._next = 0
        self._edge: Edge | None = start if isinstance(start, str) else None
        self.position = None if isinstance(start, str) else start
        if isinstance(start, Position) and start.offset == 0:
            self.position, self._edge = None, "earliest"
        self._fail_on_data_loss = fail_on_data_loss
        self._leader: KnownLeader | None = None
        self._newest_epoch = 0 if self.position is None else _least_epoch(self.position)
        self._skip_below = 0
        self._snapshot: _Download | None = None
        self._reread: _Reread | None = None
        self.high_watermark = -1
        self.misses = 0
        self.why = "no node was contacted yet"

    @property
    def leader(self) -> KnownLeader | None:
        """The leader that is being followed, None while it is looked for."""
        return self._leader

    @property
    def is_located(self) -> bool:
        """Whether position is where reading began, or later: not while it is being found."""
        return self.position is not None and self.position.offset >= self._skip_below

    def ask(self, max_wait_ms: int = 0, max_bytes: int = MAX_FETCH_BYTES) -> tuple[NodeAddress, Ask]:
        """Whom to ask next, and what."""
        if self._leader is None or self._leader.address is None:
            return self._bootstrap[self._next % len(self._bootstrap)], WHO_LEADS
        epoch = self._leader.leader_epoch
        if self._snapshot is not None:
            ask = SnapshotAsk(epoch, self._snapshot.snapshot_id, len(self._snapshot.content), max_bytes)
            return self._leader.address, ask
        if self.position is None:
            return self._leader.address, FetchAsk(epoch, 0, 0, max_bytes=max_bytes)
        offset, below = self.position.offset, self.position.leader_epoch
        if self._reread is not None:
            offset, below = offset - (not self._reread.is_same), self._reread.leader_epoch
        elif below is None:
            below = epoch
        ask = FetchAsk(epoch, offset, below, self.high_watermark, max_wait_ms, max_bytes)
        return self._leader.address, ask

    def failed(self, why: str) -> None:
        """Nobody answered, or not as Kafka does: the next node is asked who leads."""
        self._leader = None
        self._snapshot = self._reread = None
        self._next += 1
        self.misses += 1
        self.why = why

    def take(self, ask: Ask, answer: FetchAnswer | SnapshotAnswer) -> Part | None:
        """What an answer adds to what was read. Raises WireError for one that no leader gives.

        RefusedError and its subclasses end the reading: LostHistoryError, RecordsGoneError.
        """
        if isinstance(ask, SnapshotAsk):
            assert isinstance(answer, SnapshotAnswer)
            return self._take_piece(ask, answer)
        assert isinstance(answer, FetchAnswer)
        if answer.error == ErrorCode.NONE:
            return self._take_log(ask, answer)
        if answer.error in _LED_ELSEWHERE:
            self._learn(answer)
            return None
        if answer.error in _NO_SUCH_LOG:
            raise RefusedError(A_BROKER)
        raise WireError(f"the node answered Fetch with {error_name(answer.error)}")

    def _learn(self, answer: FetchAnswer) -> None:
        """Follow the leader that a node names, unless it is of an older epoch or the one that refused."""
        named, known = answer.leader, self._leader
        if named.leader_id is None:
            self.failed(f"no leader in epoch {named.leader_epoch}")
        elif named.leader_epoch < self._newest_epoch:
            self.failed(f"a node still reports the leader of epoch {named.leader_epoch}")
        elif named.address is None:
            self.failed(f"the leader, node {named.leader_id}, has no address on this listener")
        elif known is not None and known.leader_epoch == named.leader_epoch:
            self.failed(f"node {known.leader_id} is no longer the leader")
        else:
            self._leader = named
            self._newest_epoch = named.leader_epoch
            self._snapshot = None
            self._reread = _first_reread(self.position)

    def _take_log(self, ask: FetchAsk, answer: FetchAnswer) -> Part | None:
        self.misses = 0
        # A new leader's watermark is unknown, then lower at first (KIP-595).
        self.high_watermark = max(self.high_watermark, answer.high_watermark)
        if self.position is None:
            self._locate(answer)
            # From the beginning an answer has records at once.
            if self.position is None or self.position.offset or self._snapshot is not None:
                return None
        position = self.position
        if answer.diverging is not None:
            raise _diverged(position, answer.diverging)
        if answer.snapshot_id is not None:
            self._begin_snapshot(position, answer)
            return None
        return self._take_batches(position, ask, answer)

    def _locate(self, answer: FetchAnswer) -> None:
        """The first position, by an answer to a Fetch at offset 0."""
        start, watermark = answer.log_start_offset, answer.high_watermark
        if start < 0 or watermark < 0:
            return
        if self._edge == "latest":
            # The record below the high watermark is read for its epoch.
            self._skip_below = watermark
            self.position = Position(max(watermark - 1, start, 1) if watermark > start else watermark)
        elif answer.snapshot_id is None:
            self.position = Position(0, None)
        elif start == 0:
            # At 0 a leader that has a snapshot offers it; at 1 it sends the log from its first batch on.
            self.position = Position(1)
        else:
            self._snapshot = _Download(answer.snapshot_id, 0, start)

    def _begin_snapshot(self, position: Position, answer: FetchAnswer) -> None:
        assert answer.snapshot_id is not None
        start = answer.log_start_offset
        if position.offset == start and position.leader_epoch is None:
            self._begin_log(position, answer.snapshot_id)
            return
        if position.offset < start <= position.snapshot_end:
            # The snapshot that was read has what was deleted since, or is not in the log of another leader.
            self.position = replace(position, offset=start)
            return
        if position.offset >= start >= 0:
            self._begin_reread(position, start, answer.snapshot_id)
            return
        if self._fail_on_data_loss:
            raise RecordsGoneError(position.offset, start)
        self._reread = None
        self._snapshot = _Download(answer.snapshot_id, position.offset, start)

    def _begin_reread(self, position: Position, start: int, snapshot_id: EpochEnd) -> None:
        """Ask for the record below the position, too, by an epoch that the leader answers.

        It directs whoever names an epoch below that of its earliest snapshot to its latest, also where it has
        the log (RaftLog.validateOffsetAndEpoch). Then the epoch of that record proves the same history.
        Raises LostHistoryError where the snapshot disproves it.
        """
        below = position.leader_epoch
        is_older = below is not None and below < snapshot_id.leader_epoch
        is_first = self._reread is not None and self._reread.leader_epoch == below
        if is_first and position.offset - 1 <= start:
            # The batch below is deleted, or the leader answers there for one epoch alone.
            self._reread = None
            return
        is_asked = self._reread is not None and not is_first
        if is_asked or not is_older or not start < position.offset < snapshot_id.end_offset:
            raise _diverged(position, snapshot_id)
        # Record 0 alone is never sent by a leader that has a snapshot, so it is taken to be the same.
        self._reread = _Reread(snapshot_id.leader_epoch, is_same=position.offset == 1)

    def _begin_log(self, position: Position, snapshot_id: EpochEnd) -> None:
        """Ask for the log's first batch as a leader sends it.

        At its log start it answers only who names the epoch of its earliest snapshot, which this is if it
        ends there (KafkaRaftClient.validateOffsetAndEpoch); one offset further any epoch of its log will do.
        """
        if snapshot_id.end_offset == position.offset:
            self.position = replace(position, leader_epoch=snapshot_id.leader_epoch)
        else:
            self.position = replace(position, offset=position.offset + 1)

    def _take_piece(self, ask: SnapshotAsk, answer: SnapshotAnswer) -> Part | None:
        download = self._snapshot
        assert download is not None
        if answer.error != ErrorCode.NONE:
            # Gone, or no leader any more: Kafka does not say. A Fetch tells.
            self.failed(
                f"the node stopped sending snapshot {_text(ask.snapshot_id)} at byte {ask.position}: it "
                f"was deleted, or the leader changed"
            )
            return None
        if answer.size_bytes > MAX_SNAPSHOT_BYTES:
            raise RefusedError(
                f"snapshot {_text(ask.snapshot_id)} has {answer.size_bytes} bytes, more than the "
                f"{MAX_SNAPSHOT_BYTES} that are read from a leader: load a copy of the checkpoint with "
                'spark.read.format("kraft")'
            )
        if answer.position != ask.position or not (answer.piece or answer.size_bytes == ask.position):
            raise WireError(f"the leader sent byte {answer.position} of a snapshot, not {ask.position}")
        self.misses = 0
        download.content += answer.piece
        if len(download.content) < answer.size_bytes:
            return None
        self._snapshot = None
        content = bytes(download.content)
        missing = read_snapshot(content).incomplete
        if missing:
            raise WireError(f"snapshot {_text(download.snapshot_id)} arrived incomplete: {missing}")
        end = download.snapshot_id.end_offset
        self.position = Position(download.log_start, None, ask.current_leader_epoch, end)
        return SnapshotPart(download.snapshot_id, content, download.wanted, self.position)

    def _take_batches(self, position: Position, ask: FetchAsk, answer: FetchAnswer) -> LogPart | None:
        taken: list[BatchHeader] = []
        end = position
        if self._reread is not None and not self._reread.is_same and not answer.records:
            raise _lost(position, f"the leader's log ends at {position.offset - 1}")
        for batch in whole_batches(answer.records):
            if batch.next_offset <= position.offset:
                self._check_reread(position, batch)
                continue
            if self._reread is not None and not self._reread.is_same:
                raise _other_batch(position, batch)
            if batch.next_offset > answer.high_watermark:
                break
            must_follow(batch, end.offset, end.leader_epoch, ask.current_leader_epoch)
            end = Position(batch.next_offset, batch.leader_epoch, ask.current_leader_epoch, crc=batch.crc)
            taken.append(batch)
        if taken:
            self._reread = None
        self.position = end
        kept = [batch for batch in taken if batch.next_offset > self._skip_below]
        if not kept:
            return None
        first = max(0 if self._edge == "earliest" else position.offset, kept[0].base_offset)
        start = kept[0].position
        moved = tuple(batch._replace(position=batch.position - start) for batch in kept)
        return LogPart(first, end, answer.records[start : kept[-1].end], moved)

    def _check_reread(self, position: Position, batch: BatchHeader) -> None:
        """Compare the batch below the position with what was read there. Raises LostHistoryError."""
        if self._reread is None or batch.next_offset != position.offset:
            return
        if batch.leader_epoch != position.leader_epoch or position.crc not in (None, batch.crc):
            raise _other_batch(position, batch)
        self._reread.is_same = True


@dataclass(slots=True)
class _Reread:
    """leader_epoch: one that the leader answers. is_same: whether it has the record below the position."""

    leader_epoch: int
    is_same: bool = False


@dataclass(slots=True)
class _Download:
    """A snapshot of which `content` is there; wanted and log_start: offsets, see SnapshotPart."""

    snapshot_id: EpochEnd
    wanted: int
    log_start: int
    content: bytearray = field(default_factory=bytearray)


def _first_reread(position: Position | None) -> _Reread | None:
    """The question with which a new leader is followed from a position: whether it has the batch below it."""
    if position is None or position.leader_epoch is None or position.crc is None:
        return None
    return _Reread(position.leader_epoch, is_same=position.offset == 1)


def _least_epoch(position: Position) -> int:
    return max(position.led_in, position.leader_epoch or 0)


def _diverged(position: Position, common: EpochEnd) -> RefusedError:
    if position.leader_epoch is None:
        return RefusedError(
            f"the log has no offset {position.offset}: it ends at {common.end_offset}; start at earliest, "
            "latest or an offset of the log"
        )
    has = f"the leader has it only below {common.end_offset} (epoch {common.leader_epoch})"
    return _lost(position, has)


def _other_batch(position: Position, batch: BatchHeader) -> LostHistoryError:
    return _lost(position, f"the leader has another batch there (of epoch {batch.leader_epoch})")


def _lost(position: Position, but: str) -> LostHistoryError:
    return LostHistoryError(
        f"the quorum lost committed records: everything below {position.offset} (epoch "
        f"{position.leader_epoch}) was read as committed, but {but}. Its controllers were reformatted or "
        "restored, or records were lost. Keep what was read, and capture every controller's directory"
    )


def _text(snapshot_id: EpochEnd) -> str:
    return f"{snapshot_id.end_offset}-{snapshot_id.leader_epoch}"
