"""What a release refuses to replay by what it knows: levels of features, values of fields.

What every release refuses, by what lies below the record, is in kraft_core.image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.format.record import Record
from kraft_core.image.image import Image
from kraft_core.image.tables import FEATURES, TOPICS, ZK_MIGRATION
from kraft_core.messages.releases import (
    KRAFT_VERSION,
    LOWEST_SINCE_4_0,
    METADATA_LEVELS,
    METADATA_VERSION,
    RECORD_LEVELS,
    RELEASES,
    TRANSACTIONS,
    Levels,
    Release,
)
from kraft_core.plan.load_records import Ends, Obstacle, RecordPlace

_FIRST_IN_BOOTSTRAP = 4  # metadata.version 3.3-IV0
_REFUSES_LEVEL_AT_0 = "4.0"
_HIGHEST_PROTOCOL = 3  # SASL_SSL
_HIGHEST_ZK_MIGRATION = 4
_MISTAKE_ELRS = ("4.0", "4.1")
_OF_TRANSACTIONS = (23, 24, 25)  # they leave nothing in an image


@dataclass(frozen=True, slots=True)
class ReleaseRefusal:
    """Fields as in Obstacle."""

    ends: Ends
    words: str
    kafka: str
    takers: tuple[str, ...] = ()

    def at(self, place: RecordPlace) -> Obstacle:
        return Obstacle(*place, self.ends, self.words, self.kafka, self.takers)


def replay_refusal(record: Record, release: Release, *, in_checkpoint: bool) -> ReleaseRefusal | None:
    """Why the release refuses a record that it can read; None where only what lies below decides."""
    value = record.value or {}
    match record.type:
        case "FEATURE_LEVEL_RECORD" if "featureLevel" in value:
            return _feature_level(value["name"], value["featureLevel"], release)
        case "REGISTER_BROKER_RECORD":
            return _broker(value, release)
        case "REGISTER_CONTROLLER_RECORD":
            wrong = _unknown_protocol(value)
            return None if wrong is None else _refused("RuntimeException", wrong[0])
        case "DELEGATION_TOKEN_RECORD":
            return _delegation_token(value)
        case "ZK_MIGRATION_STATE_RECORD" if release.knows_zookeeper:
            return _zk_migration(value["zkMigrationState"])
        case "BEGIN_TRANSACTION_RECORD" | "END_TRANSACTION_RECORD" | "ABORT_TRANSACTION_RECORD" if (
            in_checkpoint
        ):
            name = record.message.name if record.message is not None else record.type
            return _refused("RuntimeException", f"{name} cannot appear within a snapshot.")
        case "KRaftVersion" if value["kRaftVersion"] not in (0, 1):
            level = value["kRaftVersion"]
            exception = "RuntimeException" if release.knows_zookeeper else "IllegalArgumentException"
            kafka = f"java.lang.{exception}: Unknown KRaft feature level: {level}"
            return ReleaseRefusal("nodes", f"{KRAFT_VERSION} {level} is not known", kafka)
        case _:
            return None


def end_refusal(image: Image, release: Release) -> ReleaseRefusal | None:
    """Why the release ends with what all records leave: as a node publishes it, or as a controller leads."""
    if not release.knows_zookeeper and image.tables.get(FEATURES, (METADATA_VERSION,)) is None:
        kafka = "java.lang.IllegalStateException: Unknown metadata version for FeaturesImage"
        return ReleaseRefusal("controllers", f"{METADATA_VERSION} has no level", kafka)
    state = next((each.state for _, each in image.tables.items(ZK_MIGRATION)), 0)
    if release.knows_zookeeper and state == _HIGHEST_ZK_MIGRATION:
        takers = tuple(each.name for each in RELEASES.values() if not each.knows_zookeeper)
        return _refused("IllegalStateException", "Unsupported ZkMigrationState ZK", takers)
    return None


@dataclass(slots=True)
class WrittenLevels:
    """The metadata.version that the records so far need, and the one that they set last.

    A node that starts writes the image that it has loaded as records of its metadata.version, and ends where
    these lack something (MetadataLoader, ImageWriterOptions). No controller goes below a level that it needs.
    needed_by: the first record that needs it. last: set in a transaction that is open or aborted, too, as the
    loader may have taken it.
    """

    needed: int = 0
    needed_by: str = ""
    last: int | None = None

    def add(self, record: Record, place: RecordPlace) -> None:
        if record.batch.is_control:
            return
        kind, value = (record.api_key or 0, record.version or 0), record.value or {}
        level = 0 if kind[0] in _OF_TRANSACTIONS else RECORD_LEVELS.get(kind, 0)
        if level > self.needed:
            self.needed, self.needed_by = level, f"{place.record} ({place.where})"
        if value.get("name") == METADATA_VERSION and "featureLevel" in value:
            self.last = value["featureLevel"]

    def doubt(self, image: Image) -> str | None:
        """Why the metadata.version of an image may not represent all of it, None if it does."""
        feature = image.tables.get(FEATURES, (METADATA_VERSION,))
        levels = [each for each in (self.last, feature and feature.level) if each is not None]
        if min(levels, default=self.needed) >= self.needed:
            return None
        lower, higher = (METADATA_LEVELS.get(level, str(level)) for level in (min(levels), self.needed))
        return (
            f"whether {METADATA_VERSION} {lower}, to which the log goes back, represents {self.needed_by}, "
            f"which Kafka writes from {higher} on: a controller ends that cannot write what it has loaded"
        )


@dataclass(slots=True)
class RemovedTopics:
    """The topics that the log removes above the newest checkpoint, for the releases 4.0 and 4.1.

    Their metadata loader takes a ClearElrRecord for one of a topic that was removed before it in the same
    MetadataDelta (TopicsDelta). How much a delta holds depends on how much is read at once: a node that
    starts reads many records. 4.0.0 puts a removed topic back into the image where the record names it, or
    all topics (KAFKA-19383); 4.0.1, 4.0.2 and 4.1.0 to 4.1.2 end on a record of all topics if the removed one
    was created in the delta, too, and none of its name since (KAFKA-19497). Their controllers replay both as
    they are meant.
    """

    release: Release
    _created: dict[str, str] = field(default_factory=dict[str, str])  # the newest id of a name
    _names: dict[str, str] = field(default_factory=dict[str, str])  # of topics that are created, by id
    _removed: dict[str, str] = field(default_factory=dict[str, str])  # ids by names
    _is_told: bool = False

    def doubt(self, record: Record, file: str, image: Image) -> str | None:
        """Why it is not known what the release makes of the log's next record; of the first such record only.

        image: below it.
        """
        value = record.value
        if self._is_told or self.release.name not in _MISTAKE_ELRS or value is None:
            return None
        if record.type == "TOPIC_RECORD":
            self._created[value["name"]] = value["topicId"]
            self._names[value["topicId"]] = value["name"]
        elif record.type == "REMOVE_TOPIC_RECORD":
            topic = image.tables.get(TOPICS, (value["topicId"],))
            name = self._names.get(value["topicId"]) or (topic.name if topic is not None else "")
            self._removed[name] = value["topicId"]
        elif record.type == "CLEAR_ELR_RECORD":
            return self._mistaken(value["topicName"], RecordPlace.of(file, record))
        return None

    def _mistaken(self, cleared: str, place: RecordPlace) -> str | None:
        """cleared: the name of the topic whose ELRs are; "" for all."""
        back = [cleared] if cleared in self._removed else [] if cleared else [*self._removed]
        ended = [] if cleared else sorted(name for name, _ in self._removed.items() & self._created.items())
        whats: list[str] = []
        if self.release.name == _MISTAKE_ELRS[0] and back:
            whats.append(f"4.0.0 brings back topic {back[-1]}, which was removed (KAFKA-19383)")
        if ended:
            whats.append(f"it ends where it reads how topic {ended[-1]} came and went, too (KAFKA-19497)")
        self._is_told = bool(whats)
        where = f"{place.record} ({place.where})"
        return f"whether Kafka {self.release.name} replays {where}: {'; '.join(whats)}" if whats else None


def bootstrap_level(record: Record, before: int | None) -> int | None:
    """The metadata.version of a bootstrap.checkpoint up to this record: the last one counts."""
    value = record.value or {}
    is_level = record.type == "FEATURE_LEVEL_RECORD" and value.get("name") == METADATA_VERSION
    return value.get("featureLevel") if is_level else before


def bootstrap_refusal(level: int | None, release: Release) -> ReleaseRefusal | str | None:
    """Why nodes do not start with such a bootstrap.checkpoint (BootstrapMetadata), or why they may not.

    Before KAFKA-19192 (4.0.1) they refused a level that they do not know, though their log was not empty.
    """
    takers = tuple(each.name for each in RELEASES.values() if not each.knows_zookeeper)
    from_file = "the binary bootstrap metadata file"
    if level is None:
        words = f"No FeatureLevelRecord for {METADATA_VERSION} was found in the bootstrap metadata from"
        kafka = f"java.lang.RuntimeException: {words} {from_file}"
        return ReleaseRefusal("nodes", f"it has no {METADATA_VERSION}", kafka)
    unknown = f"it has {METADATA_VERSION} {level}, which"
    if release.name == _REFUSES_LEVEL_AT_0 and level not in Levels(LOWEST_SINCE_4_0, release.testing):
        return f"{unknown} Kafka 4.0.0 refuses, and later patches do not (KAFKA-19192)"
    if not release.knows_zookeeper or level in Levels(_FIRST_IN_BOOTSTRAP, release.testing):
        return None
    words = f"IllegalArgumentException: No MetadataVersion with feature level {level}"
    if level < _FIRST_IN_BOOTSTRAP:
        first = METADATA_LEVELS[_FIRST_IN_BOOTSTRAP]
        words = (
            f"RuntimeException: Bootstrap metadata.version before {first} are not supported. Can't load "
            f"metadata from {from_file}"
        )
    return ReleaseRefusal("nodes", f"{unknown} the release does not know", f"java.lang.{words}", takers)


def open_transaction_refusal(image: Image, begun: int) -> ReleaseRefusal | None:
    """Why no controller can lead with a transaction that is open at the end (ActivationRecordsGenerator).

    image: with the transaction's effect. begun: its offset.
    """
    feature = image.tables.get(FEATURES, (METADATA_VERSION,))
    level = 1 if feature is None else feature.level
    if level >= TRANSACTIONS:
        return None
    name = METADATA_LEVELS.get(level, str(level))
    return _refused(
        "RuntimeException",
        f"Detected in-progress transaction at offset {begun}, but the metadata.version {name} does not "
        "support transactions. Cannot continue.",
    )


def _refused(exception: str, words: str, takers: tuple[str, ...] = ()) -> ReleaseRefusal:
    """By controllers, in Kafka's words."""
    return ReleaseRefusal("controllers", words, f"java.lang.{exception}: {words}", takers)


