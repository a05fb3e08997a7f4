"""What releases after 4.3 write: 0-0 checkpoints with metadata (KIP-1170), meta.properties of version 2 and
records of unknown types (KIP-1262), more fields of DescribeQuorum (KIP-1204).

Of these, 4.4.0 has the first: the checkpoint's records are not the cluster's metadata until the first leader
appends them. It knows no ClusterIdRecord, and no version 3 of DescribeQuorum.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.describe import parse_describe
from kraft_core.findings.judge import judge
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.capture import missing_ids
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.record import Record, read_log
from kraft_core.image.replica import CapturedReplica
from kraft_core.image.tables import FEATURES
from kraft_core.messages.releases import RELEASES
from kraft_core.storage.formatter import META_PROPERTIES, FormatRequest, plan_files
from kraft_core.storage.log_dirs import LogDir
from kraft_core.storage.node_config import read_node_config
from tests.kraft_core.storage.formatted_files import Drawn, file_bytes

LOG = "__cluster_metadata-0"


@pytest.fixture
def node(golden: Path, tmp_path: Path) -> Path:
    """A copy of a node of 4.4.0."""
    return Path(shutil.copytree(golden / "v4.4.0-mini/node-1", tmp_path / "node"))


def replica(node: Path) -> CapturedReplica:
    (directory,) = find_controller_dirs([node]).directories
    return CapturedReplica.of_directory(directory)


def levels_at(node: Path, offset: int) -> dict[str, int]:
    image = replica(node).image_at(offset)
    return {key[0]: feature.level for key, feature in image.tables.items(FEATURES)}


def test_metadata_of_the_first_checkpoint_counts_from_when_a_leader_appends_it(node: Path) -> None:
    content = (node / LOG / f"{0:020}-{0:010}.checkpoint").read_bytes()
    records = [item for item in read_log(content) if isinstance(item, Record)]
    formatted = {
        record.value["name"]: record.value["featureLevel"]
        for record in records
        if record.value is not None and "featureLevel" in record.value
    }
    assert formatted["metadata.version"] == 33
    assert levels_at(node, 10) == {}
    assert levels_at(node, 11) == formatted


def test_a_node_that_was_only_formatted(tmp_path: Path) -> None:
    release = RELEASES["4.4"]
    entries = {
        "process.roles": "controller",
        "node.id": "1",
        "controller.listener.names": "C",
        "listeners": "C://h:1",
        "listener.security.protocol.map": "C:PLAINTEXT",
        "controller.quorum.bootstrap.servers": "h:1",
        "log.dirs": "/d",
    }
    config = read_node_config(entries, release)
    formatted = plan_files(
        FormatRequest("c", standalone=True), config, {"/d": LogDir(exists=False, is_directory=False)}, release
    )
    (directory,) = formatted.directories
    for name in directory.files:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(file_bytes(formatted, directory, name, Drawn("d5efUia_RsKg158_0afzxQ", 1)))
    (found,) = find_controller_dirs([tmp_path]).directories
    assert found.faults == ()
    (cluster,) = collect_lives([found], 2)
    known = conclude(cluster.facts)
    assert [finding for finding in judge(known) if finding.severity == "error"] == []


def test_version_2_of_meta_properties_and_a_record_of_an_unknown_type(node: Path) -> None:
    (node / META_PROPERTIES).write_text("#\nnode.id=1\ndirectory.id=U_Q1TYZXSbKi02BeFgFOEw\nversion=2\n")
    (segment,) = (node / LOG).glob("*.log")
    items = [item for item in read_log(segment.read_bytes()) if isinstance(item, Record)]
    end, batch = items[-1].offset + 1, items[-1].batch
    unknown = RawRecord(end, batch.base_timestamp, None, bytes([1, 30, 0, 5]) + b"abcd\0")
    with segment.open("ab") as log:
        log.write(write_batch(end, batch.leader_epoch, [unknown]))
    (found,) = find_controller_dirs([node]).directories
    assert found.faults == ()
    assert missing_ids(found) == "no cluster id"
    assert collect_lives([found], 1 << 41) == []
    (cluster,) = collect_lives([found], 1 << 41, "roWi3HLRRCuDirielH5nnw")
    assert cluster.facts.cluster_id == "roWi3HLRRCuDirielH5nnw"
    last = [item for item in read_log(segment.read_bytes()) if isinstance(item, Record)][-1]
    assert (last.offset, last.type, last.api_key, last.value) == (end, "UNKNOWN", 30, None)
    refused = replica(node).image_at(end).refusals
    assert [(each.type, each.offset, each.reason) for each in refused] == [
        ("UNKNOWN", end, "no rule to replay UNKNOWN")
    ]


def test_more_fields_of_describe_are_passed_over() -> None:
    status = (
        "ClusterId: c\nLeaderId: 1\nLeaderEpoch: 3\nHighWatermark: 9\nMaxFollowerLag: 0\n"
        'MaxFollowerLagTimeMs: 0\nCurrentVoters: [{"id": 1, "directoryId": null, "endpoints": []}]\n'
        "CurrentObservers: []\n"
    )
    more = 'CommittedVoters: [{"id": 1, "directoryId": null, "endpoints": []}]\nNew: x\n'
    name = "1795254668460-status.txt"
    assert parse_describe(name, status + more) == parse_describe(name, status)
    table = "NodeId\tDirectoryId\tLogEndOffset\tLag\tStatus\n1\tU_Q1TYZXSbKi02BeFgFOEw\t9\t0\tLeader\n"
    wider = table.replace("\tLag", "\tNew\tLag").replace("\t9\t", "\t9\tx\t")
    name = "1795254668460-replication.txt"
    assert parse_describe(name, wider, None, "c") == parse_describe(name, table, None, "c")
