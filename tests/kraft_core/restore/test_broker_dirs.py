"""What brokers' directories know: records that no capture holds are noticed, and nothing goes below them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.side_files import MAX_SIDE_FILE_BYTES
from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change, Key
from kraft_core.image.image import Image
from kraft_core.image.names import MIGRATING_DIRECTORY
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS
from kraft_core.restore.broker_dirs import (
    BrokerDirError,
    BrokerLogDir,
    BrokersEvidence,
    HeldPartition,
    broker_log_dir,
)
from kraft_core.restore.choice import UNSEEN_RECORDS
from kraft_core.restore.content import NO_SURE_REPLICA, UNREPLICATED, content_losses, unregistered_loss
from kraft_core.restore.horizon import PARTITION_EPOCH_MARGIN, Horizon
from kraft_core.restore.later import TOPICS_UNKNOWN
from kraft_core.restore.offline import offline
from kraft_core.restore.replay import ReplayedLog, replayed
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import BROKERS_DELETE, Restoration, restoration_of
from tests.kraft_core.evidence.golden import GOLDEN
from tests.kraft_core.restore.planned import STOPPED, append_record, copied, golden, losses, planned, request

WHOLE = "uncommitted-truncation/after"
CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
UNKNOWN = "b0mw1Ru2SU-5jEzTbqgRFA"
BOTH_STOPPED = request(are_stopped=True, brokers_stopped=True)


def _log_dir(path: Path, cluster: str = CLUSTER, directory_id: str | None = None) -> Path:
    """Of broker 11. directory_id: None as before Kafka 3.7."""
    path.mkdir()
    meta: dict[str, object] = {"version": 1, "cluster.id": cluster, "node.id": 11}
    meta |= {} if directory_id is None else {"directory.id": directory_id}
    (path / "meta.properties").write_text("\n".join(f"{name}={value}" for name, value in meta.items()))
    (path / "__cluster_metadata-0").mkdir()
    return path


def _partition(log_dir: Path, name: str, topic_id: str, *epochs: int) -> Path:
    folder = log_dir / name
    folder.mkdir()
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    lines = ["0", str(len(epochs)), *(f"{epoch} {nth * 10}" for nth, epoch in enumerate(epochs))]
    (folder / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")
    return folder


def _known() -> tuple[str, int]:
    """A topic's id of the captured metadata, and the leader epoch of its partition 0."""
    made = golden(WHOLE).made
    assert made is not None
    key, partition = next(item for item in made.image.tables.items(PARTITIONS) if item[0][1] == 0)
    return key[0], partition.leader_epoch - PARTITION_EPOCH_MARGIN


def _plan(log_dir: Path, asked: RestoreRequest = STOPPED) -> Restoration:
    (cluster,) = collect_lives(find_controller_dirs([GOLDEN / WHOLE]).directories)
    return restoration_of(cluster, asked, (), [log_dir])


def test_what_brokers_and_captures_know_alike_is_safe(tmp_path: Path) -> None:
    log_dir, (topic, epoch) = _log_dir(tmp_path / "11"), _known()
    _partition(log_dir, "base-0", topic, 0, epoch)
    _partition(log_dir, "gone-3.4f0c-delete", UNKNOWN, 5)
    _partition(log_dir, "older-3.4f0c-stray", UNKNOWN, 5)
    plan = _plan(log_dir)
    assert (plan.verdict, plan.refusals) == ("SAFE", ())
    assert plan.made is not None
    assert plan.made.stray == {}


def test_a_topic_that_no_capture_knows_proves_that_records_are_missing(tmp_path: Path) -> None:
    """Whatever was stated: with running brokers it is refused, else the topic is named."""
    log_dir = _log_dir(tmp_path / "11")
    _partition(log_dir, "newer.one-2", UNKNOWN, 0)
    assert _plan(log_dir).refusals == (BROKERS_DELETE,)
    plan = _plan(log_dir, BOTH_STOPPED)
    assert (plan.verdict, losses(plan)) == ("LOSES", [UNSEEN_RECORDS, TOPICS_UNKNOWN])
    assert f"newer.one-2 of topic id {UNKNOWN} on broker 11" in plan.losses[0].sentence
    assert f"topic newer.one (id {UNKNOWN})" in plan.losses[1].sentence
    assert plan.made is not None
    assert plan.made.stray == {11: ("newer.one-2",)}


