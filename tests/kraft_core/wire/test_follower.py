"""The follower of simulated quorums: what it reads is committed, whole, and read once, whatever happens."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraft_core.format.batch import read_header
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.replica import Leader
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import BrokenLogError
from kraft_core.simulation.actions import (
    Crash,
    Elapse,
    Loss,
    NetworkPartition,
    SnapshotLog,
    Start,
    Write,
    random_actions,
)
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.setup import Setup
from kraft_core.wire.errors import LostHistoryError, RecordsGoneError, RefusedError, WireError
from kraft_core.wire.follower import LogFollower, LogPart, Part, Position, SnapshotPart
from kraft_core.wire.observing import FetchAnswer, FetchAsk, KnownLeader, NodeAddress
from tests.kraft_core.wire.simulated import answer, bootstrap, poll


def started(seed: int = 1, **how: int) -> SimulatedQuorum:
    quorum = SimulatedQuorum(Setup(seed, **how))
    quorum.act(Elapse(1_000))
    for _ in range(10):
        quorum.act(Write(2))
        quorum.act(Elapse(60))
    assert quorum.leader() is not None
    return quorum


def read(parts: list[Part]) -> list[tuple[int, int, int]]:
    """Base offset, end offset and epoch of every batch read."""
    found = []
    for part in parts:
        if isinstance(part, LogPart):
            for batch in part.batches:
                assert read_header(part.records, batch.position) == batch
                found.append((batch.base_offset, batch.next_offset, batch.leader_epoch))
    return found


def committed(quorum: SimulatedQuorum) -> list[tuple[int, int, int]]:
    """The leader's batches below its high watermark."""
    leader = quorum.leader()
    assert leader is not None
    assert isinstance(leader.state, Leader)
    watermark = leader.state.progress.high_watermark or 0
    return [
        (batch.base_offset, batch.end_offset, batch.leader_epoch)
        for batch in leader.log.batches
        if leader.log.start_offset <= batch.base_offset and batch.end_offset <= watermark
    ]


def test_reads_the_whole_log_then_what_is_written() -> None:
    quorum = started()
    follower = LogFollower(bootstrap(quorum), "earliest")
    parts = list(poll(quorum, follower, 30))
    assert read(parts) == committed(quorum)
    quorum.act(Write(3))
    quorum.act(Elapse(200))
    parts += poll(quorum, follower, 5)
    assert read(parts) == committed(quorum)
    assert replace(follower.position, crc=None) == Position(*committed(quorum)[-1][1:], quorum.leader().epoch)


def test_latest_begins_at_the_high_watermark_with_the_epoch_below_it() -> None:
    quorum = started()
    before = committed(quorum)
    follower = LogFollower(bootstrap(quorum), "latest")
    assert list(poll(quorum, follower, 10)) == []
    assert follower.is_located
    assert follower.position.offset == before[-1][1]
    assert follower.position.leader_epoch == before[-1][2]
    quorum.act(Write(2))
    quorum.act(Elapse(200))
    assert read(list(poll(quorum, follower, 5))) == committed(quorum)[len(before) :]


def test_an_uncommitted_tail_is_not_read_and_its_successor_is() -> None:
    quorum = started()
    leader = quorum.leader()
    follower = LogFollower(bootstrap(quorum), "earliest")
    parts = list(poll(quorum, follower, 30))
    before = committed(quorum)
    quorum.act(NetworkPartition(1 << leader.key.id))
    quorum.act(Write(3))
    assert quorum.leader().log.end_offset > before[-1][1]
    parts += poll(quorum, follower, 5)
    assert read(parts) == before
    quorum.act(Elapse(2_000))
    quorum.act(Write(2))
    quorum.act(NetworkPartition(0))
    quorum.act(Elapse(2_000))
    parts += poll(quorum, follower, 30)
    assert quorum.leader().key != leader.key
    assert read(parts) == committed(quorum)


