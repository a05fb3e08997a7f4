"""Why Kafka refuses records: each cause, on brokers and on controllers."""

from __future__ import annotations

from kraft_core.image.change import RefusedRecord
from kraft_core.image.history import History
from kraft_core.image.image import Image
from tests.kraft_core.image.refused import CAUSES, EVERY_REFUSAL
from tests.kraft_core.image.worlds import replay, row, rows

RECORDS = rows([made for made, _ in EVERY_REFUSAL])
WANTED = [
    RefusedRecord(n, 1, made[0], refusal.cause, refusal.subject, refusal.reason, refusal.by_controllers_only)
    for n, (made, refusal) in enumerate(EVERY_REFUSAL)
    if refusal is not None
]


def test_every_cause_is_found() -> None:
    image = replay(RECORDS)
    assert image.in_transaction
    pairs = zip((image.refusals, image.controller_refusals), image.refused_in_open(), strict=True)
    by_all, by_controllers = (known + of_open for known, of_open in pairs)
    assert sorted(by_all + by_controllers) == WANTED
    assert not any(record.by_controllers_only for record in by_all)
    assert all(record.by_controllers_only for record in by_controllers)
    assert {record.cause for record in WANTED} == CAUSES


def test_a_history_tells_each_once() -> None:
    history = History()
    history.apply(*RECORDS[:10])
    first = history.take_refused()
    for record in RECORDS[10:]:
        history.apply(record)
    history.end()
    assert sorted(first + history.take_refused()) == WANTED
    assert history.take_refused() == []


def test_what_the_image_does_not_know_has_no_cause() -> None:
    image = replay([row("ACCESS_CONTROL_RECORD", {}), row("TOPIC_RECORD", None)])
    assert [(record.cause, record.reason) for record in image.refusals] == [
        (None, "no rule to replay ACCESS_CONTROL_RECORD"),
        (None, "unreadable value"),
    ]


def test_behind_a_checkpoint_that_is_refused_itself_nothing_else_is() -> None:
    """What the checkpoint lacks is not known; behind the next one it is."""
    removed = row("REMOVE_TOPIC_RECORD", {"topicId": "nope"}, 30)
    history = History()
    history.load(Image.of_snapshot(RECORDS[:5], 10, 1, -1))
    history.apply(removed)
    assert [(record.offset, record.leader_epoch) for record in history.take_refused()] == [(9, 1)]
    history.load(Image.of_snapshot(RECORDS[:4], 20, 1, -1))
    history.apply(removed)
    assert [record.offset for record in history.take_refused()] == [30]
