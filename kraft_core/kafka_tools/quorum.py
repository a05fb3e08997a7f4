"""kafka-metadata-quorum describe (MetadataQuorumCommand), as far as a log shows it.

A log holds the leader, the epoch and the voters. What the leader alone knew is NOT_KNOWN, unless it answered
at that moment: the high watermark, how far each replica was and when it fetched, and who observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

from kraft_core.format.java_text import hash_order_of_ids
from kraft_core.raft.voters import Endpoint, Voter, VoterSet

NOT_KNOWN = "not known"
REPLICATION_COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


@dataclass(frozen=True, slots=True)
class ReplicaAnswer:
    """What the leader answered of a replica; times in ms; None: nothing."""

    node_id: int
    directory_id: str
    is_observer: bool
    log_end_offset: int | None
    lag: int | None
    last_fetch_at: int | None
    last_caught_up_at: int | None


@dataclass(frozen=True, slots=True)
class LeaderAnswer:
    """An answer of a leader about its quorum. at: when it had arrived (ms). observers: in its order."""

    at: int
    high_watermark: int
    observers: tuple[tuple[int, str], ...]
    replicas: tuple[ReplicaAnswer, ...]

    @property
    def max_follower_lag(self) -> int | None:
        """Of the voters; the leader's own is 0. None where it does not know that of each."""
        lags = [each.lag for each in self.replicas if not each.is_observer]
        known = [lag for lag in lags if lag is not None]
        return max(known) if known and len(known) == len(lags) else None


@dataclass(frozen=True, slots=True)
class QuorumAt:
    """The quorum at an offset. voters: None where only ids are known, as of a static quorum.

    answer: of the leader, when that offset was the last below its high watermark.
    """

    cluster_id: str
    leader_id: int
    leader_epoch: int
    voters: VoterSet | None
    voter_ids: tuple[int, ...]
    answer: LeaderAnswer | None = None


def describe_status(quorum: QuorumAt) -> Iterator[str]:
    """describe --status."""
    answer = quorum.answer
    observers = None if answer is None else f"[{', '.join(_object(*each) for each in answer.observers)}]"
    rows = (
        ("ClusterId", quorum.cluster_id),
        ("LeaderId", str(quorum.leader_id)),
        ("LeaderEpoch", str(quorum.leader_epoch)),
        ("HighWatermark", _known(answer and answer.high_watermark)),
        ("MaxFollowerLag", _known(answer and answer.max_follower_lag)),
        ("MaxFollowerLagTimeMs", NOT_KNOWN),
        ("CurrentVoters", _voters(quorum)),
        ("CurrentObservers", _known(observers)),
    )
    for name, value in rows:
        yield f"{name + ':':<24}{value}"


def describe_replication(quorum: QuorumAt) -> Iterator[str]:
    """describe --replication: the leader, then the other voters, then observers, if they are known."""
    voters = sorted(hash_order_of_ids(quorum.voter_ids), key=lambda node: node != quorum.leader_id)
    rows = [REPLICATION_COLUMNS, *(_row(quorum, node) for node in voters), *_observers(quorum.answer)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(REPLICATION_COLUMNS))]
    for row in rows:
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))


def _row(quorum: QuorumAt, node: int) -> tuple[str, ...]:
    voter = None if quorum.voters is None else next(v for v in quorum.voters if v.key.id == node)
    directory = NOT_KNOWN if voter is None else voter.key.directory_id or NOT_KNOWN
    status = "Leader" if node == quorum.leader_id else "Follower"
    answered = () if quorum.answer is None else quorum.answer.replicas
    found = [each for each in answered if each.node_id == node and not each.is_observer]
    return str(node), directory, *_answered(found[0] if len(found) == 1 else None), status


def _observers(answer: LeaderAnswer | None) -> Iterator[tuple[str, ...]]:
    if answer is None:
        return
    observing = {(each.node_id, each.directory_id): each for each in answer.replicas if each.is_observer}
    for node, directory in answer.observers:
        yield str(node), directory, *_answered(observing.get((node, directory))), "Observer"


def _answered(replica: ReplicaAnswer | None) -> Iterator[str]:
    if replica is None:
        return repeat(NOT_KNOWN, 4)
    values = (replica.log_end_offset, replica.lag, replica.last_fetch_at, replica.last_caught_up_at)
    # What the leader does not know of a replica, the tool prints as -1.
    return (str(-1 if value is None else value) for value in values)


def _known(value: object) -> str:
    return NOT_KNOWN if value is None else str(value)


def _voters(quorum: QuorumAt) -> str:
    """The leader keeps them in a HashMap by id (LeaderState)."""
    ids = hash_order_of_ids(quorum.voter_ids)
    if quorum.voters is None:
        return f"[{', '.join(map(_object, ids))}]"
    by_id = {voter.key.id: voter for voter in quorum.voters}
    return f"[{', '.join(_voter(by_id[node]) for node in ids)}]"


def _voter(voter: Voter) -> str:
    return _object(voter.key.id, voter.key.directory_id, voter.endpoints)


def _object(node: int, directory_id: str | None = None, endpoints: Iterable[Endpoint] = ()) -> str:
    directory = f', "directoryId": "{directory_id}"' if directory_id else ""
    places = ", ".join(f'"{end}"' for end in endpoints)
    return f'{{"id": {node}{directory}' + (f', "endpoints": [{places}]' if places else "") + "}"