def test_a_log_with_snapshots_that_still_begins_at_0_is_read_whole() -> None:
    quorum = started()
    quorum.act(SnapshotLog(quorum.leader().key.id - 1, delete_older=False))
    assert quorum.leader().log.latest_snapshot is not None
    assert quorum.leader().log.start_offset == 0
    follower = LogFollower(bootstrap(quorum), "earliest")
    found, whole = read(list(poll(quorum, follower, 30))), committed(quorum)
    # Record 0 cannot be asked for if its batch ends there.
    assert found == (whole if whole[0][1] > 1 else whole[1:])


def snapshotted() -> SimulatedQuorum:
    quorum = started()
    for node in range(3):
        quorum.act(SnapshotLog(node, delete_older=True))
    quorum.act(Write(2))
    quorum.act(Elapse(500))
    assert quorum.leader().log.start_offset > 10
    return quorum


def test_a_log_that_begins_later_is_read_after_its_snapshot() -> None:
    quorum = snapshotted()
    log = quorum.leader().log
    parts = list(poll(quorum, LogFollower(bootstrap(quorum), "earliest"), 40))
    assert isinstance(parts[0], SnapshotPart)
    assert parts[0].snapshot_id == log.latest_snapshot.id
    assert parts[0].wanted == 0
    assert read(parts) == committed(quorum)
    assert read(parts)[0][0] == log.start_offset == parts[0].end.offset


@pytest.mark.parametrize("again", [False, True], ids=["the earliest snapshot", "a later one, too"])
def test_a_leader_elected_after_the_snapshot_sends_what_follows_it(again: bool) -> None:
    """At its log start it answers only who names the epoch of its earliest snapshot."""
    quorum = snapshotted()
    if again:
        for node in range(3):
            quorum.act(SnapshotLog(node, delete_older=False))
    earlier = quorum.leader()
    quorum.act(NetworkPartition(1 << earlier.key.id))
    quorum.act(Elapse(3_000))
    quorum.act(NetworkPartition(0))
    quorum.act(Write(2))
    quorum.act(Elapse(2_000))
    leader = quorum.leader()
    assert leader.key != earlier.key
    assert (leader.log.latest_snapshot.id.end_offset > leader.log.start_offset) == again
    follower = LogFollower(bootstrap(quorum), "earliest")
    found, whole = read(list(poll(quorum, follower, 60))), committed(quorum)
    # The snapshot covers the first record: where a later one is offered, a batch of one record is not sent.
    assert found == (whole[1:] if again and whole[0][1] == whole[0][0] + 1 else whole)


def test_records_that_are_gone_end_the_reading_unless_it_may_go_on() -> None:
    quorum = snapshotted()
    epoch = committed(quorum)[0][2]
    with pytest.raises(RecordsGoneError, match="from 3 to"):
        list(poll(quorum, LogFollower(bootstrap(quorum), Position(3, epoch)), 10))
    follower = LogFollower(bootstrap(quorum), Position(3, epoch), fail_on_data_loss=False)
    parts = list(poll(quorum, follower, 40))
    assert isinstance(parts[0], SnapshotPart)
    assert parts[0].wanted == 3
    assert read(parts) == committed(quorum)


def test_what_is_deleted_below_the_end_of_a_snapshot_that_was_read_is_no_loss() -> None:
    """Its log begins later when it is asked for; so does that of another leader."""
    quorum = snapshotted()
    epoch, start = quorum.leader().epoch, quorum.leader().log.start_offset
    parts = list(poll(quorum, LogFollower(bootstrap(quorum), Position(3, None, epoch, start)), 10))
    assert not any(isinstance(part, SnapshotPart) for part in parts)
    assert read(parts) == committed(quorum)
    with pytest.raises(RecordsGoneError, match="from 3 to"):
        list(poll(quorum, LogFollower(bootstrap(quorum), Position(3, None, epoch, start - 1)), 10))


def test_an_offset_that_is_not_there_is_refused() -> None:
    quorum = started()
    with pytest.raises(RefusedError, match="the log has no offset 9999: it ends at"):
        list(poll(quorum, LogFollower(bootstrap(quorum), Position(9999)), 10))


