"""Executions and copies that KRaft does not allow, and what must come of those that the copies show.

Each kind says when its copies show it. Then an error must be found, or no recovery be called safe; where
only the copying was at fault, no error may be found instead, and every answer must still be true. A copy that
shows nothing is like one of a lawful quorum: nothing can be expected of it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.consistency import COPY_MS
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.holdings import copied_by
from kraft_core.findings.facts import Observation
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy, facts_of, rule_facts_of
from tests.soundness.claims import Answers, ClaimCheck, Unsound, answers_to
from tests.soundness.drawing import copies_around_a_new_disk, random_copies, random_execution, random_setup
from tests.soundness.execution import Execution, Place, go_on, is_upgraded, may_lose_disk, run_script
from tests.soundness.following import Follower, answered, observations_of, random_followers, with_followed
from tests.soundness.moves import EmptyDisk, EmptyStaticDisk, Restore, SecondDirectory

MOST_DRAWN = 150  # runs for one that shows its fault


class FaultyCopies:
    """Copies of an execution, or of two that began as one, and the facts that they give.

    followers: of the execution, if it is one. answers: about any of two.
    """

    def __init__(
        self,
        lives: tuple[Execution, ...],
        copies: tuple[Copy, ...],
        followers: tuple[Follower, ...] = (),
        answers: tuple[Observation, ...] = (),
    ) -> None:
        self.lives = lives
        self.copies = copies
        self.followers = followers
        observations = (*observations_of(lives[0], followers), *answers)
        self.rule_facts = replace(rule_facts_of(lives, copies), observations=observations)
        contested = {conflict.leader_epoch for conflict in self.rule_facts.batch_conflicts}
        facts = with_followed(facts_of(lives, copies), lives[0], followers)
        told = tuple(answered(observations))
        self.facts = replace(facts, contested_epochs=tuple(sorted(contested)), answered=told)
        known = {capture.capture_id: capture for capture in conclude(self.facts).facts.captures}
        self.captures = tuple(known[capture.capture_id] for capture in self.facts.captures)


@dataclass(frozen=True, slots=True)
class Unlawful:
    """A kind of fault. draw: an execution with it and copies; shows: whether those copies show it.

    expects: an error and no safe recovery while it is open; or a finding or no safe recovery, and never a
    false one; or, where only the copying was at fault, that every answer is true; or, where a copy is of no
    log that there was, every answer but errors.
    """

    name: str
    what: str
    draw: Callable[[random.Random], FaultyCopies]
    shows: Callable[[FaultyCopies], bool]
    expects: Literal["error", "finding", "truth", "true answers"]


@dataclass(slots=True)
class Raised:
    """Of a kind: how many runs were drawn, how many showed it, and the false answers, each with its seed."""

    runs: int = 0
    shown: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def check_unlawful(kind: Unlawful, shown: int, seed: int) -> Raised:
    """Runs of one kind until this many showed it; the same seed gives the same runs."""
    raised = Raised()
    while raised.shown < shown and raised.runs < shown * MOST_DRAWN:
        run_seed = seed + raised.runs
        sample = kind.draw(random.Random(run_seed))
        raised.runs += 1
        if kind.shows(sample):
            sample = _followed(sample, run_seed)
        if kind.shows(sample):
            raised.shown += 1
            raised.failures += [(run_seed, words) for words in failures(kind, sample)]
    return raised


def _followed(sample: FaultyCopies, seed: int) -> FaultyCopies:
    """With what was followed of the execution, where there is one; of two with what was answered."""
    source = random.Random(f"{seed} followed")
    if len(sample.lives) == 1:
        return FaultyCopies(sample.lives, sample.copies, random_followers(source, sample.lives[0]))
    told = (observations_of(each, random_followers(source, each)) for each in sample.lives)
    return FaultyCopies(sample.lives, sample.copies, answers=tuple(chain.from_iterable(told)))


def failures(kind: Unlawful, sample: FaultyCopies) -> Iterator[str]:
    """What was said wrongly, or not said."""
    answers = answers_to(sample.facts, sample.rule_facts)
    check = (
        ClaimCheck(sample.lives[0], sample.copies, answers, sample.followers)
        if len(sample.lives) == 1
        else None
    )
    if check is None:
        yield from _false_in_each_life(sample, answers)
    if check is not None and kind.expects in ("truth", "true answers"):
        unsound = check.unsound(()) if kind.expects == "truth" else check.unsound_answers(())
    else:
        unsound = check.unsound_recovery() if check else ()
        rules = ", ".join(sorted({f"{found.severity} of rule {found.rule}" for found in answers.findings}))
        raised = bool(answers.errors if kind.expects == "error" else answers.findings)
        is_over = raised and all(found.resolved for found in answers.errors)
        if answers.recovery.is_safe and not is_over and (kind.expects == "error" or not raised):
            yield f"safe, with {rules or 'no finding'}: {answers.recovery.why}"
        if kind.expects == "error" and not raised:
            yield f"no error is found, only {rules or 'nothing'}"
    for one in unsound:
        yield f"{one.part}, {one.claim}: {one.words}"


def _false_in_each_life(sample: FaultyCopies, answers: Answers) -> Iterator[str]:
    """Verdicts on batches that are false in each life that holds them; bounds and plans that are in one."""
    false_in: defaultdict[Place, list[Unsound | None]] = defaultdict(list)
    for life, execution in enumerate(sample.lives):
        copies = tuple(replace(copy, life=0) for copy in sample.copies if copy.life == life)
        check = ClaimCheck(execution, copies, answers)
        for batch in check.captured_batches():
            place = (batch.base_offset, batch.leader_epoch)
            false_in[place].append(next(check.unsound_verdict(batch), None))
        for one in (*check.unsound_bounds(), *check.unsound_plans(None)):
            yield f"{one.part}, {one.claim}: {one.words}"
    for found in false_in.values():
        if found[0] is not None and None not in found:
            yield f"{found[0].part}, {found[0].claim}: {found[0].words}"


# --- executions


def _static(source: random.Random) -> Setup:
    setup = random_setup(source)
    return replace(setup, static=True, voters=max(2, setup.voters))


def _with_fault(
    source: random.Random, setup: Setup, fault: Callable[[int], EmptyStaticDisk | SecondDirectory | Restore]
) -> FaultyCopies:
    """A lawful beginning, the fault of one voter, and what the quorum does then; copies from both sides.

    A static quorum is still static at the fault.
    """
    execution = random_execution(source, setup, upgrades=False)
    slots = [slot for slot in range(1, setup.voters + 1) if len(execution.moments[-1][slot].log.batches)]
    slot = source.choice(slots or [1])
    before = len(execution.moments) - 1
    for _ in range(4):
        if go_on(execution, 3_000, fault(slot)):
            break
    execution = random_execution(source, execution=execution)
    copies = list(random_copies(source, execution))
    last = len(execution.moments) - 1
    for moment in (before, source.randint(min(last, before + 1), last), last):
        claiming = [s for s, r in execution.moments[moment].items() if r.key.id == slot]
        if source.random() < 0.7:
            copies.append(Copy(source.choice(claiming), moment, moment, None, 0))
    return FaultyCopies((execution,), _stated(execution, copies))


def _new_disk(source: random.Random) -> FaultyCopies:
    return _with_fault(source, _static(source), EmptyStaticDisk)


def _static_disk(source: random.Random) -> FaultyCopies:
    """After an upgrade of kraft.version a disk is replaced on a node that is still configured statically."""
    execution = random_execution(source, _static(source))
    slots = [slot for slot in sorted(execution.moments[-1]) if may_lose_disk(execution, slot, static=True)]
    if slots:
        go_on(execution, 3_000, EmptyDisk(source.choice(slots), static=True))
        execution = random_execution(source, execution=execution)
    return FaultyCopies((execution,), copies_around_a_new_disk(source, execution))


def _second_directory(source: random.Random) -> FaultyCopies:
    return _with_fault(source, _static(source), SecondDirectory)


def _backup(source: random.Random) -> FaultyCopies:
    setup = random_setup(source)
    return _with_fault(source, setup, lambda slot: Restore(slot, source.randint(1, 8), source.random() < 0.5))


def _clone(source: random.Random) -> FaultyCopies:
    """One quorum up to a moment, then two that know nothing of each other."""
    begun = random_execution(source)
    lives = tuple(random_execution(source, execution=run_script(begun.script)) for _ in range(2))
    copies: list[Copy] = []
    for life, execution in enumerate(lives):
        last = len(execution.moments) - 1
        longest = max(
            execution.moments[last], key=lambda slot: len(execution.moments[last][slot].log.batches)
        )
        drawn = (*random_copies(source, execution), Copy(longest, last, last, None, 0))
        copies += [replace(copy, life=life) for copy in _stated(execution, drawn)]
    return FaultyCopies(lives, tuple(copies))


def _older_log(source: random.Random) -> FaultyCopies:
    """The directories are those of a lawful quorum; one log is older than the files beside it."""
    return _one_copied_apart(source, (1, 2, 4, 8))


def _older_quorum_state(source: random.Random) -> FaultyCopies:
    """One quorum-state was copied before its log."""
    return _one_copied_apart(source, (-1, -2, -4, -8))


def _one_copied_apart(source: random.Random, steps: tuple[int, ...]) -> FaultyCopies:
    execution = random_execution(source)
    copies = _stated(execution, random_copies(source, execution))
    last = len(execution.moments) - 1
    moments = [moment for moment in range(last + 1) if len(execution.leaders) > 1 or source.random() < 0.2]
    for _ in range(8 if moments else 0):
        nth, log_at = source.randrange(len(copies)), source.choice(moments)
        there = min(last, max(0, log_at + source.choice(steps)))
        copy = replace(copies[nth], log_at=log_at, files_at=log_at)
        if copy.slot in execution.moments[log_at]:
            apart = _copied_apart(execution, copy, there)
            sample = FaultyCopies((execution,), (*copies[:nth], apart, *copies[nth + 1 :]))
            if _files_beyond_log(sample) or _log_beyond_state(sample):
                return sample
    return FaultyCopies((execution,), copies)


def _copied_apart(execution: Execution, copy: Copy, files_at: int) -> Copy:
    """The same directory's files of another moment; the stated time is that of the later part."""
    there = execution.moments[files_at].get(copy.slot)
    if there is None or there.key != execution.moments[copy.log_at][copy.slot].key:
        return copy
    return replace(copy, files_at=files_at, stated=execution.at[max(copy.log_at, files_at)])


