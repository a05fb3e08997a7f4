"""plan topic delete: DeleteTopics as a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.topic_words import TOPICS_TOOL, named, names_words
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.deletion import delete_topics
from kraft_core.topic_control.requests import TopicResult
from kraft_core.wording import count

# Topic.INTERNAL_TOPICS, and what groups and transactions lose with them.
_INTERNAL = {
    "__consumer_offsets": "the committed offsets and members of all groups",
    "__transaction_state": "the state of all transactions",
    "__share_group_state": "the state of all share groups",
}


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    names: tuple[str, ...]
    is_limited: bool = True
    is_placed: bool = False
    is_written: bool = True

    @property
    def words(self) -> str:
        return f"delete topic {names_words(list(dict.fromkeys(self.names)))}"

    def results(self, controller: ActiveController) -> Sequence[TopicResult]:
        return delete_topics(controller, self.names)

    def risks(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[Risk]:
        for each in results:
            topic_id = controller.topic_id(each.name)
            if each.is_refused or topic_id is None:
                continue
            partitions = count(len(controller.partitions(topic_id)), "partition")
            words = f"the records of {partitions} of {each.name}, and its configs, are gone for good"
            yield Risk("irreversible", words)
            if each.name in _INTERNAL:
                yield Risk("internal_topic", f"{each.name} holds {_INTERNAL[each.name]}")

    def missing(self, _: ActiveController, __: Sequence[TopicResult]) -> Iterator[str]:
        return iter(())

    def evidence(self, controller: ActiveController, results: Sequence[TopicResult]) -> Iterator[str]:
        for each in results:
            topic_id = controller.topic_id(each.name)
            if topic_id is None:
                continue
            partitions = controller.partitions(topic_id).values()
            holders = {replica for partition in partitions for replica in partition.replicas}
            down = sorted(each for each in holders if not controller.is_active(each))
            yield f"{each.name} has id {topic_id}, {count(len(partitions), 'partition')}"
            if down:
                names = ", ".join(map(str, down))
                yield f"{each.name}: {names} delete their replicas only when they are back"

    def steps(self, _: ActiveController, servers: str) -> Iterator[PlanStep]:
        for name in self.names:
            yield PlanStep(f"delete {name}", f"{TOPICS_TOOL} {servers} --delete --topic {named(name)}")
