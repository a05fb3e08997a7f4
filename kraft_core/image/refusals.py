"""Why Kafka's replay refuses a record: the words that every replay uses, by columns or by records.

On controllers it is ReplicationControlManager, ClusterControlManager and others that throw; in the metadata
loader of every node TopicsDelta, ClusterDelta and others.
"""

from kraft_core.image.change import Refusal

UNKNOWN_TOPIC = "unknown_topic"
UNKNOWN_PARTITION = "unknown_partition"
WRONG_DIRECTORIES = "wrong_directories"
UNKNOWN_VALUE = "unknown_value"
UNKNOWN_BROKER = "unknown_broker"
OTHER_BROKER_EPOCH = "other_broker_epoch"
UNKNOWN_CONTROLLER = "unknown_controller"
UNKNOWN_ACL = "unknown_acl"
UNKNOWN_CREDENTIAL = "unknown_credential"
TOPIC_EXISTS = "topic_exists"
PRODUCER_IDS_FALL = "producer_ids_fall"
OPEN_TRANSACTION = "open_transaction"
NO_TRANSACTION = "no_transaction"


def partition_of_unknown_topic(topic_id: str, partition_id: int) -> Refusal:
    return Refusal(
        UNKNOWN_TOPIC, f"topic {topic_id}", f"partition {partition_id} of unknown topic {topic_id}"
    )


def unknown_partition(topic_id: str, partition_id: int) -> Refusal:
    reason = f"change of unknown partition {partition_id} of topic {topic_id}"
    return Refusal(UNKNOWN_PARTITION, f"topic {topic_id}", reason)


def wrong_directories(topic_id: str, directories: int, replicas: int) -> Refusal:
    reason = f"{directories} directories for {replicas} replicas"
    return Refusal(WRONG_DIRECTORIES, f"topic {topic_id}", reason)


def unknown_recovery_state(topic_id: str, state: int) -> Refusal:
    return Refusal(UNKNOWN_VALUE, f"topic {topic_id}", f"unknown leader recovery state {state}")
