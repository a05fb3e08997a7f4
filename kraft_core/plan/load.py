"""Does a release of Kafka read and replay these logs and checkpoints?

A node loads its own directory, so each voter's directory counts. Which records of a log are replayed depends
on what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kraft_core.evidence.facts import label
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.log_dirs import BOOTSTRAP_NAME
from kraft_core.messages.releases import RELEASES, Release
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import proven_end
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.load_logs import PARTITION_METADATA, Obstacle, ReplicaLoad, load_of
from kraft_core.plan.risks import Risk
from kraft_core.plan.standings import Standing
from kraft_core.plan.steps import CAPTURE, PlanStep
from kraft_core.wording import count, first_named

OLDEST = RELEASES["3.9"]
"""The first release whose reading of a log is known here."""
# What is easily replaced, and what Kafka does with it.
_COPIED: Mapping[str, str] = {
    BOOTSTRAP_NAME: "Kafka reads it at every start, but uses it only while the log is empty",
    PARTITION_METADATA: "every controller of every cluster has the same",
}
# Obstacles, and records that are not read as a whole, that an answer names.
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class CapturedDirectories:
    """The quorum, and the directory of each capture, by its id."""

    quorum: CapturedQuorum
    directories: Mapping[str, ControllerDir]

    def loads(self, release: Release) -> list[ReplicaLoad]:
        """What a start of the release meets in the newest capture of each replica."""
        found: list[ReplicaLoad] = []
        newest = {replica: each[-1] for replica, each in self.quorum.known.holdings.captures.items()}
        # The next leader's log may end at any batch from what is proven committed on, and a node that lags
        # publishes what it has at any batch from its own end on.
        ends_from = min(
            [proven_end(self.quorum) or 0, *(each.log_end_offset or 0 for each in newest.values())]
        )
        for replica, capture in newest.items():
            directory = self.directories[capture.capture_id]
            try:
                found.append(load_of(directory, label(replica), release, ends_from))
            except OSError as error:
                found.append(ReplicaLoad(label(replica), gaps=[error.strerror or str(error)]))
        return sorted(found, key=lambda load: load.replica)


@dataclass(slots=True)
class _Found:
    """An obstacle, and the replicas whose directories hold it."""

    obstacle: Obstacle
    replicas: list[str] = field(default_factory=list[str])


def plan_load(logs: CapturedDirectories, release: Release) -> Answer:
    """The verdict. A record that is not committed yet decides nothing, but where every node reads it."""
    loads = logs.loads(release)
    proven, undecided = _sorted_out(logs.quorum, _together(loads, lambda load: load.obstacles))
    everywhere, somewhere = _ends(logs.quorum, loads)
    proven += everywhere
    found = [*proven, *undecided, *somewhere]
    question = f"start Kafka {release.name} on these directories"
    evidence = (*map(_load_words, loads), *_named(found))
    missing = (*_missing(logs.quorum, loads, undecided), *map(_loaded_in_part, somewhere))
    if proven:
        first = proven[0].obstacle
        return Answer(
            question,
            "refused",
            f"{_who(release, proven[0])} at {_what(first)}: {first.kafka or first.words}",
            evidence,
            missing,
            steps=tuple(_out(proven)),
            error_text=first.kafka,
        )
    if missing:
        return Answer(question, "not_known", missing[0], evidence, missing, steps=tuple(_know_more()))
    risks = tuple(_risks(loads))
    reason = "; ".join(risk.sentence for risk in risks) or "it reads and replays every record"
    return Answer(question, "risky" if risks else "safe", reason, evidence, (), risks, tuple(_start(release)))


def _together(
    loads: Iterable[ReplicaLoad], obstacles: Callable[[ReplicaLoad], Iterable[Obstacle]]
) -> list[_Found]:
    """The obstacles of all replicas, each record once, in order of the log."""
    found: dict[tuple[object, ...], _Found] = {}
    for load in loads:
        for each in obstacles(load):
            place = each.file if each.offset is None else each.leader_epoch, each.offset, each.position
            key = (*(place if each.offset is None else place[:2]), each.record, each.words, each.kafka)
            one = found.setdefault(key, _Found(each))
            if load.replica not in one.replicas:
                one.replicas.append(load.replica)
    return sorted(found.values(), key=lambda one: _place(one.obstacle))


def _place(obstacle: Obstacle) -> tuple[bool, int]:
    """Checkpoints come first; what is easily replaced comes last."""
    return obstacle.file in _COPIED, -1 if obstacle.offset is None else obstacle.offset


def _sorted_out(quorum: CapturedQuorum, found: Iterable[_Found]) -> tuple[list[_Found], list[_Found]]:
    """What is met for certain, and what is met once it is committed; what is truncated is not met."""
    proven: list[_Found] = []
    undecided: list[_Found] = []
    for one in found:
        each = one.obstacle
        if each.ends == "nodes" or each.offset is None or each.leader_epoch is None:
            proven.append(one)
            continue
        status = _status(quorum, each)
        if status == "committed":
            proven.append(one)
        elif status != "truncated":
            undecided.append(one)
    return proven, undecided


def _ends(quorum: CapturedQuorum, loads: Iterable[ReplicaLoad]) -> tuple[list[_Found], list[_Found]]:
    """What is refused wherever the leader's log may end, and what is refused at some ends of some log."""
    everywhere: list[ReplicaLoad] = []
    somewhere: list[ReplicaLoad] = []
    for load in loads:
        is_longest = quorum.leader_log_gap is None and load.end_offset == quorum.log_end
        is_all = load.ends.refused == load.ends.examined
        (everywhere if is_longest and is_all else somewhere).append(load)
    both = (_together(each, lambda load: load.ends.obstacles) for each in (everywhere, somewhere))
    refused, in_part = (
        [one for one in each if _status(quorum, one.obstacle) != "truncated"] for each in both
    )
    return refused, [] if refused else in_part


