"""The bytes of the files that kraft_core.storage.formatter plans, to compare with those of Kafka's tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.format.codec import write_metadata_value
from kraft_core.format.log_dirs import BOOTSTRAP_NAME
from kraft_core.format.side_file_texts import meta_properties_text
from kraft_core.format.snapshot_writer import ControlRecord, snapshot_bytes, snapshot_header
from kraft_core.messages.control import KRAFT_VERSION as KRAFT_VERSION_RECORD
from kraft_core.messages.control import KRAFT_VOTERS
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.releases import KRAFT_VERSION, METADATA_VERSION
from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.storage.formatter import Formatted, FormattedDir
from kraft_core.storage.log_dirs import META_PROPERTIES

_BY_TYPE = {message.type_name: message for message in METADATA_RECORDS}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the tool draws or reads from the clock. timestamp: ms. salts: by credential, if it gives none."""

    directory_id: str
    timestamp: int = 0
    last_contained_log_timestamp: int = 0
    salts: tuple[bytes, ...] = ()


def file_bytes(formatted: Formatted, directory: FormattedDir, name: str, drawn: Drawn) -> bytes:
    """The content of one of its files; meta.properties without the line of the time of writing."""
    if name == META_PROPERTIES:
        directory_id = directory.directory_id or drawn.directory_id
        return meta_properties_text(formatted.cluster_id, formatted.node_id, directory_id).encode()
    if name == BOOTSTRAP_NAME:
        return _checkpoint([snapshot_header(0)], _metadata(formatted, drawn), drawn)
    control: list[ControlRecord] = [snapshot_header(drawn.last_contained_log_timestamp)]
    if formatted.levels[KRAFT_VERSION]:
        control.append(
            (KRAFT_VERSION_RECORD, {"version": 0, "kRaftVersion": formatted.levels[KRAFT_VERSION]})
        )
        if formatted.voters is not None:
            control.append((KRAFT_VOTERS, _with_directory(formatted.voters, drawn).to_record()))
    return _checkpoint(control, _metadata(formatted, drawn) if formatted.has_metadata_in_log else [], drawn)


def _with_directory(voters: VoterSet, drawn: Drawn) -> VoterSet:
    """The voter of --standalone gets the directory id that the tool draws."""
    return VoterSet(
        tuple(
            v if v.key.directory_id else replace(v, key=ReplicaKey(v.key.id, drawn.directory_id))
            for v in voters
        )
    )


def _checkpoint(control: list[ControlRecord], values: Iterable[bytes], drawn: Drawn) -> bytes:
    held = list(values)
    return snapshot_bytes(control, held, 0, drawn.timestamp, records_per_batch=max(1, len(held)))


def _metadata(formatted: Formatted, drawn: Drawn) -> list[bytes]:
    """The first metadata records (BootstrapMetadata.fromVersions, ScramParser)."""
    levels = dict(formatted.levels)
    features = [(METADATA_VERSION, levels.pop(METADATA_VERSION))]
    features += [(name, level) for name, level in sorted(levels.items()) if level and name != KRAFT_VERSION]
    found = [_value("FEATURE_LEVEL_RECORD", {"name": n, "featureLevel": level}) for n, level in features]
    for nth, each in enumerate(formatted.credentials):
        salt = drawn.salts[nth] if each.salt is None else each.salt
        found.append(_value("USER_SCRAM_CREDENTIAL_RECORD", each.to_record(salt)))
    return found


def _value(type_name: str, fields: Mapping[str, Any]) -> bytes:
    return write_metadata_value(_BY_TYPE[type_name], 0, fields)
