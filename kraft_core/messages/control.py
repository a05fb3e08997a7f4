"""The control records of a metadata log and of its snapshots, by control type.

Source: kafka-clients' common/message (LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord,
KRaftVersionRecord, VotersRecord, EndTxnMarker) and ControlRecordType. Each value begins with its version, an
int16: Kafka writes it before an EndTxnMarker and declares it as the first field of the others; here all
declare it.
"""

from __future__ import annotations

from kraft_core.messages.schema import V0, Field, Message, Versions, since

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(7)

_VERSION = Field("version", "int16")


def _voters(name: str) -> Field:
    return Field(
        name,
        "struct",
        array=True,
        fields=(Field("voterId", "int32"), Field("voterDirectoryId", "uuid", versions=since(1))),
    )


def _end_transaction(type_name: str) -> Message:
    return Message(
        "EndTxnMarker",
        None,
        V0,
        (_VERSION, Field("coordinatorEpoch", "int32")),
        type_name=type_name,
        column=type_name.lower(),
        flexible=False,
    )


CONTROL_RECORDS: dict[int, Message] = {
    ABORT: _end_transaction("ABORT"),
    COMMIT: _end_transaction("COMMIT"),
    LEADER_CHANGE: Message(
        "LeaderChangeMessage",
        None,
        Versions(0, 1),
        (_VERSION, Field("leaderId", "int32"), _voters("voters"), _voters("grantingVoters")),
        type_name="LeaderChange",
        column="leader_change",
    ),
    SNAPSHOT_HEADER: Message(
        "SnapshotHeaderRecord",
        None,
        V0,
        (_VERSION, Field("lastContainedLogTimestamp", "int64")),
        type_name="SnapshotHeader",
        column="snapshot_header",
    ),
    SNAPSHOT_FOOTER: Message(
        "SnapshotFooterRecord",
        None,
        V0,
        (_VERSION,),
        type_name="SnapshotFooter",
        column="snapshot_footer",
    ),
    KRAFT_VERSION: Message(
        "KRaftVersionRecord",
        None,
        V0,
        (_VERSION, Field("kRaftVersion", "int16")),
        type_name="KRaftVersion",
        column="kraft_version",
    ),
    KRAFT_VOTERS: Message(
        "VotersRecord",
        None,
        V0,
        (
            _VERSION,
            Field(
                "voters",
                "struct",
                array=True,
                fields=(
                    Field("voterId", "int32"),
                    Field("voterDirectoryId", "uuid"),
                    Field(
                        "endpoints",
                        "struct",
                        array=True,
                        fields=(Field("name", "string"), Field("host", "string"), Field("port", "uint16")),
                    ),
                    Field(
                        "kRaftVersionFeature",
                        "struct",
                        fields=(Field("minSupportedVersion", "int16"), Field("maxSupportedVersion", "int16")),
                    ),
                ),
            ),
        ),
        type_name="KRaftVoters",
        column="kraft_voters",
    ),
}
