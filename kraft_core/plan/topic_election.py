"""plan topic elect: ElectLeaders as a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.topic_changes import (
    after_changes,
    change_words,
    min_isr_not_known,
    offline_then,
    unclean_then,
    under_min_isr_then,
)
from kraft_core.plan.topic_words import ALL_PARTITIONS, names_words
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.elections import elect_leaders
from kraft_core.topic_control.partition_change import ElectionType
from kraft_core.topic_control.requests import TopicResult

ELECTION_TOOL = "bin/kafka-leader-election.sh"


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """partitions: by topic; a topic with none means all of its own. No topic: all partitions."""

    election: ElectionType
    partitions: Mapping[str, tuple[int, ...]]
    is_limited: bool = False
    is_placed: bool = False
    is_written: bool = True

    @property
    def names(self) -> Sequence[str]:
        return [
            f"{topic}-{each}" if ids else topic
            for topic, ids in self.partitions.items()
            for each in ids or (0,)
        ] or [ALL_PARTITIONS]

    @property
    def words(self) -> str:
        kind = "the preferred leader" if self.election is ElectionType.PREFERRED else "any leader"
        return f"elect {kind} of {names_words(self.names)}"

    def results(self, controller: ActiveController) -> Sequence[TopicResult]:
        if not self.partitions:
            return elect_leaders(controller, self.election, None)
        asked = {topic: ids or _every(controller, topic) for topic, ids in self.partitions.items()}
        return elect_leaders(controller, self.election, asked)

    def risks(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[Risk]:
        changes = after_changes(controller, results)
        yield from unclean_then(changes)
        yield from offline_then(changes)
        yield from under_min_isr_then(controller, changes)

    def missing(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        yield from min_isr_not_known(controller, after_changes(controller, results))

    def evidence(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        yield from change_words(after_changes(controller, results))

    def steps(self, controller: ActiveController, servers: str) -> Iterator[PlanStep]:
        tool = f"{ELECTION_TOOL} {servers} --election-type {self.election.value}"
        if not self.partitions:
            yield PlanStep("elect", f"{tool} --all-topic-partitions")
        for topic, ids in self.partitions.items():
            for each in ids or _every(controller, topic):
                yield PlanStep(
                    f"elect for {topic}-{each}", f"{tool} --topic {quote(topic)} --partition {each}"
                )


def _every(controller: ActiveController, topic: str) -> tuple[int, ...]:
    """The ids of a topic's partitions; 0 of one that does not exist, so that Kafka's error is told."""
    return tuple(sorted(controller.partitions(controller.topic_id(topic) or ""))) or (0,)