def test_a_leader_epoch_that_no_capture_knows(tmp_path: Path) -> None:
    """It is proof of missing records, and what is written lies above it."""
    log_dir, (topic, epoch) = _log_dir(tmp_path / "11"), _known()
    _partition(log_dir, "base-0", topic, 0, epoch + 1000)
    assert _plan(log_dir).refusals == (BROKERS_DELETE,)
    plan = _plan(log_dir, BOTH_STOPPED)
    assert losses(plan) == [UNSEEN_RECORDS]
    assert f"base-0 in leader epoch {epoch + 1000} on broker 11" in plan.losses[0].sentence
    assert plan.made is not None
    partition = plan.made.image.tables.get(PARTITIONS, (topic, 0))
    assert partition is not None
    assert partition.leader_epoch == epoch + 1000 + PARTITION_EPOCH_MARGIN


def test_a_topic_that_only_a_truncated_tail_contains(tmp_path: Path) -> None:
    """No broker is given what was never committed. One more capture made it SAFE, brokers running."""
    log_dir = _log_dir(tmp_path / "11")
    _partition(log_dir, "newer-0", UNKNOWN, 0)
    captures = copied(WHOLE, tmp_path / "captures/after")
    before = copied("uncommitted-truncation/before", tmp_path / "captures/before", 1)
    (directory,) = find_controller_dirs([before]).directories
    whole = {"replicas": [11], "isr": [11], "leader": 11, "directories": [UNKNOWN]}
    append_record(directory, "TOPIC_RECORD", 0, {"name": "newer", "topicId": UNKNOWN})
    append_record(directory, "PARTITION_RECORD", 1, {"topicId": UNKNOWN, "partitionId": 0} | whole)
    (directory,) = find_controller_dirs([before]).directories
    assert (UNKNOWN, 0) in replayed(directory).partitions_seen
    plans: list[Restoration] = []
    for folder in (captures, tmp_path / "captures"):
        (cluster,) = collect_lives(find_controller_dirs([folder]).directories)
        assert restoration_of(cluster, STOPPED).verdict == "SAFE"
        assert restoration_of(cluster, STOPPED, (), [log_dir]).refusals == (BROKERS_DELETE,)
        plans.append(restoration_of(cluster, BOTH_STOPPED, (), [log_dir]))
    assert losses(plans[0]) == [UNSEEN_RECORDS, TOPICS_UNKNOWN]
    assert plans[0].losses == plans[1].losses


def _log_dirs_of_11(home: Path) -> dict[str, Path]:
    """All log directories of broker 11, by directory id, each with the partitions that lie there."""
    made = golden(WHOLE).made
    assert made is not None
    broker = made.image.tables.get(BROKERS, (11,))
    assert isinstance(broker, Broker)
    home.mkdir(exist_ok=True)
    found = {id_: _log_dir(home / id_, directory_id=id_) for id_ in broker.log_dirs}
    partitions: Iterator[tuple[Key, Partition]] = made.image.tables.items(PARTITIONS)
    for _, p in partitions:
        log_dir = found[p.directories[p.replicas.index(11)]]
        _partition(
            log_dir, f"{p.topic_name}-{p.partition_id}", p.topic_id, p.leader_epoch - PARTITION_EPOCH_MARGIN
        )
    return found


def test_a_partition_that_the_broker_to_lead_does_not_hold_is_named(tmp_path: Path) -> None:
    """Its directory is given and lacks it; one that is not given may hold what it is to hold."""
    (cluster,) = collect_lives(find_controller_dirs([GOLDEN / WHOLE]).directories)
    log_dirs = _log_dirs_of_11(tmp_path)
    given = list(log_dirs.values())
    assert len(given) > 1
    assert restoration_of(cluster, STOPPED, (), given).verdict == "SAFE"
    home = next(path for path in given if any(path.glob("base-*")))
    lacking = next(iter(home.glob("base-*")))
    shutil.rmtree(lacking)
    plan = restoration_of(cluster, STOPPED, (), given)
    assert (plan.verdict, losses(plan)) == ("LOSES", [NO_SURE_REPLICA])
    assert "1 partition without messages" in plan.losses[0].sentence
    assert f"does not have {lacking.name}, " in plan.losses[0].sentence
    others = [path for path in given if path != home]
    assert restoration_of(cluster, STOPPED, (), others).verdict == "SAFE"


