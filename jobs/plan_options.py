"""Which actions of kraftlake plan take which options."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from jobs.plan_format import FORMAT_OPTIONS
from jobs.plan_topics import TOPIC_OPTIONS, is_given
from jobs.runtime.outcome import Failure

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


def must_take_its_options(args: argparse.Namespace) -> None:
    """Raises Failure for an option of another action: the answer would not be about it."""
    for option, actions in OPTIONS.items():
        if is_given(getattr(args, option)) and args.action not in actions:
            name = option.replace("_", "-")
            raise Failure(f"--{name} is an option of {' and '.join(actions)}, not of {args.action}")
