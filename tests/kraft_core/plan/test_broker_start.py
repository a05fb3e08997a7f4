"""What becomes of the partitions in a broker's log directories, by the metadata of a captured quorum."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.format.log_dirs import CLEAN_SHUTDOWN
from kraft_core.image.change import Change
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.names import LOST_DIRECTORY, MIGRATING_DIRECTORY
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, FEATURES, PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.messages.releases import ELR_VERSION
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_start import BrokerStart, plan_start
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.steps import CAPTURE_MORE
from kraft_core.restore.broker_dirs import BrokerDirError, broker_log_dir
from tests.kraft_core.plan.captured import metadata
from tests.kraft_core.plan.test_migration import broker

ORDERS, CLICKS, GONE = (letter * 21 + "A" for letter in "ocg")
A, B = "a" * 21 + "A", "b" * 21 + "A"


def partition(topic_id: str, name: str, partition_id: int, replicas: tuple[int, ...]) -> Change:
    directories = tuple(A if each == 7 else B for each in replicas)
    made = Partition(
        topic_id, name, partition_id, replicas, directories, replicas, (), (), (), (), 7, 0, 1, 1
    )
    return Change(PARTITIONS, (topic_id, partition_id), made)


def changes() -> Iterator[Change]:
    """orders-0 and orders-1 on broker 7, which has two log directories; clicks-0 on broker 8."""
    for node_id, log_dirs in ((7, (A, B)), (8, ())):
        change = broker(node_id, migrating=False)
        yield Change(BROKERS, change.key, replace(change.value, log_dirs=log_dirs))
    for topic_id, name in ((ORDERS, "orders"), (CLICKS, "clicks")):
        yield Change(TOPICS, (topic_id,), Topic(topic_id, name))
    yield partition(ORDERS, "orders", 0, (7, 8))
    yield partition(ORDERS, "orders", 1, (7,))
    yield partition(CLICKS, "clicks", 0, (8,))


@pytest.fixture
def known() -> CapturedMetadata:
    found = metadata("disk-failure/before-wipe")
    for image in (found.image, found.committed):
        assert image is not None
        for kind in (BROKERS, PARTITIONS, TOPICS):
            for key in [key for key, _ in image.tables.items(kind)]:
                image.tables.put(Change(kind, key, None))
        for change in changes():
            image.tables.put(change)
    return found


@pytest.fixture
def dirs(tmp_path: Path, known: CapturedMetadata) -> tuple[Path, Path]:
    """The two log directories, with orders-0 and orders-1 in the first."""
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, directory in ((first, A), (second, B)):
        folder.mkdir()
        text = f"version=1\nnode.id=7\ncluster.id={known.quorum.cluster_id}\ndirectory.id={directory}\n"
        (folder / "meta.properties").write_text(text)
        (folder / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":9}')
    hold(first, "orders-0", ORDERS)
    hold(first, "orders-1", ORDERS)
    return first, second


def hold(folder: Path, name: str, topic_id: str) -> None:
    (folder / name).mkdir()
    (folder / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def asked(known: CapturedMetadata, *paths: Path, broker_id: int = 7, unread: tuple[str, ...] = ()) -> Answer:
    cluster_id = known.quorum.cluster_id
    log_dirs = {str(path): broker_log_dir(path, cluster_id) for path in paths}
    return plan_start(BrokerStart(known, log_dirs, unread), broker_id)


def names(answer: Answer) -> list[str]:
    return [risk.name for risk in answer.risks]


def test_assigned_replicas_are_safe(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    answer = asked(known, *dirs)
    assert (answer.verdict, answer.evidence) == ("safe", ("2 partitions in 2 log directories",))


@pytest.mark.parametrize(("epoch", "verdict"), [(1, "safe"), (2, "not_known")])
def test_messages_of_a_leader_epoch_that_the_metadata_lacks(
    known: CapturedMetadata, dirs: tuple[Path, Path], epoch: int, verdict: str
) -> None:
    """The metadata is older than they are, or went back: then brokers truncate them. It was SAFE."""
    (dirs[0] / "orders-0" / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
    answer = asked(known, *dirs)
    assert answer.verdict == verdict
    if verdict == "not_known":
        assert (
            "later leader epochs than the captured metadata: orders-0 of epoch 2, not 1" in answer.missing[0]
        )
        assert [step.what for step in answer.steps] == [CAPTURE_MORE.what]


@pytest.mark.parametrize(
    ("text", "elr", "verdict"),
    [
        ('{"version":0,"brokerEpoch":9}', 1, "safe"),
        ('{"version":0,"brokerEpoch":8}', 0, "risky"),
        ('{"version":0,"brokerEpoch":8}', 1, "risky"),
        ('{"version":0,"brokerEpoch":10}', 0, "not_known"),
        ('{"version":0}', 0, "risky"),
        ("", 0, "safe"),
        ("", 1, "risky"),
        (None, 0, "risky"),
        (None, 1, "risky"),
    ],
)
def test_a_shutdown_that_was_not_clean(
    known: CapturedMetadata, dirs: tuple[Path, Path], text: str | None, elr: int, verdict: str
) -> None:
    """What the broker had not flushed may be lost of orders-1, which has no other replica. It was SAFE."""
    for image in (known.image, known.committed):
        assert image is not None
        level = Feature(ELR_VERSION, elr) if elr else None
        image.tables.put(Change(FEATURES, (ELR_VERSION,), level))
    (dirs[1] / CLEAN_SHUTDOWN).unlink()
    if text is not None:
        (dirs[1] / CLEAN_SHUTDOWN).write_text(text)
    answer = asked(known, *dirs)
    assert answer.verdict == verdict
    if verdict == "risky":
        assert names(answer) == ["unclean_shutdown"]
        assert f"(broker epoch 9 is not in .kafka_cleanshutdown of {dirs[1]})" in answer.reason
        assert answer.reason.endswith("where no other replica is in sync: orders-1")
    if verdict == "not_known":
        assert answer.missing[0].startswith(f"{dirs[1]} was last used in broker epoch 10, ")


@pytest.mark.parametrize(
    ("isr", "elr", "verdict"),
    [
        ((7,), (), "risky"),
        ((), (7,), "risky"),
        ((7,), (8,), "safe"),
        ((8,), (7,), "safe"),
        ((), (7, 8), "safe"),
    ],
)
def test_an_unclean_shutdown_with_other_replicas_in_sync(
    known: CapturedMetadata, dirs: tuple[Path, Path], isr: tuple[int, ...], elr: tuple[int, ...], verdict: str
) -> None:
    for image in (known.image, known.committed):
        assert image is not None
        for made in (partition(ORDERS, "orders", 0, (7, 8)), partition(ORDERS, "orders", 1, (7, 8))):
            held = replace(made.value, isr=isr, eligible_leader_replicas=elr)
            image.tables.put(replace(made, value=held))
    for folder in dirs:
        (folder / CLEAN_SHUTDOWN).unlink()
    answer = asked(known, *dirs)
    assert (answer.verdict, names(answer)) == (verdict, ["unclean_shutdown"] * (verdict == "risky"))


def test_partitions_stand_in_one_order(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    """Not in that of the replay: a lake, and each of its splits, has another."""
    for image in (known.image, known.committed):
        assert image is not None
        for nth in (10, 2):
            image.tables.put(partition(ORDERS, "orders", nth, (7,)))
    for folder in dirs:
        (folder / CLEAN_SHUTDOWN).unlink()
    (risk,) = (risk for risk in asked(known, *dirs).risks if risk.name == "unclean_shutdown")
    assert risk.sentence.endswith("no other replica is in sync: orders-1, orders-2, orders-10")


def test_a_directory_of_another_name(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    """Kafka looks only at the id to tell what is stray, and at the name to find a partition. It was SAFE."""
    (dirs[0] / "orders-0").rename(dirs[0] / "payments-0")
    answer = asked(known, *dirs)
    assert (answer.verdict, names(answer)) == ("risky", ["other_topic_name", "lacking_replica"])
    assert f"payments-0 of topic id {ORDERS}, which is orders" in answer.reason


@pytest.mark.parametrize(
    ("directory", "verdict"), [(A, "safe"), (LOST_DIRECTORY, "risky"), ("gone", "risky")]
)
def test_a_copy_of_a_replica_whose_directory_failed(
    known: CapturedMetadata, dirs: tuple[Path, Path], directory: str, verdict: str
) -> None:
    """The broker serves the copy, which may be older, and may lead with it. It was SAFE."""
    for image in (known.image, known.committed):
        assert image is not None
        made = partition(ORDERS, "orders", 1, (7,))
        image.tables.put(replace(made, value=replace(made.value, directories=(directory,))))
    answer = asked(known, *dirs)
    assert (answer.verdict, names(answer)) == (verdict, ["failed_directory"] * (verdict == "risky"))
    if verdict == "risky":
        assert answer.reason.endswith(f"may lack messages: orders-1 in {dirs[0]}")


def test_a_replica_that_was_elsewhere_above_what_is_committed(
    known: CapturedMetadata, dirs: tuple[Path, Path]
) -> None:
    """The next leader's log may end there: then Kafka makes the directory stray."""
    elsewhere, back = partition(ORDERS, "orders", 0, (8,)), partition(ORDERS, "orders", 0, (7, 8))
    other = partition(CLICKS, "clicks", 0, (8,))
    assert asked(replace(known, unproven=((other,), (other,))), *dirs).verdict == "safe"
    answer = asked(replace(known, unproven=((elsewhere,), (back,))), *dirs)
    assert answer.verdict == "not_known"
    assert "not proven committed" in answer.reason


