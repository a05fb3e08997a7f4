"""A verdict on an action, or on one part of it.

refused: Kafka's answer is an error. unsafe: Kafka accepts it, but then nothing commits until more replicas
come back. not_known: the captures do not decide it. safe: Kafka accepts it, it commits by the replicas that
are in sync, and so does what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kraft_core.protocol.errors import ErrorCode

VerdictName = Literal["safe", "unsafe", "refused", "not_known"]

# What Kafka's tools print for an error code.
EXCEPTIONS = {
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.UNSUPPORTED_VERSION: "UnsupportedVersionException",
    ErrorCode.INVALID_REQUEST: "InvalidRequestException",
    ErrorCode.INVALID_UPDATE_VERSION: "InvalidUpdateVersionException",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "BrokerIdNotRegisteredException",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "UnknownTopicOrPartitionException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_PARTITIONS: "InvalidPartitionsException",
    ErrorCode.INVALID_REPLICATION_FACTOR: "InvalidReplicationFactorException",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "InvalidReplicaAssignmentException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.POLICY_VIOLATION: "PolicyViolationException",
    ErrorCode.TOPIC_DELETION_DISABLED: "TopicDeletionDisabledException",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "PreferredLeaderNotAvailableException",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "EligibleLeadersNotAvailableException",
    ErrorCode.ELECTION_NOT_NEEDED: "ElectionNotNeededException",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "NoReassignmentInProgressException",
    ErrorCode.DUPLICATE_VOTER: "DuplicateVoterException",
    ErrorCode.VOTER_NOT_FOUND: "VoterNotFoundException",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NotLeaderOrFollowerException",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """error, error_text: Kafka's, where it refuses; `reason` is for people."""

    name: VerdictName
    reason: str
    error: ErrorCode | None = None
    error_text: str | None = None

    @property
    def exception(self) -> str | None:
        return EXCEPTIONS.get(self.error) if self.error else None
