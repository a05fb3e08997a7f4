"""A log with a record for every way in which Kafka's replay refuses one, each with what is to be found."""

from __future__ import annotations

from kraft_core.image import refusals
from kraft_core.image.change import Refusal
from kraft_core.messages.uuid_text import uuid_text
from tests.kraft_core.image.worlds import Made, broker_fields, change_fields, partition_fields, topic_fields

CAUSES = {cause for name, cause in vars(refusals).items() if name.isupper()}

TOPIC, OTHER, UNKNOWN = (uuid_text(bytes([n]) * 16) for n in (1, 2, 3))
DIRECTORY = uuid_text(b"\x04" * 16)
_OF_UNKNOWN = f"topic {UNKNOWN}"


def _broker_change(broker_id: int, epoch: int, **changed: int) -> Made:
    fields = {"brokerId": broker_id, "brokerEpoch": epoch, "fenced": 0, "inControlledShutdown": 0}
    more = {"logDirs": [], "cordonedLogDirs": None}
    return "BROKER_REGISTRATION_CHANGE_RECORD", fields | more | changed


def _producer_ids(next_id: int) -> Made:
    return "PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 10, "nextProducerId": next_id}


def _acl_removal(acl: str) -> Made:
    return "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": acl}


def _by_all(cause: str, thing: str, reason: str) -> Refusal:
    return Refusal(cause, thing, reason)


def _by_controllers(cause: str, thing: str, reason: str) -> Refusal:
    return Refusal(cause, thing, reason, by_controllers_only=True)


def _of_unknown_elr(topic: str) -> Refusal:
    return _by_all(refusals.UNKNOWN_TOPIC, f"topic {topic}", f"ELR of unknown topic {topic}")


_FALLEN = refusals.PRODUCER_IDS_FALL, "producer ids", "next producer id 1500 is not above 2000"
_OF_UNKNOWN_BROKER = _by_all(refusals.UNKNOWN_BROKER, "broker 3", "broker 3 is not registered")