@pytest.mark.parametrize(
    ("name", "topic_id", "risk"),
    [
        ("clicks-0", CLICKS, "stray_replica"),
        ("orders-9", ORDERS, "stray_replica"),
        ("orders-2", GONE, "other_topic_id"),
        ("gone-0", GONE, "unknown_topic"),
    ],
)
def test_what_becomes_stray(
    known: CapturedMetadata, dirs: tuple[Path, Path], name: str, topic_id: str, risk: str
) -> None:
    hold(dirs[1], name, topic_id)
    answer = asked(known, *dirs)
    assert (answer.verdict, names(answer)) == ("risky", [risk])
    assert name in answer.reason
    assert answer.steps[0].what.startswith("copy what becomes stray")


def test_what_is_stray_or_deleted_already_is_passed_over(
    known: CapturedMetadata, dirs: tuple[Path, Path]
) -> None:
    for suffix in ("stray", "delete"):
        hold(dirs[0], f"gone-0.{'0' * 32}-{suffix}", GONE)
    assert asked(known, *dirs).verdict == "safe"


def test_one_partition_in_two_directories(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    hold(dirs[1], "orders-0", ORDERS)
    answer = asked(known, *dirs)
    assert answer.verdict == "refused"
    assert answer.error_text is not None
    assert answer.error_text.startswith(
        f"Duplicate log directories for orders-0 are found in both {dirs[1]}/orders-0 and {dirs[0]}/orders-0."
    )
    (dirs[1] / "orders-0").rename(dirs[1] / f"orders-0.{'0' * 32}-future")
    assert asked(known, *dirs).verdict == "safe"


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        ("lost+found", False),
        (".snapshot", False),
        ("orders-0.a.b-delete", False),
        ("backup-of-orders", False),
        ("-0", False),
        ("remote-log-index-cache", True),
        ("__cluster_metadata-0", True),
        (f"gone-0.{'0' * 32}-stray", True),
    ],
)
def test_a_folder_that_is_no_partition(
    known: CapturedMetadata, dirs: tuple[Path, Path], name: str, is_accepted: bool
) -> None:
    """Release 4.3.1 ended with this message for the first three, and started with the last. It was SAFE."""
    (dirs[1] / name).mkdir()
    answer = asked(known, *dirs)
    assert answer.verdict == ("safe" if is_accepted else "refused")
    if not is_accepted:
        assert answer.error_text is not None
        assert answer.error_text.startswith(
            f"Found directory {dirs[1]}/{name}, '{name}' is not in the form of topic-partition or "
        )
        assert f"KafkaException: Found directory {dirs[1]}/{name}" in answer.reason
        assert "\n" not in answer.reason


