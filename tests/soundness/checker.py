"""Many runs: draw an execution, copy directories, ask, compare; shrink what is unsound to a few moves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from kraft_core.protocol.replica import Replica
from tests.soundness.captures import Copy
from tests.soundness.claims import ClaimCheck, Unsound
from tests.soundness.clocks import TRUE, random_clock, random_clocks
from tests.soundness.drawing import (
    copies_around_a_new_disk,
    copies_by_other_clocks,
    copies_of_all,
    copies_while_running,
    fewer_copies,
    moved_back,
    random_copies,
    random_execution,
)
from tests.soundness.execution import Execution, Script, run_script, without
from tests.soundness.following import Follower, asking_at, fewer_asks, observations_of, random_followers
from tests.soundness.restoring import Stated, copies_of_stopped, random_stated

# Of each execution, to be compared one after the other.
SETS_OF_COPIES = (
    random_copies,
    random_copies,
    copies_around_a_new_disk,
    copies_of_all,
    copies_by_other_clocks,
    copies_while_running,
)

Part = tuple[str, str]
"""The part of Kraftlake and the kind of the answer."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An execution, its copies, what was followed and stated, and a false answer they give."""

    execution: Execution
    copies: tuple[Copy, ...]
    followers: tuple[Follower, ...]
    stated: Stated
    unsound: Unsound

    @property
    def part(self) -> Part:
        return self.unsound.part, self.unsound.claim


@dataclass(slots=True)
class Checked:
    """What some runs came to: how many, and the first counterexample of each part with its seed."""

    runs: int = 0
    unsound: Counter[Part] = field(default_factory=Counter[Part])
    first: dict[Part, tuple[int, Counterexample]] = field(
        default_factory=dict[Part, tuple[int, Counterexample]]
    )


def check(runs: int, seed: int, report: Callable[[str], None] | None = None) -> Checked:
    """Compare this many sets of copies of random lawful executions. The same seed gives the same runs."""
    checked = Checked()
    number = 0
    while checked.runs < runs:
        run_seed = seed + number
        for found in counterexamples(run_seed, checked):
            checked.unsound[found.part] += 1
            checked.first.setdefault(found.part, (run_seed, found))
        number += 1
        if report and number % 1000 == 0:
            report(f"{checked.runs:,} runs, {sum(checked.unsound.values())} unsound answers")
    return checked


def counterexamples(seed: int, checked: Checked | None = None) -> Iterator[Counterexample]:
    """The false answers of one execution's copies."""
    source = random.Random(seed)
    drawn = random_execution(source)
    for nth, draw in enumerate(SETS_OF_COPIES):
        following, execution, clock = random.Random(f"{seed} {nth} followed"), drawn, TRUE
        if draw is copies_by_other_clocks:
            moments = len(drawn.moments)
            clock = random_clock(following, moments)
            execution = replace(drawn, clocks=random_clocks(following, sorted(drawn.moments[-1]), moments))
        copies = draw(source, execution)
        followers = random_followers(following, execution, clock)
        node = source.randrange(1, execution.script.setup.size + 1)
        if checked is not None:
            checked.runs += 1
        # All plans are asked for only where many can be safe.
        stated = random_stated(following, execution)
        check_ = ClaimCheck(execution, copies, followers=followers, stated=stated)
        for unsound in check_.unsound(None if draw is copies_of_all else {node}):
            yield Counterexample(execution, copies, followers, stated, unsound)
    yield from _false_of_stopped(seed, drawn, checked)


def _false_of_stopped(seed: int, execution: Execution, checked: Checked | None) -> Iterator[Counterexample]:
    source = random.Random(f"{seed} stopped")
    moments, clock = len(execution.moments), TRUE
    if source.random() < 0.5:
        clock = random_clock(source, moments)
        execution = replace(execution, clocks=random_clocks(source, sorted(execution.moments[-1]), moments))
    copies, stated = copies_of_stopped(source, execution, clock.then)
    if not copies:
        return
    if checked is not None:
        checked.runs += 1
    followers = random_followers(source, execution, clock)
    check_ = ClaimCheck(execution, copies, followers=followers, stated=stated)
    for unsound in check_.unsound_restoration():
        yield Counterexample(execution, copies, followers, stated, unsound)