def test_a_replica_whose_directory_has_failed_is_not_sure(tmp_path: Path) -> None:
    """The only member of an ISR stays in it without ELR: on a new disk, it would lead without messages."""
    captures, log_dirs = copied(WHOLE, tmp_path / "captures"), list(_log_dirs_of_11(tmp_path).items())
    failed, kept = log_dirs[0][0], log_dirs[1][0]
    for directory in find_controller_dirs([captures]).directories:
        change = {"brokerId": 11, "brokerEpoch": _epoch_of_11(), "logDirs": [kept]}
        append_record(directory, "BROKER_REGISTRATION_CHANGE_RECORD", 2, change)
    plan = planned(captures)
    assert (plan.verdict, losses(plan)) == ("LOSES", [NO_SURE_REPLICA])
    held = len([path for path in log_dirs[0][1].iterdir() if (path / "partition.metadata").exists()])
    assert f"{held} partitions without messages" in plan.losses[0].sentence
    # The disk may be there again, or what is given is a copy of before: nobody knows.
    (cluster,) = collect_lives(find_controller_dirs([captures]).directories)
    given = restoration_of(cluster, BOTH_STOPPED, (), [path for _, path in log_dirs])
    assert given.losses == (*plan.losses, unregistered_loss(11, failed))


@pytest.mark.parametrize("suffix", ["delete", "stray"])
def test_what_a_broker_removed_though_the_metadata_has_it_there(tmp_path: Path, suffix: str) -> None:
    """It was removed by records that no capture contains, or given back since: nobody knows."""
    (cluster,) = collect_lives(find_controller_dirs([GOLDEN / WHOLE]).directories)
    log_dirs = list(_log_dirs_of_11(tmp_path).values())
    folder = next(each for path in log_dirs for each in path.glob("base-*"))
    removed = shutil.copytree(folder, folder.with_name(f"{folder.name}.4f0c-{suffix}"))
    assert restoration_of(cluster, STOPPED, (), log_dirs).verdict == "SAFE"
    shutil.rmtree(folder)
    assert restoration_of(cluster, STOPPED, (), log_dirs).refusals == (BROKERS_DELETE,)
    plan = restoration_of(cluster, BOTH_STOPPED, (), log_dirs)
    assert losses(plan) == [UNSEEN_RECORDS, NO_SURE_REPLICA]
    assert f"{folder.name} of topic id {_known()[0]} removed on broker 11." in plan.losses[0].sentence
    (removed / "partition.metadata").unlink()  # half deleted, it does not say of which topic it was
    assert losses(restoration_of(cluster, STOPPED, (), log_dirs)) == [NO_SURE_REPLICA]


@pytest.mark.parametrize(("given", "is_unseen"), [((11,), True), ((11, 12), True), ((12,), False)])
def test_what_another_broker_in_sync_holds_may_be_removed(given: tuple[int, ...], is_unseen: bool) -> None:
    """12 is to lead, and has it: it was SAFE."""
    image, key = Image(), (UNKNOWN, 0)
    made = Partition(
        UNKNOWN, "t", 0, (11, 12), (MIGRATING_DIRECTORY,) * 2, (11, 12), (), (), (), (), 12, 0, 5, 9
    )
    image.tables.put(Change(PARTITIONS, key, made))
    held = HeldPartition(11, UNKNOWN, "t", 0, 5)
    of_broker = {
        11: BrokerLogDir(11, None, (), removed=(held,)),
        12: BrokerLogDir(12, None, (replace(held, broker_id=12),)),
    }
    log = ReplayedLog(image)
    log.see(key, (5, 9))
    found = BrokersEvidence.of([of_broker[id_] for id_ in given], [log])
    assert [loss.name for loss in found.unseen(image)] == [UNSEEN_RECORDS] * is_unseen


def test_two_copies_of_one_directory_are_refused(tmp_path: Path) -> None:
    """The older one holds what the newer has lost. It was SAFE."""
    (cluster,) = collect_lives(find_controller_dirs([GOLDEN / WHOLE]).directories)
    older, newer = _log_dirs_of_11(tmp_path / "older"), _log_dirs_of_11(tmp_path / "newer")
    shutil.rmtree(next(each for path in newer.values() for each in path.glob("base-*")))
    (name,) = losses(restoration_of(cluster, STOPPED, (), newer.values()))
    assert name == NO_SURE_REPLICA
    plan = restoration_of(cluster, STOPPED, (), [*older.values(), *newer.values()])
    assert plan.verdict == "REFUSED"
    assert [refusal.partition(" are copies of one ")[2] for refusal in plan.refusals] == [
        "log directory: give only the newest one of each."
    ] * len(newer)


