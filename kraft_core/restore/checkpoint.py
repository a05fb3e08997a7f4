"""A restored image as a checkpoint of Kafka (ImageWriter): the same image gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kraft_core.format.codec import write_metadata_value
from kraft_core.format.errors import EncodeError
from kraft_core.format.snapshot_writer import snapshot_bytes, snapshot_header
from kraft_core.image.features import METADATA_VERSION, Feature, to_record
from kraft_core.image.image import Image
from kraft_core.image.names import MIGRATING_DIRECTORY
from kraft_core.image.tables import FEATURES
from kraft_core.messages.control import KRAFT_VERSION, KRAFT_VOTERS
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.schema import Message
from kraft_core.raft.voters import VoterSet

RECORDS_PER_BATCH = 500
# The levels of metadata.version (3.3-IV3 to 4.3-IV0) whose record versions are known to be read by Kafka.
LOWEST_LEVEL, HIGHEST_LEVEL = 7, 30

_BY_TYPE: Mapping[str, Message] = {message.type_name: message for message in METADATA_RECORDS}
# From which level of metadata.version on a record has which version, newest first (MetadataVersion).
_VERSIONS: Mapping[str, Sequence[tuple[int, int]]] = {
    "REGISTER_BROKER_RECORD": ((30, 4), (17, 3), (8, 2), (0, 1)),
    "PARTITION_RECORD": ((23, 2), (17, 1), (0, 0)),
}


class UnwritableError(ValueError):
    """Metadata that no checkpoint of that metadata.version can hold; the message names it."""


def level_of(image: Image) -> int:
    """The level of metadata.version. Raises UnwritableError where it is unknown, or not a tried one."""
    feature: Feature | None = image.tables.get(FEATURES, (METADATA_VERSION,))
    if feature is None:
        raise UnwritableError("the metadata has no metadata.version, without which no controller can lead")
    if not LOWEST_LEVEL <= feature.level <= HIGHEST_LEVEL:
        raise UnwritableError(
            f"metadata.version {feature.level} is not between {LOWEST_LEVEL} and {HIGHEST_LEVEL}: "
            f"restoring such a checkpoint has not been tested"
        )
    return feature.level


def checkpoint_bytes(
    image: Image, leader_epoch: int, timestamp: int, voters: VoterSet | None = None
) -> bytes:
    """The checkpoint of an image.

    timestamp (ms): when it was made. It is the time of the batches and, in the header, that of the last
    record that the checkpoint contains, as kafka-storage format writes it: no log contains this image, and
    what a restore changes was not in force when the last record of a captured log was appended. voters: None
    with kraft.version 0, which has no record of them; else of kraft.version 1. Raises UnwritableError.
    """
    control = [snapshot_header(timestamp)]
    if voters is not None:
        control.append((KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}))
        control.append((KRAFT_VOTERS, voters.to_record()))
    return snapshot_bytes(control, _values(image), leader_epoch, timestamp, RECORDS_PER_BATCH)


def _values(image: Image) -> Iterator[bytes]:
    """The metadata records, metadata.version first: it decides how the others are read."""
    level = level_of(image)
    yield _value(*to_record(Feature(METADATA_VERSION, level)), level)
    for type_name, fields in image.to_records():
        if type_name != "FEATURE_LEVEL_RECORD" or fields["name"] != METADATA_VERSION:
            yield _value(type_name, fields, level)


def _value(type_name: str, fields: Mapping[str, Any], level: int) -> bytes:
    message = _BY_TYPE[type_name]
    versions = _VERSIONS.get(type_name, ((0, 0),))
    version = next(version for since, version in versions if level >= since)
    held = dict(fields)
    for field in message.fields:
        if version not in field.versions and field.name in held:
            value = held.pop(field.name)
            if value and not _is_unassigned(value):
                raise UnwritableError(f"{field.name} of a {type_name} at metadata.version {level}")
    try:
        return write_metadata_value(message, version, held)
    except EncodeError as error:
        # Without its text, which may quote a secret.
        raise UnwritableError(f"{error.field or 'a field'} of a {type_name}") from None


def _is_unassigned(value: Any) -> bool:
    """Whether a list of directories says nothing: before directory ids all replicas are MIGRATING (zero)."""
    return isinstance(value, list) and set(value) == {MIGRATING_DIRECTORY}  # pyright: ignore[reportUnknownArgumentType]