def _status(quorum: CapturedQuorum, obstacle: Obstacle) -> str | None:
    """What became of the obstacle's record; None for one of a checkpoint."""
    if obstacle.offset is None or obstacle.leader_epoch is None:
        return None
    commit = quorum.known.commit
    return commit.of_batch(obstacle.leader_epoch, obstacle.offset, obstacle.offset + 1).status


def _missing(
    quorum: CapturedQuorum, loads: Iterable[ReplicaLoad], undecided: Iterable[_Found]
) -> Iterator[str]:
    """What the captures do not show of the logs that the release will load."""
    in_step = {
        label(member.key)
        for member in quorum.members
        if member.standing is Standing.IN_SYNC or member.lag_records == 0
    }
    for load in loads:
        yield from (f"{load.replica}: {gap}" for gap in (*load.gaps, *load.ends.doubts))
        # What a follower lacks that was in step is in the leader's log.
        if load.torn is not None and load.replica not in in_step:
            yield f"{load.replica}: {load.torn}"
    if quorum.leader_log_gap is not None:
        yield quorum.leader_log_gap
    if quorum.voters is None:
        yield "which nodes are voters is not known"
    for member in quorum.members:
        if member.is_voter and member.key != quorum.leader and member.log_gap is not None:
            yield f"voter {label(member.key)}: {member.log_gap}"
    for one in undecided:
        yield f"whether {_what(one.obstacle)} is committed: it is refused ({one.obstacle.words})"


def _loaded_in_part(one: _Found) -> str:
    what = _what(one.obstacle)
    return (
        f"whether a log is loaded only up to {what}: there it is refused ({one.obstacle.words}); capture "
        "again once every voter has more"
    )


def _risks(loads: list[ReplicaLoad]) -> Iterator[Risk]:
    left_out = list(dict.fromkeys(words for load in loads for words in load.left_out))
    if left_out:
        named = first_named(left_out, _MOST_NAMED, "; ")
        yield Risk("fields_left_out", f"fields added by newer record versions are ignored: {named}")
    below = _together(loads, lambda load: load.below)
    if below:
        named = first_named([f"{_what(one.obstacle)}: {one.obstacle.words}" for one in below], 1, "; ")
        words = (
            f"a node that loses its newest checkpoint cannot start, because older data is rejected: {named}"
        )
        yield Risk("older_data", words)


# --- words


def _load_words(load: ReplicaLoad) -> str:
    log = f"{count(load.records, 'record')}, {count(load.checkpoints, 'checkpoint')}"
    return f"{load.replica}: {log}, the log loaded from {load.start} to {load.end_offset} (exclusive)"


def _named(found: list[_Found]) -> Iterator[str]:
    for one in found[:_MOST_NAMED]:
        each = one.obstacle
        thrown = f"; Kafka throws {each.kafka}" if each.kafka else ""
        where = each.file if each.position is None else f"{each.file}, batch at {each.position}"
        yield f"{_what(each)} ({where}; of {', '.join(one.replicas)}): {each.words}{thrown}"
    if len(found) > _MOST_NAMED:
        yield f"{count(len(found) - _MOST_NAMED, 'more record')} that it rejects"


def _what(obstacle: Obstacle) -> str:
    if obstacle.file == PARTITION_METADATA:
        return f"{obstacle.record} in {obstacle.file}"
    where = "in a checkpoint" if obstacle.offset is None else f"at offset {obstacle.offset}"
    return f"{obstacle.record} {where}"


def _who(release: Release, found: _Found) -> str:
    """Which processes end; what all replicas hold ends each that loads it."""
    kind = "node" if found.obstacle.ends == "nodes" else "controller"
    if found.obstacle.offset is None or found.obstacle.ends == "nodes":
        return f"Kafka {release.name} fails to start on {', '.join(found.replicas)}"
    return f"every {kind} of Kafka {release.name} that replays this log terminates"


# --- what to do


def _out(found: list[_Found]) -> Iterator[PlanStep]:
    proven = [one for one in found if one.obstacle.file not in _COPIED or one.obstacle.takers]
    copied = dict.fromkeys(one.obstacle.file for one in found if one not in proven)
    for file in copied:
        yield PlanStep(f"copy {file} from a node of the same cluster that starts", expect=_COPIED[file])
    if not proven:
        return
    names = list(RELEASES)
    takers = [name for name in names if all(name in one.obstacle.takers for one in proven)]
    if takers:
        until = "or later" if takers[-1] == names[-1] else f"to {takers[-1]}"
        yield PlanStep(
            f"run Kafka {takers[0]} {until}, which accepts these records",
            f"kraftlake plan load {takers[-1]} --captures PATH...",
        )
        return
    first = next((one.obstacle for one in proven if not one.obstacle.takers), proven[0].obstacle)
    place = f"--files {first.file}"
    yield PlanStep(f"inspect {_what(first)}", f"kraftlake dump --cluster-metadata-decoder {place}")
    yield PlanStep(
        "do not start that release on these directories; if every release fails there, restore to below "
        "that record",
        "kraftlake restore plan --captures PATH...",
        "everything after it is lost",
    )


def _know_more() -> Iterator[PlanStep]:
    yield PlanStep(
        "capture what is missing: every voter, its log, checkpoints and quorum-state",
        CAPTURE,
        "plan again, and continue only if it is SAFE",
    )


def _start(release: Release) -> Iterator[PlanStep]:
    yield PlanStep(f"restart one controller with Kafka {release.name}, the leader last")
    yield PlanStep("if records were written meanwhile, capture and plan again before the next one")