def _two_moments(source: random.Random) -> FaultyCopies:
    """First segments that hold what was truncated since; leader-epoch-checkpoint is as new as the others."""
    execution = random_execution(source)
    copies = _stated(execution, random_copies(source, execution))
    found: list[Copy] = []
    for moment, at in enumerate(execution.at):
        for slot, now in execution.moments[moment].items():
            for earlier in range(moment):
                then = execution.moments[earlier].get(slot, now)
                lost = [b.base_offset for b in then.log.batches if b not in tuple(now.log.batches)]
                if then.key == now.key and lost:
                    ends = (b.base_offset for b in now.log.batches if b.base_offset > lost[0])
                    found += (Copy(slot, moment, moment, at, 0, older=(earlier, end)) for end in ends)
    return FaultyCopies((execution,), (*copies, *([source.choice(found)] if found else [])))


def _stated(execution: Execution, copies: Sequence[Copy]) -> tuple[Copy, ...]:
    found = (replace(copy, files_at=copy.log_at, stated=execution.at[copy.log_at]) for copy in copies)
    return tuple(dict.fromkeys(found))


# --- what copies show


def _upgrade_beside_static_disk(sample: FaultyCopies) -> bool:
    """The upgrade, which names the voters' directories, is captured: nothing else tells such a disk apart."""
    moves = sample.lives[0].script.moves
    is_replaced = any(isinstance(move, EmptyDisk) and move.static for _, move in moves)
    return is_replaced and any(
        record.type == "KRaftVersion" and record.offset == record.batch_base_offset
        for record in sample.facts.control_records
    )


