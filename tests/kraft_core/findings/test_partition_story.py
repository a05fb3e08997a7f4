"""Why a partition had no leader, a small ISR or no ELR."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kraft_core.findings.partition_causes import cause_of, change_words, why_leaderless
from kraft_core.findings.partition_story import PartitionStory, partition_story
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.image.brokers import Broker
from kraft_core.image.events import Event, events
from kraft_core.image.partitions import Partition
from kraft_core.image.replica import CapturedReplica

GOLDEN = Path(__file__).parents[2] / "golden"


def told(topic: str, partition_id: int, offset: int) -> PartitionStory:
    """Of the golden captures in which broker 12 is killed, then stopped and unregistered, then 11 stops."""
    (directory,) = find_controller_dirs([GOLDEN / "dynamic-membership/node-1"]).directories
    replica = CapturedReplica.of_directory(directory)
    image = replica.image_at(offset)
    topic_id = image.tables.topic_ids[topic]
    patterns = [
        ("image", "topics", "byId", topic_id, str(partition_id)),
        ("image", "cluster", "brokers"),
    ]
    found = events(replica, patterns, replica.image_at(None).offset)
    story = partition_story(image, offset, topic_id, partition_id, found)
    assert story is not None
    return story


def test_why_a_partition_had_no_leader() -> None:
    story = told("t-rf2", 1, 3000)
    assert (story.leader, story.isr, story.eligible_leader_replicas) == (-1, (), (11,))
    assert story.trouble == "without a leader"
    assert story.words[2] == (
        "No leader from offset 2830: leader 11 left, and no replica could take over: 12 was not in sync and "
        "unregistered (since offset 2316); 11 was in the ELR and in controlled shutdown (since offset 2589)."
    )
    assert story.words[-1] == "The log does not show that it ended."
    by_offset = {line.offset: line for line in story.lines}
    assert by_offset[2830].change == (
        "leader 11 to none, ISR [11] to [], ELR [] to [11], last known ELR [] to [11]"
    )
    assert by_offset[2830].cause == "appended together with: broker 11 in controlled shutdown (offset 2589)"
    assert by_offset[2316].change == "unregistered"
    assert (story.first_offset, story.end_offset) == (2298, None)


def test_why_an_isr_was_small_until_its_replica_caught_up() -> None:
    story = told("t-rf2", 1, 1500)
    assert story.trouble == "under min.insync.replicas: acks=all failed"
    assert (story.first_offset, story.end_offset) == (1420, 1507)
    causes = {line.offset: line.cause for line in story.lines if line.subject == "partition"}
    assert causes == {
        1420: "appended together with: broker 12 fenced (offset 1430)",
        1507: "reported by leader 11 (AlterPartition): 12 caught up",
    }


def test_fewer_replicas_than_min_insync_replicas_are_what_is_in_effect() -> None:
    story = told("t-rf2", 0, 1883)
    assert story.words[0].endswith("; min.insync.replicas is 2, in effect 1, the number of replicas.")
    assert (story.replicas, story.trouble, story.min_isr) == ((12,), None, 2)


def test_a_whole_partition_names_its_last_trouble() -> None:
    story = told("t-rf2", 1, 1600)
    assert (story.trouble, story.first_offset, story.end_offset) == (None, 1420, 1507)
    assert story.words[1] == "It had a leader and all replicas in sync. The last problem before that:"
    story = told("t-rf2", 1, 1400)
    assert (story.trouble, story.first_offset, story.lines) == (None, None, ())


def test_of_the_future_nothing_is_told() -> None:
    assert told("t-rf2", 1, 1419).first_offset is None


WHOLE = Partition("id", "t", 0, (1, 2, 3), ("d",) * 3, (1, 2, 3), (), (), (), (), 1, 0, 5, 9)
RECORD = "PARTITION_CHANGE_RECORD"


def changed(before: dict[str, Any], after: dict[str, Any], record_type: str = RECORD) -> Event:
    pair = replace(WHOLE, **before), replace(WHOLE, **after)
    return Event(70, 1, 5000, record_type, (), "partitions", *pair, batch_base_offset=68)


def registered_again(broker_id: int, batch: int) -> Event:
    before = Broker(broker_id, 9, "i", (), (), None, True, False, False, (), None)
    after = replace(before, broker_epoch=71, incarnation_id="j")
    return Event(71, 1, 5000, "REGISTER_BROKER_RECORD", (), "brokers", before, after, batch)


def test_only_what_one_batch_holds_was_appended_at_once() -> None:
    """Where a leader's clock went back, several batches take effect at one time."""
    whole = Broker(3, 9, "i", (), (), None, False, False, False, (), None)
    registered = Event(40, 1, 4000, "REGISTER_BROKER_RECORD", (), "brokers", None, whole, 38)
    fenced = Event(75, 1, 5000, RECORD, (), "brokers", whole, replace(whole, fenced=True), 72)
    event = changed({}, {"isr": (1, 2)})
    fell_behind = "reported by leader 1 (AlterPartition): 3 fell behind"
    assert cause_of(event, [registered, fenced]) == fell_behind
    same = replace(fenced, batch_base_offset=68)
    assert cause_of(event, [registered, same]) == "appended together with: broker 3 fenced (offset 75)"
    # None is that of two events whose batch is not known.
    unknown = [replace(each, batch_base_offset=None) for each in (event, fenced)]
    assert cause_of(unknown[0], [registered, unknown[1]]) == fell_behind
    of_next_leader = replace(same, leader_epoch=2)
    assert cause_of(event, [registered, of_next_leader]) == fell_behind
    lone = changed({"isr": (3,)}, {"isr": (3,), "leader": -1})
    assert "3 was in the ISR and active (since offset 40)" in why_leaderless(lone, [registered, fenced])
    assert "3 was in the ISR and fenced (since offset 75)" in why_leaderless(lone, [registered, same])


