"""plan topic create: CreateTopics as a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.topic_risks import colliding_names, in_sync_at_first, not_in_sync_at_first
from kraft_core.plan.topic_words import MOST_SHOWN, TOPICS_TOOL, named, names_words, placement_words
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.creation import create_topics
from kraft_core.topic_control.requests import UNSET, NewTopic, TopicResult
from kraft_core.topic_control.topic_names import is_internal


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """validate_only: the controller answers, and writes nothing. seed: whether one was given."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    has_seed: bool = False
    is_limited: bool = True
    is_placed: bool = True

    @property
    def names(self) -> Sequence[str]:
        return list(dict.fromkeys(topic.name for topic in self.topics))

    @property
    def words(self) -> str:
        what = "validate the creation of" if self.validate_only else "create"
        return f"{what} topic {names_words(self.names)}"

    @property
    def is_written(self) -> bool:
        return not self.validate_only

    def results(self, controller: ActiveController) -> Sequence[TopicResult]:
        return create_topics(controller, self.topics)

    def risks(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[Risk]:
        created = [each for each in results if not each.is_refused]
        yield from colliding_names([each.name for each in created])
        manual = {topic.name for topic in self.topics if topic.assignments}
        for each in created:
            if is_internal(each.name):
                words = (
                    f"{each.name} is one of Kafka's own: brokers create it when they need it, with configs "
                    "of its own; by this request it gets the cluster's, by which its records may be deleted"
                )
                yield Risk("internal_topic", words)
            yield from in_sync_at_first(controller, each, is_placed=each.name not in manual)

    def missing(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        manual = {topic.name for topic in self.topics if topic.assignments}
        for each in results:
            if not each.is_refused:
                yield from not_in_sync_at_first(controller, each, is_placed=each.name not in manual)

    def evidence(self, _: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        created = {each.name for each in results if not each.is_refused}
        drawn = any(topic.name in created and not topic.assignments for topic in self.topics)
        if drawn and not self.has_seed:
            yield "Kafka places replicas at random: --seed N shows a possible placement"
        for topic, result in ((t, r) for t in self.topics for r in results if r.name == t.name):
            if topic.assignments or self.has_seed:
                yield from placement_words(result, MOST_SHOWN)

    def steps(self, _: ActiveController, servers: str) -> Iterator[PlanStep]:
        if self.validate_only:
            return
        for topic in self.topics:
            yield PlanStep(
                f"create {topic.name}", f"{TOPICS_TOOL} {servers} --create {' '.join(_options(topic))}"
            )
        for topic in self.topics:
            command = f"{TOPICS_TOOL} {servers} --describe --topic {named(topic.name)}"
            yield PlanStep("look", command, "every partition with its leader and ISR")


def _options(topic: NewTopic) -> Iterator[str]:
    yield f"--topic {quote(topic.name)}"
    if topic.assignments:
        by_partition = dict(topic.assignments)
        lists = [":".join(map(str, by_partition[each])) for each in sorted(by_partition)]
        yield f"--replica-assignment {','.join(lists)}"
    if topic.partitions != UNSET:
        yield f"--partitions {topic.partitions}"
    if topic.replication_factor != UNSET:
        yield f"--replication-factor {topic.replication_factor}"
    for name, value in topic.configs:
        yield f"--config {quote(f'{name}={value}')}"
