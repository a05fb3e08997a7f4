"""The small files beside a metadata log as Kafka writes them, and the name of a checkpoint.

Their readers are in kraft_core.format.side_files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from kraft_core.messages.uuid_text import ZERO_UUID

_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def checkpoint_name(end_offset: int, leader_epoch: int) -> str:
    """The file of a finished snapshot. end_offset: exclusive (Kafka's Snapshots)."""
    return f"{end_offset:020}-{leader_epoch:010}.checkpoint"


def meta_properties_text(cluster_id: str, node_id: int, directory_id: str | None) -> str:
    """meta.properties of version 1. directory_id: None before Kafka 3.7 (Kafka's MetaProperties)."""
    directory = {} if directory_id is None else {"directory.id": directory_id}
    entries = {"cluster.id": cluster_id, **directory, "node.id": node_id, "version": 1}
    return "#\n" + "".join(f"{name}={_property(str(value))}\n" for name, value in entries.items())


def _property(value: str) -> str:
    """As java.util.Properties writes a value: control characters and its own signs are escaped."""
    escaped = re.sub(r"[\\\t\n\r\f=:#!]", lambda match: _ESCAPES.get(match[0], f"\\{match[0]}"), value)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def leader_epoch_checkpoint_text(entries: Iterable[tuple[int, int]]) -> str:
    """leader-epoch-checkpoint. entries: epoch and start offset (Kafka's LeaderEpochCheckpointFile)."""
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return "\n".join(["0", str(len(lines)), *lines, ""])


def quorum_state_text(
    leader_id: int,
    leader_epoch: int,
    voted_id: int,
    voted_directory_id: str | None = None,
    static_voters: Iterable[int] | None = None,
) -> str:
    """quorum-state (Kafka's QuorumStateData). leader_id, voted_id: -1 for none.

    Version 0 lists the ids of the static voters, version 1 has the directory id of the vote instead.
    """
    state: dict[str, object] = {"leaderId": leader_id, "leaderEpoch": leader_epoch, "votedId": voted_id}
    if static_voters is None:
        state |= {"votedDirectoryId": voted_directory_id or ZERO_UUID, "data_version": 1}
    else:
        voters = [{"voterId": voter_id} for voter_id in static_voters]
        state = {"clusterId": ""} | state | {"appliedOffset": 0, "currentVoters": voters, "data_version": 0}
    return json.dumps(state, separators=(",", ":"))
