"""Rules 16 and 23: the voter set that elected a leader, and the set that Kafka used.

Rule 23 is proven by files. Rule 16 is a verdict on the emulated Kafka, because no file shows the memory of a
process: always a warning, as is what follows from it alone (rules 4, 5 and 7 against what a stale
leader considered committed).
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.evidence.facts import label, labels
from kraft_core.evidence.holdings import lacks
from kraft_core.findings.capture_order import newest_readable
from kraft_core.findings.cluster_view import ClusterView, replicas_of
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.findings.stale_voters import (
    StaleAfterTruncation,
    StaleLeader,
    stale_after_truncation,
    stale_leaders,
)
from kraft_core.raft.batches import LeaderChange
from kraft_core.raft.emulation import voters_kafka_would_use
from kraft_core.raft.invariants import judged_election
from kraft_core.raft.log import voters_of_log
from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.wording import offset_words, range_words


def leader_change_names_the_set(view: ClusterView) -> Iterator[Breach]:
    """Rule 23; the set may come from another replica's log that holds the same LEADER_CHANGE."""
    stale = {leader.election.leader_epoch: leader for leader in stale_leaders(view)}
    for epoch, election in view.known.elections.items():
        voters = view.known.in_force.below_epoch(epoch).voters
        if voters is None or not view.known.in_force.is_unlawful(epoch):
            continue
        change = LeaderChange(
            election.leader_id,
            tuple(map(ReplicaKey, election.voters)),
            tuple(map(ReplicaKey, election.granting_voters)),
        )
        details = [f.detail for f in judged_election(epoch, election.offset, change, voters.voters)]
        captures = view.holding(epoch, election.offset)
        explained = f" {_by_older_set(stale[epoch])}" if epoch in stale else ""
        used = f"; {_used_set(stale[epoch])}" if epoch in stale else ""
        yield Breach(
            of_rule(23),
            "error",
            (election.offset, epoch),
            f"Leader {election.leader_id} of epoch {epoch} was elected unlawfully: its LEADER_CHANGE at "
            f"{election.offset} {' and '.join(details)}.{explained}",
            f"in force below it: {voters.words}{used}",
            first_offset=election.offset,
            end_offset=election.batch_end_offset,
            leader_epochs=(epoch,),
            replicas=replicas_of(captures),
            captures=captures,
        )


def kafka_goes_by_its_log(view: ClusterView) -> Iterator[Breach]:
    """Rule 16: proven by an unlawful election, or emulated from a truncation that two captures show."""
    proven: set[tuple[ReplicaKey, int]] = set()
    for leader in stale_leaders(view):
        first = leader.missed[0].offset
        proven.add((leader.replica, first))
        epoch = leader.election.leader_epoch
        captures = view.holding(epoch, leader.election.offset)
        yield Breach(
            of_rule(16),
            "warning",
            (leader.replica.id, leader.replica.directory_id, first),
            f"{label(leader.replica)} used a voter set older than its log's when it won epoch {epoch}: "
            f"{_missed(leader)}{_since(leader)}.",
            f"emulation of Kafka's stale voter set: {_used_set(leader)}",
            first_offset=first,
            end_offset=leader.missed[-1].batch_end_offset,
            leader_epochs=tuple(sorted({missed.leader_epoch for missed in leader.missed})),
            replicas=(leader.replica,),
            captures=tuple(c for c in captures if c.replica == leader.replica),
        )
    for stale in stale_after_truncation(view):
        key = ReplicaKey.of(stale.truncation.node_id, stale.truncation.directory_id)
        if stale.missed and (key, stale.missed[0]) not in proven:
            yield _possibly_stale(key, stale)


