"""The control records of a metadata log and of its snapshots, by control type.

Source: kafka-clients' common/message (LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord,
KRaftVersionRecord, VotersRecord, EndTxnMarker) and ControlRecordType. Each value begins with its version, an
int16: Kafka writes it before an EndTxnMarker and declares it as the first field of the others; here all
declare it.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.messages.schema import V0, Field, Message, Versions, since, snake_case, struct, structs

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(7)

_VERSION = Field("version", "int16")


def _control(name: str, type_name: str, versions: Versions, *fields: Field) -> Message:
    return Message(name, None, versions, (_VERSION, *fields), type_name, snake_case(type_name))


def _voters(name: str) -> Field:
    return structs(name, Field("voterId", "int32"), Field("voterDirectoryId", "uuid", versions=since(1)))


def _end_transaction(type_name: str) -> Message:
    marker = _control("EndTxnMarker", type_name, V0, Field("coordinatorEpoch", "int32"))
    return replace(marker, flexible=False)


CONTROL_RECORDS: dict[int, Message] = {
    ABORT: _end_transaction("ABORT"),
    COMMIT: _end_transaction("COMMIT"),
    LEADER_CHANGE: _control(
        "LeaderChangeMessage",
        "LeaderChange",
        Versions(0, 1),
        Field("leaderId", "int32"),
        _voters("voters"),
        _voters("grantingVoters"),
    ),
    SNAPSHOT_HEADER: _control(
        "SnapshotHeaderRecord", "SnapshotHeader", V0, Field("lastContainedLogTimestamp", "int64")
    ),
    SNAPSHOT_FOOTER: _control("SnapshotFooterRecord", "SnapshotFooter", V0),
    KRAFT_VERSION: _control("KRaftVersionRecord", "KRaftVersion", V0, Field("kRaftVersion", "int16")),
    KRAFT_VOTERS: _control(
        "VotersRecord",
        "KRaftVoters",
        V0,
        structs(
            "voters",
            Field("voterId", "int32"),
            Field("voterDirectoryId", "uuid"),
            structs("endpoints", Field("name", "string"), Field("host", "string"), Field("port", "uint16")),
            struct(
                "kRaftVersionFeature",
                Field("minSupportedVersion", "int16"),
                Field("maxSupportedVersion", "int16"),
            ),
        ),
    ),
}