EVERY_REFUSAL: tuple[tuple[Made, Refusal | None], ...] = (
    (("TOPIC_RECORD", topic_fields("t", TOPIC)), None),
    (("PARTITION_RECORD", partition_fields(TOPIC, 0, directories=[DIRECTORY, DIRECTORY])), None),
    (("REGISTER_BROKER_RECORD", broker_fields(1, 10, OTHER)), None),
    (_producer_ids(1000), None),
    (
        ("PARTITION_RECORD", partition_fields(UNKNOWN, 5)),
        _by_all(refusals.UNKNOWN_TOPIC, _OF_UNKNOWN, f"partition 5 of unknown {_OF_UNKNOWN}"),
    ),
    (
        ("PARTITION_CHANGE_RECORD", change_fields(UNKNOWN, 6, isr=[1])),
        _by_all(refusals.UNKNOWN_TOPIC, _OF_UNKNOWN, f"partition 6 of unknown {_OF_UNKNOWN}"),
    ),
    (
        ("REMOVE_TOPIC_RECORD", {"topicId": UNKNOWN}),
        _by_all(refusals.UNKNOWN_TOPIC, _OF_UNKNOWN, f"no topic has id {UNKNOWN}"),
    ),
    (
        ("CLEAR_ELR_RECORD", {"topicName": "u"}),
        _by_all(refusals.UNKNOWN_TOPIC, "topic u", "ELR of unknown topic u"),
    ),
    (
        ("PARTITION_CHANGE_RECORD", change_fields(TOPIC, 1, isr=[1])),
        _by_all(
            refusals.UNKNOWN_PARTITION, f"topic {TOPIC}", f"change of unknown partition 1 of topic {TOPIC}"
        ),
    ),
    (
        ("PARTITION_CHANGE_RECORD", change_fields(TOPIC, 0, replicas=[1, 2, 3], leaderRecoveryState=9)),
        _by_all(refusals.WRONG_DIRECTORIES, f"topic {TOPIC}", "2 directories for 3 replicas"),
    ),
    (
        ("PARTITION_RECORD", partition_fields(TOPIC, 2, leaderRecoveryState=7)),
        _by_all(refusals.UNKNOWN_VALUE, f"topic {TOPIC}", "unknown leader recovery state 7"),
    ),
    (
        ("PARTITION_CHANGE_RECORD", change_fields(TOPIC, 2, leaderRecoveryState=7)),
        _by_all(
            refusals.UNKNOWN_PARTITION, f"topic {TOPIC}", f"change of unknown partition 2 of topic {TOPIC}"
        ),
    ),
    (
        ("PARTITION_CHANGE_RECORD", change_fields(TOPIC, 0, leaderRecoveryState=8)),
        _by_all(refusals.UNKNOWN_VALUE, f"topic {TOPIC}", "unknown leader recovery state 8"),
    ),
    (("PARTITION_CHANGE_RECORD", change_fields(TOPIC, 0, isr=[1])), None),
    (
        ("FENCE_BROKER_RECORD", {"id": 2, "epoch": 10}),
        _by_all(refusals.UNKNOWN_BROKER, "broker 2", "broker 2 is not registered"),
    ),
    (
        ("UNFENCE_BROKER_RECORD", {"id": 1, "epoch": 9}),
        _by_all(refusals.OTHER_BROKER_EPOCH, "broker 1", "broker 1 has epoch 10, not 9"),
    ),
    (
        _broker_change(1, 11),
        _by_all(refusals.OTHER_BROKER_EPOCH, "broker 1", "broker 1 has epoch 10, not 11"),
    ),
    (
        _broker_change(1, 10, fenced=3),
        _by_all(refusals.UNKNOWN_VALUE, "broker 1", "unknown value 3 of fenced"),
    ),
    (_acl_removal(UNKNOWN), _by_all(refusals.UNKNOWN_ACL, f"ACL {UNKNOWN}", f"no ACL has id {UNKNOWN}")),
    (
        ("UNREGISTER_BROKER_RECORD", {"brokerId": 3, "brokerEpoch": 10}),
        _by_controllers(refusals.UNKNOWN_BROKER, "broker 3", "broker 3 is not registered"),
    ),
    (
        ("UNREGISTER_CONTROLLER_RECORD", {"controllerId": 3}),
        _by_controllers(refusals.UNKNOWN_CONTROLLER, "controller 3", "controller 3 is not registered"),
    ),
    (
        ("UNREGISTER_BROKER_RECORD", {"brokerId": 1, "brokerEpoch": 12}),
        _by_controllers(refusals.OTHER_BROKER_EPOCH, "broker 1", "broker 1 has epoch 10, not 12"),
    ),
    (
        ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "alice", "mechanism": 1}),
        _by_controllers(
            refusals.UNKNOWN_CREDENTIAL, "user alice", "user alice has no credential for SCRAM-SHA-256"
        ),
    ),
    (
        _producer_ids(1000),
        _by_controllers(
            refusals.PRODUCER_IDS_FALL, "producer ids", "next producer id 1000 is not above 1000"
        ),
    ),
    (_producer_ids(2000), None),
    (
        ("TOPIC_RECORD", topic_fields("t", OTHER)),
        _by_controllers(refusals.TOPIC_EXISTS, "topic t", f"topic t exists with id {TOPIC}"),
    ),
    (
        ("END_TRANSACTION_RECORD", {}),
        _by_all(refusals.NO_TRANSACTION, "transaction", "no metadata transaction is open"),
    ),
    (
        ("ABORT_TRANSACTION_RECORD", {"reason": None}),
        _by_all(refusals.NO_TRANSACTION, "transaction", "no metadata transaction is open"),
    ),
    (("BEGIN_TRANSACTION_RECORD", {"name": "one"}), None),
    (
        ("BEGIN_TRANSACTION_RECORD", {"name": "two"}),
        _by_all(refusals.OPEN_TRANSACTION, "transaction", "a metadata transaction is already open"),
    ),
    (("END_TRANSACTION_RECORD", {}), None),
    (("BEGIN_TRANSACTION_RECORD", {"name": "aborted"}), None),
    (("TOPIC_RECORD", topic_fields("v", UNKNOWN)), None),
    (("CLEAR_ELR_RECORD", {"topicName": "v"}), None),
    (("CLEAR_ELR_RECORD", {"topicName": "w"}), _of_unknown_elr("w")),
    (_producer_ids(1500), _by_controllers(*_FALLEN)),
    (("ABORT_TRANSACTION_RECORD", {"reason": None}), None),
    (("CLEAR_ELR_RECORD", {"topicName": "v"}), _of_unknown_elr("v")),
    (("BEGIN_TRANSACTION_RECORD", {"name": "open"}), None),
    (("FENCE_BROKER_RECORD", {"id": 3, "epoch": 10}), _OF_UNKNOWN_BROKER),
)
"""The records by offset, and why each is refused; None if it is not. The last transaction stays open."""
