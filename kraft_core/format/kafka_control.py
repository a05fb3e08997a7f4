"""What kafka-dump-log prints of a control record: its type and its value's JSON.

Kafka reads every such value at version 0, whatever version the value states, and prints it at that one.
Source: Kafka's DumpLogSegments, ControlRecordUtils, EndTransactionMarker.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from kraft_core.format.errors import DecodeError
from kraft_core.format.kafka_json import json_writer
from kraft_core.messages.control import ABORT, COMMIT, CONTROL_RECORDS, LEADER_CHANGE
from kraft_core.messages.uuid_text import ZERO_UUID

_KEY_BYTES = 4
_VOTER_ID = re.compile(r'"voterId":-?\d+')


# Of most elections of a log, leader and voters are the same.
@lru_cache(maxsize=256)
def control_text(key: bytes | None, value: bytes | None) -> str:
    """The text after the record's envelope; raises one of UNREADABLE where Kafka ends with an exception."""
    if key is None or len(key) < _KEY_BYTES:
        raise DecodeError(0, f"control key of {0 if key is None else len(key)} bytes")
    version, type_ = struct.unpack_from(">hh", key)
    if version < 0:
        raise DecodeError(0, f"control key of version {version}")
    if type_ not in CONTROL_RECORDS:
        return f" controlType: UNKNOWN({type_})"
    if value is None:
        raise DecodeError(0, "control record without a value")
    if type_ in (ABORT, COMMIT):
        value_version, epoch = struct.unpack_from(">hi", value)
        if value_version < 0:
            raise DecodeError(0, f"end of a transaction of version {value_version}")
        return f" endTxnMarker: {CONTROL_RECORDS[type_].type_name} coordinatorEpoch: {epoch}"
    message = CONTROL_RECORDS[type_]
    out: list[str] = []
    json_writer(message, 0, False)(value, 0, out)
    text = "".join(out)
    if type_ != LEADER_CHANGE:
        return f" {message.type_name} {text}"
    if int.from_bytes(value[:2], "big", signed=True) > 0:
        text = _VOTER_ID.sub(rf'\g<0>,"voterDirectoryId":"{ZERO_UUID}"', text)
    return f" {message.type_name}: {text}"
