"""Whether what a leader answered is of the captured quorum, by the directory ids of its voters.

Several quorums may have one cluster id. From Kafka 3.9 on, an answer to DescribeQuorum names the directories
of the voters, and formatting gives each directory an id of its own (KIP-858).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kraft_core.evidence.facts import ClusterFacts
from kraft_core.evidence.states import record_set, snapshot_set
from kraft_core.messages.uuid_text import ZERO_UUID


def named_directories(facts: ClusterFacts) -> Mapping[int, set[str]]:
    """By node id the directories that captures and their voter sets name."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    sets = [record_set(record) for record in facts.control_records if record.type == "KRaftVoters"]
    sets += [snapshot_set(snapshot) for snapshot in facts.snapshots if snapshot.complete]
    replicas = {capture.replica for capture in facts.captures}
    replicas |= {voter.key for voters in sets if voters is not None for voter in voters.voters}
    for replica in replicas:
        if replica.directory_id is not None:
            found[replica.id].add(replica.directory_id)
    return found


def are_of_others(voters: Iterable[tuple[int, str]], directories: Mapping[int, set[str]]) -> bool:
    """Whether voters, by node and directory id, are other replicas than the captured ones.

    One with a replaced disk may be unknown, but not all of them.
    """
    known = [
        directory_id in directories[node]
        for node, directory_id in voters
        if directory_id != ZERO_UUID and directories.get(node)
    ]
    return bool(known) and not any(known)
