"""Raft requests and responses in Kafka's JSON (the highest version of each) as the engine's values."""

from __future__ import annotations

from typing import Any

from kraft_core.protocol import messages as m
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.voters import Endpoint, ReplicaKey

Json = dict[str, Any]

TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def request_of(api: str, json: Json) -> m.Request:
    """The request of an rpc line."""
    return _REQUESTS[api](json)


def json_of(response: m.Response) -> Json:
    """The response as Kafka's JSON converters write it."""
    return _RESPONSES[type(response)](response)


def endpoints_of(rows: list[Json]) -> m.Endpoints:
    return tuple(Endpoint(row["name"], row["host"], row["port"]) for row in rows)


def _partition(json: Json) -> Json:
    return json["topics"][0]["partitions"][0]


def _vote(json: Json) -> m.VoteRequest:
    part = _partition(json)
    return m.VoteRequest(
        json["clusterId"],
        ReplicaKey.of(json["voterId"], part["voterDirectoryId"]),
        ReplicaKey.of(part["replicaId"], part["replicaDirectoryId"]),
        part["replicaEpoch"],
        part["lastOffsetEpoch"],
        part["lastOffset"],
        part["preVote"],
    )


def _begin_quorum_epoch(json: Json) -> m.BeginQuorumEpochRequest:
    part = _partition(json)
    return m.BeginQuorumEpochRequest(
        json["clusterId"],
        ReplicaKey.of(json["voterId"], part["voterDirectoryId"]),
        part["leaderId"],
        part["leaderEpoch"],
        endpoints_of(json["leaderEndpoints"]),
    )


def _end_quorum_epoch(json: Json) -> m.EndQuorumEpochRequest:
    part = _partition(json)
    candidates = part["preferredCandidates"]
    return m.EndQuorumEpochRequest(
        json["clusterId"],
        part["leaderId"],
        part["leaderEpoch"],
        tuple(ReplicaKey.of(one["candidateId"], one["candidateDirectoryId"]) for one in candidates),
        endpoints_of(json["leaderEndpoints"]),
    )


def _fetch(json: Json) -> m.FetchRequest:
    part = _partition(json)
    return m.FetchRequest(
        json["clusterId"],
        ReplicaKey.of(json["replicaState"]["replicaId"], part["replicaDirectoryId"]),
        part["currentLeaderEpoch"],
        part["fetchOffset"],
        part["lastFetchedEpoch"],
        part["highWatermark"],
        json["maxWaitMs"],
        json["maxBytes"],
    )


def _fetch_snapshot(json: Json) -> m.FetchSnapshotRequest:
    part = _partition(json)
    return m.FetchSnapshotRequest(
        json["clusterId"],
        ReplicaKey.of(json["replicaId"], part["replicaDirectoryId"]),
        part["currentLeaderEpoch"],
        EpochEnd(part["snapshotId"]["endOffset"], part["snapshotId"]["epoch"]),
        part["position"],
        json["maxBytes"],
    )


def _add_voter(json: Json) -> m.AddVoterRequest:
    return m.AddVoterRequest(
        json["clusterId"],
        ReplicaKey.of(json["voterId"], json["voterDirectoryId"]),
        endpoints_of(json["listeners"]),
        json["timeoutMs"],
        json["ackWhenCommitted"],
    )


def _remove_voter(json: Json) -> m.RemoveVoterRequest:
    return m.RemoveVoterRequest(json["clusterId"], ReplicaKey.of(json["voterId"], json["voterDirectoryId"]))


def _update_voter(json: Json) -> m.UpdateVoterRequest:
    versions = json["kRaftVersionFeature"]
    return m.UpdateVoterRequest(
        json["clusterId"],
        json["currentLeaderEpoch"],
        ReplicaKey.of(json["voterId"], json["voterDirectoryId"]),
        endpoints_of(json["listeners"]),
        versions["minSupportedVersion"],
        versions["maxSupportedVersion"],
    )


_REQUESTS = {
    "Vote": _vote,
    "BeginQuorumEpoch": _begin_quorum_epoch,
    "EndQuorumEpoch": _end_quorum_epoch,
    "Fetch": _fetch,
    "FetchSnapshot": _fetch_snapshot,
    "AddRaftVoter": _add_voter,
    "RemoveRaftVoter": _remove_voter,
    "UpdateRaftVoter": _update_voter,
}


