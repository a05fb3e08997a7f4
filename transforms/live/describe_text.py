"""A leader's answer as kafka-metadata-quorum describe prints it (Kafka's MetadataQuorumCommand)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from kraft_core.kafka_tools.quorum import REPLICATION_COLUMNS
from kraft_core.wire.quorum import DescribedQuorum, DescribedReplica


def status_text(cluster_id: str, quorum: DescribedQuorum) -> str:
    """As describe --status prints it."""
    watermark = -1 if quorum.high_watermark is None else quorum.high_watermark
    lags = [_lag(quorum, each) for each in quorum.replicas if each.is_voter]
    lines = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": watermark,
        "MaxFollowerLag": max(lags, default=0),
        "CurrentVoters": _listed(each for each in quorum.replicas if each.is_voter),
        "CurrentObservers": _listed(each for each in quorum.replicas if not each.is_voter),
    }
    return "".join(f"{name}:\t{value}\n" for name, value in lines.items())


def replication_text(quorum: DescribedQuorum) -> str:
    """As describe --replication prints it."""
    rows = [list(REPLICATION_COLUMNS), *_replicas(quorum)]
    return "".join("\t".join(row) + "\n" for row in rows)


def _replicas(quorum: DescribedQuorum) -> Iterator[list[str]]:
    for each in quorum.replicas:
        role = "Observer" if not each.is_voter else "Leader" if each == quorum.leader else "Follower"
        known = each.log_end_offset, _lag(quorum, each), each.last_fetch_at, each.last_caught_up_at
        numbers = [str(-1 if value is None else value) for value in known]
        yield [str(each.node_id), each.directory_id, *numbers, role]


def _lag(quorum: DescribedQuorum, replica: DescribedReplica) -> int:
    """As Kafka subtracts: a replica that has not fetched from this leader ends at -1."""
    leader = quorum.leader
    if leader is None or leader.log_end_offset is None:
        return -1
    end = -1 if replica.log_end_offset is None else replica.log_end_offset
    return max(0, leader.log_end_offset - end)


def _listed(replicas: Iterable[DescribedReplica]) -> str:
    return json.dumps([{"id": each.node_id, "directoryId": each.directory_id} for each in replicas])