def test_a_partition_in_two_directories_of_a_broker_is_refused(tmp_path: Path) -> None:
    """As in copies of two moments, without directory ids, or of a partition that was moved. It was SAFE."""
    (cluster,) = collect_lives(find_controller_dirs([GOLDEN / WHOLE]).directories)
    topic, epoch = _known()
    older, newer = _log_dir(tmp_path / "older"), _log_dir(tmp_path / "newer")
    for log_dir in (older, newer):
        _partition(log_dir, "base-0", topic, epoch)
    plan = restoration_of(cluster, STOPPED, (), [older, newer])
    assert plan.refusals == (
        f"{older} and {newer} of one broker both hold base-0: give only the newest copy of each directory; "
        "if both are, the broker does not start.",
    )
    (newer / "base-0").rename(newer / "base-0.4f0c-future")
    assert restoration_of(cluster, STOPPED, (), [older, newer]).refusals == ()


@pytest.mark.parametrize(
    ("epochs", "lost", "led_by", "losses_of"),
    [
        ({11: 5, 12: 5}, (), 11, []),
        ({11: 5, 12: 4}, (), 11, []),
        ({11: 5}, (), 11, []),
        ({12: 5}, (), 11, []),
        ({11: 4, 12: 5}, (), 12, [UNREPLICATED]),
        ({11: 4, 12: 5}, (12,), 11, [NO_SURE_REPLICA]),
        ({11: 3, 12: 3, 13: 4}, (), 11, []),
        ({12: 4, 13: 5}, (), 11, []),
        ({11: 4, 12: 4, 13: 5}, (), 12, [UNREPLICATED]),
        ({11: 4, 13: 5}, (12,), 11, [NO_SURE_REPLICA]),
    ],
)
def test_a_leader_that_lacks_what_a_follower_has_is_not_sure(
    epochs: dict[int, int], lost: tuple[int, ...], led_by: int, losses_of: list[str]
) -> None:
    """As on a disk restored from a backup: it was SAFE, and 12 would truncate.

    13 is not in sync: it has messages of epoch 5 from 11, that leads it, and of epoch 4 perhaps its own.
    """
    image, key, directories = Image(), (UNKNOWN, 0), (MIGRATING_DIRECTORY,) * 3
    brokers = (11, 12, 13)
    for id_ in brokers:
        broker = Broker(id_, 9, "i", (), (), None, False, False, False, (), None)
        image.tables.put(Change(BROKERS, (id_,), broker))
    made = Partition(UNKNOWN, "t", 0, brokers, directories, (11, 12), (), (), (), (), 11, 0, 5, 9)
    image.tables.put(Change(PARTITIONS, key, made))
    held = [BrokerLogDir(id_, None, (HeldPartition(id_, UNKNOWN, "t", 0, e),)) for id_, e in epochs.items()]
    found = BrokersEvidence.of(held, ())
    horizon = Horizon(9, 9, 9, 9, {key: (5, 9)})
    restored, sure = offline(image, horizon, frozenset(lost), found.lacking(image), found.epochs)
    waiting = restored.tables.get(PARTITIONS, key)
    assert waiting is not None
    assert waiting.isr == (led_by,)
    assert [loss.name for loss in content_losses((), (), sure)] == losses_of
    assert [each.is_sure for each in sure] == [NO_SURE_REPLICA not in losses_of]


def _epoch_of_11() -> int:
    made = golden(WHOLE).made
    assert made is not None
    broker = made.image.tables.get(BROKERS, (11,))
    assert isinstance(broker, Broker)
    return broker.broker_epoch


def test_without_registered_directories_those_given_are_all_of_a_broker() -> None:
    """As before metadata.version 3.7-IV2: no directory is named in the metadata."""
    image, key = Image(), (UNKNOWN, 0)
    directories = (MIGRATING_DIRECTORY,) * 2
    both = Partition(UNKNOWN, "t", 0, (11, 12), directories, (11, 12), (), (), (), (), 11, 0, 0, 0)
    for broker_id in (11, 12):
        broker = Broker(broker_id, 9, "i", (), (), None, False, False, False, (), None)
        image.tables.put(Change(BROKERS, (broker_id,), broker))
    image.tables.put(Change(PARTITIONS, key, both))
    held = HeldPartition(11, UNKNOWN, "t", 0, 3)
    for log_dirs, lacking in (
        ([], set[int]()),
        ([BrokerLogDir(11, None, (held,))], set[int]()),
        ([BrokerLogDir(11, None, ())], {11}),
        ([BrokerLogDir(11, None, ()), BrokerLogDir(11, None, (held,))], set[int]()),
        ([BrokerLogDir(11, None, (replace(held, is_future=True),))], {11}),
        ([BrokerLogDir(11, None, (replace(held, topic_name="u"),))], {11}),
    ):
        assert BrokersEvidence.of(log_dirs, ()).lacking(image) == {(broker_id, key) for broker_id in lacking}


