"""Random lawful executions and random captures of them: small, and often at the edge of an election.

Half of the sets of captures are incomplete: soundness.missing says what their copies lack. In a fifth of them
half of the stated times are wrong: too early for what the copies hold by more than clocks differ. Wrong times
that no file belies are not drawn, for no answer could be true, but those of clocks that differ by seconds
(soundness.clocks), and those of copies that took a while.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from kraft_core.evidence.facts import CLOCK_SKEW_MS
from kraft_core.protocol.replica import Leader
from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy, clock_error
from tests.soundness.clocks import TRUE, random_clock, random_clocks
from tests.soundness.execution import BEGAN_AT, Execution, begin, go_on, is_upgraded, may_lose_disk
from tests.soundness.missing import Missing, random_missing
from tests.soundness.moves import (
    Append,
    ChangeVoters,
    Elect,
    EmptyDisk,
    LawfulMove,
    Pull,
    Reboot,
    UpdateVoter,
    UpgradeKRaftVersion,
    WriteCheckpoint,
)

MOST_MOVES = 22
MOST_BATCHES = 6
MOST_COPIES = 6
_SETUP_SEED = 1  # directory ids; the same in all runs, so that formatted replicas are equal
_KINDS = (Elect, Append, Pull, ChangeVoters, WriteCheckpoint, Reboot, EmptyDisk, UpgradeKRaftVersion)
# How often each is drawn: calm, elections, changes of voters, snapshots and disks.
_WEIGHTS = (
    (3, 6, 10, 1, 1, 0.3, 0.2, 1),
    (8, 5, 9, 1, 0, 0.5, 0.2, 1),
    (4, 4, 10, 5, 0, 0.3, 0.3, 2),
    (3, 6, 10, 2, 3, 1, 0.5, 1),
)
# Of half of the static quorums: an upgrade of kraft.version, and disks that are lost once all voters have it.
_UPGRADING = (2, 5, 14, 1, 0.5, 0.3, 5, 5)
_GAPS = (10, 3_000, 100_000)  # ms between moves: less than a fetch timeout, more, more than a plan's moment


def random_setup(source: random.Random) -> Setup:
    """1 to 5 voters, most often 3, seldom 4 or 5, and up to one observer."""
    voters = source.choice((4, 5)) if source.random() < 0.08 else source.choice((1, 2, 2, 3, 3, 3, 3))
    observers = source.choice((0, 0, 1)) if voters >= 3 else source.choice((0, 1, 1))
    return Setup(_SETUP_SEED, voters, observers, static=source.random() < 0.5)


def random_execution(
    source: random.Random,
    setup: Setup | None = None,
    execution: Execution | None = None,
    *,
    upgrades: bool = True,
) -> Execution:
    """Up to MOST_MOVES moves, drawn among those that can do something where they stand.

    execution: continues that one, else begins a quorum. upgrades: whether a static quorum may become dynamic.
    """
    execution = execution or begin(setup or random_setup(source))
    weights, gap = source.choice(_WEIGHTS), source.choice(_GAPS)
    if not upgrades:
        weights = (*weights[:-1], 0)
    elif execution.script.setup.static and source.random() < 0.5:
        weights = _UPGRADING
    for _ in range(source.randint(3, MOST_MOVES)):
        go_on(execution, gap, _random_move(source, execution, weights))
    return execution


def _random_move(source: random.Random, execution: Execution, weights: tuple[float, ...]) -> LawfulMove:
    """Mostly of the newest leader, sometimes of one that does not know that it lost."""
    replicas = execution.moments[-1]
    slots = sorted(replicas)
    leaders = sorted(
        (s for s in slots if isinstance(replicas[s].state, Leader)), key=lambda s: replicas[s].epoch
    )
    slot = source.choice(slots)
    kind = source.choices(_KINDS, weights)[0]
    if kind is WriteCheckpoint:
        return WriteCheckpoint(slot, source.random() < 0.5)
    if kind is Reboot:
        return Reboot(slot, source.random() < 0.6)
    if kind is EmptyDisk and may_lose_disk(execution, slot):
        return EmptyDisk(slot)
    if not leaders or kind is Elect:
        voters = [s for s in slots if s not in leaders and replicas[s].is_voter]
        nominee = source.choice(voters or slots)
        return Elect(nominee, tuple(s for s in slots if s != nominee and source.random() < 0.7))
    leader = leaders[-1] if source.random() < 0.85 else source.choice(leaders)
    progress = replicas[leader].state
    is_dynamic = replicas[leader].kraft_version > 0
    if kind is ChangeVoters and source.random() < 0.15:
        return UpdateVoter(leader, slot)
    if kind is ChangeVoters and is_dynamic:
        return ChangeVoters(leader, slot, source.random() < 0.5)
    knows = isinstance(progress, Leader) and progress.progress.high_watermark is not None
    if kind is UpgradeKRaftVersion and knows and not is_dynamic:
        return UpgradeKRaftVersion(leader)
    if kind is Append and knows and len(replicas[leader].log.batches) < MOST_BATCHES:
        return Append(leader, source.randint(1, 3))
    follower = source.choice([s for s in slots if s != leader] or slots)
    return Pull(follower, leader, source.choice((0, 1, 1, 2, 3)), source.random() < 0.4)


def random_copies(source: random.Random, execution: Execution) -> tuple[Copy, ...]:
    """Some directories at some moments: at one moment, at a few, or anyhow; of late moments more often."""
    last = len(execution.moments) - 1
    moments = [_late(source, last) for _ in range(source.choice((1, 2, 2, 3)))]
    anyhow = source.random() < 0.4
    stated = source.choice((1.0, 1.0, 0.0, 0.5))
    copies: dict[Copy, None] = {}
    for _ in range(source.randint(1, MOST_COPIES)):
        log_at = _late(source, last) if anyhow else source.choice(moments)
        slot = source.choice(sorted(execution.moments[log_at]))
        files_at = min(last, log_at + 1) if source.random() < 0.1 else log_at
        if execution.moments[files_at][slot].key != execution.moments[log_at][slot].key:
            files_at = log_at
        is_stated = source.random() < stated
        # What cp without -p, a restore or a download leaves is any time.
        file_time = BEGAN_AT + source.randrange(0, 2 * (execution.at[last] - BEGAN_AT) + 1)
        copy = Copy(slot, log_at, files_at, execution.at[log_at] if is_stated else None, file_time)
        copies[copy] = None
    drawn = tuple(copies)
    if source.random() < 0.5:
        drawn = _incomplete(source, execution, drawn)
    if source.random() < 0.2:
        drawn = tuple(_misdated(source, copy) for copy in drawn)
    return drawn


def copies_of_all(source: random.Random, execution: Execution) -> tuple[Copy, ...]:
    """As by a scheduled capture: all directories at about one moment, few of them incomplete or left out."""
    last = len(execution.moments) - 1
    moment = source.randint(0, last)
    slots = sorted(execution.moments[moment])
    copies: list[Copy] = []
    for slot in source.sample(slots, max(1, len(slots) - (source.random() < 0.2))):
        at = min(last, max(0, moment + source.choice((0, 0, 0, 0, 1, -1))))
        at = at if slot in execution.moments[at] else moment
        copy = Copy(slot, at, at, execution.at[at], 0)
        if source.random() < 0.1:
            copy = replace(copy, missing=random_missing(source, execution.moments[at][slot], has_id=True))
        copies.append(copy)
    return tuple(copies)


def copies_around_a_new_disk(source: random.Random, execution: Execution) -> tuple[Copy, ...]:
    """A disk soon after it replaced another, with and without quorum-state, and others before or after."""
    last = len(execution.moments) - 1
    new = [
        (slot, nth)
        for nth in range(1, last + 1)
        for slot, replica in execution.moments[nth].items()
        if slot in execution.moments[nth - 1] and execution.moments[nth - 1][slot].key != replica.key
    ]
    if not new:
        return random_copies(source, execution)
    slot, since = source.choice(new)
    found = [(slot, min(last, since + source.choice((0, 1, 1, 2, 3, 5))))]
    for other in sorted(execution.moments[last]):
        for _ in range(source.choice((0, 1, 1, 2)) if other != slot else source.choice((0, 0, 1))):
            found.append((other, source.randint(max(0, since - 6), last)))
    return tuple(
        Copy(slot, at, at, execution.at[at], 0, missing=Missing(quorum_state=source.random() < 0.3))
        for slot, at in dict.fromkeys(found)
        if slot in execution.moments[at]
    )


def copies_by_other_clocks(source: random.Random, execution: Execution) -> tuple[Copy, ...]:
    """Random copies, with times by the clock of each directory's machine, or of one that copies them all."""
    moments, nodes = len(execution.moments), sorted(execution.moments[-1])
    of_one = dict.fromkeys(nodes, random_clock(source, moments))
    clocks = source.choice((execution.clocks, of_one, random_clocks(source, nodes, moments)))
    return tuple(
        replace(copy, stated=copy.stated + clocks.get(copy.slot, TRUE).fast_at(copy.log_at))
        if copy.stated is not None
        else copy
        for copy in random_copies(source, execution)
    )