def _unknown_protocol(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """What Kafka says of the first endpoint with one, and the listener's name."""
    for end in value["endPoints"]:
        if not 0 <= end["securityProtocol"] <= _HIGHEST_PROTOCOL:
            return f"Unknown security protocol {end['securityProtocol']}", end["name"]
    return None


def _broker(value: Mapping[str, Any], release: Release) -> ReleaseRefusal | None:
    """Sources: ListenerInfo and BrokerRegistration."""
    wrong = _unknown_protocol(value)
    if wrong is not None:
        return _refused("RuntimeException", f"{wrong[0]} in listener {wrong[1]}")
    if not release.knows_zookeeper and any(not end["name"] for end in value["endPoints"]):
        takers = tuple(each.name for each in RELEASES.values() if each.knows_zookeeper)
        return _refused("IllegalArgumentException", "Broker listeners must be named.", takers)
    return None


def _zk_migration(state: int) -> ReleaseRefusal | None:
    if 0 <= state <= _HIGHEST_ZK_MIGRATION:
        return None
    takers = tuple(each.name for each in RELEASES.values() if not each.knows_zookeeper)
    return _refused("IllegalArgumentException", f"Value {state} is not a valid Zk migration state", takers)


def _feature_level(name: str, level: int, release: Release) -> ReleaseRefusal | None:
    supported = release.supported.get(name, Levels(0, 0))
    if level in supported:
        return None
    kafka = (
        f"java.lang.RuntimeException: Tried to apply FeatureLevelRecord FeatureLevelRecord(name='{name}', "
        f"featureLevel={level}), but this controller only supports versions {supported}"
    )
    takers = tuple(r.name for r in RELEASES.values() if level in r.supported.get(name, Levels(0, 0)))
    return ReleaseRefusal("controllers", f"{name} {level} is not supported", kafka, takers)


def _delegation_token(value: Mapping[str, Any]) -> ReleaseRefusal | None:
    """Whom it names must be type:name (SecurityUtils.parseKafkaPrincipal)."""
    named = (*value["renewers"], value["owner"], value.get("requester"))
    wrong = next((who for who in named if who is not None and ":" not in who), None)
    if wrong is None:
        return None
    kafka = (
        "java.lang.IllegalArgumentException: expected a string in format principalType:principalName but got "
        f"{wrong}"
    )
    return ReleaseRefusal("controllers", f"{wrong!r} is not a principal", kafka)
