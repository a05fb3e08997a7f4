"""Every execution of a small quorum up to a number of moves, and every set of its last directories captured.

Executions that leave the same files give the same answers. So an answer is sound only if it is true in each
of them; and where some definite answer would be true in all of them, the files prove it, and "undecided" is a
weak answer: as far as executions of that length show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from kraft_core.evidence.commit import Status
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.protocol.replica import Candidate, Follower, Leader, Prospective, Replica, Unattached
from kraft_core.raft.batches import Batch
from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy, facts_of
from tests.soundness.execution import Execution, Place, begin, can_be_lost, can_commit, go_on
from tests.soundness.moves import Append, ChangeVoters, Elect, Move, Pull


@dataclass(slots=True)
class Weighed:
    """Verdicts on captured batches: how many, how many of them some proof must exist for, and the faults.

    provable: by execution of the given length; undecided: how many of those were left undecided; weak: the
    first examples of them, and unsound: of false verdicts, each as an execution, its copies and words.
    """

    executions: int = 0
    captures: int = 0
    verdicts: int = 0
    provable: int = 0
    undecided: int = 0
    weak: list[tuple[Execution, tuple[Copy, ...], str]] = field(
        default_factory=list[tuple[Execution, tuple[Copy, ...], str]]
    )
    unsound: list[tuple[Execution, tuple[Copy, ...], str]] = field(
        default_factory=list[tuple[Execution, tuple[Copy, ...], str]]
    )

    @property
    def undecided_share(self) -> float:
        return self.undecided / self.provable if self.provable else 0.0


@dataclass(frozen=True, slots=True)
class _Truth:
    """Of a batch: the statuses that are not false answers, and among them those that a proof may exist for.

    A batch that nobody can lose is rightly called committed, but no rule of KRaft says that it is.
    """

    sound: frozenset[Status]
    provable: frozenset[Status]

    def __and__(self, other: _Truth) -> _Truth:
        return _Truth(self.sound & other.sound, self.provable & other.provable)


@dataclass(slots=True)
class _SameFiles:
    """Executions that leave the same files: one of them, its copies, and what is true in all, by batch."""

    execution: Execution
    copies: tuple[Copy, ...]
    true: dict[Place, _Truth]


def weigh(setup: Setup, most_moves: int) -> Weighed:
    """Judge the verdicts on every set of directories that an execution of this many moves can leave."""
    weighed = Weighed()
    groups: dict[tuple[str, ...], _SameFiles] = {}
    for execution in executions(setup, most_moves):
        weighed.executions += 1
        _enter(groups, execution)
    for group in groups.values():
        weighed.captures += 1
        known = conclude(facts_of((group.execution,), group.copies))
        for place, true in group.true.items():
            _weigh(weighed, known, group, place, true)
    return weighed


def _weigh(weighed: Weighed, known: Conclusions, group: _SameFiles, place: Place, true: _Truth) -> None:
    batch = group.execution.batches[place]
    verdict = known.commit.of_batch(batch.leader_epoch, batch.base_offset, batch.end_offset)
    weighed.verdicts += 1
    weighed.provable += bool(true.provable)
    words = f"{place} is {verdict.status}: {verdict.evidence}; true: {sorted(true.sound)}"
    if verdict.status == "undecided":
        if true.provable:
            weighed.undecided += 1
            weighed.weak.append((group.execution, group.copies, words))
        return
    if verdict.status not in true.sound:
        weighed.unsound.append((group.execution, group.copies, words))


def executions(setup: Setup, most_moves: int) -> Iterator[Execution]:
    """Each state that a quorum reaches by this many moves, once, with one execution that reaches it."""
    begun = begin(setup)
    reached, known = [begun], {_state_of(begun)}
    for _ in range(most_moves):
        following: list[Execution] = []
        for execution in reached:
            for move in _moves(execution):
                further = _copy_of(execution)
                if go_on(further, 0, move) and (state := _state_of(further)) not in known:
                    known.add(state)
                    following.append(further)
                    yield further
        reached = following


def _moves(execution: Execution) -> Iterator[Move]:
    replicas, static = execution.moments[-1], execution.script.setup.static
    slots = sorted(replicas)
    leaders = [slot for slot in slots if isinstance(replicas[slot].state, Leader)]
    for slot in slots:
        others = tuple(other for other in slots if other != slot)
        for count in range(len(others) + 1):
            yield from (Elect(slot, reached) for reached in combinations(others, count))
    for leader in leaders:
        yield Append(leader, 1)
        yield from (Pull(slot, leader, 1, True) for slot in slots if slot != leader)
        if not static:
            yield from (ChangeVoters(leader, slot, False) for slot in slots)


def _copy_of(execution: Execution) -> Execution:
    """The last moment of an execution, to go on from; what was true until then is kept."""
    return Execution(
        execution.script,
        execution.at[-1:],
        execution.moments[-1:],
        execution.high_watermarks[-1:],
        dict(execution.appended_at),
        dict(execution.snapshotted_at),
        dict(execution.batches),
        dict(execution.committed_at),
        dict(execution.stored_at),
        dict(execution.leaders),
        dict(execution.writers),
    )


def _state_of(execution: Execution) -> object:
    """All that decides what can follow but for clocks, and what is true of it."""
    return (
        tuple((slot, _replica_state(replica)) for slot, replica in sorted(execution.moments[-1].items())),
        execution.high_watermarks[-1],
        tuple(sorted(execution.committed_at)),
        tuple(sorted(execution.stored_at)),
    )


def _replica_state(replica: Replica) -> object:
    state = replica.state
    more: object = None
    match state:
        case Leader():
            more = repr(state.progress)
        case Prospective() | Candidate():
            more = repr(state.votes)
        case Unattached() | Follower():
            more = repr((state.leader_id, state.voted))
        case _:
            pass
    return (
        type(state).__name__,
        state.epoch,
        more,
        tuple((batch.base_offset, batch.leader_epoch) for batch in replica.log.batches),
        replica.log.known_high_watermark,
        replica.flushed_offset,
    )


def _enter(groups: dict[tuple[str, ...], _SameFiles], execution: Execution) -> None:
    """Every set of its directories as captured at the end."""
    last, time = len(execution.moments) - 1, execution.at[-1]
    replicas = execution.moments[-1]
    held = _batches(replicas)
    truth = {place: _truth_of(execution, held[place]) for place in held}
    copies = tuple(Copy(slot, last, last, time, 0) for slot in sorted(replicas))
    names = [capture.capture_id for capture in facts_of((execution,), copies).captures]
    for count in range(1, len(copies) + 1):
        for chosen in combinations(range(len(copies)), count):
            key = tuple(names[nth] for nth in chosen)
            slots = {copies[nth].slot: replicas[copies[nth].slot] for nth in chosen}
            group = groups.get(key)
            if group is None:
                true = {place: truth[place] for place in _batches(slots)}
                groups[key] = _SameFiles(execution, tuple(copies[nth] for nth in chosen), true)
            else:
                for place in group.true:
                    group.true[place] &= truth[place]


def _batches(replicas: Mapping[int, Replica]) -> dict[Place, Batch]:
    return {
        (batch.base_offset, batch.leader_epoch): batch
        for replica in replicas.values()
        for batch in replica.log.batches
    }


def _truth_of(execution: Execution, batch: Batch) -> _Truth:
    """The statuses that a batch has at the end of an execution."""
    place, last = (batch.base_offset, batch.leader_epoch), len(execution.moments) - 1
    found: set[Status] = set()
    if place in execution.committed_at or place in execution.stored_at:
        found.add("committed")
    else:
        found.add("uncommitted")
        if not can_commit(execution, last, batch):
            found.add("truncated")
    never_lost: set[Status] = set() if can_be_lost(execution, last, batch) else {"committed"}
    return _Truth(frozenset(found | never_lost), frozenset(found))
