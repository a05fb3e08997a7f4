"""Records that a release refuses by what it knows, each added to a real log or checkpoint."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.messages.releases import RELEASES
from kraft_core.messages.uuid_text import uuid_text
from kraft_core.plan.load_logs import ReplicaLoad, load_of
from tests.long.load_mutations import LOG, MutableLog, refused_between, written

OF_3_9 = "static-upgrade/at-3.9.2/node-1"
OF_4_3 = "disk-failure/before-wipe/node-1"
KEY = "A" * 21 + "Q"


def loaded(
    source: Path, target: Path, release: str, value: bytes, *, control: int | None = None, into: str = "*.log"
) -> ReplicaLoad:
    """What the release meets where this record ends the newest such file."""
    shutil.copytree(source, target)
    log = MutableLog.of(sorted((target / LOG).glob(into))[-1])
    log.append(value, control=control)
    log.write()
    (directory,) = find_controller_dirs([target]).directories
    return load_of(directory, "1", RELEASES[release])


def broker(name: str, protocol: int) -> bytes:
    end = {"name": name, "host": "h", "port": 1, "securityProtocol": protocol}
    return written(0, 1, brokerId=77, brokerEpoch=50, incarnationId=KEY, endPoints=[end], features=[])


def controller(protocol: int) -> bytes:
    end = {"name": "C", "host": "h", "port": 1, "securityProtocol": protocol}
    return written(
        27, controllerId=77, incarnationId=KEY, zkMigrationReady=False, endPoints=[end], features=[]
    )


def zookeeper(state: int) -> bytes:
    return written(21, zkMigrationState=state)


def token(owner: str) -> bytes:
    return written(10, owner=owner, requester="User:a", renewers=[], tokenId="t")


CASES = {
    "level of kraft.version": (OF_4_3, "4.3", b"\0\0\0\2\0", 5, "Unknown KRaft feature level: 2"),
    "control record": (OF_4_3, "4.3", b"\0\0\0\0\0\0", 1, "Unknown control record type COMMIT"),
    "protocol": (OF_4_3, "4.4", broker("A", 11), None, "Unknown security protocol 11 in listener A"),
    "protocol of a controller": (OF_4_3, "4.4", controller(9), None, "Unknown security protocol 9"),
    "listener": (OF_4_3, "4.3", broker("", 0), None, "Broker listeners must be named."),
    "listener of 3.9": (OF_3_9, "3.9", broker("", 0), None, None),
    "principal": (OF_4_3, "4.3", token("a"), None, "principalType:principalName but got a"),
    "migration": (OF_3_9, "3.9", zookeeper(-1), None, "Value -1 is not a valid Zk migration state"),
    "migration from nothing": (OF_3_9, "3.9", zookeeper(4), None, "Unsupported ZkMigrationState ZK"),
    "migration under way": (OF_3_9, "3.9", zookeeper(2), None, None),
    "migration in 4.3": (OF_4_3, "4.3", zookeeper(-1), None, None),
}


@pytest.mark.parametrize(
    ("source", "release", "value", "control", "words"), list(CASES.values()), ids=list(CASES)
)
def test_a_record_that_a_release_refuses(
    source: str,
    release: str,
    value: bytes,
    control: int | None,
    words: str | None,
    golden: Path,
    tmp_path: Path,
) -> None:
    found = loaded(golden / source, tmp_path / "copy", release, value, control=control)
    assert not found.gaps
    refused = [*found.obstacles, *found.ends.obstacles]
    assert [(each.kafka or "")[-len(words or "") :] for each in refused] == ([words] if words else [])


@pytest.mark.parametrize(("level", "ends"), [(None, False), (8, True), (12, True), (13, False)])
def test_a_transaction_that_is_open_at_the_end(
    level: int | None, ends: bool, golden: Path, tmp_path: Path
) -> None:
    """Refused below 3.6-IV1 (ActivationRecordsGenerator); a controller has what the transaction has set."""
    shutil.copytree(golden / OF_4_3, tmp_path / "copy")
    log = MutableLog.of(sorted((tmp_path / "copy" / LOG).glob("*.log"))[-1])
    log.append(written(23))
    if level is not None:
        log.append(written(12, name="metadata.version", featureLevel=level))
    log.write()
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    found = load_of(directory, "1", RELEASES["4.4"])
    assert not found.gaps
    assert not found.obstacles
    assert [each.record for each in found.ends.obstacles] == ["BEGIN_TRANSACTION_RECORD version 0"] * ends
    begun = found.end_offset - 2
    for each in found.ends.obstacles:
        assert each.offset == begun
        assert f"transaction at offset {begun}, but the metadata.version 3." in each.words


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("source", "release"), [(OF_4_3, "4.3"), (OF_3_9, "3.9")])
def test_the_ends_of_a_log_are_those_of_its_copies_cut_there(
    source: str, release: str, seed: int, golden: Path, tmp_path: Path
) -> None:
    """What is refused where a log may end is what is refused of the log that ends there."""
    shutil.copytree(golden / source, tmp_path / "copy")
    log = MutableLog.of(sorted((tmp_path / "copy" / LOG).glob("*.log"))[-1])
    before = len(log.batches)
    refused_between(random.Random(seed), log, cut=False)
    log.write()
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    batches, first = list(log.batches), log.batches[before].records[0].offset
    whole = load_of(directory, "1", RELEASES[release], first)
    assert whole.ends.examined == len(batches) - before + 1
    cut: list[ReplicaLoad] = []
    for end in range(before, len(batches) + 1):
        log.batches = batches[:end]
        log.write()
        (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
        cut.append(load_of(directory, "1", RELEASES[release]))
    assert whole.ends.refused == sum(each.ends.refused for each in cut)
    assert {o.words for o in whole.ends.obstacles} == {o.words for each in cut for o in each.ends.obstacles}
    assert set(whole.ends.doubts) == {doubt for each in cut for doubt in each.ends.doubts}


def named(name: str, topic_id: str) -> bytes:
    return written(2, name=name, topicId=topic_id)


FIRST, SECOND = uuid_text(b"\x01" * 16), uuid_text(b"\x02" * 16)
MADE, ANEW, REMOVED = named("t", FIRST), named("t", SECOND), written(9, topicId=FIRST)
ALL_CLEARED, CLEARED = written(28, topicName=""), written(28, topicName="t")
BEGIN, END = written(23), written(24)
# What the newest checkpoint covers, what is above it, and the releases that may not replay that.
REMOVALS: dict[str, tuple[list[bytes], list[bytes], tuple[str, ...]]] = {
    "all are cleared": ([], [MADE, REMOVED, ALL_CLEARED], ("4.0", "4.1")),
    "in a transaction": ([], [BEGIN, MADE, REMOVED, ALL_CLEARED, END], ("4.0", "4.1")),
    "behind a transaction": ([], [BEGIN, MADE, REMOVED, END, ALL_CLEARED], ("4.0", "4.1")),
    "cleared before": ([], [MADE, ALL_CLEARED, REMOVED], ()),
    "not cleared": ([], [MADE, REMOVED, ANEW], ()),
    "created anew": ([], [MADE, REMOVED, ANEW, ALL_CLEARED], ("4.0",)),
    "created anew and cleared": ([], [MADE, REMOVED, ANEW, CLEARED], ("4.0",)),
    "cleared of another": ([], [MADE, REMOVED, named("u", SECOND), written(28, topicName="u")], ()),
    "removed from a checkpoint": ([MADE], [REMOVED, ALL_CLEARED], ("4.0",)),
    "removed below a checkpoint": ([MADE, REMOVED], [ALL_CLEARED], ()),
}


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2", "4.3", "4.4"])
@pytest.mark.parametrize(("below", "above", "unsure"), list(REMOVALS.values()), ids=list(REMOVALS))
def test_elrs_cleared_behind_the_removal_of_a_topic(
    below: list[bytes],
    above: list[bytes],
    unsure: tuple[str, ...],
    release: str,
    golden: Path,
    tmp_path: Path,
) -> None:
    """tests/long/test_deltas.py: what the classes of each release do with them in one MetadataDelta."""
    shutil.copytree(golden / OF_3_9, tmp_path / "copy")
    folder = tmp_path / "copy" / LOG
    log = MutableLog.of(max(folder.glob("*.log")))
    checkpoint = MutableLog.of(max(folder.glob("*.checkpoint")))
    level = level_of("metadata.version", 25)
    log.append(level, *below)
    checkpoint.append(level, *([] if REMOVED in below else below))
    last = log.batches[-1]
    checkpoint.path = folder / f"{last.records[-1].offset + 1:020}-{last.leader_epoch:010}.checkpoint"
    checkpoint.write()
    for value in above:
        log.append(value)
    log.write()
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    found = load_of(directory, "1", RELEASES[release])
    assert (found.gaps, found.obstacles, found.ends.obstacles) == ([], [], [])
    assert len(found.ends.doubts) == (release in unsure), found.ends.doubts
    for doubt in found.ends.doubts:
        assert doubt.startswith(f"whether Kafka {release} replays CLEAR_ELR_RECORD version 0 (")
        assert "topic t" in doubt
        assert ("KAFKA-19497" in doubt) == (unsure == ("4.0", "4.1"))
        assert ("KAFKA-19383" in doubt) == (release == "4.0")


def level_of(name: str, level: int) -> bytes:
    return written(12, name=name, featureLevel=level)


NONE_FOUND = "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata from the binary"
BOOTSTRAPS = {
    "as formatted": (OF_4_3, "4.3", [level_of("metadata.version", 30)], None),
    "no record": (OF_4_3, "4.3", [], NONE_FOUND),
    "no metadata.version": (OF_4_3, "4.4", [level_of("group.version", 1)], NONE_FOUND),
    "unknown record": (OF_4_3, "4.3", [b"\1\x63\0\0"], "Unknown metadata id 99"),
    "unknown level": (OF_4_3, "4.3", [level_of("metadata.version", 40)], None),
    "3.9: highest": (OF_3_9, "3.9", [level_of("metadata.version", 23)], None),
    "3.9: newer": (OF_3_9, "3.9", [level_of("metadata.version", 25)], "with feature level 25"),
    "3.9: older": (OF_3_9, "3.9", [level_of("metadata.version", 3)], "before 3.3-IV0 are not supported"),
}


@pytest.mark.parametrize(
    ("source", "release", "values", "words"), list(BOOTSTRAPS.values()), ids=list(BOOTSTRAPS)
)
def test_a_bootstrap_checkpoint_that_a_release_refuses(
    source: str, release: str, values: list[bytes], words: str | None, golden: Path, tmp_path: Path
) -> None:
    """So answer BootstrapDirectory of 3.9.2, 4.0.1, 4.1.1 and 4.3.1, and BootstrapMetadata of 4.4.0."""
    found = with_bootstrap(golden / source, tmp_path / "copy", release, values)
    assert not found.gaps
    assert [words in (each.kafka or "") for each in found.obstacles if words] == ([True] if words else [])
    assert len(found.obstacles) == (words is not None)


def with_bootstrap(source: Path, target: Path, release: str, values: list[bytes]) -> ReplicaLoad:
    """What the release meets where bootstrap.checkpoint has these records."""
    shutil.copytree(source, target)
    log = MutableLog.of(target / "bootstrap.checkpoint")
    log.batches = [batch for batch in log.batches if batch.is_control]
    if values:
        log.append(*values)
    log.write()
    (directory,) = find_controller_dirs([target]).directories
    return load_of(directory, "1", RELEASES[release])


def test_a_bootstrap_checkpoint_that_only_4_0_0_refuses(golden: Path, tmp_path: Path) -> None:
    found = with_bootstrap(golden / OF_4_3, tmp_path / "copy", "4.0", [level_of("metadata.version", 4)])
    assert [gap for gap in found.gaps if "metadata.version 4, which Kafka 4.0.0 refuses" in gap]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"{LOG}/quorum-state", ""),
        (f"{LOG}/quorum-state", '{"leaderId":3,"leaderEpoch":1,"votedId":3,"data_version":9}'),
        (f"{LOG}/leader-epoch-checkpoint", "1\n1\n1 0\n"),
        (f"{LOG}/leader-epoch-checkpoint", "0\n2\n1 0\n"),
        (f"{LOG}/partition.metadata", "version: 0\ntopic_id: xx\n"),
        ("meta.properties", "version=2\nnode.id=1\ncluster.id=cdUcB7OYQSW2BEWmIRzmkg\n"),
    ],
)
def test_a_file_beside_the_log_that_a_start_does_not_take(
    name: str, content: str, golden: Path, tmp_path: Path
) -> None:
    """The classes of 4.3.1 that read them throw; it was SAFE."""
    shutil.copytree(golden / OF_4_3, tmp_path / "copy")
    (tmp_path / "copy" / name).write_text(content)
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    (gap,) = load_of(directory, "1", RELEASES["4.3"]).gaps
    assert gap.startswith(f"{name}: ")


def test_the_note_of_a_copy_is_no_file_of_kafka(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / OF_4_3, tmp_path / "copy")
    (tmp_path / "copy" / "capture.json").write_text("{")
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    assert load_of(directory, "1", RELEASES["4.3"]).gaps == []


def test_a_damaged_bootstrap_checkpoint(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / OF_4_3, tmp_path / "copy")
    file = tmp_path / "copy" / "bootstrap.checkpoint"
    file.write_bytes(file.read_bytes()[:200])
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    found = load_of(directory, "1", RELEASES["4.3"])
    assert found.gaps == ["bootstrap.checkpoint: it cannot be read: torn_tail at 83"]


def test_a_bootstrap_checkpoint_of_0_bytes(golden: Path, tmp_path: Path) -> None:
    """Kafka takes it for one without records: tests/long/test_load_live.py."""
    shutil.copytree(golden / OF_4_3, tmp_path / "copy")
    (tmp_path / "copy" / "bootstrap.checkpoint").write_bytes(b"")
    (directory,) = find_controller_dirs([tmp_path / "copy"]).directories
    found = load_of(directory, "1", RELEASES["4.3"])
    assert not found.gaps
    assert [(each.ends, NONE_FOUND in (each.kafka or "")) for each in found.obstacles] == [("nodes", True)]


def test_a_transaction_in_a_checkpoint(golden: Path, tmp_path: Path) -> None:
    source = golden / "dynamic-membership/node-1"
    found = loaded(source, tmp_path / "copy", "4.3", written(23), into="*.checkpoint")
    assert [each.words for each in found.obstacles] == [
        "BeginTransactionRecord cannot appear within a snapshot."
    ]
    assert found.obstacles[0].offset is None
