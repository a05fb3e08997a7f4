"""Copies and followed logs of quorums with one cluster id, told apart by kraft_core.evidence.lives."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from kraft_core.evidence.collected_lives import collected_lives
from kraft_core.evidence.compared_batches import RangeBatches, contested_epochs
from kraft_core.evidence.elsewhere import captured_elsewhere
from kraft_core.evidence.facts import Capture, ClusterFacts, SnapshotFacts
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.batches import Batch
from tests.soundness.captures import Copy, batch_crc, facts_of, held_by
from tests.soundness.claims import Answers, ClaimCheck, Unsound, answers_to
from tests.soundness.drawing import random_copies, random_execution, random_setup
from tests.soundness.execution import Execution, Place
from tests.soundness.following import (
    FollowedLog,
    Follower,
    answered,
    followed_logs,
    observations_of,
    random_followers,
    with_logs,
)
from tests.soundness.unlawful import KINDS

HOUR = 3_600_000
# Of the first quorum: nothing, what a voter's disk forgot, or that the second one began as its clone.
CLONE = "clone"
FAULTS = (None, None, None, "new disk", "second directory", "restored backup", CLONE)


@dataclass(frozen=True, slots=True)
class Strangers:
    """The copies (Copy.life: an index of quorums) of quorums. fault: of the first, one of FAULTS.

    followers: of each quorum. Their answers bear the cluster id, too. forgotten: quorums of which only these
    are left.
    """

    fault: str | None
    quorums: tuple[Execution, ...]
    copies: tuple[Copy, ...]
    followers: tuple[tuple[Follower, ...], ...]
    forgotten: frozenset[int]


@dataclass(frozen=True, slots=True)
class Held:
    """A copy or, of a follower of the quorum `life`, a log."""

    life: int
    copy: Copy | None = None
    follower: Follower | None = None
    log: FollowedLog | None = None


@dataclass(frozen=True, slots=True)
class ToldApart:
    """A life: what it holds, the quorums that this is of, the facts that it gives, and outputs about it."""

    held: tuple[Held, ...]
    quorums: frozenset[int]
    facts: ClusterFacts
    outputs: tuple[Observation, ...]

    @property
    def copies(self) -> tuple[Copy, ...]:
        return tuple(each.copy for each in self.held if each.copy is not None)


def strangers(source: random.Random) -> Strangers:
    """Two or three quorums with the same node ids, at any times; half of them without directory ids."""
    fault = source.choice(FAULTS)
    if fault is None:
        quorums = [random_execution(source)]
        copies = list(random_copies(source, quorums[0]))
    else:
        drawn = next(kind for kind in KINDS if kind.name == fault).draw(source)
        quorums, copies = list(drawn.lives), list(drawn.copies)
    first = quorums[0]
    for number in range(len(quorums), source.choice((2, 2, 3))):
        other = random_execution(source, replace(random_setup(source), seed=number + 1))
        by = _apart(source, first, other)
        drawn_copies = random_copies(source, other) if source.random() < 0.8 else ()
        copies += [replace(_moved(copy, by), life=number) for copy in drawn_copies]
        quorums.append(_later(other, by))
    if source.random() < 0.5:
        copies = [replace(copy, missing=replace(copy.missing, directory_id=True)) for copy in copies]
    source.shuffle(copies)
    others = range(2 if fault == CLONE else 1, len(quorums))
    forgotten = frozenset(others if source.random() < 0.3 else ())
    copies = [copy for copy in copies if copy.life not in forgotten]
    followers = _followers(source, quorums)
    return Strangers(fault, tuple(quorums), tuple(dict.fromkeys(copies)), followers, forgotten)


def _followers(source: random.Random, quorums: Sequence[Execution]) -> tuple[tuple[Follower, ...], ...]:
    """Spools of their own: one whose quorum is another one than before refuses to go on."""
    return tuple(
        tuple(
            replace(follower, number=10 * number + follower.number)
            for follower in random_followers(source, quorum)
        )
        for number, quorum in enumerate(quorums)
    )


def _apart(source: random.Random, first: Execution, other: Execution) -> int:
    """By how many ms the other quorum is moved: before the first, beside it, or after it; never by 0."""
    length, pause = first.at[-1] - first.at[0], source.choice((1, HOUR))
    before, after = -(other.at[-1] - other.at[0]) - pause, length + pause
    return source.choice((before, source.randint(-length, length) or 1, after, 7))


def _moved(copy: Copy, by: int) -> Copy:
    stated = None if copy.stated is None else copy.stated + by
    return replace(copy, stated=stated, file_time=copy.file_time + by)


def _later(quorum: Execution, by: int) -> Execution:
    def moved(times: dict[Place, int]) -> dict[Place, int]:
        return {place: time + by for place, time in times.items()}

    return replace(
        quorum,
        at=[time + by for time in quorum.at],
        appended_at=moved(quorum.appended_at),
        snapshotted_at=moved(quorum.snapshotted_at),
        committed_at=moved(quorum.committed_at),
        stored_at=moved(quorum.stored_at),
    )


def told_apart(drawn: Strangers) -> list[ToldApart]:
    """The lives of the copies and of what was followed, the newest last."""
    every = [Held(copy.life, copy) for copy in drawn.copies]
    for life, followers in enumerate(drawn.followers):
        for each in followers if life not in drawn.forgotten else ():
            every += [Held(life, None, each, log) for log in followed_logs(drawn.quorums[life], each)]
    captures: list[Capture] = []
    batches: list[list[RangeBatches]] = []
    snapshots: list[SnapshotFacts] = []
    for number, held in enumerate(every):
        facts = _facts(drawn, [held])
        captures.append(replace(facts.logs[-1], capture_id=str(number)))
        batches.append(_batches(drawn.quorums[held.life], _log_of(drawn, held)))
        snapshots += [
            replace(s, content_digest=f"{s.header_timestamp} {s.content_digest}", held_in=(str(number),))
            for s in facts.snapshots
        ]
    lives = collected_lives(captures, [run for runs in batches for run in runs], snapshots)
    of_life = {str(n): [captures[int(id_)] for id_ in life.capture_ids] for n, life in enumerate(lives)}
    elsewhere = captured_elsewhere(of_life) if len(lives) > 1 else {}
    found: list[ToldApart] = []
    for n, life in enumerate(lives):
        numbers = [int(id_) for id_ in life.capture_ids]
        held = tuple(every[number] for number in numbers)
        contested = tuple(contested_epochs(run for number in numbers for run in batches[number]))
        facts = replace(_facts(drawn, held), contested_epochs=contested, elsewhere=elsewhere.get(str(n), ()))
        # Of several lives no output is used.
        outputs = _outputs(drawn, {each.life for each in held}, facts) if len(lives) == 1 else ()
        facts = replace(facts, answered=tuple(answered(outputs)))
        found.append(ToldApart(held, frozenset(each.life for each in held), facts, outputs))
    return found


def _outputs(drawn: Strangers, of: Collection[int], facts: ClusterFacts) -> tuple[Observation, ...]:
    """What was answered about quorums; about others than these only what voters' directories tell apart."""
    name = drawn.quorums[0].script.setup.cluster_id
    known = {capture.node_id for capture in facts.captures if capture.directory_id != ZERO_UUID}
    records = (record for record in facts.control_records if record.type == "KRaftVoters" and record.value)
    known |= {voter["voterId"] for record in records for voter in (record.value or {})["voters"]}
    return tuple(
        replace(output, cluster_id=name)
        for number, (quorum, followers) in enumerate(zip(drawn.quorums, drawn.followers, strict=True))
        for follower in followers
        for status, replication in _pairs(observations_of(quorum, [follower]))
        if number in of or any(node in known and id_ != ZERO_UUID for node, id_ in status.voters)
        for output in (status, replication)
    )


