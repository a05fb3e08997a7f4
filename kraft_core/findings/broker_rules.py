"""Rule 52: replicas in brokers' log directories that the metadata does not place there.

The copies of the directories were compared with the metadata of their time (kraft_core.plan.held_partitions);
what that does not decide is no fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import UnassignedReplica
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.wording import count, first_named

MOST_NAMED = 10

_RENAMES = "Kafka renames such folders to -stray when the broker starts, and does not serve them"
EFFECTS = {
    "other_topic_id": f"the topic has another id; {_RENAMES}",
    "unknown_topic": f"there is no such topic; {_RENAMES}",
    "stray_replica": f"the broker is not a replica; {_RENAMES}",
    "marked_stray": "Kafka has renamed such folders to -stray, and does not serve them",
    "unregistered_directory": "the broker had not registered that directory",
    "unregistered_broker": "the broker was not registered",
}
"""By state of table broker_partitions what is wrong, and what Kafka does. Other states are no fault."""


def held_replicas_are_assigned(view: ClusterView) -> Iterator[Breach]:
    """Rule 52, a warning: one breach for all partitions of one state in one directory of a broker."""
    alike: defaultdict[tuple[int, str, str], set[UnassignedReplica]] = defaultdict(set)
    for each in view.facts.unassigned_replicas:
        alike[each.broker_id, each.directory_id, each.state].add(each)
    for broker_id, directory_id, state in sorted(alike):
        found = sorted(alike[broker_id, directory_id, state])
        names = [f"{each.topic_name}-{each.partition_id} of topic id {each.topic_id}" for each in found]
        yield Breach(
            of_rule(52),
            "warning",
            (broker_id, directory_id, state),
            f"Broker {broker_id} holds {count(len(found), 'partition')} that the metadata does not place "
            f"there: {EFFECTS[state]}.",
            f"log directory {directory_id}: {first_named(names, MOST_NAMED)}",
            observed_at=tuple(sorted({each.captured_at for each in found})),
        )