def _two_directories(sample: FaultyCopies) -> bool:
    """Two directories of one voter's id, both known, with a log, and in use when voters had ids alone.

    After an upgrade of kraft.version another disk may lawfully follow.
    """
    execution = sample.lives[0]
    replaced = [isinstance(move, EmptyStaticDisk) for _, move in execution.script.moves]
    if True not in replaced:
        return False
    after = execution.moments[replaced.index(True) + 1].values()
    static = {replica.key for replica in (*execution.moments[0].values(), *after)}
    held = {c.replica for c in sample.captures if c.replica in static and _names_its_log(c)}
    voters = execution.script.setup.voters
    return any(one.id == other.id <= voters and one != other for one in held for other in held)


def _two_live_directories(sample: FaultyCopies) -> bool:
    """One was copied with something that it wrote after the other one had a log.

    After an upgrade of kraft.version one may lawfully follow the other: then both were.
    """
    first: dict[tuple[int, str], int] = {}
    newest: dict[tuple[int, str], int] = {}
    for capture in sample.captures:
        if capture.has_wrong_time:
            continue
        if _names_its_log(capture) and capture.node_id <= sample.lives[0].script.setup.voters:
            key = (capture.node_id, capture.directory_id)
            first[key] = min(first.get(key, capture.captured_at), capture.captured_at)
            newest[key] = max(
                newest.get(key, 0), max(epoch_range.last_appended_at for epoch_range in capture.epoch_ranges)
            )
    may_follow = is_upgraded(sample.lives[0])
    return any(
        one[0] == other[0]
        and one[1] != other[1]
        and newest[one] > first[other]
        and not (may_follow and newest[other] <= first[one])
        for one in first
        for other in first
    )


def _names_its_log(capture: Capture) -> bool:
    """Whether it holds a log and says whose: a copy without a directory id may be of either directory."""
    return bool(capture.epoch_ranges) and capture.replica.directory_id is not None


def _shrunk_log(sample: FaultyCopies) -> bool:
    return any(capture.consistent for capture in _shrunk(sample))