def test_two_directories_of_one_id(known: CapturedMetadata, dirs: tuple[Path, Path], tmp_path: Path) -> None:
    """A cloned disk: the broker does not start (seen with 4.3.1). Of copies it may be one at two moments."""
    third = tmp_path / "c"
    third.mkdir()
    for name in ("meta.properties", CLEAN_SHUTDOWN):
        shutil.copy(dirs[0] / name, third)
    answer = asked(known, *dirs, third)
    assert answer.verdict == "refused"
    assert answer.error_text == (
        f"Duplicate directory ID Optional[{A}] found. It was the ID of {dirs[0]}, but also of {third}"
    )
    (third / "capture.json").write_text('{"captured_at": "2026-11-21T09:15:25Z"}')
    answer = asked(known, *dirs, third)
    assert answer.verdict == "not_known"
    assert answer.missing == (
        f"{dirs[0]} and {third} have directory id {A}: give the newest copy of each directory alone",
    )


def test_two_directories_with_a_metadata_log(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    """One is not metadata.log.dir, as after that was moved: the broker does not start (seen with 4.3.1)."""
    for folder in dirs:
        assert asked(known, *dirs).verdict == "safe"
        (folder / "__cluster_metadata-0").mkdir()
    text = "Found unexpected metadata location in data directory "
    answer = asked(known, *dirs)
    assert (answer.verdict, (answer.error_text or "")[: len(text)]) == ("refused", text)
    # Copies by `kraftlake capture` have no such folder.
    for folder in dirs:
        (folder / "__cluster_metadata-0").rmdir()
        note = '{"captured_at": "2026-11-21T09:15:25Z", "metadata_log": true}'
        (folder / "capture.json").write_text(note)
    assert asked(known, *dirs).error_text == answer.error_text


def test_a_lost_directory_of_a_partition(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    (dirs[0] / "orders-1").rename(dirs[1] / "orders-1")
    answer = asked(known, *dirs)
    assert names(answer) == ["other_directory"]
    (dirs[1] / "orders-1/partition.metadata").unlink()
    (dirs[1] / "orders-1").rmdir()
    assert names(asked(known, *dirs)) == ["lacking_replica"]


def test_a_directory_that_is_not_registered(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    meta = dirs[1] / "meta.properties"
    meta.write_text(meta.read_text().replace(B, "n" * 21 + "A"))
    answer = asked(known, *dirs)
    assert names(answer) == ["unregistered_directory"]
    assert answer.missing == (f"its log directory {B} was not given",)


def test_each_piece_of_evidence_is_needed(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    assert asked(known, *dirs).verdict == "safe"
    for answer in (
        asked(known, dirs[0]),
        asked(known, *dirs, unread=("x",)),
        asked(known, *dirs, broker_id=8),
        asked(known, *dirs, broker_id=9),
        asked(replace(known, committed=None), *dirs),
        asked(replace(known, image=None), *dirs),
        asked(replace(known, gap="a record is missing"), *dirs),
    ):
        assert answer.verdict == "not_known", answer
        assert answer.missing


def test_the_steps_give_what_is_missing(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    def commands(answer: Answer) -> list[str]:
        return [" ".join((step.command or "").split()[1:3]) for step in answer.steps]

    assert commands(asked(known, dirs[0])) == ["capture --broker-dirs"]
    assert commands(asked(known, *dirs, broker_id=9)) == ["capture METADATA_LOG_DIR"]
    lacking = replace(known, gap="a record is missing")
    assert commands(asked(lacking, *dirs)) == ["capture METADATA_LOG_DIR"]
    assert commands(asked(lacking, dirs[0])) == ["capture --broker-dirs", "capture METADATA_LOG_DIR"]


def test_what_is_not_committed_is_not_known(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    image: Image | None = known.committed
    assert image is not None
    image.tables.put(partition(ORDERS, "orders", 1, (8,)))
    answer = asked(known, *dirs)
    assert answer.verdict == "not_known"
    assert "not proven committed" in answer.reason


def test_a_partition_without_metadata_is_unreadable(known: CapturedMetadata, dirs: tuple[Path, Path]) -> None:
    (dirs[0] / "orders-0/partition.metadata").unlink()
    with pytest.raises(BrokerDirError, match=r"partition\.metadata cannot be read"):
        asked(known, *dirs)


def test_without_registered_directories_those_given_are_all(
    known: CapturedMetadata, dirs: tuple[Path, Path]
) -> None:
    """As before metadata.version 3.7-IV2: the metadata names no directory of broker 7."""
    for image in (known.image, known.committed):
        assert image is not None
        change = broker(7, migrating=False)
        image.tables.put(Change(BROKERS, change.key, replace(change.value, log_dirs=())))
        for key, each in list(image.tables.items(PARTITIONS)):
            unknown = (MIGRATING_DIRECTORY,) * len(each.replicas)
            image.tables.put(Change(PARTITIONS, key, replace(each, directories=unknown)))
    assert asked(known, *dirs).verdict == "safe"
    shutil.rmtree(dirs[0] / "orders-1")
    answer = asked(known, *dirs)
    assert (answer.verdict, names(answer)) == ("risky", ["lacking_replica"])


def test_a_future_copy_is_a_replica_only_where_the_metadata_has_it(
    known: CapturedMetadata, dirs: tuple[Path, Path]
) -> None:
    future = f"orders-1.{'0' * 32}-future"
    (dirs[0] / "orders-1").rename(dirs[0] / future)
    assert asked(known, *dirs).verdict == "safe"
    (dirs[0] / future).rename(dirs[1] / future)
    assert names(asked(known, *dirs)) == ["lacking_replica"]
