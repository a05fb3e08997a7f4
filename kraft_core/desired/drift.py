"""Where a cluster's state differs from a desired one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.desired.state import (
    ACLS,
    CONFIGS,
    FEATURES,
    QUOTAS,
    TOPICS,
    USERS,
    Configs,
    ConfigValue,
    DesiredState,
    TopicState,
    entity_words,
    resource_words,
)
from kraft_core.format.secrets import HIDDEN
from kraft_core.image.kafka_text import double
from kraft_core.messages.releases import KRAFT_VERSION

MISSING = "missing"
UNDESIRED = "undesired"
CHANGED = "changed"
NOT_KNOWN = "not known"
CHANGES = (MISSING, UNDESIRED, CHANGED, NOT_KNOWN)


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that differs.

    attribute: what of the subject, None if it is missing or undesired as a whole. actual, desired: None if
    not set, HIDDEN for a secret. Not known: the cluster has a value that the source does not show.
    """

    section: str
    subject: str
    change: str
    attribute: str | None = None
    actual: str | None = None
    desired: str | None = None

    @property
    def words(self) -> str:
        if self.attribute is None:
            return f"{self.subject}: {self.change}"
        if self.change == NOT_KNOWN:
            return f"{self.subject}: {self.attribute}: not known whether its value is the desired one"
        actual, desired = ("not set" if each is None else each for each in (self.actual, self.desired))
        return f"{self.subject}: {self.attribute} {actual}, desired {desired}"


