"""The two layouts of the file quorum-state: a JSON object, its version beside the fields as data_version.

Source: kafka-raft's common/message (QuorumStateData) and FileQuorumStateStore. Version 0 belongs to
kraft.version 0, where the voters come from the configuration.
"""

from __future__ import annotations

from kraft_core.messages.schema import V0, Field, Message, Versions, since

QUORUM_STATE = Message(
    "QuorumStateData",
    None,
    Versions(0, 1),
    (
        Field("clusterId", "string", versions=V0),
        Field("leaderId", "int32", default=-1),
        Field("leaderEpoch", "int32", default=-1),
        Field("votedId", "int32", default=-1),
        Field("votedDirectoryId", "uuid", versions=since(1)),
        Field("appliedOffset", "int64", versions=V0),
        Field(
            "currentVoters",
            "struct",
            array=True,
            versions=V0,
            nullable=V0,
            fields=(Field("voterId", "int32", versions=V0),),
        ),
    ),
    type_name="QuorumState",
    column="quorum_state",
)
