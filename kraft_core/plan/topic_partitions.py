"""plan topic add-partitions: CreatePartitions as a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraft_core.image.partitions import Partition
from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.topic_risks import in_sync_at_first, keys_may_move, keys_move, not_in_sync_at_first
from kraft_core.plan.topic_words import MOST_SHOWN, TOPICS_TOOL, named, names_words, placement_words
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.partition_creation import create_partitions
from kraft_core.topic_control.requests import NewPartitions, TopicResult
from kraft_core.wording import count

# TopicCommand compares the lists of all partitions, also of those that exist.
_NO_COMMAND = (
    "Admin.createPartitions with the lists of the new partitions: kafka-topics takes no lists for a topic "
    "whose partitions differ in their number of replicas"
)


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """validate_only: the controller answers, and writes nothing. has_seed: whether one was given."""

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False
    has_seed: bool = False
    is_limited: bool = True
    is_placed: bool = True

    @property
    def names(self) -> Sequence[str]:
        return list(dict.fromkeys(topic.name for topic in self.topics))

    @property
    def words(self) -> str:
        what = "validate more partitions of" if self.validate_only else "add partitions to"
        return f"{what} topic {names_words(self.names)}"

    @property
    def is_written(self) -> bool:
        return not self.validate_only

    def results(self, controller: ActiveController) -> Sequence[TopicResult]:
        return create_partitions(controller, self.topics)

    def risks(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[Risk]:
        for each in results:
            if each.is_refused and each.records:
                yield half_written(each)
            elif not each.is_refused:
                yield from keys_move(controller, each.name)
                yield from in_sync_at_first(controller, each, is_placed=self._is_drawn(each.name))

    def missing(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        for each in results:
            if not each.is_refused:
                yield from keys_may_move(controller, each.name)
                yield from not_in_sync_at_first(controller, each, is_placed=self._is_drawn(each.name))

    def _is_drawn(self, name: str) -> bool:
        return all(topic.assignments is None for topic in self.topics if topic.name == name)

    def evidence(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        for each in results:
            topic_id = controller.topic_id(each.name)
            if topic_id is not None:
                yield f"{each.name} has {count(len(controller.partitions(topic_id)), 'partition')}"
        accepted = [each for each in results if not each.is_refused]
        if not self.has_seed and any(self._is_drawn(each.name) for each in accepted):
            yield "Kafka places replicas at random: --seed N shows a possible placement"
        for each in accepted:
            if self.has_seed or not self._is_drawn(each.name):
                yield from placement_words(each, MOST_SHOWN)

    def steps(self, controller: ActiveController, servers: str) -> Iterator[PlanStep]:
        if self.validate_only:
            return
        yield from (_add_step(controller, servers, topic) for topic in self.topics)
        for topic in self.topics:
            command = f"{TOPICS_TOOL} {servers} --describe --topic {named(topic.name)}"
            yield PlanStep(
                "look", command, f"{count(topic.count, 'partition')}, each with its leader and ISR"
            )


def _add_step(controller: ActiveController, servers: str, topic: NewPartitions) -> PlanStep:
    words = f"add partitions to {topic.name}"
    command = f"{TOPICS_TOOL} {servers} --alter --topic {named(topic.name)} --partitions {topic.count}"
    if topic.assignments is None:
        return PlanStep(words, command)
    lists = [*_held(controller, topic.name), *topic.assignments]
    if len({len(each) for each in lists}) > 1:
        return PlanStep(words, expect=_NO_COMMAND)
    return PlanStep(
        words, f"{command} --replica-assignment {','.join(':'.join(map(str, each)) for each in lists)}"
    )


def _held(controller: ActiveController, name: str) -> list[tuple[int, ...]]:
    """kafka-topics wants the partitions that exist in front."""
    partitions: dict[int, Partition] = controller.partitions(controller.topic_id(name) or "")
    return [partitions[each].replicas for each in sorted(partitions)]


def half_written(result: TopicResult) -> Risk:
    """A refusal after which partitions are there."""
    added = count(len(result.records), "partition")
    return Risk(
        "half_written", f"{result.name} gets {added} all the same: Kafka writes those before the error"
    )