def copies_while_running(source: random.Random, execution: Execution) -> tuple[Copy, ...]:
    """Copies that take a while: checkpoints and segments in any order, then the other files.

    The stated time is when copying began.
    """
    last = len(execution.moments) - 1
    copies: list[Copy] = []
    for _ in range(source.randint(1, MOST_COPIES)):
        begun = _late(source, last)
        slot = source.choice(sorted(execution.moments[begun]))
        key = execution.moments[begun][slot].key
        log_at, checkpoints_at = (begun + source.choice((0, 0, 1, 2)) for _ in range(2))
        files_at = max(log_at, checkpoints_at) + source.choice((0, 0, 1, 2))
        if files_at > last or any(
            execution.moments[at][slot].key != key for at in (log_at, checkpoints_at, files_at)
        ):
            log_at = checkpoints_at = files_at = begun
        at = execution.at[begun]
        copies.append(Copy(slot, log_at, files_at, at, 0, begun_at=begun, checkpoints_at=checkpoints_at))
    return tuple(dict.fromkeys(copies))


def _misdated(source: random.Random, copy: Copy) -> Copy:
    early = CLOCK_SKEW_MS + source.choice((1, 1000, 100_000, 3_600_000))
    return replace(copy, early_ms=early) if source.random() < 0.5 else copy


