"""What is written: above everything seen, equal to the source but for what a restart needs, and as bytes."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.record import Record, read_log
from kraft_core.format.snapshot import read_snapshot
from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.differences import differences
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, CONTROLLERS, FEATURES, PARTITIONS, PRODUCER_IDS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.restore import horizon as margins
from kraft_core.restore.checkpoint import UnwritableError, checkpoint_bytes
from kraft_core.restore.choice import UNSEEN_RECORDS
from kraft_core.restore.content import FORGOTTEN, NO_SURE_REPLICA, UNREPLICATED, content_losses
from kraft_core.restore.directories import TargetError, check_apart, check_target, write_restoration
from kraft_core.restore.horizon import ExhaustedError, Horizon
from kraft_core.restore.offline import offline
from kraft_core.restore.replay import replayed
from kraft_core.restore.restoration import Restored
from kraft_core.restore.written_rules import broken_rules
from tests.kraft_core.restore.planned import (
    MADE_AT,
    OTHER,
    STOPPED,
    VOTER,
    copied,
    golden,
    losses,
    planned,
    request,
)

WHOLE = "uncommitted-truncation/after"
TOPIC = "dXmw1Ru2SU-5jEzTbqgRFA"
DIRECTORIES = ("e0mw1Ru2SU-5jEzTbqgRFA", "f0mw1Ru2SU-5jEzTbqgRFA")


def _made(moment: str) -> Restored:
    made = golden(moment).made
    assert made is not None
    return made


@pytest.mark.parametrize(
    "moment",
    [WHOLE, "static-upgrade", "static-upgrade/at-3.9.2", "election-storm", "disk-failure/before-wipe"],
)
def test_the_bytes_are_the_image(moment: str) -> None:
    made = _made(moment)
    again = golden(moment).made
    assert again is not None
    assert again.checkpoint == made.checkpoint
    content = read_snapshot(made.checkpoint)
    assert content.complete
    types = [record.type for record in content.control_records]
    middle = ["KRaftVersion", "KRaftVoters"] if made.kraft_version else []
    assert types == ["SnapshotHeader", *middle, "SnapshotFooter"]
    records = [item for item in read_log(made.checkpoint, next_offset=0) if isinstance(item, Record)]
    assert {record.leader_epoch for record in records} == {made.horizon.new_epoch}
    first = next(record for record in records if not record.batch.is_control)
    assert first.value is not None
    assert (first.type, first.value["name"]) == ("FEATURE_LEVEL_RECORD", "metadata.version")
    read = Image.of_snapshot(records, made.horizon.new_end, made.horizon.new_epoch, made.image.timestamp)
    assert not read.refusals
    assert not list(differences(made.image, read))


@pytest.mark.parametrize("moment", [WHOLE, "static-upgrade"])
def test_only_what_the_plan_names_differs_from_the_source(moment: str) -> None:
    made = _made(moment)
    source = replayed(made.directory).image
    found = list(differences(source, made.image))
    assert {each.kind for each in found} <= {CONTROLLERS, BROKERS, PARTITIONS, PRODUCER_IDS}
    for each in found:
        if each.kind == BROKERS:
            assert each.after == replace(each.before, fenced=True, in_controlled_shutdown=False)
        if each.kind == PARTITIONS:
            kept = ("topic_id", "topic_name", "partition_id", "replicas", "directories")
            assert all(getattr(each.before, name) == getattr(each.after, name) for name in kept)
            assert set(each.after.isr) <= set(each.before.isr)
            assert each.after.leader_epoch >= each.before.leader_epoch + margins.PARTITION_EPOCH_MARGIN
            assert each.after.partition_epoch >= each.before.partition_epoch + margins.PARTITION_EPOCH_MARGIN


def test_all_lies_above_what_any_capture_shows(tmp_path: Path) -> None:
    """Also above an epoch that the quorum-state of one node alone names."""
    captures = copied("uncommitted-truncation/before", tmp_path)
    made = planned(captures).made
    assert made is not None
    assert made.horizon.new_epoch == 1 + margins.EPOCH_MARGIN
    state = captures / "node-4/__cluster_metadata-0/quorum-state"
    state.write_text(state.read_text().replace('"leaderEpoch":1,', '"leaderEpoch":77,'))
    made = planned(captures).made
    assert made is not None
    assert made.horizon.new_epoch == 77 + margins.EPOCH_MARGIN
    assert made.horizon.new_end == 369 + margins.OFFSET_MARGIN


def test_no_number_overflows() -> None:
    most = Horizon((1 << 31) - 2, 5, 5, 5, {("t", 0): ((1 << 31) - 2, 5)})
    with pytest.raises(ExhaustedError, match="leader epoch"):
        _ = most.new_epoch
    with pytest.raises(ExhaustedError, match="leader epoch of a partition"):
        most.new_partition_epochs(("t", 0))


def _image(*partitions: Partition, elr: int = 0) -> Image:
    image = Image()
    image.tables.put(Change(FEATURES, ("metadata.version",), Feature("metadata.version", 30)))
    image.tables.put(Change(TOPICS, (TOPIC,), Topic(TOPIC, "orders")))
    if elr:
        name = "eligible.leader.replicas.version"
        image.tables.put(Change(FEATURES, (name,), Feature(name, elr)))
    for id_ in (11, 12):
        broker = Broker(id_, 60 + id_, TOPIC, (), (), None, False, True, False, DIRECTORIES[:1], None)
        image.tables.put(Change(BROKERS, (id_,), broker))
    for partition in partitions:
        image.tables.put(Change(PARTITIONS, (TOPIC, partition.partition_id), partition))
    return image


def _partition(isr: tuple[int, ...], leader: int, elr: tuple[int, ...] = ()) -> Partition:
    return Partition(
        TOPIC,
        "orders",
        0,
        (11, 12),
        DIRECTORIES,
        isr,
        (),
        (),
        elr,
        (),
        leader,
        0,
        leader_epoch=4,
        partition_epoch=9,
    )


@pytest.mark.parametrize(
    ("isr", "leader", "elr", "lost", "sure", "is_back"),
    [
        ((11, 12), 12, (), set(), 12, True),  # the leader has even what is not replicated
        ((11, 12), 12, (), {12}, 11, True),  # another member of the ISR has all that both acknowledged
        ((11, 13), 13, (), set(), 11, True),  # the leader is not registered
        ((11, 12), -1, (), set(), 11, True),
        ((12,), 12, (), {12}, 12, False),  # 11 may lack acknowledged records: never chosen
        ((), -1, (12,), set(), 12, True),
        ((), -1, (), set(), None, False),
        ((13,), 13, (), set(), 13, False),  # not registered
    ],
)
def test_the_sure_replica(
    isr: tuple[int, ...], leader: int, elr: tuple[int, ...], lost: set[int], sure: int | None, is_back: bool
) -> None:
    image = _image(_partition(isr, leader, elr), elr=1)
    horizon = Horizon(1, 1, 1, 1, {(TOPIC, 0): (4, 9)})
    made, (found,) = offline(image, horizon, frozenset(lost))
    assert (found.broker_id, found.is_back, found.is_empty) == (sure, is_back, False)
    assert found.leader_is_lost == (is_back and leader not in (-1, sure))
    partition: Partition = made.tables.get(PARTITIONS, (TOPIC, 0))  # type: ignore[assignment]
    assert partition.leader == -1
    assert partition.isr == (() if sure is None else (sure,))
    assert partition.last_known_elr == (() if sure is None else (sure,))
    brokers: list[Broker] = [broker for _, broker in made.tables.items(BROKERS)]
    assert all(broker.fenced and not broker.in_controlled_shutdown for broker in brokers)
    assert [broker.broker_epoch for broker in brokers] == [71, 72]
    assert image.tables.get(PARTITIONS, (TOPIC, 0)).leader == leader  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("isr", "lacking", "sure", "is_empty"),
    [((11, 12), {12}, 11, False), ((12,), {12}, 12, True), ((11, 12), {11, 12}, 12, True)],
)
def test_a_broker_whose_directory_lacks_the_partition(
    isr: tuple[int, ...], lacking: set[int], sure: int, is_empty: bool
) -> None:
    """Another member of the ISR is taken, and what 12 led alone is a loss; where none holds it, all is."""
    horizon, key = Horizon(1, 1, 1, 1, {(TOPIC, 0): (4, 9)}), (TOPIC, 0)
    held = frozenset((broker, key) for broker in lacking)
    _, (found,) = offline(_image(_partition(isr, 12)), horizon, frozenset(), held)
    assert (found.broker_id, found.is_back, found.is_empty) == (sure, True, is_empty)
    assert [loss.name for loss in content_losses((), (), [found])] == [
        NO_SURE_REPLICA if is_empty else UNREPLICATED
    ]


def test_only_the_brokers_that_are_named_come_back() -> None:
    """One of them is 11, which has every partition; where it is not among them, all wait."""
    assert golden(WHOLE, request(are_stopped=True, brokers_back=frozenset({11}))).verdict == "SAFE"
    plan = golden(WHOLE, request(are_stopped=True, brokers_back=frozenset()))
    assert losses(plan) == [NO_SURE_REPLICA]
    assert plan.made is not None
    assert plan.made.brokers_back == ()
    unknown = golden(WHOLE, request(are_stopped=True, brokers_back=frozenset({11, 999})))
    assert "no broker 999 is registered" in unknown.refusals[0]
    both = {"brokers_back": frozenset({11}), "lost_brokers": frozenset({11})}
    assert "lost and to come back" in golden(WHOLE, request(are_stopped=True, **both)).refusals[0]


def test_a_lost_broker_is_a_named_loss() -> None:
    made = _made(WHOLE)
    back = {each.broker_id for each in made.sure}
    asked = request(are_stopped=True, lost_brokers=frozenset(b for b in back if b is not None))
    plan = golden(WHOLE, asked)
    assert (plan.verdict, losses(plan)) == ("LOSES", [NO_SURE_REPLICA])


def test_what_a_checkpoint_of_kafka_forgot_is_a_named_loss() -> None:
    plan = golden("dynamic-membership")
    assert (plan.verdict, losses(plan)) == ("LOSES", [FORGOTTEN, NO_SURE_REPLICA])
    assert "scram_users 2 alice" in plan.losses[0].sentence


def test_what_a_version_lacks_is_never_dropped_silently() -> None:
    image = _image()
    checkpoint_bytes(image, 5, 6)
    image.tables.put(Change(FEATURES, ("metadata.version",), Feature("metadata.version", 16)))
    with pytest.raises(UnwritableError, match="logDirs of a REGISTER_BROKER_RECORD at metadata"):
        checkpoint_bytes(image, 5, 6)


def test_directories_are_whole_private_and_read_as_captures(tmp_path: Path) -> None:
    plan = golden(WHOLE, replace(STOPPED, voters=(VOTER, OTHER)))
    made = plan.made
    assert made is not None
    target = tmp_path / "restored"
    homes = write_restoration(made, plan.cluster_id, b"{}", target)
    assert homes == [target / "node-90", target / "node-91"]
    assert [path.name for path in tmp_path.iterdir()] == ["restored"]
    for path in (target, *target.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    found = find_controller_dirs([target]).directories
    assert [directory.meta and directory.meta.directory_id for directory in found] == [
        VOTER.directory_id,
        OTHER.directory_id,
    ]
    for directory in found:
        log = replayed(directory)
        assert not list(differences(log.image, made.image))
        assert (log.end_offset, log.leader_epoch) == (10_000_507, 1_000_003)
    with pytest.raises(TargetError, match="exists"):
        write_restoration(made, plan.cluster_id, b"{}", target)


def test_a_static_quorum_becomes_a_dynamic_one_only_where_every_broker_supports_it() -> None:
    asked = replace(STOPPED, kraft_version=1)
    made = golden("static-upgrade/at-3.9.2", asked).made
    assert made is not None
    content = read_snapshot(made.checkpoint)
    voters = [record.value for record in content.control_records if record.type == "KRaftVoters"]
    assert [voter["voterId"] for value in voters if value for voter in value["voters"]] == [VOTER.id]
    fallen = golden(WHOLE, replace(STOPPED, kraft_version=0))
    assert "kraft.version is 1 and never decreases" in fallen.refusals[0]
    old = golden("born-on-3.4", replace(asked, listener="CONTROLLER"))
    assert "needs metadata.version 21" in old.refusals[0]


def test_what_is_left_behind_is_listed(tmp_path: Path) -> None:
    """Epoch 3 replaced the tail of node 1: proven, so no loss."""
    copied("uncommitted-truncation/before", tmp_path / "before", 1)
    copied(WHOLE, tmp_path / "after", 2, 3)
    made = planned(tmp_path, replace(STOPPED, brokers_stopped=True)).made
    assert made is not None
    assert made.left_behind == ""  # what was truncated is gone for good


def test_a_node_that_is_a_broker_too_keeps_its_captured_directory(tmp_path: Path) -> None:
    """On any other disk it would lead without its messages: its directory must be captured, and not gone."""
    image = replayed(_made(WHOLE).directory).image
    ((broker,),) = [[b for _, b in image.tables.items(BROKERS)]]
    captures = copied(WHOLE, tmp_path)
    asked = replace(STOPPED, voters=(replace(VOTER, id=broker.broker_id),))
    assert "capture it, or give the controller another id" in planned(captures, asked).refusals[0]
    copied(WHOLE, tmp_path / "more", 4)
    meta = tmp_path / "more/node-4/meta.properties"
    lines = {li.partition("=")[0]: li for li in meta.read_text().splitlines()}
    lines |= {"node.id": f"node.id={broker.broker_id}", "directory.id": f"directory.id={broker.log_dirs[0]}"}
    meta.write_text("\n".join(lines.values()))
    made = planned(captures, asked).made
    assert made is not None
    assert [v.directory_id for v in made.voters] == [broker.log_dirs[0]]
    assert made.brokers_too == {broker.broker_id}
    for gone in ({"gone": frozenset({broker.broker_id})}, {"lost_brokers": frozenset({broker.broker_id})}):
        assert "is gone: give" in planned(captures, replace(asked, **gone)).refusals[0]  # type: ignore[arg-type]


def test_a_target_is_never_inside_a_capture_or_a_log_directory(tmp_path: Path) -> None:
    captures = copied(WHOLE, tmp_path / "captures")
    with pytest.raises(TargetError, match="captures are never written to"):
        check_apart(captures / "new", [captures])
    for inside in ("node-1", "node-1/__cluster_metadata-0"):
        with pytest.raises(TargetError, match="a log directory of Kafka"):
            check_target(captures / inside / "new")
    with pytest.raises(TargetError, match="is not a folder"):
        check_target(tmp_path / "nowhere/new")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(TargetError, match="exists"):
        check_target(tmp_path / "link")


def test_a_directory_written_wrongly_is_not_published(tmp_path: Path) -> None:
    plan = golden(WHOLE)
    assert plan.made is not None
    wrong = replace(plan.made, checkpoint=plan.made.checkpoint[:-1])
    with pytest.raises(TargetError, match="not written as planned"):
        write_restoration(wrong, plan.cluster_id, b"{}", tmp_path / "restored")
    assert list(tmp_path.iterdir()) == []
    write_restoration(plan.made, plan.cluster_id, b"{}", tmp_path / "restored")


def test_a_failure_leaves_no_secrets_and_names_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written was left beside the target: on a full disk each attempt took more of it."""

    def full(_: int) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = golden(WHOLE)
    assert plan.made is not None
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left") as raised:
            write_restoration(plan.made, plan.cluster_id, b"{}", tmp_path / "restored")
    assert raised.value.filename == str(tmp_path / "restored")
    assert list(tmp_path.iterdir()) == []


def test_an_observer_alone_is_a_source(tmp_path: Path) -> None:
    """A broker's copy, too, when every controller is lost."""
    gone = frozenset({1, 2, 3})
    asked = request(gone=gone, are_stopped=True, brokers_stopped=True)
    plan = planned(copied(WHOLE, tmp_path, 4), asked)
    assert (plan.verdict, losses(plan)) == ("LOSES", [UNSEEN_RECORDS])
    assert plan.made is not None
    assert plan.made.source.node_id == 4


def test_written_directories_are_held_against_the_rules(tmp_path: Path) -> None:
    plan = golden(WHOLE, replace(STOPPED, voters=(VOTER, OTHER)))
    assert plan.made is not None
    homes = write_restoration(plan.made, plan.cluster_id, b"{}", tmp_path / "restored")
    assert not broken_rules(homes)
    beyond = plan.made.horizon.new_end + 10
    batch = write_batch(beyond, plan.made.horizon.new_epoch, [RawRecord(beyond, MADE_AT, None, b"")])
    (homes[1] / LOG_DIR_NAME / f"{beyond:020d}.log").write_bytes(batch)
    assert {finding.severity for finding in broken_rules(homes)} == {"error"}