def test_another_history_is_a_finding() -> None:
    quorum = started()
    _, end, epoch = committed(quorum)[-1]
    with pytest.raises(LostHistoryError, match="lost committed records"):
        list(poll(quorum, LogFollower(bootstrap(quorum), Position(end + 50, epoch, epoch)), 10))
    quorum.act(Crash(quorum.leader().key.id - 1, 100))
    quorum.act(Elapse(3_000))
    newer = quorum.leader().epoch
    assert newer > epoch
    with pytest.raises(LostHistoryError, match=f"only below {end} "):
        list(poll(quorum, LogFollower(bootstrap(quorum), Position(end + 1, epoch, epoch)), 20))


def formatted_anew(longer: bool = True) -> SimulatedQuorum:
    """Another quorum of the id and epoch of started(), some milliseconds later."""
    quorum = SimulatedQuorum(Setup(1))
    quorum.act(Elapse(1_007))
    for _ in range(15 if longer else 4):
        quorum.act(Write(2))
        quorum.act(Elapse(60))
    assert quorum.leader().epoch == started().leader().epoch
    assert (committed(quorum)[-1][1] > committed(started())[-1][1]) == longer
    return quorum


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize("longer", [True, False])
def test_a_quorum_that_was_formatted_anew_has_another_history(longer: bool, resumed: bool) -> None:
    """Its leader has the epoch that was read, and more records: only the batch itself differs."""
    quorum = started()
    follower = LogFollower(bootstrap(quorum), "earliest")
    list(poll(quorum, follower, 30))
    other = formatted_anew(longer)
    if resumed:
        follower = LogFollower(bootstrap(other), follower.position)
    else:
        follower.failed("the node closed the connection")
    with pytest.raises(LostHistoryError, match="lost committed records"):
        list(poll(other, follower, 20))


def test_whoever_resumes_goes_on_if_the_leader_has_the_batch() -> None:
    quorum = started()
    before = list(poll(quorum, reader := LogFollower(bootstrap(quorum), "earliest"), 30))
    follower = LogFollower(bootstrap(quorum), reader.position)
    assert read(list(poll(quorum, follower, 10))) == []
    quorum.act(Write(2))
    quorum.act(Elapse(200))
    assert read(before + list(poll(quorum, follower, 5))) == committed(quorum)
    for offset in (reader.position.offset - 1, committed(quorum)[-1][1] + 1):
        other = LogFollower(bootstrap(quorum), replace(reader.position, offset=offset))
        with pytest.raises(LostHistoryError, match=r"another batch there|log ends at"):
            list(poll(quorum, other, 10))


def behind_the_first_snapshot() -> tuple[SimulatedQuorum, list[tuple[int, int, int]]]:
    """A quorum whose log begins at 0 and whose only snapshot is of a later epoch than its first batches."""
    quorum = started(static=True)  # without a bootstrap checkpoint 0-0
    former = quorum.leader()
    quorum.act(NetworkPartition(1 << former.key.id))
    quorum.act(Elapse(3_000))
    quorum.act(NetworkPartition(0))
    quorum.act(Write(2))
    quorum.act(Elapse(2_000))
    for node in range(3):
        quorum.act(SnapshotLog(node, delete_older=False))
    log, whole = quorum.leader().log, committed(quorum)
    assert log.start_offset == 0
    assert len(log.snapshots) == 1
    assert whole[0][2] < log.latest_snapshot.id.leader_epoch
    return quorum, whole


@pytest.mark.parametrize("max_batches", [1, 100])
def test_who_is_behind_an_epoch_of_the_first_snapshot_goes_on_with_the_log(
    max_batches: int,
) -> None:
    """A leader offers it the snapshot, though it has the log: nothing was lost."""
    quorum, whole = behind_the_first_snapshot()
    for place, (_, end, epoch) in enumerate(whole[:-1], 1):
        follower = LogFollower(bootstrap(quorum), Position(end, epoch, epoch))
        parts: list[Part] = []
        for _ in range(6 * len(whole)):
            address, ask = follower.ask()
            found = answer(quorum, address, ask)
            if isinstance(found, FetchAnswer) and found.records:
                found = replace(found, records=first_batches(found.records, max_batches))
            part = follower.take(ask, found)
            parts += [part] if part else []
        assert read(parts) == whole[place:]


