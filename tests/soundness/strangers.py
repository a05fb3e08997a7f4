"""Copies of several quorums that bear one cluster id, told apart by kraft_core.evidence.lives."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kraft_core.evidence.collected_lives import collected_lives
from kraft_core.evidence.compared_batches import RangeBatches, contested_epochs
from kraft_core.evidence.elsewhere import captured_elsewhere
from kraft_core.evidence.facts import Capture, ClusterFacts
from tests.soundness.captures import Copy, batch_crc, facts_of, held_by
from tests.soundness.claims import Answers, ClaimCheck, Unsound, answers_to
from tests.soundness.drawing import random_copies, random_execution, random_setup
from tests.soundness.execution import Execution, Place
from tests.soundness.unlawful import KINDS

HOUR = 3_600_000
# Of the first quorum: nothing, what a voter's disk forgot, or that the second one began as its clone.
CLONE = "clone"
FAULTS = (None, None, None, "new disk", "second directory", "restored backup", CLONE)


@dataclass(frozen=True, slots=True)
class Strangers:
    """The copies (Copy.life: an index of quorums) of quorums. fault: of the first, one of FAULTS."""

    fault: str | None
    quorums: tuple[Execution, ...]
    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class ToldApart:
    """A life: its copies, the quorums that they are of, and the facts that it gives."""

    copies: tuple[Copy, ...]
    quorums: frozenset[int]
    facts: ClusterFacts


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
        drawn_copies = random_copies(source, other)
        copies += [replace(_moved(copy, by), life=number) for copy in drawn_copies]
        quorums.append(_later(other, by))
    if source.random() < 0.5:
        copies = [replace(copy, missing=replace(copy.missing, directory_id=True)) for copy in copies]
    source.shuffle(copies)
    return Strangers(fault, tuple(quorums), tuple(dict.fromkeys(copies)))


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
    """The lives of the copies, the newest last."""
    captures: list[Capture] = []
    batches: list[list[RangeBatches]] = []
    snapshots = []
    for number, copy in enumerate(drawn.copies):
        facts = _facts(drawn, [copy])
        captures.append(replace(facts.captures[0], capture_id=str(number)))
        batches.append(_batches(drawn.quorums[copy.life], copy))
        snapshots += [
            replace(s, content_digest=f"{s.header_timestamp} {s.content_digest}", held_in=(str(number),))
            for s in facts.snapshots
        ]
    lives = collected_lives(captures, [run for runs in batches for run in runs], snapshots)
    held = {str(n): [captures[int(id_)] for id_ in life.capture_ids] for n, life in enumerate(lives)}
    elsewhere = captured_elsewhere(held) if len(lives) > 1 else {}
    found: list[ToldApart] = []
    for n, life in enumerate(lives):
        numbers = [int(id_) for id_ in life.capture_ids]
        copies = tuple(drawn.copies[number] for number in numbers)
        contested = tuple(contested_epochs(run for number in numbers for run in batches[number]))
        facts = _facts(drawn, copies)
        facts = replace(facts, contested_epochs=contested, elsewhere=elsewhere.get(str(n), ()))
        found.append(ToldApart(copies, frozenset(copy.life for copy in copies), facts))
    return found


def _facts(drawn: Strangers, copies: Sequence[Copy]) -> ClusterFacts:
    """As of one quorum, where the copies are of one."""
    of = {copy.life for copy in copies}
    if len(of) > 1:
        return facts_of(drawn.quorums, tuple(copies))
    return facts_of((drawn.quorums[of.pop()],), tuple(replace(copy, life=0) for copy in copies))


def _batches(quorum: Execution, copy: Copy) -> list[RangeBatches]:
    runs: list[RangeBatches] = []
    for batch in held_by(quorum, copy).batches:
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
        answers = answers_to(life.facts)
        if len(life.quorums) > 1:
            if life.facts.contested_epochs and answers.recovery.is_safe:
                yield f"two histories of one epoch are safe: {answers.recovery.why}"
            continue
        (number,) = life.quorums
        for unsound in _unsound(drawn, number, life.copies, answers):
            yield f"quorum {number}, {unsound.part}, {unsound.claim}: {unsound.words}"


def _unsound(drawn: Strangers, number: int, copies: Sequence[Copy], answers: Answers) -> Iterator[Unsound]:
    own = tuple(replace(copy, life=0) for copy in copies)
    check = ClaimCheck(drawn.quorums[number], own, answers)
    if number or drawn.fault is None:
        yield from check.unsound()
        return
    # A fault that the copies of this quorum do not show misleads without any stranger, too.
    every = tuple(replace(copy, life=0) for copy in drawn.copies if not copy.life)
    if not any(ClaimCheck(drawn.quorums[0], every).unsound_recovery()):
        yield from check.unsound_recovery()
