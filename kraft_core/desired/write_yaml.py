"""A state as YAML, which read_state reads back to the same state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import yaml

from kraft_core.desired.state import (
    ACLS,
    CONFIGS,
    FEATURES,
    QUOTAS,
    TOPICS,
    USERS,
    AclBinding,
    Configs,
    DesiredState,
    TopicState,
    resource_words,
)
from kraft_core.wording import count

_LONGEST_LINE = 1 << 20
# Texts that some reader takes for a number or a truth value, and PyYAML, which knows YAML 1.1 alone, does not
# quote: 1e5 and 089 are numbers of YAML 1.2's core schema, 0o17 and 0b1 of go-yaml, y is true by YAML 1.1.
_NOT_TEXT = re.compile(
    r"[-+]?(?:0x[0-9a-f_]+|0o[0-7_]+|0b[01_]+|(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:e[-+]?[0-9_]+)?)"
    r"|[-+]?\.inf|\.nan|[yn]",
    re.IGNORECASE | re.ASCII,
)


class _Row(list[Any]):
    """A list on one line."""


class _Dumper(yaml.SafeDumper):
    """The safe dumper, which also knows rows, and quotes what any reader might not take for text."""


def _row(dumper: Any, row: _Row) -> Any:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True)


def _text(dumper: Any, text: str) -> Any:
    style = "'" if _NOT_TEXT.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(_Row, _row)
_Dumper.add_representer(str, _text)


def yaml_lines(state: DesiredState, *, placement: bool = False) -> Iterator[str]:
    """Every section, in ASCII, without secrets: a secret config is null, a credential has its iterations.

    placement: also the replicas of each partition.
    """
    data: dict[str, Any] = {
        FEATURES: dict(state.features),
        TOPICS: list(state.topics.values()),
        CONFIGS: [
            {"resource_type": kind, "resource_name": name, "configs": _values(configs)}
            for (kind, name), configs in state.configs.items()
        ],
        ACLS: [_acl(binding, words) for binding, words in grouped(state)],
        USERS: _users(state),
        QUOTAS: [{"entity": dict(entity), "quotas": dict(held)} for entity, held in state.quotas.items()],
    }
    for section, content in data.items():
        if not content:
            yield f"{section}: {'{}' if section == FEATURES else '[]'}"
        elif section == TOPICS:
            yield f"{section}:"
            for topic in content:
                yield from _topic_lines(topic, placement)
        else:
            yield from _dumped({section: content})


def _dumped(data: Any) -> list[str]:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=_LONGEST_LINE)
    return text.splitlines()


def _topic_lines(topic: TopicState, placement: bool) -> Iterator[str]:
    yield from _dumped([_topic(topic)])
    # Without one replication factor the replicas alone say how many there are.
    if placement or topic.replication_factor is None:
        yield "  assignment:" if topic.assignment else "  assignment: []"
        # Not by PyYAML, which takes 40 us for each: there may be millions.
        yield from (f"  - [{', '.join(map(str, replicas))}]" for replicas in topic.assignment or ())


def secrets_of(state: DesiredState) -> Iterator[str]:
    """What yaml_lines leaves out of the state, in words."""
    named = [(f"topic {topic.name}", topic.configs) for topic in state.topics.values()]
    named += [(resource_words(resource), configs) for resource, configs in state.configs.items()]
    for subject, configs in named:
        for name, value in configs.items():
            if value.shown is None:
                yield f"{subject}: config {name}: its value may be a secret"
    if state.users:
        yield f"the passwords of {count(len(state.users), 'SCRAM credential')}: the log contains none"


def grouped(state: DesiredState) -> Iterator[tuple[AclBinding, list[str]]]:
    """ACLs that differ in the operation alone: the first of them, and all their operations."""
    for _, group in groupby(sorted(state.acls), key=_without_operation):
        bindings = list(group)
        yield bindings[0], [binding.operation for binding in bindings]


def _without_operation(acl: AclBinding) -> tuple[str, ...]:
    where = (acl.resource_type, acl.resource_name, acl.pattern_type)
    return *where, acl.principal, acl.host, acl.permission_type


def _topic(topic: TopicState) -> dict[str, Any]:
    made: dict[str, Any] = {"name": topic.name, "partitions": topic.partitions}
    if topic.replication_factor is not None:
        made["replication_factor"] = topic.replication_factor
    if topic.configs:
        made["configs"] = _values(topic.configs)
    return made


def _values(configs: Configs) -> Mapping[str, str | None]:
    return {name: value.shown for name, value in configs.items()}


def _acl(acl: AclBinding, operations: list[str]) -> dict[str, Any]:
    return {
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "permission_type": acl.permission_type,
        "operations": _Row(operations),
    }


def _users(state: DesiredState) -> list[dict[str, Any]]:
    by_name: dict[str, dict[str, int | None]] = {}
    for (name, mechanism), iterations in state.users.items():
        by_name.setdefault(name, {})[mechanism] = iterations
    return [{"name": name, "mechanisms": mechanisms} for name, mechanisms in by_name.items()]
