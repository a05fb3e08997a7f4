"""A state as commands of Kafka's own tools, which make it in an empty cluster.

The tools (kafka-topics, kafka-configs, kafka-acls) refuse or change some of what Kafka's log may hold: they
trim names, split values at commas and equal signs, and know which operations a resource has. What no command
can make is said instead, never made otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from shlex import quote

from kraft_core.desired.state import (
    AclBinding,
    Configs,
    DesiredState,
    Resource,
    TopicState,
    entity_words,
    resource_words,
)
from kraft_core.desired.strimzi import CLUSTER_NAME
from kraft_core.desired.write_yaml import grouped
from kraft_core.image.client_quotas import Entity
from kraft_core.image.kafka_text import double
from kraft_core.messages.releases import METADATA_LEVELS, METADATA_VERSION

# What kafka-topics takes as NAME=VALUE, and kafka-configs as one of several, as it is.
_PLAIN_IN_TOPICS = re.compile(r"[\w.,:;/@*+%-]+", re.ASCII)
_PLAIN_IN_CONFIGS = re.compile(r"[\w.:;/@*+%-]+", re.ASCII)
_CONFIG_NAME = re.compile(r"[$a-zA-Z0-9._-]+", re.ASCII)
_RESOURCE_FLAGS = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "CLUSTER": "--cluster",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}
_TOPIC_OPERATIONS = "READ WRITE CREATE DELETE ALTER DESCRIBE ALTER_CONFIGS DESCRIBE_CONFIGS"
_CLUSTER_OPERATIONS = "CREATE ALTER DESCRIBE CLUSTER_ACTION ALTER_CONFIGS DESCRIBE_CONFIGS IDEMPOTENT_WRITE"
# AclEntry.supportedOperations: kafka-acls refuses others, which the broker takes.
_OPERATIONS: Mapping[str, Sequence[str]] = {
    "TOPIC": _TOPIC_OPERATIONS.split(),
    "GROUP": ["READ", "DESCRIBE", "DELETE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"],
    "CLUSTER": _CLUSTER_OPERATIONS.split(),
    "TRANSACTIONAL_ID": ["DESCRIBE", "WRITE", "TWO_PHASE_COMMIT"],
    "DELEGATION_TOKEN": ["DESCRIBE"],
    "USER": ["CREATE_TOKENS", "DESCRIBE_TOKENS"],
}
_ENTITY_TYPES = {
    "BROKER": "brokers",
    "CLIENT_METRICS": "client-metrics",
    "GROUP": "groups",
}
_QUOTA_TYPES = {"user": "users", "client-id": "clients", "ip": "ips"}
_UNSAFE = re.compile(r"[^\x20-\x7e]")


class NotExpressibleError(ValueError):
    """No command of Kafka's tools makes this; the message states why."""


def format_flags(state: DesiredState) -> str:
    """The flags of kafka-storage format with which a cluster begins at these feature levels."""
    level = state.features.get(METADATA_VERSION)
    flags = [] if level is None else [f"--release-version {METADATA_LEVELS.get(level, str(level))}"]
    others = (each for each in state.features.items() if each[0] != METADATA_VERSION)
    return " ".join([*flags, *(f"--feature {shell_word(f'{name}={level}')}" for name, level in others)])


def preamble(commands: Iterable[str]) -> Iterator[str]:
    """The lines of bash that these commands need before them."""
    yield "set -euo pipefail"
    yield ': "${BOOTSTRAP_SERVER:?is HOST:PORT of the empty cluster}"'
    yield 'to=(--bootstrap-server "$BOOTSTRAP_SERVER" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"})'
    if any("$'" in command for command in commands):
        # Java decodes arguments beyond ASCII as the locale says.
        yield "export LC_ALL=C.UTF-8"