def _incomplete(source: random.Random, execution: Execution, copies: tuple[Copy, ...]) -> tuple[Copy, ...]:
    """The copies without some of their files. Before Kafka 3.7 no directory has an id, and all is static."""
    is_static = execution.script.setup.static and not is_upgraded(execution)
    has_id = not (is_static and source.random() < 0.4)
    return tuple(
        replace(
            copy, missing=random_missing(source, execution.moments[copy.log_at][copy.slot], has_id=has_id)
        )
        for copy in copies
    )


def _late(source: random.Random, last: int) -> int:
    return max(source.randint(1, last), source.randint(1, last)) if last else 0


def fewer_copies(copies: tuple[Copy, ...], gone: int) -> tuple[Copy, ...]:
    return (*copies[:gone], *copies[gone + 1 :])


def moved_back(
    copies: tuple[Copy, ...], before: Execution, places: Sequence[int], execution: Execution
) -> tuple[Copy, ...]:
    """The copies at other moments, by a map of the old ones, with the times that those have."""
    return tuple(
        replace(
            copy,
            log_at=places[copy.log_at],
            files_at=places[copy.files_at],
            stated=None
            if copy.stated is None
            else execution.at[places[copy.begun]] + clock_error(before, copy),
            begun_at=None if copy.begun_at is None else places[copy.begun_at],
            checkpoints_at=None if copy.checkpoints_at is None else places[copy.checkpoints_at],
        )
        for copy in copies
    )