def _pairs(outputs: Sequence[Observation]) -> Iterator[tuple[Observation, Observation]]:
    """The status and the replication of each answer."""
    return zip(outputs[::2], outputs[1::2], strict=True)


def _log_of(drawn: Strangers, held: Held) -> Sequence[Batch]:
    if held.log is not None:
        return held.log.batches
    assert held.copy is not None
    return held_by(drawn.quorums[held.life], held.copy).batches


def _facts(drawn: Strangers, every: Sequence[Held]) -> ClusterFacts:
    """As of one quorum, where all is of one."""
    of = {each.life for each in every}
    copies = [each.copy for each in every if each.copy is not None]
    if len(of) == 1:
        (life,) = of
        facts = facts_of((drawn.quorums[life],), tuple(replace(copy, life=0) for copy in copies))
    else:
        facts = facts_of(drawn.quorums, tuple(copies))
    followed: list[Capture] = []
    for life in sorted(of):
        logs = [(e.follower, e.log) for e in every if e.life == life and e.follower and e.log]
        facts = with_logs(facts, drawn.quorums[life], logs)
        followed += facts.followed
    return replace(facts, followed=tuple(followed))


def _batches(quorum: Execution, batches: Sequence[Batch]) -> list[RangeBatches]:
    runs: list[RangeBatches] = []
    for batch in batches:
        if not runs or (runs[-1].leader_epoch, runs[-1].end_offset) != (
            batch.leader_epoch,
            batch.base_offset,
        ):
            runs.append(RangeBatches(batch.leader_epoch))
        runs[-1].bases.append(batch.base_offset)
        runs[-1].contents.append(batch_crc(quorum, batch) << 31 | batch.size_bytes)
        runs[-1].end_offset = batch.end_offset
    return runs


def false_answers(drawn: Strangers, lives: Sequence[ToldApart]) -> Iterator[str]:
    """What the lives say wrongly.

    Logs that nothing tells apart are one life of two quorums: which of them is meant, no capture shows.
    """
    for life in lives:
        answers = answers_to(life.facts, RuleFacts(observations=life.outputs))
        if len(life.quorums) > 1:
            if life.facts.contested_epochs and answers.recovery.is_safe:
                yield f"two histories of one epoch are safe: {answers.recovery.why}"
            continue
        (number,) = life.quorums
        for unsound in _unsound(drawn, number, life, answers):
            yield f"quorum {number}, {unsound.part}, {unsound.claim}: {unsound.words}"


def _unsound(drawn: Strangers, number: int, life: ToldApart, answers: Answers) -> Iterator[Unsound]:
    own = tuple(replace(copy, life=0) for copy in life.copies)
    check = ClaimCheck(drawn.quorums[number], own, answers, drawn.followers[number])
    if number or drawn.fault is None:
        yield from check.unsound()
        return
    # A fault that the copies of this quorum do not show misleads without any stranger, too.
    every = tuple(replace(copy, life=0) for copy in drawn.copies if not copy.life)
    followers = drawn.followers[number]
    if not any(ClaimCheck(drawn.quorums[0], every, followers=followers).unsound_recovery()):
        yield from check.unsound_recovery()