class Commands:
    """Makes the commands of a state; what none can make is in `left_out`, in words."""

    def __init__(self, state: DesiredState, *, placement: bool = False) -> None:
        self.left_out: list[str] = []
        self._state = state
        self._placement = placement

    def lines(self) -> Iterator[str]:
        """Topics with their configs, configs of other resources, quotas, and ACLs last."""
        state = self._state
        for topic in state.topics.values():
            yield from self._or_left_out(f"topic {topic.name}", lambda topic=topic: self._topic(topic))
        for resource, configs in state.configs.items():
            yield from self._configs(resource_words(resource), resource, configs)
        for entity, quotas in state.quotas.items():
            subject = f"quotas of {entity_words(entity)}"
            yield from self._or_left_out(subject, lambda e=entity, q=quotas: [_quotas(e, q)])
        for acl, operations in grouped(state):
            yield from self._acls(acl, operations)
        for (name, mechanism), iterations in state.users.items():
            self.left_out.append(f"{mechanism} credential of {name}: the log does not contain its password")
            yield from self._or_left_out(name, lambda n=name, m=mechanism, i=iterations: [_user(n, m, i)])

    def _or_left_out(self, subject: str, make: Callable[[], Sequence[str]]) -> Sequence[str]:
        try:
            return make()
        except ValueError as error:
            self.left_out.append(f"{subject}: {error}")
            return ()

    def _topic(self, topic: TopicState) -> Sequence[str]:
        shown = self._shown(f"topic {topic.name}", topic.configs)
        plain = {name: text for name, text in shown.items() if _PLAIN_IN_TOPICS.fullmatch(text)}
        words = ["--create", "--if-not-exists", "--topic", _trimmed(topic.name), *self._size(topic)]
        for name, text in plain.items():
            words += ["--config", f"{name}={text}"]
        made = [_command("kafka-topics.sh", words)]
        more = {name: text for name, text in shown.items() if name not in plain}
        if more:
            made += _alter(["--entity-type", "topics", "--entity-name", topic.name], more)
        return made

    def _size(self, topic: TopicState) -> Sequence[str]:
        assignment = topic.assignment or ()
        if not topic.partitions:
            raise NotExpressibleError("it has no partitions")
        factor = topic.replication_factor
        if factor is None:
            factor = max(map(len, assignment))
            what = f"made with {factor} replicas of each partition, which differ in that"
            self.left_out.append(f"topic {topic.name}: {what}, or some of which are not known")
        elif self._placement:
            return ["--replica-assignment", ",".join(":".join(map(str, each)) for each in assignment)]
        return ["--partitions", str(topic.partitions), "--replication-factor", str(factor)]

    def _shown(self, subject: str, configs: Configs) -> dict[str, str]:
        """The configs that a command can set."""
        shown: dict[str, str] = {}
        for name, value in configs.items():
            if value.is_secret or value.text is None:
                self.left_out.append(f"{subject}: config {name}: its value may be a secret")
            elif not _CONFIG_NAME.fullmatch(name):
                self.left_out.append(f"{subject}: config {name}: kafka-configs does not accept this name")
            else:
                shown[name] = value.text
        return shown

    def _configs(self, subject: str, resource: Resource, configs: Configs) -> Sequence[str]:
        kind, name = resource
        if kind not in _ENTITY_TYPES:
            self.left_out.append(f"configs of {subject}: no command sets configs of {kind}")
            return ()
        shown = self._shown(subject, configs)
        where = ["--entity-name", name] if name else ["--entity-default"]
        entity = ["--entity-type", _ENTITY_TYPES[kind], *where]
        return self._or_left_out(subject, lambda: _alter(entity, shown) if shown else [])

    def _acls(self, acl: AclBinding, operations: Sequence[str]) -> Sequence[str]:
        known = [*_OPERATIONS.get(acl.resource_type, ()), "ALL"]
        made = [operation for operation in operations if operation in known]
        for operation in operations:
            if operation not in known:
                why = f"kafka-acls does not support {operation} on a {acl.resource_type}"
                self.left_out.append(f"ACL {acl.words.replace(acl.operation, operation, 1)}: {why}")
        if not made:
            return ()
        return self._or_left_out(f"ACL {acl.words}", lambda: [_acl(acl, made)])


def _alter(entity: Sequence[str], configs: Mapping[str, str]) -> Sequence[str]:
    """kafka-configs --alter; values that its list would split or trim come as a file."""
    words = ["--alter", *entity]
    if all(_PLAIN_IN_CONFIGS.fullmatch(text) for text in configs.values()):
        given = ",".join(f"{name}={text}" for name, text in configs.items())
        return [_command("kafka-configs.sh", [*words, "--add-config", given])]
    command = _command("kafka-configs.sh", [*words, "--add-config-file", "/dev/stdin"])
    return [f"{command} <<'EOF'", *properties_lines(configs), "EOF"]


