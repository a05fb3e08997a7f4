"""The two layouts of the file quorum-state: a JSON object, its version beside the fields as data_version.

Source: kafka-raft's common/message (QuorumStateData) and FileQuorumStateStore. Version 0 belongs to
kraft.version 0, where the voters come from the configuration.
"""

from __future__ import annotations

from kraft_core.messages.schema import Field, Message, Versions, since

_FIRST = Versions(0, 0)

QUORUM_STATE = Message(
    "QuorumStateData",
    None,
    Versions(0, 1),
    (
        Field("clusterId", "string", versions=_FIRST),
        Field("leaderId", "int32", default=-1),
        Field("leaderEpoch", "int32", default=-1),
        Field("votedId", "int32", default=-1),
        Field("votedDirectoryId", "uuid", versions=since(1)),
        Field("appliedOffset", "int64", versions=_FIRST),
        Field(
            "currentVoters",
            "struct",
            array=True,
            versions=_FIRST,
            nullable=_FIRST,
            fields=(Field("voterId", "int32", versions=_FIRST),),
        ),
    ),
    type_name="QuorumState",
    column="quorum_state",
)
