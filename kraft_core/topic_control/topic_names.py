"""Which names a topic may have (Topic, of kafka-clients)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kraft_core.topic_control.java import string_hash, timeline_order, utf16_length

CLUSTER_METADATA = "__cluster_metadata"
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
_LONGEST = 249
_VALID = re.compile(r"[a-zA-Z0-9._-]+")


def invalid_name(name: str) -> str | None:
    """Kafka's text of InvalidTopicException, None for a valid name."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if utf16_length(name) > _LONGEST:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {_LONGEST}"
        )
    if _VALID.fullmatch(name) is None:
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None


def is_internal(name: str) -> bool:
    """Whether Kafka itself writes it (Topic.isInternal)."""
    return name in INTERNAL


def unified(name: str) -> str:
    """Two names of which this is equal collide: in names of metrics, periods become underscores."""
    return name.replace(".", "_")


def colliding(name: str, existing: Iterable[str]) -> list[str]:
    """The topics whose names collide with it, itself among them, the one that Kafka's text names first."""
    if "_" not in name and "." not in name:
        return []
    wanted = unified(name)
    # A name that equals another but for its periods has a period or underscore itself.
    twins = (each for each in existing if unified(each) == wanted)
    return timeline_order(twins, string_hash, expected_size=1)
