"""An earlier moment: what was seen later is named, thing by thing, and nothing goes back below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.segment import scan
from kraft_core.image.acls import Acl
from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.configs import Config
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.scram_users import ScramUser
from kraft_core.image.tables import ACLS, BROKERS, CONFIGS, FEATURES, PARTITIONS, SCRAM_USERS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.restore.checkpoint import UnwritableError
from kraft_core.restore.content import NO_SURE_REPLICA
from kraft_core.restore.directories import write_restoration
from kraft_core.restore.earlier import placed
from kraft_core.restore.horizon import horizon_of
from kraft_core.restore.later import (
    BROKERS_RETURN,
    PLACEMENT_RETURNS,
    RIGHTS_MISSING,
    RIGHTS_RETURN,
    SETTINGS_RETURN,
    TOPICS_RETURN,
    TOPICS_UNKNOWN,
    consequences,
    stray,
)
from kraft_core.restore.replay import Cut, ReplayedLog, UnusableLogError, replayed, replayed_until
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import BROKERS_DELETE
from tests.kraft_core.evidence.golden import GOLDEN
from tests.kraft_core.restore.planned import MADE_AT, STOPPED, append_record, copied, golden, losses, planned

WHOLE = "uncommitted-truncation/after"
FIRST, SECOND = "dXmw1Ru2SU-5jEzTbqgRFA", "e0mw1Ru2SU-5jEzTbqgRFA"
ALLOW, DENY = 3, 2


def _at(cut: Cut, **more: object) -> RestoreRequest:
    return replace(STOPPED, at=cut, brokers_stopped=True, **more)  # type: ignore[arg-type]


def _partition(id_: str, name: str, replicas: tuple[int, ...], isr: tuple[int, ...]) -> Partition:
    directories = ("AAAAAAAAAAAAAAAAAAAAAQ",) * len(replicas)
    return Partition(id_, name, 0, replicas, directories, isr, (), (), (), (), isr[0], 0, 4, 9)


def _broker(id_: int, epoch: int) -> Broker:
    return Broker(id_, epoch, FIRST, (), (), None, False, False, False, (), None)


def _acl(permission: int) -> Acl:
    return Acl("acl", 2, "orders", 3, "User:alice", "*", 3, permission)


def _user(key: bytes) -> ScramUser:
    return ScramUser(1, "alice", 4096, b"salt", key, b"server")


Put = tuple[str, tuple[object, ...], object | None]
TOPIC: tuple[Put, ...] = (
    (TOPICS, (FIRST,), Topic(FIRST, "orders")),
    (PARTITIONS, (FIRST, 0), _partition(FIRST, "orders", (11, 12), (11, 12))),
)


def _image(*put: Put) -> Image:
    image = Image()
    image.tables.put(Change(FEATURES, ("metadata.version",), Feature("metadata.version", 30)))
    for kind, key, value in put:
        image.tables.put(Change(kind, key, value))
    return image


def _with(*put: Put) -> Image:
    return _image(*TOPIC, *put)


def _config(value: str) -> Config:
    return Config(2, "orders", "retention.ms", value)


@pytest.mark.parametrize(
    ("restored", "seen", "loss", "words"),
    [
        (_image(), _with(), TOPICS_UNKNOWN, f"topic orders (id {FIRST})"),
        (_with(), _image(), TOPICS_RETURN, "returns without messages"),
        (_with((ACLS, ("acl",), _acl(ALLOW))), _with(), RIGHTS_RETURN, "ALLOW User:alice"),
        (_with(), _with((ACLS, ("acl",), _acl(ALLOW))), RIGHTS_MISSING, "ALLOW User:alice"),
        (_with((ACLS, ("acl",), _acl(DENY))), _with(), RIGHTS_MISSING, "DENY User:alice"),
        (_with(), _with((ACLS, ("acl",), _acl(DENY))), RIGHTS_RETURN, "DENY User:alice"),
        (_with((SCRAM_USERS, (1, "alice"), _user(b"k"))), _with(), RIGHTS_RETURN, "alice"),
        (_with(), _with((SCRAM_USERS, (1, "alice"), _user(b"k"))), RIGHTS_MISSING, "alice"),
        (
            _with((SCRAM_USERS, (1, "alice"), _user(b"old"))),
            _with((SCRAM_USERS, (1, "alice"), _user(b"new"))),
            RIGHTS_RETURN,
            "the old credential is valid again",
        ),
        (
            _with((CONFIGS, (2, "orders", "retention.ms"), _config("1"))),
            _with((CONFIGS, (2, "orders", "retention.ms"), _config("2"))),
            SETTINGS_RETURN,
            "the earlier value returns",
        ),
        (
            _with(),
            _with((PARTITIONS, (FIRST, 0), _partition(FIRST, "orders", (11, 13), (11, 13)))),
            PLACEMENT_RETURNS,
            "on brokers [11, 12] again, not on [11, 13]",
        ),
        (
            _with(),
            _with((PARTITIONS, (FIRST, 0), _partition(FIRST, "orders", (11, 12), (11,)))),
            PLACEMENT_RETURNS,
            "in sync [11, 12] again, though [11] was",
        ),
        (
            _with((BROKERS, (11,), _broker(11, 60))),
            _with((BROKERS, (11,), _broker(11, 90))),
            BROKERS_RETURN,
            "an older registration: broker_epoch",
        ),
        (_with((BROKERS, (11,), _broker(11, 60))), _with(), BROKERS_RETURN, "though it was removed"),
    ],
)
def test_what_becomes_of_what_was_seen_later(restored: Image, seen: Image, loss: str, words: str) -> None:
    (found,) = consequences(restored, seen, None)
    assert found.loss == loss
    assert words in f"{found.thing}: {found.change}"
    assert "old" not in found.thing


@pytest.mark.parametrize(
    "seen",
    [
        _with((PARTITIONS, (FIRST, 0), replace(_partition(FIRST, "orders", (12, 11), (12, 11)), leader=12))),
        _with((BROKERS, (11,), _broker(11, 60))),  # it registers itself
    ],
)
def test_what_is_no_loss(seen: Image) -> None:
    assert list(consequences(_with(), seen, None)) == []


def test_only_what_a_tail_changed_is_compared() -> None:
    """The tail beside the source changed an ACL; that the source has a newer topic is no loss of it."""
    since, seen = _image(), _image((ACLS, ("acl",), _acl(ALLOW)))
    (found,) = consequences(_with(), seen, since)
    assert (found.loss, found.kind) == (RIGHTS_MISSING, ACLS)


def test_what_is_stray_by_broker() -> None:
    """Recreated under another id, and reassigned: the directories that the metadata does not name."""
    again = _partition(SECOND, "orders", (11, 13), (11,))
    seen = _image((TOPICS, (SECOND,), Topic(SECOND, "orders")), (PARTITIONS, (SECOND, 0), again))
    assert stray(_with(), [(seen, None)]) == {11: {"orders-0"}, 13: {"orders-0"}}
    moved = _with((PARTITIONS, (FIRST, 0), _partition(FIRST, "orders", (11, 13), (11,))))
    assert stray(_with(), [(moved, None)]) == {13: {"orders-0"}}
    assert stray(_with(), [(_with(), None)]) == {}
    assert stray(_image(), [(_with(), _with())]) == {}


def test_the_newest_placement_and_registrations_are_kept() -> None:
    moved = _partition(FIRST, "orders", (12, 13), (12,))
    earlier = _with((BROKERS, (11,), _broker(11, 60)), (BROKERS, (12,), _broker(12, 61)))
    newest = _with(
        (PARTITIONS, (FIRST, 0), moved),
        (BROKERS, (12,), _broker(12, 95)),
        (BROKERS, (13,), _broker(13, 99)),
    )
    made = placed(earlier, newest, "newest")
    assert made.tables.get(PARTITIONS, (FIRST, 0)) == moved
    assert sorted(key for key, _ in made.tables.items(BROKERS)) == [(12,), (13,)]
    as_of = placed(earlier, newest, "as-of")
    assert as_of.tables.get(PARTITIONS, (FIRST, 0)) == earlier.tables.get(PARTITIONS, (FIRST, 0))
    epochs = {key[0]: broker.broker_epoch for key, broker in as_of.tables.items(BROKERS)}
    assert epochs == {11: 60, 12: 95, 13: 99}


def test_no_feature_ever_goes_back() -> None:
    newest = _with((FEATURES, ("group.version",), Feature("group.version", 1)))
    with pytest.raises(UnwritableError, match=r"features group.version has changed since"):
        placed(_with(), newest, "newest")


def test_an_earlier_moment_of_a_recorded_log() -> None:
    """Epoch 1 up to 251: the topic, the ACL and the configs of epoch 3 are not there yet."""
    plan = golden(WHOLE, _at(Cut(251)))
    made = plan.made
    assert made is not None
    assert losses(plan) == [TOPICS_UNKNOWN, RIGHTS_MISSING, SETTINGS_RETURN]
    assert (made.restored_end, made.restored_epoch, made.source_end) == (251, 1, 507)
    assert list(made.stray) == [11]
    assert len(made.stray[11]) == 10
    assert made.counts[TOPICS] == 1
    assert made.horizon.new_end > 507
    by_time = golden(WHOLE, _at(Cut(time=made.restored_time))).made
    assert by_time is not None
    assert by_time.restored_time == made.restored_time
    assert golden(WHOLE, _at(Cut(507))).verdict == "SAFE"
    assert golden(WHOLE, _at(Cut(time=made.restored_time + (1 << 40)))).verdict == "SAFE"


def test_a_broker_that_was_removed_later_may_be_lost(tmp_path: Path) -> None:
    """With the placement of the moment it is registered again: it was expected back, whatever was stated."""
    captures = copied(WHOLE, tmp_path)
    for directory in find_controller_dirs([captures]).directories:
        broker: Broker | None = replayed(directory).image.tables.get(BROKERS, (11,))
        assert broker is not None
        removed = {"brokerId": 11, "brokerEpoch": broker.broker_epoch}
        append_record(directory, "UNREGISTER_BROKER_RECORD", 0, removed)
    for stated in ({"lost_brokers": frozenset({11})}, {"brokers_back": frozenset[int]()}):
        plan = planned(captures, replace(_at(Cut(507)), placement="as-of", **stated))
        assert losses(plan) == [BROKERS_RETURN, NO_SURE_REPLICA], plan.refusals
        assert plan.made is not None
        assert plan.made.brokers_back == ()
    plan = planned(captures, replace(_at(Cut(507)), placement="as-of"))
    assert losses(plan) == [BROKERS_RETURN]
    assert plan.made is not None
    assert plan.made.brokers_back == (11,)


def test_with_running_brokers_it_is_refused() -> None:
    plan = golden(WHOLE, replace(STOPPED, at=Cut(251)))
    assert (plan.verdict, plan.refusals, plan.made) == ("REFUSED", (BROKERS_DELETE,), None)


def _refused(captures: Path, cut: Cut) -> str:
    plan = planned(captures, _at(cut))
    assert plan.made is None
    return " ".join(plan.refusals)


def test_a_moment_that_the_log_does_not_hold_is_refused(tmp_path: Path) -> None:
    captures = copied(WHOLE, tmp_path)
    assert "its log ends at 507, before offset 900" in _refused(captures, Cut(900))
    assert "takes effect as a whole: give" in _refused(captures, Cut(_inside_a_batch(captures)))
    assert "reverting it has not been tested" in _refused(captures, Cut(time=5))
    assert "reverting it has not been tested" in _refused(captures, Cut(0))


def test_a_checkpoint_alone_is_one_moment(tmp_path: Path) -> None:
    plan = golden(WHOLE)
    assert plan.made is not None
    write_restoration(plan.made, plan.cluster_id, b"", tmp_path / "new")
    (directory,) = find_controller_dirs([tmp_path / "new"]).directories
    for cut in (Cut(10_000_507), Cut(time=MADE_AT)):
        assert replayed_until(directory, cut).image.tables == plan.made.image.tables
    for cut in (Cut(10_000_506), Cut(time=MADE_AT - 1)):
        with pytest.raises(UnusableLogError, match="does not reach back"):
            replayed_until(directory, cut)


def _inside_a_batch(captures: Path) -> int:
    content = (captures / "node-1/__cluster_metadata-0/00000000000000000000.log").read_bytes()
    batches = (item for item in scan(content, next_offset=0) if isinstance(item, BatchHeader))
    return next(batch.next_offset - 1 for batch in batches if batch.last_offset_delta > 1)


def test_epochs_of_a_topic_that_was_deleted_later_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back lies above all that brokers hold of it, also where the newest state lacks it."""
    monkeypatch.setattr("kraft_core.restore.horizon.PARTITION_EPOCH_MARGIN", 7)
    log = ReplayedLog(_image())
    log.see((FIRST, 0), (5, 3))
    log.see((FIRST, 0), (4, 8))
    assert horizon_of([], [], [log]).new_partition_epochs((FIRST, 0)) == (12, 15)


def test_every_partition_of_a_log_is_seen() -> None:
    directories = find_controller_dirs([GOLDEN / "dynamic-membership/node-1"]).directories
    log = replayed(directories[0])
    partitions: Iterator[tuple[Any, Partition]] = log.image.tables.items(PARTITIONS)
    for key, partition in partitions:
        assert log.partitions_seen[key] == (partition.leader_epoch, partition.partition_epoch)
    assert replayed_until(directories[0], Cut(log.end_offset)).image.tables == log.image.tables
