"""plan finish-migration: may a migration from ZooKeeper be finished now?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobs.plan_captures import captured_metadata
from jobs.runtime.outcome import Failure

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.captured_metadata import CapturedMetadata

evidence_of = captured_metadata


def words_of(args: argparse.Namespace) -> None:
    """Nothing but the question. Raises Failure."""
    if args.words:
        raise Failure("finish-migration takes no further words; see the examples of --help")


def answer_of(_: None, metadata: CapturedMetadata) -> Answer:
    """The verdict."""
    from kraft_core.plan.migration import plan_migration

    return plan_migration(metadata)
