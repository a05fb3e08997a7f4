"""IncrementalAlterConfigs of topics, as the active controller answers it (ConfigurationControlManager)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control import controller_file as file_names
from kraft_core.topic_control.config_types import TOPIC_CONFIGS, ConfigRefusedError
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.creation import LONGEST_VALUE, TOO_LONG, clear_elr, config_record
from kraft_core.topic_control.java import split, utf16_length
from kraft_core.topic_control.requests import TopicRefusedError, TopicResult, within_limit
from kraft_core.topic_control.topic_configs import check, in_java_order
from kraft_core.topic_control.topic_names import invalid_name


class ConfigOp(Enum):
    """AlterConfigOp.OpType."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


@dataclass(frozen=True, slots=True)
class TopicConfigChanges:
    """changes: by the name of the config; the value None for DELETE."""

    name: str
    changes: Mapping[str, tuple[ConfigOp, str | None]]


def alter_configs(controller: ActiveController, topics: Sequence[TopicConfigChanges]) -> list[TopicResult]:
    """The answer about each topic of a request, in its order; no topic is named twice.

    Raises RequestRefusedError. Kafka writes the records that clear ELRs after all others.
    """
    results: list[TopicResult] = []
    for topic in topics:
        controller.file.taken()
        try:
            after = _check(controller, topic)
            records = [config_record(topic.name, name, value) for name, value in after.items()]
            records += clear_elr(controller, topic.name, after)
            result = TopicResult(topic.name, records=tuple(records), assumed=controller.file.taken())
        except TopicRefusedError as refused:
            result = TopicResult(topic.name, refused.error, refused.text, assumed=controller.file.taken())
        results.append(result)
    within_limit(sum(len(each.records) for each in results))
    return results


def _check(controller: ActiveController, topic: TopicConfigChanges) -> dict[str, str | None]:
    """What changes, in the order of the records. Raises TopicRefusedError."""
    held = controller.topic_configs(topic.name)
    # A controller drops configs that its release does not know when it replays them.
    before = {name: value for name, value in held.items() if name in TOPIC_CONFIGS}
    after: dict[str, str | None] = {}
    for name in in_java_order(topic.changes):
        op, value = topic.changes[name]
        new = _new_value(name, op, value, before.get(name))
        if new != before.get(name):
            after[name] = new
    if any(utf16_length(value) > LONGEST_VALUE for value in after.values() if value is not None):
        raise TopicRefusedError(ErrorCode.INVALID_CONFIG, TOO_LONG)
    wrong = invalid_name(topic.name)
    if not topic.name:
        raise TopicRefusedError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if wrong is not None:
        raise TopicRefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    combined = {**before, **after}
    ordered = in_java_order(combined, at_once=len(before))
    kept = {name: combined[name] for name in ordered}
    try:
        check({name: value for name, value in kept.items() if value is not None}, before, controller.file)
    except ConfigRefusedError as refused:
        raise TopicRefusedError(ErrorCode.INVALID_CONFIG, str(refused)) from None
    if controller.topic_id(topic.name) is None:
        text = f"The topic '{topic.name}' does not exist."
        raise TopicRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    controller.file.pass_policy(file_names.ALTER_POLICY)
    return after


def _new_value(name: str, op: ConfigOp, value: str | None, current: str | None) -> str | None:
    if op in (ConfigOp.SET, ConfigOp.DELETE):
        return value if op is ConfigOp.SET else None
    config = TOPIC_CONFIGS.get(name)
    if config is None or not config.is_list:
        text = f"Can't {op.value} to key {name} because its type is not LIST."
        raise TopicRefusedError(ErrorCode.INVALID_CONFIG, text)
    values = [each for each in split(",".join(config.default) if current is None else current) if each]
    for each in split(value or ""):
        if op is ConfigOp.APPEND and each not in values:
            values.append(each)
        elif op is ConfigOp.SUBTRACT and each in values:
            values.remove(each)
    return ",".join(values)