def _quotas(entity: Entity, quotas: Mapping[str, float]) -> str:
    """Users before clients, as kafka-configs wants them."""
    words = ["--alter"]
    for kind, name in reversed(entity):
        if kind not in _QUOTA_TYPES:
            raise NotExpressibleError(f"kafka-configs does not support entities of type {kind}")
        if name == "":
            raise NotExpressibleError("to kafka-configs an empty name is the default")
        words += ["--entity-type", _QUOTA_TYPES[kind]]
        words += ["--entity-default"] if name is None else ["--entity-name", name]
    given = ",".join(f"{key}={double(value)}" for key, value in quotas.items())
    return _command("kafka-configs.sh", [*words, "--add-config", given])


def _user(name: str, mechanism: str, iterations: int | None) -> str:
    """As a comment: whoever runs it chooses a password."""
    credential = f"{mechanism}=[iterations={iterations},password=...]"
    words = ["--alter", "--entity-type", "users", "--entity-name", name, "--add-config", credential]
    return f"# {_command('kafka-configs.sh', words)}"


def _acl(acl: AclBinding, operations: Sequence[str]) -> str:
    """Kafka creates no ACL of other types; one of a newer Kafka may be in the log."""
    for kind, known in (
        (acl.resource_type, _RESOURCE_FLAGS),
        (acl.permission_type, ("ALLOW", "DENY")),
        (acl.pattern_type, ("LITERAL", "PREFIXED")),
    ):
        if kind not in known:
            raise NotExpressibleError(f"kafka-acls does not support {kind} there")
    words = ["--add", f"--{acl.permission_type.lower()}-principal", _principal(acl.principal)]
    words += [f"--{acl.permission_type.lower()}-host", _trimmed(acl.host)]
    for operation in operations:
        words += ["--operation", "".join(part.capitalize() for part in operation.split("_"))]
    flag = _RESOURCE_FLAGS[acl.resource_type]
    if acl.resource_type == "CLUSTER":
        if acl.pattern_type != "LITERAL" or acl.resource_name != CLUSTER_NAME:
            raise NotExpressibleError(f"kafka-acls names the cluster {CLUSTER_NAME} alone")
        return _command("kafka-acls.sh", [*words, flag])
    words += [flag, _trimmed(acl.resource_name), "--resource-pattern-type", acl.pattern_type.lower()]
    return _command("kafka-acls.sh", words)


def _principal(text: str) -> str:
    """SecurityUtils.parseKafkaPrincipal: a type, a colon and a name."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise NotExpressibleError(f"{text!r} is not a principal such as User:alice")
    return _trimmed(text)


def _trimmed(text: str) -> str:
    """The text, which Kafka's tools trim as String.trim does."""
    if not text or text[0] <= " " or text[-1] <= " ":
        raise NotExpressibleError("Kafka's tools trim names, and accept no empty one")
    return text


def _command(tool: str, words: Sequence[str]) -> str:
    return " ".join([tool, '"${to[@]}"', *map(shell_word, words)])


def shell_word(text: str) -> str:
    """One word of bash that stands for the text, in printable ASCII.

    What is not printable ASCII is written as bytes of UTF-8 ($'\\303\\251'), so that no terminal acts on it.
    Raises ValueError for NUL, which no argument can hold.
    """
    if "\0" in text:
        raise ValueError("no argument of a command can hold NUL")
    if not _UNSAFE.search(text):
        return quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    # Three octal digits: a hexadecimal escape could take in the character behind it.
    return "$'" + _UNSAFE.sub(lambda found: _octal(found[0]), escaped) + "'"


def _octal(char: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))


def properties_lines(values: Mapping[str, str]) -> list[str]:
    """Lines of a properties file (java.util.Properties.load) that give these values, in printable ASCII."""
    return [f"{_escaped(name, is_key=True)}={_escaped(value)}" for name, value in values.items()]


def _escaped(text: str, *, is_key: bool = False) -> str:
    special = "\\ =:#!" if is_key else "\\"
    made = "".join(f"\\{char}" if char in special else char for char in text)
    if not is_key:
        # Kafka trims a value; java.util.Properties drops only the space before it.
        made = re.sub(r"^ ", r"\\ ", made)
    return _UNSAFE.sub(_units, made)


def _units(found: re.Match[str]) -> str:
    """A character as the units of UTF-16 that Java reads."""
    raw = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{raw[i]:02x}{raw[i + 1]:02x}" for i in range(0, len(raw), 2))