def test_of_a_lost_leader_that_only_a_checkpoint_shows_no_reason_is_told() -> None:
    event = changed({}, {"leader": -1}, "checkpoint")
    expected = "No leader from offset 70 or before: only a checkpoint shows it, and not why."
    assert why_leaderless(event, []) == expected


def test_a_replica_in_an_offline_directory_cannot_lead() -> None:
    """Its broker is active and it is in the ISR, and yet the controller does not elect it."""
    whole = Broker(1, 9, "i", (), (), None, False, False, False, ("d", "e"), None)
    failed = Event(69, 1, 5000, RECORD, (), "brokers", whole, replace(whole, log_dirs=("e",)))
    registered = Event(40, 1, 4000, "REGISTER_BROKER_RECORD", (), "brokers", None, whole)
    event = changed({"isr": (1,)}, {"isr": (1,), "leader": -1})
    assert "1 was in the ISR and active, but its log directory was offline (since offset 69)" in (
        why_leaderless(event, [registered, failed])
    )
    assert "1 was in the ISR and active (since offset 40)" in why_leaderless(event, [registered])


def test_a_replica_that_its_broker_assigned_to_an_offline_directory() -> None:
    """Nothing of a broker changes with it: it was called an election by an operator, or AlterPartition."""
    lost = changed({}, {"isr": (2, 3), "leader": 2})
    fell = changed({"leader": 2, "isr": (2, 1)}, {"leader": 2, "isr": (2,)})
    for log_dirs, causes in (
        (("e",), ["the log directory of 1 was offline"] * 2),
        (
            ("d", "e"),
            [
                "an election without a change of a broker: by an operator, or to the preferred leader",
                "reported by leader 2 (AlterPartition): 1 fell behind",
            ],
        ),
    ):
        known = [
            Event(40, 1, 4000, "REGISTER_BROKER_RECORD", (), "brokers", None, broker)
            for id_ in (1, 2, 3)
            for broker in [Broker(id_, 9, "i", (), (), None, False, False, False, log_dirs, None)]
        ]
        assert [cause_of(event, known) for event in (lost, fell)] == causes
    # A broker that left another one's lead has an online directory.
    assert cause_of(changed({"leader": 2}, {}), known) == causes[0]


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (changed({}, {"isr": (1, 2)}), "reported by leader 1 (AlterPartition): 3 fell behind"),
        (
            changed({"leader": 2}, {}),
            "an election without a change of a broker: by an operator, or to the preferred leader",
        ),
        (
            changed({"isr": (1,), "leader": -1}, {"isr": (2,), "leader": 2, "leader_recovery_state": 1}),
            "an unclean election: 2 was in neither the ISR nor the ELR",
        ),
        (changed({}, {"adding_replicas": (4,)}), "a reassignment"),
        (
            changed({"eligible_leader_replicas": (3,)}, {}, "CLEAR_ELR_RECORD"),
            "min.insync.replicas was set: Kafka clears the ELR then",
        ),
        (changed({"leader_recovery_state": 1}, {}), None),
    ],
)
def test_a_change_without_an_event_of_a_broker(event: Event, cause: str | None) -> None:
    assert cause_of(event, [registered_again(broker_id, 71) for broker_id in (1, 2, 3)]) == cause


def test_no_cause_where_the_log_does_not_show_the_broker() -> None:
    """Its record before the change is in a missing segment: of a change of it nothing would be known."""
    later = replace(registered_again(3, 71), before=None)
    others = [registered_again(broker_id, 71) for broker_id in (1, 2)]
    fell = changed({}, {"isr": (1, 2)})
    elected = changed({"leader": 1}, {"leader": 3})
    for event in (fell, elected):
        assert cause_of(event, [*others, later]) is None
        assert cause_of(event, [*others, registered_again(3, 71)]) is not None


def test_an_elr_that_an_unclean_shutdown_cleared() -> None:
    event = changed({"isr": (1,), "eligible_leader_replicas": (2, 3)}, {"isr": (1,)})
    assert cause_of(event, [registered_again(3, 68), registered_again(2, 71)]) == (
        "appended together with: broker 3 registered again, another process (incarnation j), fenced "
        "(offset 71)"
    )


def test_of_a_change_that_only_a_checkpoint_shows_no_cause_is_told() -> None:
    assert cause_of(changed({}, {"isr": (1, 2)}, "checkpoint"), []) is None


def test_words_of_a_change() -> None:
    assert change_words(WHOLE, None) == "deleted"
    assert change_words(WHOLE, replace(WHOLE, leader_epoch=6)) == "leader epoch only"
    recovering = replace(WHOLE, leader=3, isr=(3,), leader_recovery_state=1)
    assert change_words(WHOLE, recovering) == "leader 1 to 3, ISR [1, 2, 3] to [3], leader recovering"
    assert change_words(None, WHOLE) == "leader 1, ISR [1, 2, 3], replicas [1, 2, 3]"
