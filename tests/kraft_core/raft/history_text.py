"""Histories as text: one operation a line, beneath it, indented, what is true after it.

tests/histories/README.md describes the words. `play` raises AssertionError with file and line where the
engine says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kraft_core.raft import replay
from kraft_core.raft.batches import Batch, ControlRecord, KRaftVersion, LeaderChange
from kraft_core.raft.emulation import (
    ControlReaderError,
    EmulatedReplica,
    emulate,
    snapshot_kafka_would_write,
    start,
    voters_kafka_would_use,
)
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import ReplicaLog, Snapshot, Validity, controls_of_log
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kraft_core.raft.watermark import LeaderProgress, begin_leading, follower_fetched, leader_reached

SEGMENT_BYTES = 1000


@dataclass(frozen=True, slots=True)
class ReplayState:
    """What a history has come to: the replica, its view as a leader, the last answer or refusal."""

    key: ReplicaKey
    replica: EmulatedReplica
    leading: LeaderProgress | None = None
    epoch: int = 0
    answer: str = ""

    @property
    def log(self) -> ReplicaLog:
        return self.replica.log


def play(path: Path) -> int:
    """Runs a history; the number of facts that were checked."""
    state = ReplayState(ReplicaKey(1, "A"), start(ReplicaLog(segment_bytes=SEGMENT_BYTES)))
    facts = 0
    for number, line in _lines(path):
        place = f"{path.name}:{number}: {line.strip()}"
        if line[0] != " ":
            state = _applied(replace(state, answer=""), line, place)
            continue
        for fact in line.strip().split("; "):
            facts += 1
            found = _fact(state, fact, place)
            assert found == fact, f"{place}\n  state:  {fact}\n  found: {found}"
    return facts


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip()


def _applied(state: ReplayState, line: str, place: str) -> ReplayState:
    for pattern, apply in STATEMENTS:
        match = re.fullmatch(pattern, line)
        if match:
            try:
                return apply(state, *match.groups())
            except (replay.OperationRefusedError, ControlReaderError) as error:
                return replace(state, answer=f"refused {getattr(error, 'reason', 'by the reader')}")
    raise AssertionError(f"{place}: no such operation")


def _operate(state: ReplayState, operation: replay.Operation) -> ReplayState:
    return replace(state, replica=emulate(state.replica, operation))


def _begin(state: ReplayState, kind: str, voters: str) -> ReplayState:
    if kind == "static":
        log = ReplicaLog(static_voters=voter_set(voters), segment_bytes=SEGMENT_BYTES)
    elif kind == "bootstrapped":
        log = ReplicaLog(snapshots=(Snapshot(0, 0, 1, voter_set(voters)),), segment_bytes=SEGMENT_BYTES)
    else:
        log = ReplicaLog(segment_bytes=SEGMENT_BYTES)
    return replace(state, replica=start(log), leading=None, epoch=0)


def _lead(state: ReplayState, epoch: str) -> ReplayState:
    begun = _operate(state, replay.BeginEpoch(int(epoch)))
    voters = voters_kafka_would_use(begun.replica)
    assert voters is not None
    leading = begin_leading(state.key, begun.log.end_offset, voters)
    return replace(begun, leading=leading, epoch=int(epoch))


def _append(state: ReplayState, content: str) -> ReplayState:
    assert state.leading, "append without leading an epoch"
    batch = _batch(content, state.log.end_offset, state.epoch)
    appended = _operate(state, replay.AppendAsLeader(state.epoch, (batch,)))
    voters = voters_kafka_would_use(appended.replica)
    assert voters is not None
    return _counted(appended, leader_reached(state.leading, appended.log.end_offset, voters))


def _follower(state: ReplayState, key: str, offset: str) -> ReplayState:
    assert state.leading, "a fetch without leading an epoch"
    return _counted(state, follower_fetched(state.leading, replica_key(key), int(offset)))


def _counted(state: ReplayState, leading: LeaderProgress) -> ReplayState:
    if leading.high_watermark is not None and leading.high_watermark != state.log.known_high_watermark:
        state = _operate(state, replay.UpdateHighWatermark(leading.high_watermark))
    return replace(state, leading=leading)


def _fetch(state: ReplayState, epoch: str, content: str) -> ReplayState:
    batch = _batch(content, state.log.end_offset, int(epoch))
    follower = replace(state, leading=None, epoch=max(state.epoch, int(epoch)))
    return _operate(follower, replay.AppendAsFollower(follower.epoch, (batch,)))


def _batch(content: str, base_offset: int, epoch: int) -> Batch:
    plain = re.fullmatch(r"(\d+) records?", content)
    if plain:
        return Batch(base_offset, base_offset + int(plain[1]) - 1, epoch, size_bytes=100)
    records = tuple(
        ControlRecord(base_offset + index, _control(part)) for index, part in enumerate(content.split(", "))
    )
    return Batch(base_offset, base_offset + len(records) - 1, epoch, 100, control_records=records)


def _control(text: str) -> LeaderChange | KRaftVersion | VoterSet:
    change = re.fullmatch(r"leader change to (\d+) of (.+) granted by (.+)", text)
    if change:
        voters, granting = (tuple(replica_key(key) for key in part.split()) for part in change.groups()[1:])
        return LeaderChange(int(change[1]), voters, granting)
    word, value = text.split(" ", 1)
    return KRaftVersion(int(value)) if word == "kraft.version" else voter_set(value)


def _snapshot(state: ReplayState, offset: str, epoch: str) -> ReplayState:
    content = snapshot_kafka_would_write(state.replica, int(offset), int(epoch))
    return _operate(state, replay.CreateSnapshot(content))


def _install(
    state: ReplayState, offset: str, epoch: str, version: str | None, voters: str | None
) -> ReplayState:
    level = None if version is None else int(version)
    content = Snapshot(int(offset), int(epoch), level, voter_set(voters) if voters else None)
    return replace(_operate(state, replay.InstallSnapshot(content)), leading=None)


def _restart(state: ReplayState, lost_from: str | None) -> ReplayState:
    lost = None if lost_from is None else int(lost_from)
    return replace(_operate(state, replay.Restart(lost)), leading=None)


def _diverge(state: ReplayState, epoch: str, offset: str) -> ReplayState:
    return replace(_operate(state, replay.TruncateToDivergence(int(offset), int(epoch))), leading=None)


def _ask_epoch(state: ReplayState, epoch: str) -> ReplayState:
    return replace(state, answer=f"answer: {_end(state.log.end_offset_for_epoch(int(epoch)))}")


def _ask_prefix(state: ReplayState, offset: str, epoch: str) -> ReplayState:
    validity, end = state.log.validate(int(offset), int(epoch))
    words = {Validity.VALID: "yes", Validity.DIVERGING: "no, ", Validity.SNAPSHOT: "no, fetch snapshot "}
    return replace(
        state, answer=f"answer: {words[validity]}{'' if validity is Validity.VALID else _end(end)}"
    )


STATEMENTS: tuple[tuple[str, Callable[..., ReplayState]], ...] = (
    (r"replica (\S+)", lambda state, key: replace(state, key=replica_key(key))),
    (r"(static|bootstrapped|empty) log(?: with (.+))?", _begin),
    (r"lead epoch (\d+)", _lead),
    (r"append (.+)", _append),
    (r"replica (\S+) fetches from (\d+)", _follower),
    (r"fetch in epoch (\d+) (.+)", _fetch),
    (r"resign", lambda state: replace(_operate(state, replay.Resign()), leading=None)),
    (r"learn high watermark (\d+)", lambda state, at: _operate(state, replay.UpdateHighWatermark(int(at)))),
    (
        r"truncate to (\d+)",
        lambda state, at: replace(_operate(state, replay.TruncateTo(int(at))), leading=None),
    ),
    (r"hear that epoch (\d+) ends at (\d+)", _diverge),
    (r"write snapshot (\d+) of epoch (\d+)", _snapshot),
    (r"install snapshot (\d+) of epoch (\d+)(?: with kraft.version (\d+), voters (.+))?", _install),
    (
        r"delete before snapshot (\d+) of epoch (\d+)",
        lambda state, end, epoch: _operate(state, replay.DeleteBefore(int(end), int(epoch))),
    ),
    (r"restart(?: losing all from (\d+))?", _restart),
    (r"where does epoch (\d+) end\?", _ask_epoch),
    (r"is (\d+) of epoch (\d+) a prefix\?", _ask_prefix),
)


def _fact(state: ReplayState, fact: str, place: str) -> str:
    """The fact of that kind as the engine has it, in the same words."""
    log, truth = state.log, controls_of_log(state.log)
    if fact.startswith(("answer: ", "refused ")):
        return state.answer
    first_words = " ".join(fact.split(" ", 2)[:2])
    match first_words.split(" ")[0]:
        case "log":
            return f"log {log.start_offset} to {log.end_offset}"
        case "epochs":
            return " ".join(["epochs", *(f"{epoch}@{at}" for epoch, at in log.epochs.entries)])
        case "high":
            known = log.known_high_watermark
            return f"high watermark {'unknown' if known is None else known}"
        case "kraft.version":
            return f"kraft.version {truth.kraft_version}"
        case "voters":
            return f"voters {_named(truth.voters.last)} {_label(truth.voters.last_offset)}"
        case "uncommitted" | "committed":
            uncommitted = truth.voters.is_uncommitted(log.known_high_watermark or 0)
            return "uncommitted" if uncommitted else "committed"
        case "remembers":
            return " ".join(
                ["remembers", *(f"@{at}" for at, _ in state.replica.reader.controls.voters.sets.entries)]
            )
        case "kafka":
            return f"kafka goes by {_named(voters_kafka_would_use(state.replica))}"
        case "snapshots":
            return " ".join(
                ["snapshots", *(f"{held.end_offset}/{held.leader_epoch}" for held in log.snapshots)]
            )
        case "snapshot":
            assert log.latest_snapshot
            return f"snapshot carries {_named(log.latest_snapshot.voters)}"
        case "segments":
            return " ".join(["segments", *(str(segment.base_offset) for segment in log.segments)])
    raise AssertionError(f"{place}: no such fact")


def _label(offset: int | None) -> str:
    return {None: "static", -1: "bootstrap"}.get(offset, f"@{offset}")


def _end(end: EpochEnd) -> str:
    return f"{end.end_offset} of epoch {end.leader_epoch}"


def replica_key(text: str) -> ReplicaKey:
    """`3:C` is replica 3 with directory C, `3` the same with an unknown directory."""
    replica_id, _, directory_id = text.partition(":")
    return ReplicaKey(int(replica_id), directory_id or None)


def voter_set(text: str) -> VoterSet:
    """`1:A 2:B=SSL/host:9093` : voters, with endpoints where they matter."""
    return VoterSet.of(_voter(part) for part in text.split())


def _voter(text: str) -> Voter:
    key, _, endpoints = text.partition("=")
    parts = (re.fullmatch(r"(.+)/(.+):(\d+)", end) for end in endpoints.split(",") if end)
    return Voter(replica_key(key), tuple(Endpoint(part[1], part[2], int(part[3])) for part in parts if part))


def _named(voters: VoterSet | None) -> str:
    return " ".join(_voter_text(voter) for voter in voters or ()) or "nobody"


def _voter_text(voter: Voter) -> str:
    key = f"{voter.key.id}:{voter.key.directory_id}" if voter.key.directory_id else str(voter.key.id)
    endpoints = ",".join(f"{end.name}/{end.host}:{end.port}" for end in voter.endpoints)
    return f"{key}={endpoints}" if endpoints else key