def _shrunk_before_a_vote(sample: FaultyCopies) -> bool:
    """Where another log shows that its node had voted in a higher epoch, that one may have truncated it."""
    shrunk = list(_shrunk(sample))
    return bool(shrunk) and not any(capture.consistent for capture in shrunk)


def _shrunk(sample: FaultyCopies) -> Iterator[Capture]:
    """Later copies of a directory that lack the end of an epoch, while quorum-state has no higher one.

    A log that is older than its files may have been copied before the longer one. An observer does not flush
    what it fetches, and may lose it.
    """
    return (
        other
        for one in sample.captures
        for other in sample.captures
        if one.replica == other.replica
        and one.directory_id != ZERO_UUID
        and not (one.has_wrong_time or other.has_wrong_time)
        and one.captured_at < other.captured_at
        and bool(one.epoch_ranges)
        and other.log_start_offset is not None
        and other.readable
        and not other.tail_damaged
        and other.quorum_state_epoch is not None
        and (other.log_end_offset or 0) < one.epoch_ranges[-1].end_offset
        and other.quorum_state_epoch <= one.epoch_ranges[-1].leader_epoch
        and other.older_log is None
        and (_was_voter(sample, one) or _fell(one, other))
    )


def _fell(one: Capture, other: Capture) -> bool:
    """Whether the epoch of quorum-state went back. It is copied last, and nothing says when: where no log
    shows the epoch, the copies must be apart.
    """
    if other.quorum_state_epoch is None or (one.quorum_state_epoch or 0) <= other.quorum_state_epoch:
        return False
    copied, since = copied_by(one), other.captured_from
    is_apart = copied is None or since is None or copied + COPY_MS < since
    return is_apart or one.last_epoch > other.quorum_state_epoch


def _was_voter(sample: FaultyCopies, capture: Capture) -> bool:
    return any(
        voter.matches(capture.replica)
        for execution in sample.lives
        for moment in execution.moments
        for replica in moment.values()
        for voter in replica.voters
    )


def _contradicting(sample: FaultyCopies) -> bool:
    """The two lives hold different batches at one offset of one epoch."""
    return bool(sample.rule_facts.batch_conflicts)


def _files_beyond_log(sample: FaultyCopies) -> bool:
    return any(map(_goes_beyond, _copied_in_parts(sample)))


def _goes_beyond(capture: Capture) -> bool:
    return any(start > (capture.log_end_offset or 0) for _, start in capture.leader_epoch_checkpoint or ())


def _log_beyond_state(sample: FaultyCopies) -> bool:
    """The quorum-state is in an epoch below the last one of the log beside it."""
    return any(
        capture.epoch_ranges
        and (capture.quorum_state_epoch or capture.epoch_ranges[-1].leader_epoch)
        < capture.epoch_ranges[-1].leader_epoch
        for capture in _copied_in_parts(sample)
    )


def _copied_in_parts(sample: FaultyCopies) -> list[Capture]:
    """The one capture whose log and side files are of different moments, if there is one."""
    copied = zip(sample.copies, sample.captures, strict=True)
    return [capture for copy, capture in copied if copy.files_at != copy.log_at]


KINDS: tuple[Unlawful, ...] = (
    Unlawful(
        "new disk",
        "a static voter starts from an empty disk; both directories are captured with a log",
        _new_disk,
        _two_directories,
        "finding",
    ),
    Unlawful(
        "static disk after the upgrade",
        "after the captured upgrade of kraft.version, a disk is formatted for a static quorum",
        _static_disk,
        _upgrade_beside_static_disk,
        "truth",
    ),
    Unlawful(
        "second directory",
        "two directories of a static voter live at once, and both are captured",
        _second_directory,
        _two_live_directories,
        "finding",
    ),
    Unlawful(
        "restored backup",
        "a directory is put back to an earlier state, and a capture shows that it held more",
        _backup,
        _shrunk_log,
        "error",
    ),
    Unlawful(
        "restored backup, with an older vote",
        "the same, and another log shows that the directory had voted in a higher epoch before it was copied",
        _backup,
        _shrunk_before_a_vote,
        "finding",
    ),
    Unlawful(
        "clone",
        "two quorums go on from one, and captures of both hold different batches of an epoch",
        _clone,
        _contradicting,
        "error",
    ),
    Unlawful(
        "log older than its files",
        "leader-epoch-checkpoint names an offset above the end of the log beside it",
        _older_log,
        _files_beyond_log,
        "truth",
    ),
    Unlawful(
        "quorum-state older than the log",
        "quorum-state is in an epoch below the last one of the log beside it",
        _older_quorum_state,
        _log_beyond_state,
        "truth",
    ),
    Unlawful(
        "segments of two moments",
        "a copy's first segments are older than the others, and hold what was truncated in between",
        _two_moments,
        lambda sample: any(copy.older[1] for copy in sample.copies),
        "true answers",
    ),
)