def test_a_new_disk_of_a_broker_is_named(tmp_path: Path) -> None:
    """Formatted again, it has another directory id: what it held is gone, whatever the metadata says.

    A broker that runs with it has registered it, in records that no capture contains.
    """
    log_dir = _log_dir(tmp_path / "11", directory_id=UNKNOWN)
    assert _plan(log_dir).refusals == (BROKERS_DELETE,)
    plan = _plan(log_dir, BOTH_STOPPED)
    assert (plan.verdict, losses(plan)) == ("LOSES", [NO_SURE_REPLICA])
    assert f"Broker 11 has a log directory {UNKNOWN} that it has not registered" in plan.losses[0].sentence
    lost = _plan(log_dir, request(are_stopped=True, lost_brokers=frozenset({11})))
    assert losses(lost) == [NO_SURE_REPLICA]
    assert "without a leader" in lost.losses[0].sentence


def test_a_partition_that_lies_elsewhere_becomes_stray(tmp_path: Path) -> None:
    log_dir, (topic, epoch) = _log_dir(tmp_path / "12"), _known()
    meta = log_dir / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=11", "node.id=12"))
    _partition(log_dir, "base-0", topic, epoch)
    plan = _plan(log_dir)
    assert plan.verdict == "SAFE"
    assert plan.made is not None
    assert plan.made.stray == {12: ("base-0",)}


@pytest.mark.parametrize("file", ["partition.metadata", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("content", ["", "version: 7\n", "0\n2\n0 0\n"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, file: str, content: str) -> None:
    log_dir, (topic, epoch) = _log_dir(tmp_path / "11"), _known()
    folder = _partition(log_dir, "base-0", topic, epoch)
    (folder / file).write_text(content)
    (folder / "00000000000000000000.log").write_bytes(b"\0")
    (refusal,) = _plan(log_dir, BOTH_STOPPED).refusals
    assert f"{file} cannot be read" in refusal


@pytest.mark.parametrize("file", ["partition.metadata", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("kind", ["pipe", "endless", "dangling", "large"])
def test_what_is_no_small_file_is_refused(tmp_path: Path, file: str, kind: str) -> None:
    """A pipe would never end, and /dev/zero fill the memory."""
    log_dir, (topic, epoch) = _log_dir(tmp_path / "11"), _known()
    path = _partition(log_dir, "base-0", topic, epoch) / file
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        path.write_text("0" * (MAX_SIDE_FILE_BYTES + 1))
    else:
        path.symlink_to("/dev/zero" if kind == "endless" else "nowhere")
    with pytest.raises(BrokerDirError, match=f"{file} cannot be read"):
        broker_log_dir(log_dir, CLUSTER)


@pytest.mark.parametrize("segments", [(), ("00000000000000000000.log",)])
def test_a_log_without_messages_has_an_empty_file_of_epochs(
    tmp_path: Path, segments: tuple[str, ...]
) -> None:
    """As Kafka makes it."""
    log_dir, (topic, _) = _log_dir(tmp_path / "11"), _known()
    folder = _partition(log_dir, "base-0", topic)
    for file in ("leader-epoch-checkpoint", *segments):
        (folder / file).write_bytes(b"")
    (held,) = broker_log_dir(log_dir, CLUSTER).held
    assert held.leader_epoch == -1


def test_a_partition_without_a_topic_id_is_refused(tmp_path: Path) -> None:
    log_dir, (topic, epoch) = _log_dir(tmp_path / "11"), _known()
    (_partition(log_dir, "base-0", topic, epoch) / "partition.metadata").unlink()
    (refusal,) = _plan(log_dir, BOTH_STOPPED).refusals
    assert "partition.metadata cannot be read" in refusal


def test_another_clusters_broker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokerDirError, match="is not that of a node of cluster"):
        broker_log_dir(_log_dir(tmp_path / "11", UNKNOWN), CLUSTER)
    with pytest.raises(BrokerDirError, match=r"meta\.properties cannot be read"):
        broker_log_dir(tmp_path, CLUSTER)
