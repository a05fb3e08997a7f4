"""Values as kafka-metadata-shell 4.3.1 prints them (toString of Kafka's classes), without secrets."""

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from kraft_core.columnar.timestamps import representable
from kraft_core.image.acls import Acl
from kraft_core.image.brokers import Broker
from kraft_core.image.client_quotas import Entity
from kraft_core.image.configs import Config, is_secret
from kraft_core.image.controllers import Controller
from kraft_core.image.delegation_tokens import DelegationToken
from kraft_core.image.endpoints import EndPoint, SupportedFeature
from kraft_core.image.names import (
    ACL_OPERATIONS,
    ACL_PERMISSION_TYPES,
    ACL_RESOURCE_TYPES,
    CONFIG_RESOURCE_TYPES,
    LEADER_RECOVERY_STATES,
    PATTERN_TYPES,
    SECURITY_PROTOCOLS,
    word,
)
from kraft_core.image.partitions import Partition
from kraft_core.image.scram_users import ScramUser
from kraft_core.messages.releases import METADATA_LEVELS

REDACTED = "[redacted]"
_DEFAULT = "<default>"
_ENTITY_WORDS = {"client-id": "clientId", "ip": "ip", "user": "user"}


def partition(value: Partition) -> str:
    """PartitionRegistration.toString."""
    return (
        f"PartitionRegistration(replicas={_list(value.replicas)}, directories={_list(value.directories)}"
        f", isr={_list(value.isr)}, removingReplicas={_list(value.removing_replicas)}"
        f", addingReplicas={_list(value.adding_replicas)}, elr={_list(value.eligible_leader_replicas)}"
        f", lastKnownElr={_list(value.last_known_elr)}, leader={value.leader}"
        f", leaderRecoveryState={word(LEADER_RECOVERY_STATES, value.leader_recovery_state)}"
        f", leaderEpoch={value.leader_epoch}, partitionEpoch={value.partition_epoch})"
    )


def broker(value: Broker) -> str:
    """BrokerRegistration.toString."""
    rack = "Optional.empty" if value.rack is None else f"Optional[{value.rack}]"
    cordoned = "null" if value.cordoned_log_dirs is None else _list(value.cordoned_log_dirs)
    return (
        f"BrokerRegistration(id={value.broker_id}, epoch={value.broker_epoch}"
        f", incarnationId={value.incarnation_id}, listeners=[{_endpoints(value.endpoints)}]"
        f", supportedFeatures={{{_features(value.features)}}}, rack={rack}, fenced={_bool(value.fenced)}"
        f", inControlledShutdown={_bool(value.in_controlled_shutdown)}"
        f", isMigratingZkBroker={_bool(value.is_migrating_zk_broker)}"
        f", directories={_list(sorted(value.log_dirs, key=_uuid_order))}, cordonedDirectories={cordoned})"
    )


def controller(value: Controller) -> str:
    """ControllerRegistration.toString."""
    return (
        f"ControllerRegistration(id={value.controller_id}, incarnationId={value.incarnation_id}"
        f", zkMigrationReady={_bool(value.zk_migration_ready)}, listeners=[{_endpoints(value.endpoints)}]"
        f", supportedFeatures={{{_features(value.features)}}})"
    )


def acl(value: Acl) -> str:
    """StandardAcl.toString."""
    return (
        f"StandardAcl[resourceType={word(ACL_RESOURCE_TYPES, value.resource_type)}"
        f", resourceName={value.resource_name}, patternType={word(PATTERN_TYPES, value.pattern_type)}"
        f", principal={value.principal}, host={value.host}"
        f", operation={word(ACL_OPERATIONS, value.operation)}"
        f", permissionType={word(ACL_PERMISSION_TYPES, value.permission_type)}]"
    )


def scram_user(value: ScramUser) -> str:
    """ScramCredentialDataNode; the number of iterations is not a secret."""
    return (
        f"ScramCredentialData(salt={REDACTED}, storedKey={REDACTED}, serverKey={REDACTED}"
        f", iterations={value.iterations})"
    )


def delegation_token(value: DelegationToken) -> str:
    """DelegationTokenDataNode, with Kafka's unbalanced brackets."""
    return (
        f"DelegationTokenDatatokenId={REDACTED}(owner={value.owner}(tokenRequester={value.requester}"
        f"(renewers={' '.join(value.renewers)}, issueTimestamp={value.issue_timestamp}"
        f", maxTimestamp={value.max_timestamp}), expiryTimestamp={value.expiration_timestamp}"
    )


def config(value: Config) -> str:
    return REDACTED if is_secret(value) else value.value


def config_resource(resource_type: int, resource_name: str) -> str:
    """ConfigurationsImageNode: the type alone for the default of all resources of that type."""
    kind = word(CONFIG_RESOURCE_TYPES, resource_type)
    return f"{kind}:{resource_name}" if resource_name else kind


def metadata_version(level: int | None) -> str:
    """FeaturesImageNode prints an Optional of MetadataVersion."""
    return "Optional.empty" if level is None else f"Optional[{word(METADATA_LEVELS, level)}]"


def provenance(offset: int, leader_epoch: int, timestamp: int) -> str:
    """ProvenanceNode; timestamp in ms, clamped to what Python can show."""
    timestamp = representable(timestamp)
    whole = datetime.fromtimestamp(timestamp // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{timestamp % 1000:03d}".rstrip("0").rstrip(".")
    return f"offset {offset}, epoch {leader_epoch}, time {whole}{fraction}Z[UTC]"


def entity(value: Entity) -> str:
    """ClientQuotasImageNode. Kafka leaves default entities out of the name; here they are <default>."""
    in_kafkas_order = sorted(value, key=lambda part: _ENTITY_WORDS.get(part[0], part[0]))
    return "_".join(
        f"{_ENTITY_WORDS.get(kind, kind)}({_entity_name(name)})" for kind, name in in_kafkas_order
    )


def _entity_name(name: str | None) -> str:
    if name is None:
        return _DEFAULT
    escaped = name.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return "\\" + escaped if name == _DEFAULT else escaped


def double(value: float) -> str:
    """Double.toString of Java."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else text + ".0"
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    exponent = Decimal(repr(value)).adjusted()
    mantissa = "".join(map(str, digits))
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent}"


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _endpoints(points: tuple[EndPoint, ...]) -> str:
    return ", ".join(
        f"Endpoint(listenerName='{point.name}'"
        f", securityProtocol={word(SECURITY_PROTOCOLS, point.security_protocol)}"
        f", host='{point.host}', port={point.port})"
        for point in points
    )


def _features(features: tuple[SupportedFeature, ...]) -> str:
    return ", ".join(
        f"{feature.name}: {_range(feature.min_supported_version, feature.max_supported_version)}"
        for feature in features
    )


def _range(low: int, high: int) -> str:
    """VersionRange.toString."""
    return str(low) if low == high else f"{low}-{high}"


def _uuid_order(text: str) -> tuple[int, int]:
    """Uuid.compareTo: by two signed longs."""
    raw = urlsafe_b64decode(text + "==")
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)