def _current_leader(leader: m.CurrentLeader) -> Json:
    leader_id = -1 if leader.leader_id is None else leader.leader_id
    return {"leaderId": leader_id, "leaderEpoch": leader.leader_epoch}


def _node_endpoints(leader: m.CurrentLeader) -> Json:
    """The leader's address on the default listener; left out where it is not known."""
    if leader.leader_id is None or not leader.endpoints:
        return {}
    first = leader.endpoints[0]
    return {"nodeEndpoints": [{"nodeId": leader.leader_id, "host": first.host, "port": first.port}]}


def _election_json(response: Any) -> Json:
    """Vote, BeginQuorumEpoch and EndQuorumEpoch."""
    if response.leader is None:
        return {"errorCode": int(response.error), "topics": []}
    part = {"partitionIndex": 0, "errorCode": int(response.error)} | _current_leader(response.leader)
    if isinstance(response, m.VoteResponse):
        part["voteGranted"] = response.vote_granted
    topics = [{"topicName": TOPIC, "partitions": [part]}]
    return {"errorCode": 0, "topics": topics} | _node_endpoints(response.leader)


def _fetch_json(response: m.FetchResponse) -> Json:
    head = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0}
    if response.leader is None:
        return head | {"errorCode": int(response.error), "responses": []}
    part: Json = {
        "partitionIndex": 0,
        "errorCode": int(response.error),
        "highWatermark": response.high_watermark,
        "lastStableOffset": -1,
        "logStartOffset": response.log_start_offset,
        "currentLeader": _current_leader(response.leader),
        "abortedTransactions": [],
        "preferredReadReplica": -1,
        "recordsSizeInBytes": sum(batch.size_bytes for batch in response.batches),
    }
    for name, end in (("divergingEpoch", response.diverging_epoch), ("snapshotId", response.snapshot_id)):
        if end is not None:
            part[name] = {"epoch": end.leader_epoch, "endOffset": end.end_offset}
    nodes = _node_endpoints(response.leader)
    for node in nodes.get("nodeEndpoints", ()):
        node["rack"] = None
    return head | {"responses": [{"topicId": METADATA_TOPIC_ID, "partitions": [part]}]} | nodes


def _fetch_snapshot_json(response: m.FetchSnapshotResponse) -> Json:
    if response.leader is None:
        return {"throttleTimeMs": 0, "errorCode": int(response.error), "topics": []}
    end = response.snapshot_id or EpochEnd(0, 0)
    part = {
        "index": 0,
        "errorCode": int(response.error),
        "snapshotId": {"endOffset": end.end_offset, "epoch": end.leader_epoch},
        "currentLeader": _current_leader(response.leader),
        "size": response.size_bytes,
        "position": response.position,
        "unalignedRecordsSizeInBytes": response.slice_bytes,
    }
    topics = [{"name": TOPIC, "partitions": [part]}]
    return {"throttleTimeMs": 0, "errorCode": 0, "topics": topics} | _node_endpoints(response.leader)


def _change_json(response: m.AddVoterResponse | m.RemoveVoterResponse) -> Json:
    return {"throttleTimeMs": 0, "errorCode": int(response.error), "errorMessage": response.message}


def _update_voter_json(response: m.UpdateVoterResponse) -> Json:
    json: Json = {"throttleTimeMs": 0, "errorCode": int(response.error)}
    if response.leader is None:
        return json
    address = {"host": "", "port": 0}
    for end in response.leader.endpoints[:1]:
        address = {"host": end.host, "port": end.port}
    return json | {"currentLeader": _current_leader(response.leader) | address}


_RESPONSES: dict[type[Any], Any] = {
    m.VoteResponse: _election_json,
    m.BeginQuorumEpochResponse: _election_json,
    m.EndQuorumEpochResponse: _election_json,
    m.FetchResponse: _fetch_json,
    m.FetchSnapshotResponse: _fetch_snapshot_json,
    m.AddVoterResponse: _change_json,
    m.RemoveVoterResponse: _change_json,
    m.UpdateVoterResponse: _update_voter_json,
}
