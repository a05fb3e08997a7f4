"""Kafka's names for the codes in metadata records.

Sources: ConfigResource.Type, ResourceType, PatternType, AclOperation, AclPermissionType, SecurityProtocol,
ScramMechanism, LeaderRecoveryState and ZkMigrationState of kafka-clients and kafka-server-common, 3.9.2
to 4.4.0.
"""

from collections.abc import Mapping

CONFIG_RESOURCE_TYPES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}

ACL_RESOURCE_TYPES = {
    1: "ANY",
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}

PATTERN_TYPES = {1: "ANY", 2: "MATCH", 3: "LITERAL", 4: "PREFIXED"}

ACL_OPERATIONS = {
    1: "ANY",
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}

ACL_PERMISSION_TYPES = {1: "ANY", 2: "DENY", 3: "ALLOW"}

SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}

SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

LEADER_RECOVERY_STATES = {0: "RECOVERED", 1: "RECOVERING"}

ZK_MIGRATION_STATES = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION", 4: "ZK"}

MIGRATING_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
"""Zero uuid: the log directory of a replica that was assigned before Kafka had directory ids."""

UNASSIGNED_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The log directory of a replica that its broker has not reported yet (DirectoryId)."""

LOST_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAg"
"""The log directory of a replica whose broker knows only that it is offline (DirectoryId)."""


def word(words: Mapping[int, str], number: int) -> str:
    """Kafka's name of a code, or UNKNOWN(n) for one that no release defines."""
    return words.get(number) or f"UNKNOWN({number})"
