"""plan topic reassign: AlterPartitionReassignments as a question."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from kraft_core.image.partitions import NO_LEADER
from kraft_core.plan.broker_words import partition_words
from kraft_core.plan.reassignment import execute_option
from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.topic_changes import (
    PartitionAfter,
    after_changes,
    after_reassignments,
    change_words,
    min_isr_not_known,
    offline_then,
    unclean_then,
    under_min_isr_then,
)
from kraft_core.plan.topic_words import names_words
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.reassignments import PartitionMove, alter_reassignments
from kraft_core.topic_control.requests import TopicResult

REASSIGN_TOOL = "bin/kafka-reassign-partitions.sh"
_FILE = "reassignment.json"


@dataclass(frozen=True, slots=True)
class ReassignPartitions:
    moves: tuple[PartitionMove, ...]
    is_limited: bool = False
    is_placed: bool = False
    is_written: bool = True

    @property
    def names(self) -> Sequence[str]:
        return [f"{move.topic}-{move.partition_id}" for move in self.moves]

    @property
    def words(self) -> str:
        ends = all(move.replicas is None for move in self.moves)
        return f"{'cancel the reassignment of' if ends else 'reassign'} {names_words(self.names)}"

    def results(self, controller: ActiveController) -> Sequence[TopicResult]:
        return alter_reassignments(controller, self.moves)

    def risks(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[Risk]:
        changes = after_changes(controller, results)
        yield from unclean_then(changes)
        for each in (changes, after_reassignments(controller, changes)):
            yield from offline_then(each)
            yield from under_min_isr_then(controller, each)
        yield from _waits(controller, changes)
        yield from _fewer(changes)
        yield from _replaced(self.moves, changes)

    def missing(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        changes = after_changes(controller, results)
        for each in (changes, after_reassignments(controller, changes)):
            yield from min_isr_not_known(controller, each)

    def evidence(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        changes = after_changes(controller, results)
        yield from change_words(changes)
        copies = sum(len(each.after.adding_replicas) for each in changes)
        if copies:
            yield f"{copies} replicas are copied before the others are removed"

    def steps(self, controller: ActiveController, servers: str) -> Iterator[PlanStep]:
        tool = f"{REASSIGN_TOOL} {servers} --reassignment-json-file {_FILE}"
        ended = [move for move in self.moves if move.replicas is None]
        begun = [move for move in self.moves if move.replicas is not None]
        for moves, option in ((ended, "--cancel"), (begun, execute_option(controller.image))):
            if not moves:
                continue
            yield PlanStep("write the file", f"echo {quote(_json(controller, moves))} > {_FILE}")
            yield PlanStep("cancel" if option == "--cancel" else "move", f"{tool} {option}")
        if begun:
            yield PlanStep("wait", f"{tool} --verify", "each reassignment is completed")


def _json(controller: ActiveController, moves: Sequence[PartitionMove]) -> str:
    """As kafka-reassign-partitions reads it; to cancel, it takes any replicas."""
    partitions: list[dict[str, Any]] = []
    for move in moves:
        replicas = move.replicas
        if replicas is None:
            topic_id = controller.topic_id(move.topic) or ""
            held = controller.partition(topic_id, move.partition_id)
            replicas = held.replicas if held else ()
        entry = {"topic": move.topic, "partition": move.partition_id, "replicas": list(replicas)}
        partitions.append(entry)
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _waits(controller: ActiveController, changes: Sequence[PartitionAfter]) -> Iterator[Risk]:
    """Without a leader, no added replica gets in sync."""
    waiting = [
        each.before
        for each in changes
        if any(not controller.is_active(replica) for replica in each.after.adding_replicas)
        or (each.after.leader == NO_LEADER and each.after.is_reassigned)
    ]
    if waiting:
        words = f"brokers that are down must come back before it ends: {partition_words(waiting)}"
        yield Risk("replicas_down", words)


def _fewer(changes: Sequence[PartitionAfter]) -> Iterator[Risk]:
    fewer = [
        each.before
        for each in changes
        if len(set(each.after.replicas) - set(each.after.removing_replicas))
        < len(set(each.before.replicas) - set(each.before.adding_replicas))
    ]
    if fewer:
        yield Risk("fewer_replicas", f"fewer replicas than before: {partition_words(fewer)}")


def _replaced(moves: Sequence[PartitionMove], changes: Sequence[PartitionAfter]) -> Iterator[Risk]:
    wanted = {(move.topic, move.partition_id) for move in moves if move.replicas is not None}
    replaced = [
        each.before
        for each in changes
        if (each.before.topic_name, each.before.partition_id) in wanted and each.before.is_reassigned
    ]
    if replaced:
        words = f"a reassignment in progress is replaced: {partition_words(replaced)}"
        yield Risk("reassignment_replaced", words)
