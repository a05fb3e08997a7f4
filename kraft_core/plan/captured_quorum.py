"""The state of a quorum when it was captured: its leader, the end of its log, which replicas kept up.

The newest capture of each replica counts; standings.py decides what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.epochs import leaders_named
from kraft_core.evidence.facts import Capture, TimeSource, label
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.captured_replays import file_facts
from kraft_core.findings.facts import RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.findings.observed_quorum import static_voters_differ
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.plan.registrations import Registered, Registration, Registrations
from kraft_core.plan.standings import LeaderLog, Member, Standing, members_of
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter

# What a voter forgot others may have lost since; it may be a warning only.
_STORED_STAYS = 44
# The standings of replicas that a verdict counts.
COUNTED = (Standing.LEADER, Standing.IN_SYNC)


@dataclass(frozen=True, slots=True)
class CapturedQuorum:
    """What the captures show of a quorum at `as_of` (ms): its last epoch and the log of that epoch's leader.

    as_of_source: what says so; by the newest timestamp in the log, the copy was made then or later.
    leader: None if the last epoch has no leader yet. log_end: of the longest captured log of its epoch.
    log_epochs: where each epoch begins in it. voters, kraft_version: in force at its end, None if unknown.
    epoch_start: offset of the LEADER_CHANGE. contested: the epochs about which captures contradict each
    other, newest first: they are of two histories. metadata_version: in force at its end, None if unknown.
    superseded_by: what is known, in words, that the newest captures do not show; None for nothing. is_live:
    the leader has just been asked for its log and for its view of the other replicas.
    """

    known: Conclusions
    registrations: Registrations
    as_of: int
    as_of_source: TimeSource
    epoch: int
    leader: ReplicaKey | None
    epoch_start: int | None
    log_start: int
    log_end: int
    log_epochs: EpochCache
    voters: SetInForce | None
    kraft_version: int | None
    metadata_version: int | None
    contested: tuple[int, ...]
    members: tuple[Member, ...]
    superseded_by: str | None = None
    is_live: bool = False

    @property
    def not_seen(self) -> str:
        """What is said of a node of which nothing is known."""
        return "the leader does not report it" if self.is_live else "not captured"

    @property
    def leader_is_captured(self) -> bool:
        return any(member.standing is Standing.LEADER for member in self.members)

    @property
    def leader_log_gap(self) -> str | None:
        """Why the captures do not show the log of the leader, which decides every answer; None if they do."""
        if self.leader is None:
            return f"no leader of epoch {self.epoch} is known"
        if self.contested:
            return f"captures contradict each other about epoch {self.contested[0]}"
        if self.superseded_by is not None:
            return self.superseded_by
        member = self.member(self.leader)
        # LOST: without() took it for gone, and its log is known if it was captured.
        if member is None or member.standing not in (Standing.LEADER, Standing.LOST):
            return f"leader {self.leader.id} was not captured"
        return None if member.log_gap is None else f"leader {self.leader.id}: {member.log_gap}"

    @property
    def no_leader(self) -> str | None:
        """Why no leader of the newest epoch is known, None if one is."""
        if self.leader is not None:
            return None
        leader_ids = {
            c.quorum_state_leader_id for c in self.known.facts.captures if c.quorum_state_epoch == self.epoch
        }
        if not leader_ids:
            return "no captured log contains its LEADER_CHANGE, and no quorum-state of it was captured"
        if any(leader_id is not None and leader_id >= 0 for leader_id in leader_ids):
            return "the captures contradict each other about who leads it"
        return "an election was in progress when they were captured, or no captured node knew who had won it"

    @property
    def leader_gap(self) -> str | None:
        """Why the captures do not show that it led with that log, None if they do."""
        log_gap, member = self.leader_log_gap, self.member(self.leader) if self.leader else None
        if log_gap is not None or member is None:
            return log_gap
        return None if member.gap is None else f"leader {member.key.id}: {member.gap}"

    def is_counted(self, key: ReplicaKey) -> bool:
        return any(member.key == key for member in self.counted)

    @property
    def counted(self) -> tuple[Member, ...]:
        """The replicas whose captures count for a verdict."""
        return tuple(m for m in self.members if m.standing in COUNTED and m.gap is None)

    @property
    def evidence_from(self) -> int | None:
        """When the earliest capture that counts was taken, ms; None if none counts."""
        return min((m.captured_at for m in self.counted if m.captured_at is not None), default=None)

    @property
    def cluster_id(self) -> str:
        return self.known.facts.cluster_id

    def without(self, node_ids: frozenset[int], *, observers: bool) -> CapturedQuorum:
        """The same with these nodes lost: their voters, and their observers, too, if asked for."""
        members = tuple(
            replace(m, standing=Standing.LOST, words=f"before: {m.standing.value}, {m.words}")
            if m.key.id in node_ids and (m.is_voter or observers)
            else m
            for m in self.members
        )
        return replace(self, members=members)

    def member(self, key: ReplicaKey) -> Member | None:
        return next((member for member in self.members if member.key == key), None)

    def members_of(self, node_id: int) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.key.id == node_id)

    def voter_of(self, node_id: int) -> Voter | None:
        """The entry of a voter set by its id."""
        if self.voters is None:
            return None
        return next((voter for voter in self.voters.voters if voter.key.id == node_id), None)

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        """By the voter set, else by what the controller registered."""
        voter = self.voter_of(node_id)
        if voter is not None and voter.endpoints:
            return voter.endpoints
        registration = self.registrations.controllers.get(node_id)
        return registration.endpoints if registration else ()

    def registration(self, node_id: int) -> Registration | None:
        return self.registrations.controllers.get(node_id)


@dataclass(frozen=True, slots=True)
class OpenError:
    """An error finding that is not resolved, or any of rule 44.

    shown_by: capture ids and replicas (label) that show it.
    """

    sentence: str
    shown_by: frozenset[str]


def open_errors(findings: Iterable[Finding]) -> list[OpenError]:
    """Those among findings, and what voters may have forgotten: their captures count for nothing, too."""
    return [
        OpenError(finding.sentence, frozenset((*finding.capture_ids, *finding.replicas)))
        for finding in findings
        if (finding.severity == "error" and not finding.resolved) or finding.rule == _STORED_STAYS
    ]


def errors_in(known: Conclusions, directories: Iterable[tuple[str, ControllerDir]]) -> list[OpenError]:
    """What the files of captured directories add to the errors of quorum_of: file_facts. Raises OSError."""
    facts = file_facts(known, directories)
    return open_errors(judge(known, facts)) if facts != RuleFacts() else []


def quorum_of(
    known: Conclusions, registered: Registered, errors: Iterable[OpenError] = ()
) -> CapturedQuorum | None:
    """The quorum as captured, None where no captured log holds a batch.

    errors: beside those that the captured logs show by themselves. They void the captures that show them.
    """
    newest = [captures[-1] for captures in known.holdings.captures.values()]
    holders = [capture for capture in newest if capture.epoch_ranges]
    if not holders:
        return None
    log_epoch = max(capture.epoch_ranges[-1].leader_epoch for capture in holders)
    in_epochs = (c.quorum_state_epoch for c in known.facts.captures if c.quorum_state_epoch is not None)
    epoch = max([log_epoch, *in_epochs])
    leader_id = _leader_id(known, epoch)
    of_epoch = [capture for capture in holders if capture.epoch_ranges[-1].leader_epoch == log_epoch]
    source = max(of_epoch, key=lambda c: (c.epoch_ranges[-1].end_offset, c.node_id == leader_id))
    log_end = source.epoch_ranges[-1].end_offset
    voters = known.in_force.voters_at(log_epoch, log_end - 1)
    state = known.in_force.at(log_epoch, log_end - 1)
    leader = None if leader_id is None else _leader_key(known.in_force, voters, newest, leader_id, epoch)
    captured = next((capture for capture in newest if capture.replica == leader), None)
    election = known.elections.get(epoch)
    dated = captured if captured is not None and captured.captured_from is not None else source
    # A log with a batch has a timestamp at least.
    as_of = dated.captured_at if dated.captured_from is None else dated.captured_from
    shown = _errors([*open_errors(judge(known)), *errors], newest)
    log = LeaderLog(known, epoch, leader, source, as_of, shown)
    return CapturedQuorum(
        known,
        registered.along(source, known.facts.snapshots),
        as_of,
        dated.time_source,
        epoch,
        leader,
        election.offset if election else None,
        source.log_start_offset or 0,
        log_end,
        log.epochs,
        voters,
        state.kraft_version,
        state.metadata_version,
        known.lineage.contested_epochs[::-1],
        members_of(log, newest, voters.voters if voters else None),
        _superseded_by(known, captured, voters),
    )


def _superseded_by(known: Conclusions, captured: Capture | None, voters: SetInForce | None) -> str | None:
    """captured: the leader's capture. voters: in force at the end of the longest log."""
    words = next((one.words for one in known.facts.elsewhere), None)
    differ = static_voters_differ(known) if voters is not None and voters.source == "static" else None
    return words or (_changed_since(captured, voters) if differ is None else f"node {differ}")