def drift(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    """All that differs, by section. actual: that of an image (of_image.state_in)."""
    yield from _features(actual, desired)
    yield from _topics(actual, desired)
    yield from _configs(actual, desired)
    yield from _acls(actual, desired)
    yield from _users(actual, desired)
    yield from _quotas(actual, desired)


def not_named(actual: DesiredState, desired: DesiredState) -> dict[str, int]:
    """How many things of each section the cluster has that the desired state says nothing of."""
    acls = [acl for acl in actual.acls - desired.acls if not _is_undesired_acl(acl.principal, desired)]
    users = [user for user in actual.users if user not in desired.users and not _rules(user, desired)]
    found = {
        FEATURES: set(actual.features) - set(desired.features),
        TOPICS: set(actual.topics) - set(desired.topics),
        CONFIGS: set(actual.configs) - set(desired.configs),
        QUOTAS: set(actual.quotas) - set(desired.quotas),
    }
    counts = {name: len(held) for name, held in found.items() if name not in desired.authority.sections}
    counts |= {ACLS: len(acls), USERS: len(users)}
    return {name: number for name, number in counts.items() if number}


def _is_undesired_acl(principal: str, desired: DesiredState) -> bool:
    return ACLS in desired.authority.sections or principal in desired.authority.principals


def _rules(credential: tuple[str, str], desired: DesiredState) -> bool:
    return USERS in desired.authority.sections or credential in desired.authority.credentials


def _features(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    """Level 0 is that of a feature that is not finalized; that of kraft.version is no metadata."""
    named = set(desired.features)
    if FEATURES in desired.authority.sections:
        named |= set(actual.features)
    for name in sorted(named):
        has, wants = actual.features.get(name, 0), desired.features.get(name, 0)
        if name == KRAFT_VERSION and name not in actual.features:
            yield Discrepancy(FEATURES, f"feature {name}", NOT_KNOWN, "level", None, str(wants))
        elif has != wants:
            yield Discrepancy(FEATURES, f"feature {name}", CHANGED, "level", str(has), str(wants))


def _topics(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    for name in sorted({*actual.topics, *desired.topics}):
        has, wants = actual.topics.get(name), desired.topics.get(name)
        subject = f"topic {name}"
        if wants is None:
            if TOPICS in desired.authority.sections:
                yield Discrepancy(TOPICS, subject, UNDESIRED)
        elif has is None:
            yield Discrepancy(TOPICS, subject, MISSING)
        else:
            yield from _topic(subject, has, wants)
            yield from _values(TOPICS, subject, has.configs, wants.configs)


def _topic(subject: str, has: TopicState, wants: TopicState) -> Iterator[Discrepancy]:
    partitions = wants.partitions
    if partitions is None and wants.assignment is not None:
        partitions = len(wants.assignment)
    if partitions not in (None, has.partitions):
        yield _changed(subject, "partitions", str(has.partitions), str(partitions))
    if wants.replication_factor not in (None, has.replication_factor):
        yield _changed(subject, "replication factor", _factors(has), str(wants.replication_factor))
    both = zip(has.assignment or (), wants.assignment or (), strict=False)
    for partition, (held, replicas) in enumerate(both):
        if held != replicas:
            attribute = f"replicas of partition {partition}"
            yield _changed(subject, attribute, str(list(held)), str(list(replicas)))


def _factors(topic: TopicState) -> str:
    """Of a topic whose partitions differ: "2 to 3"."""
    if topic.replication_factor is not None:
        return str(topic.replication_factor)
    factors = sorted({len(replicas) for replicas in topic.assignment or ()})
    return " to ".join(map(str, dict.fromkeys((factors[0], factors[-1])))) if factors else "not known"


def _changed(subject: str, attribute: str, actual: str, desired: str) -> Discrepancy:
    return Discrepancy(TOPICS, subject, CHANGED, attribute, actual, desired)


def _configs(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    """A resource without configs is as one that is not there."""
    named = set(desired.configs)
    if CONFIGS in desired.authority.sections:
        named |= set(actual.configs)
    for resource in sorted(named):
        has, wants = actual.configs.get(resource, {}), desired.configs.get(resource, {})
        yield from _values(CONFIGS, resource_words(resource), has, wants)


def _values(section: str, subject: str, actual: Configs, desired: Configs) -> Iterator[Discrepancy]:
    for name in sorted({*actual, *desired}):
        has, wants = actual.get(name), desired.get(name)
        if has is not None and wants is not None:
            if wants.text is None or has.text == wants.text:
                continue
            if has.text is None:
                yield Discrepancy(section, subject, NOT_KNOWN, f"config {name}", HIDDEN, _shown(wants, has))
                continue
        yield Discrepancy(section, subject, CHANGED, f"config {name}", _shown(has, wants), _shown(wants, has))


def _shown(value: ConfigValue | None, other: ConfigValue | None) -> str | None:
    """A value is hidden if it or the one that it is compared with is a secret."""
    if value is None:
        return None
    secret = value.is_secret or (other is not None and other.is_secret)
    return HIDDEN if secret or value.text is None else value.text


def _acls(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    for acl in sorted(actual.acls ^ desired.acls):
        if acl in desired.acls:
            yield Discrepancy(ACLS, f"ACL {acl.words}", MISSING)
        elif _is_undesired_acl(acl.principal, desired):
            yield Discrepancy(ACLS, f"ACL {acl.words}", UNDESIRED)


def _users(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    for credential in sorted({*actual.users, *desired.users}):
        name, mechanism = credential
        subject = f"{mechanism} credential of {name}"
        if credential not in actual.users:
            yield Discrepancy(USERS, subject, MISSING)
        elif credential not in desired.users:
            if _rules(credential, desired):
                yield Discrepancy(USERS, subject, UNDESIRED)
        elif desired.users[credential] not in (None, actual.users[credential]):
            has, wants = actual.users[credential], desired.users[credential]
            yield Discrepancy(USERS, subject, CHANGED, "iterations", str(has), str(wants))


def _quotas(actual: DesiredState, desired: DesiredState) -> Iterator[Discrepancy]:
    named = set(desired.quotas)
    if QUOTAS in desired.authority.sections:
        named |= set(actual.quotas)
    for entity in sorted(named, key=entity_words):
        has, wants = actual.quotas.get(entity, {}), desired.quotas.get(entity, {})
        for key in sorted({*has, *wants}):
            if has.get(key) != wants.get(key):
                both = (None if at.get(key) is None else double(at[key]) for at in (has, wants))
                yield Discrepancy(QUOTAS, f"quotas of {entity_words(entity)}", CHANGED, key, *both)


def counted(found: list[Discrepancy]) -> str:
    """ "1 missing, 2 changed"."""
    counts = Counter(each.change for each in found)
    return ", ".join(f"{counts[change]} {change}" for change in CHANGES if counts[change])
