"""Copies of real brokers' log directories: what is said to be stray is what Kafka renames to -stray.

Needs `make kafka`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jobs.cli import main
from tests.jobs.lakes import run
from tests.long.live_cluster import LiveCluster
from tests.long.live_quorum import kafka_tools
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import BROKER_PARTITIONS, FINDINGS
from transforms.quality.broker_partitions import AFTER_MS, BEFORE_MS, NOT_REACHED

pytestmark = pytest.mark.long

BROKERS = (11, 12)
RECOVERING = '"leaderRecoveryState":1'
STRAY = {
    "again-0": "other_topic_id",
    "again-1": "other_topic_id",
    "gone-0": "unknown_topic",
    "shrunk-0": "stray_replica",
}
KEPT = {f"kept-{n}" for n in range(4)}


@dataclass(slots=True)
class DiskCluster(LiveCluster):
    """Every broker has log directories a and b, but those in one_disk, which have lost b."""

    one_disk: set[int] = field(default_factory=set)

    def disks(self, node: int) -> list[Path]:
        return [self.folder(node) / name for name in "ab"]

    def configure(self, node: int) -> str:
        file = LiveCluster.configure(self, node)
        if node in self.brokers:
            disks = self.disks(node)[: 1 if node in self.one_disk else 2]
            written = Path(file).read_text()
            log_dirs = ",".join(map(str, disks))
            Path(file).write_text(written.replace(f"log.dirs={self.folder(node)}", f"log.dirs={log_dirs}"))
        return file

    def wait_for_log(self, ms: int) -> None:
        """Until the metadata log is later by so much: its leader appends twice a second."""
        time.sleep(ms / 1000 + 2)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[DiskCluster]:
    """A controller, two brokers, and topics with replicas on both."""
    cluster = DiskCluster(kafka_tools(), tmp_path / "live", 29640, brokers=set(BROKERS))
    try:
        cluster.begin()
        for topic, partitions in (("again", 2), ("gone", 1), ("shrunk", 1), ("kept", 4)):
            placed = ",".join(["11:12"] * partitions)
            cluster.tool("topics", "--create", "--topic", topic, "--replica-assignment", placed, by=11)
        yield cluster
    finally:
        cluster.close()


@pytest.mark.usefixtures("spark")
def test_kafka_renames_what_is_said_to_be_stray(live: DiskCluster, tmp_path: Path) -> None:
    """A topic is deleted, another created again, and a replica taken off broker 12 while it is down."""
    live.stop(12)
    _change_topics(live)
    live.wait_for_log(BEFORE_MS)
    lake, copies = tmp_path / "lake", tmp_path / "copies"
    _copy_brokers(live, copies)
    _copy_controller(live, copies)
    assert run(lake, copies) == 0
    assert {(row["state"], row["reason"]) for row in _held(lake)} == {("undecided", NOT_REACHED)}

    live.wait_for_log(AFTER_MS)
    _copy_controller(live, copies)
    assert run(lake, copies) == 0
    assert _states(lake, 12) == STRAY | dict.fromkeys(KEPT, "assigned")
    assert _states(lake, 11) == dict.fromkeys(KEPT | {"again-0", "again-1", "shrunk-0"}, "assigned")
    assert _reported(lake) == set(STRAY)
    live.start(12)
    assert _renamed(live, len(STRAY)) == set(STRAY)


@pytest.mark.usefixtures("spark")
def test_a_directory_that_is_registered_no_more(live: DiskCluster, tmp_path: Path) -> None:
    """Broker 12 comes back without its second disk, whose files are still there."""
    live.stop(12)
    live.one_disk.add(12)
    live.start(12)
    live.wait_for_brokers(by=11)
    live.wait_for_log(BEFORE_MS)
    lake, copies = tmp_path / "lake", tmp_path / "copies"
    _copy_brokers(live, copies)
    live.wait_for_log(AFTER_MS)
    _copy_controller(live, copies)
    assert run(lake, copies) == 0
    lost = _directory_id(live.disks(12)[1])
    held = [row for row in _held(lake) if (row["broker_id"], row["directory_id"]) == (12, lost)]
    assert held
    assert {row["state"] for row in held} == {"unregistered_directory"}
    assert _reported(lake) == {f"{row['topic_name']}-{row['partition_id']}" for row in held}
    assert set(_states(lake, 11).values()) == {"assigned"}


def test_a_shutdown_that_was_not_clean(
    live: DiskCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With eligible leader replicas, its own partition gets a leader by an unclean election."""
    live.tool("topics", "--create", "--topic", "alone", "--replica-assignment", "12", by=11)
    live.stop(12)
    assert _planned(live, tmp_path / "clean", capsys) == ("safe", "")
    live.start(12)
    live.wait_for_brokers(by=11)
    before = _elections(live, capsys)
    assert not any(RECOVERING in line for line in before)
    live.kill(12)
    verdict, named = _planned(live, tmp_path / "unclean", capsys)
    assert (verdict, named) == ("risky", "alone-0")
    live.start(12)
    live.wait_for_brokers(by=11)
    made = _elections(live, capsys, len(before))
    assert any(RECOVERING in line for line in made), made