def first_batches(records: bytes, count: int) -> bytes:
    end = 0
    while count and end < len(records):
        end, count = read_header(records, end).end, count - 1
    return records[:end]


def test_who_is_behind_with_another_record_lost_history() -> None:
    quorum, whole = behind_the_first_snapshot()
    snapshot = quorum.leader().log.latest_snapshot.id
    older = [batch for batch in whole if batch[2] < snapshot.leader_epoch]
    _, end, epoch = older[len(older) // 2]
    for offset, below in ((end, epoch - 1), (snapshot.end_offset, epoch), (snapshot.end_offset + 1, epoch)):
        follower = LogFollower(bootstrap(quorum), Position(offset, below, below))
        with pytest.raises(LostHistoryError, match="lost committed records"):
            list(poll(quorum, follower, 20))


def test_a_new_leader_is_asked_by_the_epoch_that_was_read() -> None:
    """What one leader's log is seen to have says nothing of the next one's."""
    quorum, whole = behind_the_first_snapshot()
    _, end, epoch = whole[1]
    follower = LogFollower(bootstrap(quorum), Position(end, epoch, epoch))
    while follower.ask()[1].last_fetched_epoch in (0, epoch):
        assert list(poll(quorum, follower, 1)) == []
    assert follower.ask()[1].fetch_offset == end - 1
    follower.failed("the connection was closed")
    while follower.leader is None:
        assert list(poll(quorum, follower, 1)) == []
    ask = follower.ask()[1]
    assert (ask.fetch_offset, ask.last_fetched_epoch) == (end, epoch)
    assert read(list(poll(quorum, follower, 20))) == whole[2:]


def test_a_leader_of_an_older_epoch_is_not_followed() -> None:
    """Not even after a restart, whose position remembers who led."""
    quorum = started()
    old = quorum.leader()
    quorum.act(NetworkPartition(1 << old.key.id))
    quorum.act(Elapse(3_000))
    new = quorum.leader()
    assert new.epoch > old.epoch
    stale = quorum.replicas[old.key.id]
    follower = LogFollower([NodeAddress(stale.endpoints[0].host, stale.endpoints[0].port)], "earliest")
    follower._newest_epoch = new.epoch
    assert list(poll(quorum, follower, 10)) == []
    assert follower.position is None
    assert follower.misses == 10
    end = committed(quorum)[-1]
    resumed = LogFollower(follower._bootstrap, Position(end[1], end[2], new.epoch))
    assert list(poll(quorum, resumed, 10)) == []
    assert resumed.misses == 10


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ErrorCode.UNKNOWN_TOPIC_ID, "it is a broker"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it is a broker"),
    ],
)
def test_a_broker_is_refused(error: ErrorCode, said: str) -> None:
    follower = LogFollower([NodeAddress("b", 1)], "earliest")
    _, ask = follower.ask()
    with pytest.raises(RefusedError, match=said):
        follower.take(ask, FetchAnswer(error, KnownLeader(None, 0)))


def leading(quorum: SimulatedQuorum) -> tuple[LogFollower, FetchAsk, FetchAnswer]:
    """A follower, what it asks the leader for the first time, and the answer."""
    follower = LogFollower(bootstrap(quorum), "earliest")
    while True:
        address, ask = follower.ask()
        found = answer(quorum, address, ask)
        if found.error == ErrorCode.NONE:
            return follower, ask, found
        follower.take(ask, found)


def damaged(records: bytes) -> bytes:
    return records[:70] + bytes([records[70] ^ 1]) + records[71:]


@pytest.mark.parametrize("harm", ["crc", "gap", "epoch", "magic"])
def test_what_no_leader_sends_is_not_read(harm: str) -> None:
    follower, ask, found = leading(started())
    first = read_header(found.records, 0)
    if harm == "crc":
        wrong = damaged(found.records)
    elif harm == "gap":
        wrong = found.records[first.end :]
    elif harm == "epoch":
        # The epoch is not covered by the CRC.
        wrong = found.records[:12] + (ask.current_leader_epoch + 1).to_bytes(4, "big") + found.records[16:]
    else:
        wrong = found.records[:16] + b"\1" + found.records[17:]
    with pytest.raises(WireError):
        follower.take(ask, replace(found, records=wrong))