def _possibly_stale(key: ReplicaKey, stale: StaleAfterTruncation) -> Breach:
    row = stale.truncation
    used, written = voters_kafka_would_use(stale.emulated), voters_of_log(stale.emulated.log)
    older = "the voters it was configured with" if used is None else f"the older set {_ids(used)}"
    return Breach(
        of_rule(16),
        "warning",
        (key.id, key.directory_id, stale.missed[0]),
        f"{label(key)} truncated its log from {row.end_offset} to {row.first_offset}: unless it was "
        f"restarted since, Kafka never reads the VotersRecords at {_offsets(stale.missed)} and uses "
        f"{older} instead of its log's {_ids(written)}.",
        "emulation of Kafka's stale voter set; a restart fixes it, unless a checkpoint carries the older set",
        first_offset=stale.missed[0],
        end_offset=stale.missed[-1] + 1,
        leader_epochs=(row.truncated_by_epoch,),
        replicas=(key,),
        captures=stale.captures,
    )


def believed_commits_agree(view: ClusterView) -> Iterator[Breach]:
    """Rule 4 against what a stale leader considered committed: it acknowledged writes that never were."""
    for leader in stale_leaders(view):
        verdict, start = leader.verdict, leader.election.offset
        if verdict.status != "truncated" or verdict.truncated_by_epoch is None:
            continue
        epoch, winner = leader.election.leader_epoch, verdict.truncated_by_epoch
        lost = offset_words(start, leader.acknowledged_end)
        acknowledged = (
            f"acknowledged at least {lost}" if leader.acknowledged_end > start else f"wrote from {start} on"
        )
        captures = view.holding(epoch, start)
        yield Breach(
            of_rule(4),
            "warning",
            ("believed", epoch),
            f"{label(leader.replica)}, leader of epoch {epoch} by the older set "
            f"{_ids(leader.believed.voters)}, {acknowledged}; by its log's set "
            f"{_ids(leader.in_force.voters)} none of it was ever committed: the history of epoch {winner} "
            f"won.",
            "emulation: what that leader considered committed; by its log, nothing was committed twice. "
            f"{verdict.evidence}. {_followed(view, leader, winner)}",
            first_offset=start,
            end_offset=leader.end_offset,
            leader_epochs=(epoch,),
            replicas=(leader.replica,),
            captures=tuple(c for c in captures if c.replica == leader.replica),
        )


def _followed(view: ClusterView, leader: StaleLeader, winner: int) -> str:
    """What rules 5 and 7 would report if that leader had been right."""
    epoch, start = leader.election.leader_epoch, leader.election.offset
    election = view.known.elections.get(winner)
    words = [
        f"By the same count leader {election.leader_id} of epoch {winner} lacked them (rule 7)"
        if election is not None
        else f"By the same count the leader of epoch {winner} lacked them (rule 7)"
    ]
    holders = replicas_of(view.holding(epoch, start))
    newest = {replica: newest_readable(view.known.holdings.captures[replica]) for replica in holders}
    losers = [r for r in holders if newest[r] and all(lacks(c, epoch, start) for c in newest[r])]
    if losers:
        words.append(f"{labels(losers)} held and lost them (rule 5)")
    return "; ".join(words) + "."


def _by_older_set(leader: StaleLeader) -> str:
    return f"It used {leader.believed.words}: {_missed(leader)}{_since(leader)}."


def _missed(leader: StaleLeader) -> str:
    records = ", ".join(f"{missed.offset}/e{missed.leader_epoch}" for missed in leader.missed)
    return f"it never applied the VotersRecords {records}"


def _since(leader: StaleLeader) -> str:
    row = leader.truncation
    if row is None:
        return ""
    lost = f"from {row.end_offset} to {row.first_offset}"
    return f" after its log was truncated {lost} by epoch {row.truncated_by_epoch}"


def _used_set(leader: StaleLeader) -> str:
    epoch, start, end = leader.election.leader_epoch, leader.election.offset, leader.acknowledged_end
    committed = range_words(start, end) if end > start else "nothing known"
    return (
        f"it used {leader.believed.words} where its log has {leader.in_force.words}; of what it wrote in "
        f"epoch {epoch} ({range_words(start, leader.end_offset)}) it considered {committed} committed; "
        f"by the log's set that is {leader.verdict.status}"
    )


def _offsets(offsets: tuple[int, ...]) -> str:
    return ", ".join(map(str, offsets))


def _ids(voters: VoterSet | None) -> str:
    return f"{{{','.join(str(voter.key.id) for voter in voters or ())}}}"