def _planned(live: DiskCluster, to: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """plan start-broker 12: its verdict, and the partitions that an unclean shutdown puts at risk."""
    live.wait_for_log(0)
    _copy_controller(live, to)
    capsys.readouterr()
    disks = map(str, live.disks(12))
    main(["plan", "start-broker", "12", "--captures", str(to), "--format", "json", "--broker-dirs", *disks])
    made = json.loads(capsys.readouterr().out)
    risks = {risk["name"]: risk["sentence"] for risk in made["risks"]}
    assert set(risks) <= {"unclean_shutdown"}
    return made["verdict"], risks.get("unclean_shutdown", "").rpartition(": ")[2]


def _elections(live: DiskCluster, capsys: pytest.CaptureFixture[str], beyond: int = 0) -> list[str]:
    """Records by which broker 12 leads partition alone-0, waited for until there are more than `beyond`."""
    made: list[str] = []
    for _ in range(60):
        capsys.readouterr()
        main(["dump", str(live.folder(1) / "__cluster_metadata-0")])
        lines = capsys.readouterr().out.splitlines()
        topic_id = next(json.loads(line)["payload"]["topicId"] for line in lines if '"alone"' in line)
        made = [line for line in lines if topic_id in line and '"leader":12' in line]
        if len(made) > beyond:
            return made[beyond:]
        time.sleep(1)
    raise AssertionError(made)


def _change_topics(live: DiskCluster) -> None:
    for topic in ("again", "gone"):
        live.tool("topics", "--delete", "--topic", topic, by=11)
    live.tool("topics", "--create", "--topic", "again", "--replica-assignment", "11,11", by=11)
    file = live.path / "reassign.json"
    moved = {"topic": "shrunk", "partition": 0, "replicas": [11]}
    file.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    live.tool("reassign", "--reassignment-json-file", str(file), "--execute", by=11)


def _copy_brokers(live: DiskCluster, to: Path) -> None:
    disks = [str(disk) for broker in BROKERS for disk in live.disks(broker)]
    assert main(["capture", "--broker-dirs", *disks, "--to", str(to)]) == 0


def _copy_controller(live: DiskCluster, to: Path) -> None:
    assert main(["capture", str(live.folder(1)), "--to", str(to)]) == 0


def _held(lake: Path) -> list[dict[str, object]]:
    return rows_with(lake, BROKER_PARTITIONS)


def _states(lake: Path, broker: int) -> dict[str, object]:
    """By partition, of which the broker has one copy."""
    rows = [row for row in _held(lake) if row["broker_id"] == broker]
    found = {f"{row['topic_name']}-{row['partition_id']}": row["state"] for row in rows}
    assert len(found) == len(rows)
    return found


def _reported(lake: Path) -> set[str]:
    """The partitions named by findings of rule 52."""
    evidence = " ".join(row["evidence"] for row in rows_with(lake, FINDINGS) if row["rule"] == 52)
    return {name for name in (*STRAY, *KEPT) if name in evidence}


def _renamed(live: DiskCluster, count: int) -> set[str]:
    """The partitions of broker 12 that Kafka renames to -stray, waited for, and 5 s for more."""
    for _ in range(120):
        if len(_stray(live)) >= count:
            break
        time.sleep(0.5)
    time.sleep(5)
    return _stray(live)


def _stray(live: DiskCluster) -> set[str]:
    names = [path.name for disk in live.disks(12) for path in disk.glob("*-stray")]
    return {name.split(".")[0] for name in names}


def _directory_id(disk: Path) -> str:
    lines = (disk / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("directory.id="))