def shrink_unsound(found: Counterexample) -> Counterexample:
    """With as few moves and copies as still give a false answer of this part."""
    while True:
        smaller = _smaller(found)
        if smaller is None:
            return found
        found = smaller


def _smaller(found: Counterexample) -> Counterexample | None:
    for nth in range(len(found.copies)):
        copies = fewer_copies(found.copies, nth)
        again = _still(found, found.execution, copies, found.followers) if copies else None
        if again:
            return again
    for followers in fewer_asks(found.followers):
        again = _still(found, found.execution, found.copies, followers)
        if again:
            return again
    script = found.execution.script
    for nth in reversed(range(len(script.moves))):
        again = _run_again(without(script, nth, 1), found, nth)
        if again:
            return again
    return None


def _run_again(script: Script, found: Counterexample, gone: int) -> Counterexample | None:
    """The shorter script with the copies after the same moves."""
    execution = replace(run_script(script), clocks=found.execution.clocks)
    shift = tuple(range(len(found.execution.moments)))
    places = [moment - (moment > gone) for moment in shift]
    if len(execution.moments) != len(found.execution.moments) - 1:
        return None  # a later move has become impossible: leave that out first
    copies = moved_back(found.copies, found.execution, places, execution)
    if any(copy.slot not in execution.moments[copy.log_at] for copy in copies):
        return None
    return _still(found, execution, copies, asking_at(found.followers, places))


def _still(
    found: Counterexample, execution: Execution, copies: tuple[Copy, ...], followers: tuple[Follower, ...]
) -> Counterexample | None:
    check_ = ClaimCheck(execution, copies, followers=followers, stated=found.stated)
    for unsound in check_.unsound():
        if (unsound.part, unsound.claim) == found.part:
            return Counterexample(execution, copies, followers, found.stated, unsound)
    return None


def report_unsound(found: Counterexample) -> str:
    """The execution as a list of moves, each with the logs after it; the copies; the false answer."""
    execution = found.execution
    setup = execution.script.setup
    kind = "static" if setup.static else "dynamic"
    lines = [f"{setup.voters} voters ({kind}), {setup.observers} observers"]
    names = ["formatted", *(str(move) for _, move in execution.script.moves)]
    for nth, (name, replicas) in enumerate(zip(names, execution.moments, strict=True)):
        seconds = (execution.at[nth] - execution.at[0]) / 1000
        lines.append(f"{nth:>2} at {seconds:g} s, high watermark {execution.high_watermarks[nth]}: {name}")
        before = execution.moments[nth - 1] if nth else dict[int, Replica]()
        lines += [
            f"     {slot}: {_state(replica)}"
            for slot, replica in replicas.items()
            if before.get(slot) is None or _state(before[slot]) != _state(replica)
        ]
    lines += [f"clock of {node}: {clock}" for node, clock in execution.clocks.items()]
    lines += [f"copy {_copied(execution, copy)}" for copy in found.copies]
    lines += [f"follower {each.number}, {each.clock}: {ask}" for each in found.followers for ask in each.asks]
    lines += [f"  {output}" for output in observations_of(execution, found.followers)]
    lines.append(f"UNSOUND ({found.unsound.part}, {found.unsound.claim}): {found.unsound.words}")
    return "\n".join(lines)


def _state(replica: Replica) -> str:
    log = " ".join(f"{b.base_offset}-{b.last_offset}/e{b.leader_epoch}" for b in replica.log.batches)
    snapshots = "".join(f" checkpoint {s.end_offset}" for s in replica.log.snapshots if s.end_offset)
    return (
        f"{replica.role.value} e{replica.epoch} log {log or '-'}{snapshots} voters {list(replica.voters.ids)}"
    )


def _copied(execution: Execution, copy: Copy) -> str:
    begin = execution.at[0]
    beside = "" if copy.files_at == copy.log_at else f", quorum-state and epochs of moment {copy.files_at}"
    if copy.checkpoints_at is not None:
        beside += f", checkpoints of moment {copy.checkpoints_at}"
    if copy.stated is None:
        time = f"file time {(copy.file_time - begin) / 1000:g} s"
    else:
        time = f"stated {(copy.stated - begin) / 1000:g} s"
        time = f"stated {copy.early_ms / 1000:g} s before its newest timestamp" if copy.early_ms else time
    return f"of {copy.slot} at moment {copy.log_at}{beside}, {time}, without {copy.missing}"
