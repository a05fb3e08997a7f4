"""Which actions of kraftlake plan take which options."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.plan_format import FORMAT_OPTIONS
from jobs.plan_topics import TOPIC_OPTIONS

# The actions that take an option.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "directory_id": ("add", "remove"),
    "by": ("replace",),
    "level": ("upgrade-kraft-version",),
    "endpoint": ("update",),
    "broker_dirs": ("start-broker",),
    **dict.fromkeys((*TOPIC_OPTIONS, "controller_config"), ("topic",)),
    **dict.fromkeys(FORMAT_OPTIONS, ("format",)),
}