def _changed_since(captured: Capture | None, voters: SetInForce | None) -> str | None:
    """That other logs hold a voter set that the leader appended after its log was copied.

    Whatever it appended next, no capture shows: it changes the voters again as soon as the change commits.
    """
    if captured is None or not captured.epoch_ranges or voters is None or voters.source != "record":
        return None
    last = captured.epoch_ranges[-1]
    if (last.leader_epoch, last.end_offset) > (voters.leader_epoch, voters.offset):
        return None
    return f"leader {captured.node_id} was captured before its log had {voters.words}: capture it again"


def _errors(found: Iterable[OpenError], newest: Iterable[Capture]) -> dict[str, str]:
    """By capture id what an error says of it; one that names no replica is about all."""
    errors: dict[str, str] = {}
    for error in found:
        for capture in newest:
            if not error.shown_by or not error.shown_by.isdisjoint(
                (capture.capture_id, label(capture.replica))
            ):
                errors.setdefault(capture.capture_id, f"an error finding is open on it: {error.sentence}")
    return errors


def _leader_id(known: Conclusions, epoch: int) -> int | None:
    election = known.elections.get(epoch)
    return leaders_named(known).get(epoch) if election is None else election.leader_id


def _leader_key(
    in_force: InForce, voters: SetInForce | None, newest: Iterable[Capture], leader_id: int, epoch: int
) -> ReplicaKey:
    """The leader, with its directory id if the voter set or a single capture shows it."""
    entry = in_force.leader_among(voters.voters, epoch) if voters else None
    if entry is not None and entry.key.directory_id is not None:
        return entry.key
    captured = [capture.replica for capture in newest if capture.node_id == leader_id]
    return captured[0] if len(captured) == 1 else ReplicaKey(leader_id)