def test_a_cut_batch_waits_for_the_next_answer() -> None:
    follower, ask, found = leading(started())
    second = read_header(found.records, read_header(found.records, 0).end)
    part = follower.take(ask, replace(found, records=found.records[: second.end - 1]))
    assert isinstance(part, LogPart)
    assert len(part.batches) == 1


def test_nothing_above_the_answers_own_high_watermark_is_read() -> None:
    follower, ask, found = leading(started())
    follower.high_watermark = 10_000
    assert follower.take(ask, replace(found, high_watermark=-1)) is None
    second = read_header(found.records, read_header(found.records, 0).end)
    part = follower.take(ask, replace(found, high_watermark=second.next_offset - 1))
    assert part is not None
    assert part.end.offset == second.base_offset


def test_a_snapshot_that_is_deleted_meanwhile_is_replaced_by_the_next() -> None:
    quorum = snapshotted()
    follower = LogFollower(bootstrap(quorum), "earliest")
    while follower._snapshot is None:
        assert list(poll(quorum, follower, 1)) == []
    old = follower._snapshot.snapshot_id
    list(poll(quorum, follower, 1))
    quorum.act(Write(4))
    quorum.act(Elapse(500))
    for node in range(3):
        quorum.act(SnapshotLog(node, delete_older=True))
    leader = quorum.leader()
    newest = leader.log.latest_snapshot
    kept = tuple(s for s in leader.log.snapshots if s.id == newest.id)
    if len(kept) != len(leader.log.snapshots):
        quorum.replicas[leader.key.id] = replace(leader, log=replace(leader.log, snapshots=kept))
    parts = list(poll(quorum, follower, 40))
    assert isinstance(parts[0], SnapshotPart)
    assert parts[0].snapshot_id == newest.id != old
    assert isinstance(parts[0].snapshot_id, EpochEnd)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_whatever_happens_to_many_quorums(seed: int) -> None:
    with suppress(BrokenLogError):
        _follow_a_random_quorum(seed)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1 << 30))
@example(2242)  # an election between a snapshot and the Fetch that follows it
@example(339626)  # a follower behind an epoch of the first snapshot
def test_whatever_happens_to_the_quorum(seed: int) -> None:
    """Also with restarts of the follower from its position, which is all that a checkpoint keeps."""
    with suppress(BrokenLogError):  # a controller that Kafka itself ends
        _follow_a_random_quorum(seed)


def _follow_a_random_quorum(seed: int) -> None:
    quorum = SimulatedQuorum(Setup(seed))
    drawn = random.Random(seed)
    follower = LogFollower(bootstrap(quorum), "earliest", fail_on_data_loss=False)
    parts: list[Part] = []
    for action in random_actions(seed, 60):
        quorum.act(action)
        parts += poll(quorum, follower, drawn.randrange(4))
        if follower.position is not None and drawn.random() < 0.1:
            follower = LogFollower(bootstrap(quorum), follower.position, fail_on_data_loss=False)
    for healing in (NetworkPartition(0), Loss(0, 0), *(Start(0) for _ in range(4)), Elapse(5_000), Write(1)):
        quorum.act(healing)
    quorum.act(Elapse(1_000))
    assert quorum.failure is None
    if quorum.leader() is None:
        return
    follower._bootstrap = tuple(bootstrap(quorum))
    parts += poll(quorum, follower, 200)
    found, whole = read(parts), committed(quorum)
    if not whole:
        return
    snapshots = [part for part in parts if isinstance(part, SnapshotPart)]
    # Each once, in their order, with no gap but those that snapshots close.
    assert found == sorted(set(found))
    ends = {part.end.offset for part in snapshots}
    for (_, end, _), (base, _, _) in pairwise(found):
        assert base == end or base in ends
    # None that the quorum does not have, and none that it has is missing at the end.
    held = {base: (base, end, epoch) for base, end, epoch in whole}
    assert [batch for batch in found if batch[0] >= whole[0][0] and held.get(batch[0]) != batch] == []
    assert whole[-1] == found[-1]
