"""plan remove-broker and plan restart-broker: what happens to a broker's partitions?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobs.plan_captures import captured_metadata
from jobs.runtime.outcome import Failure

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.broker_plan import BrokerChange
    from kraft_core.plan.captured_metadata import CapturedMetadata

evidence_of = captured_metadata


def words_of(args: argparse.Namespace) -> BrokerChange:
    """What is asked. Raises Failure."""
    from kraft_core.plan.broker_plan import BrokerChange

    if len(args.words) != 1 or not args.words[0].isdecimal():
        raise Failure(f"{args.action} takes the id of one broker; see the examples of --help")
    return BrokerChange(int(args.words[0]), args.action == "remove-broker")


def answer_of(asked: BrokerChange, metadata: CapturedMetadata) -> Answer:
    """The verdict."""
    from kraft_core.plan.broker_plan import plan_broker

    return plan_broker(metadata, asked)
