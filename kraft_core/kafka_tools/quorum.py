"""kafka-metadata-quorum describe (MetadataQuorumCommand), as far as a log shows it.

A log holds the leader, the epoch and the voters. What the leader alone knew is NOT_KNOWN: the high watermark,
how far each replica was and when it fetched, and who observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
class QuorumAt:
    """The quorum at an offset. voters: None where only ids are known, as of a static quorum."""

    cluster_id: str
    leader_id: int
    leader_epoch: int
    voters: VoterSet | None
    voter_ids: tuple[int, ...]


def describe_status(quorum: QuorumAt) -> Iterator[str]:
    """describe --status."""
    rows = (
        ("ClusterId", quorum.cluster_id),
        ("LeaderId", str(quorum.leader_id)),
        ("LeaderEpoch", str(quorum.leader_epoch)),
        ("HighWatermark", NOT_KNOWN),
        ("MaxFollowerLag", NOT_KNOWN),
        ("MaxFollowerLagTimeMs", NOT_KNOWN),
        ("CurrentVoters", _voters(quorum)),
        ("CurrentObservers", NOT_KNOWN),
    )
    for name, value in rows:
        yield f"{name + ':':<24}{value}"


def describe_replication(quorum: QuorumAt) -> Iterator[str]:
    """describe --replication: the leader, then the other voters."""
    voters = sorted(hash_order_of_ids(quorum.voter_ids), key=lambda node: node != quorum.leader_id)
    rows = [REPLICATION_COLUMNS, *(_row(quorum, node) for node in voters)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(REPLICATION_COLUMNS))]
    for row in rows:
        yield "".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True))


def _row(quorum: QuorumAt, node: int) -> tuple[str, ...]:
    voter = None if quorum.voters is None else next(v for v in quorum.voters if v.key.id == node)
    directory = NOT_KNOWN if voter is None else voter.key.directory_id or NOT_KNOWN
    status = "Leader" if node == quorum.leader_id else "Follower"
    return str(node), directory, *([NOT_KNOWN] * 4), status


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
    places = ", ".join(f'"{end.name}://{_host(end.host)}:{end.port}"' for end in endpoints)
    return f'{{"id": {node}{directory}' + (f', "endpoints": [{places}]' if places else "") + "}"


def _host(host: str) -> str:
    """RaftVoterEndpoint.toString: an address of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
