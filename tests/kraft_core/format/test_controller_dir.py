import os
import re
import shutil
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import Discovery, FileFault, find_controller_dirs
from kraft_core.format.log_dirs import UnreadPath
from kraft_core.format.log_files import find_log_files, parse_segment_name
from kraft_core.format.side_files import (
    InvalidSideFileError,
    MetaProperties,
    QuorumState,
    read_capture_json,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    read_properties,
    read_quorum_state,
)
from tests.unprivileged import public_folder, unprivileged

GOLDEN = Path(__file__).parents[2] / "golden"
NODE = GOLDEN / "dynamic-membership" / "node-2"
LOG = "__cluster_metadata-0"


def only(root: Path):
    found = find_controller_dirs([root])
    assert found.refused == ()
    (directory,) = found.directories
    return directory


def copy(tmp_path: Path, source: Path = NODE) -> Path:
    target = tmp_path / "node"
    shutil.copytree(source, target)
    return target


def test_every_golden_directory_is_found_and_without_fault():
    found = find_controller_dirs([GOLDEN])
    assert found.refused == ()
    assert len(found.directories) == 85
    assert [d.path for d in found.directories] == sorted(d.path for d in found.directories)
    for directory in found.directories:
        assert directory.faults == ()
        with_side_files = not directory.path.parent.name.startswith("all-record-types")
        assert (directory.meta is not None) == with_side_files
        assert (directory.quorum_state is not None) == with_side_files
        assert (directory.captured_at is not None) == with_side_files
        assert [s.base_offset for s in directory.segments] == sorted(
            s.base_offset for s in directory.segments
        )
    assert sum(len(d.segments) for d in found.directories) == 161
    assert sum(len(d.checkpoints) for d in found.directories) == 106
    assert sum(d.bootstrap is not None for d in found.directories) == 81
    assert [name for d in found.directories for name in d.deleted] == ["00000000000000000000.log.deleted"] * 2


def test_what_a_directory_holds():
    directory = only(NODE)
    assert (directory.path, directory.log_dir) == (NODE, NODE / LOG)
    assert directory.meta == MetaProperties(1, "rPoTXydvQsK3Nv6AA77Cqg", 2, "vxcVxcTH_EUlXb3DAwIMXg")
    assert directory.quorum_state == QuorumState(1, 3, 9, 3, "CsPDY-A_v5VCjF6-h7rvZQ", None, None)
    epochs = ((1, 0), (3, 1005), (4, 1895), (6, 2013), (7, 2943), (9, 2944))
    assert directory.leader_epoch_checkpoint == epochs
    assert directory.topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert directory.captured_at == 1795254249058
    assert [s.base_offset for s in directory.segments] == [0, 697, 1748, 2589]
    assert [c.id[:2] for c in directory.checkpoints] == [(697, 1), (1431, 3), (2306, 6), (3692, 9)]
    assert directory.bootstrap.size_bytes == 309
    assert directory.relative(directory.segments[0].path) == f"{LOG}/00000000000000000000.log"
    assert directory.relative(directory.bootstrap.path) == "bootstrap.checkpoint"


def test_a_log_directory_alone(tmp_path):
    shutil.copytree(NODE / LOG, tmp_path / "copied" / LOG)
    for root in (tmp_path, tmp_path / "copied", tmp_path / "copied" / LOG):
        directory = only(root)
        assert directory.path == tmp_path / "copied"
        assert (directory.meta, directory.bootstrap, directory.captured_at) == (None, None, None)
        assert len(directory.segments) == 4
        assert directory.faults == ()


def test_side_files_copied_into_the_log_directory(tmp_path):
    shutil.copytree(NODE / LOG, tmp_path / LOG)
    for name in ("meta.properties", "capture.json", "bootstrap.checkpoint"):
        shutil.copy(NODE / name, tmp_path / LOG / name)
    directory = only(tmp_path)
    assert directory.meta.node_id == 2
    assert directory.captured_at == 1795254249058
    assert directory.bootstrap is not None
    assert directory.faults == ()


def test_a_folder_of_loose_segments_is_no_controller_directory():
    assert find_controller_dirs([GOLDEN / "corrupt"]).directories == ()
    names = [path.name for path in find_log_files(GOLDEN / "corrupt" / "good")]
    assert names == ["00000000000000000321-0000000001.checkpoint", "00000000000000000408.log"]


def test_log_files_of_a_tree(tmp_path):
    node = copy(tmp_path)
    (node / LOG / "00000000000000000001.log.deleted").write_bytes(b"")
    (node / LOG / "00000000000000000001-0000000001-5.checkpoint.part").write_bytes(b"")
    names = [path.name for path in find_log_files(tmp_path)]
    assert names == [
        "bootstrap.checkpoint",
        "00000000000000000697-0000000001.checkpoint",
        "00000000000000001431-0000000003.checkpoint",
        "00000000000000002306-0000000006.checkpoint",
        "00000000000000003692-0000000009.checkpoint",
        "00000000000000000000.log",
        "00000000000000000697.log",
        "00000000000000001748.log",
        "00000000000000002589.log",
    ]


def test_files_that_are_not_the_log(tmp_path):
    log_dir = copy(tmp_path) / LOG
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000100-0000000001.checkpoint.deleted",
        "00000000000000000100-0000000001-77.checkpoint.part",
        "99999999999999999999.log",
        "12.log",
        "old.checkpoint",
        "00000000000000000000.log.swap",
        "notes.txt",
    ):
        (log_dir / name).write_bytes(b"x")
    (log_dir / "00000000000000000005.log").mkdir()
    os.mkfifo(log_dir / "00000000000000000006.log")
    (log_dir / "00000000000000000007.log").symlink_to("nowhere")
    directory = only(tmp_path)
    assert len(directory.segments) == 4
    assert len(directory.checkpoints) == 4
    assert [c.path.name for c in directory.unfinished] == [
        "00000000000000000100-0000000001-77.checkpoint.part"
    ]
    assert directory.deleted == (
        "00000000000000000000.log.deleted",
        "00000000000000000100-0000000001.checkpoint.deleted",
    )
    assert set(directory.faults) == {
        FileFault(f"{LOG}/99999999999999999999.log", "not a valid Kafka file name"),
        FileFault(f"{LOG}/12.log", "not a valid Kafka file name"),
        FileFault(f"{LOG}/old.checkpoint", "not a valid Kafka file name"),
        FileFault(f"{LOG}/00000000000000000005.log", "not a regular file"),
        FileFault(f"{LOG}/00000000000000000006.log", "not a regular file"),
        FileFault(f"{LOG}/00000000000000000007.log", "No such file or directory"),
    }
    assert {fault.file[-6:-4] for fault in directory.unreadable} == {"05", "06", "07"}
    assert not directory.log_readable


SIDE_FILES = (
    "meta.properties",
    "capture.json",
    f"{LOG}/quorum-state",
    f"{LOG}/leader-epoch-checkpoint",
    f"{LOG}/partition.metadata",
)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe garbage \x00", b"{", b"version=9", b"0\nx\n", bytes(2**21)]
)
def test_garbled_side_files_are_faults(tmp_path, content):
    node = copy(tmp_path)
    for name in SIDE_FILES:
        (node / name).write_bytes(content)
    directory = only(tmp_path)
    assert {fault.file for fault in directory.faults} == set(SIDE_FILES)
    assert all(fault.reason for fault in directory.faults)
    assert (directory.meta, directory.quorum_state, directory.captured_at) == (None, None, None)
    assert (directory.leader_epoch_checkpoint, directory.topic_id) == (None, None)
    assert len(directory.segments) == 4
    assert (directory.unreadable, directory.log_readable) == ((), True)


def test_absent_side_files_are_no_faults(tmp_path):
    node = copy(tmp_path)
    for name in SIDE_FILES:
        (node / name).unlink()
    directory = only(tmp_path)
    assert directory.faults == ()
    assert directory.meta is None


def test_symbolic_links(tmp_path):
    node = copy(tmp_path / "real")
    (tmp_path / "real" / "node" / "loop").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "other").symlink_to(node)
    (tmp_path / "renamed").symlink_to(node / LOG)
    found = find_controller_dirs([tmp_path / "renamed", tmp_path])
    assert [d.path for d in found.directories] == [node]
    assert found.refused == ()
    assert find_controller_dirs([tmp_path / "other"]).directories[0].path == tmp_path / "other"


def test_what_cannot_be_searched(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"")
    old = tmp_path / "tree" / "@metadata-0"
    old.mkdir(parents=True)
    found = find_controller_dirs([tmp_path / "nowhere", file, tmp_path / "tree"])
    assert found.directories == ()
    assert found.refused == (
        UnreadPath(tmp_path / "nowhere", "No such file or directory"),
        UnreadPath(file, "not a directory"),
        UnreadPath(old, "a metadata log of Kafka 2.8, whose format no later Kafka reads"),
    )


@pytest.fixture
def node():
    """A copied directory that other users may read."""
    with public_folder() as folder:
        yield copy(folder)


def found_unprivileged(root: Path) -> Discovery:
    return unprivileged(lambda: find_controller_dirs([root]))


def test_permissions(node):
    segment = node / LOG / "00000000000000000697.log"
    segment.chmod(0)
    (node / "meta.properties").chmod(0)
    (node.parent / "closed").mkdir(mode=0)
    found = found_unprivileged(node.parent)
    assert [(r.path.name, r.reason) for r in found.refused] == [("closed", "Permission denied")]
    (directory,) = found.directories
    assert set(directory.faults) == {
        FileFault(f"{LOG}/00000000000000000697.log", "Permission denied"),
        FileFault("meta.properties", "Permission denied"),
    }
    assert set(directory.unreadable) == set(directory.faults)
    assert not directory.log_readable
    assert len(directory.segments) == 3


@pytest.mark.parametrize(
    ("mode", "unreadable"),
    [
        (0o750, {LOG}),  # as Kafka's packages create it
        (0o711, {LOG}),
        (
            0o744,
            {
                f"{LOG}/{name.name}"
                for name in (NODE / LOG).iterdir()
                if name.name in ("quorum-state", "leader-epoch-checkpoint", "partition.metadata")
                or name.suffix in (".log", ".checkpoint")
            },
        ),
    ],
)
def test_a_log_that_may_not_be_read_is_not_empty(node, mode, unreadable):
    (node / LOG).chmod(mode)
    (directory,) = found_unprivileged(node).directories
    assert not directory.log_readable
    assert {fault.file for fault in directory.unreadable} == unreadable
    assert {fault.reason for fault in directory.unreadable} == {"Permission denied"}
    assert directory.meta.node_id == 2
    assert (directory.segments, directory.checkpoints) == ((), ())
    # In a folder that may be searched a file is found by its name.
    assert (directory.quorum_state is not None) == (mode == 0o711)


def test_a_log_that_leads_nowhere_is_not_empty(tmp_path):
    node = copy(tmp_path)
    for made in (
        lambda log: log.symlink_to("gone"),
        lambda log: log.symlink_to(LOG),
        lambda log: log.write_bytes(b""),
        lambda log: os.mkfifo(log),
    ):
        if (node / LOG).is_dir():
            shutil.rmtree(node / LOG)
        else:
            (node / LOG).unlink()
        made(node / LOG)
        directory = only(tmp_path)
        assert (directory.path, directory.meta.node_id, directory.log_readable) == (node, 2, False)
        assert [fault.file for fault in directory.unreadable] == [LOG]
        assert directory.segments == ()


def test_a_log_that_lies_elsewhere(tmp_path):
    """Operators mount it: the link has the name, its target need not."""
    node = copy(tmp_path / "real")
    (node / LOG).rename(tmp_path / "disk")
    (node / LOG).symlink_to(tmp_path / "disk")
    directory = only(tmp_path)
    assert (directory.path, len(directory.segments), directory.faults) == (node, 4, ())
    assert directory.meta.node_id == 2
    assert directory.relative(directory.segments[0].path) == f"{LOG}/00000000000000000000.log"


def test_one_entry_that_cannot_be_told_hides_no_other(tmp_path):
    copy(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    found = find_controller_dirs([tmp_path])
    assert [d.path.name for d in found.directories] == ["node"]
    assert [r.path.name for r in found.refused] == ["loop"]


def test_what_the_caller_could_not_supply(tmp_path):
    node = copy(tmp_path)
    missing = (node / LOG / "00000000000000000697.log", node / "capture.json", node / "meta.properties.old")
    missing[0].unlink()
    found = find_controller_dirs([tmp_path], dict.fromkeys(missing, "a link"))
    (directory,) = found.directories
    assert set(directory.unreadable) == {
        FileFault(f"{LOG}/00000000000000000697.log", "a link"),
        FileFault("capture.json", "a link"),
        FileFault("meta.properties.old", "a link"),
    }
    assert (directory.captured_at, directory.log_readable, len(directory.segments)) == (None, False, 3)


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_an_index_above_the_last_segment_shows_that_one_is_missing(tmp_path, kind):
    node = copy(tmp_path)
    for name in ("00000000000000000100", "00000000000000002589"):  # of a deleted segment, and of a whole one
        (node / LOG / f"{name}.{kind}").write_bytes(b"")
    assert only(tmp_path).log_readable
    (node / LOG / "00000000000000002589.log").unlink()
    directory = only(tmp_path)
    assert directory.unreadable == (
        FileFault(f"{LOG}/00000000000000002589.log", "missing, but not its index"),
    )
    assert not directory.log_readable


def test_a_directory_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    """Kafka deletes the first segment after the listing: the next listing is right."""
    node = copy(tmp_path)
    first = node / LOG / "00000000000000000000.log"
    real = Path.iterdir

    def listed(path):
        names = list(real(path))
        if path.name == LOG and first.exists():
            first.rename(f"{first}.deleted")
        return iter(names)

    monkeypatch.setattr(Path, "iterdir", listed)
    directory = only(tmp_path)
    assert [s.base_offset for s in directory.segments] == [697, 1748, 2589]
    assert (directory.deleted, directory.faults) == ((f"{first.name}.deleted",), ())
    monkeypatch.setattr(Path, "iterdir", lambda path: iter([*real(path), path / "00000000000000009999.log"]))
    directory = only(tmp_path)
    assert directory.unreadable == (
        FileFault(f"{LOG}/00000000000000009999.log", "No such file or directory"),
    )


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("00000000000000000697.log", 697),
        ("09223372036854775807.log", (1 << 63) - 1),
        ("09223372036854775808.log", None),
        ("697.log", None),
        ("00000000000000000697.log.deleted", None),
        ("00000000000000000697.index", None),
        ("٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٦٩٧.log", None),
    ],
)
def test_segment_names(name, offset):
    assert parse_segment_name(name) == offset


def test_meta_properties_of_each_version():
    assert read_meta_properties("version=0\nbroker.id=3\n") == MetaProperties(0, None, 3, None)
    text = "#\n#Sat Nov 21\nnode.id=2\nversion=1\ncluster.id=rPoTXydvQsK3Nv6AA77Cqg\r\n"
    assert read_meta_properties(text) == MetaProperties(1, "rPoTXydvQsK3Nv6AA77Cqg", 2, None)
    assert read_meta_properties("version=1\ncluster.id=a") == MetaProperties(1, "a", None, None)
    assert read_meta_properties("version=2\nnode.id=4") == MetaProperties(2, None, 4, None)
    assert read_meta_properties("version=2\nnode.id=4\ncluster.id=a").cluster_id == "a"
    for invalid in ("version=3", "node.id=1", "version=1\nnode.id=x", "version=1\nnode.id=-1"):
        with pytest.raises(InvalidSideFileError):
            read_meta_properties(invalid)
    with pytest.raises(InvalidSideFileError, match=r"directory\.id"):
        read_meta_properties("version=1\nnode.id=1\ndirectory.id=short")


def test_java_properties():
    text = "a = 1\n  b:2\nc 3\n! no\n# no\nd=\\u00e9\\=\\:x\ne=one\\\n   two\n\nf\n"
    assert read_properties(text) == {"a": "1", "b": "2", "c": "3", "d": "é=:x", "e": "onetwo", "f": ""}


def test_quorum_state_of_both_versions():
    first = (
        '{"clusterId":"","leaderId":3,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )
    assert read_quorum_state(first) == QuorumState(0, 3, 5, -1, None, 0, (1, 2))
    second = (
        '{"leaderId":-1,"leaderEpoch":9,"votedId":3,"votedDirectoryId":"CsPDY-A_v5VCjF6-h7rvZQ",'
        '"data_version":1}'
    )
    assert read_quorum_state(second) == QuorumState(1, -1, 9, 3, "CsPDY-A_v5VCjF6-h7rvZQ", None, None)
    for invalid in (
        "[]",
        "{}",
        first.replace('"data_version":0', '"data_version":2'),
        first.replace('"leaderEpoch":5', '"leaderEpoch":true'),
        first.replace('[{"voterId":1},{"voterId":2}]', "[1]"),
        second.replace("CsPDY", "!"),
        "[" * 100_000,
    ):
        with pytest.raises(InvalidSideFileError):
            read_quorum_state(invalid)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_a_fresh_controller_has_an_empty_leader_epoch_checkpoint(tmp_path, bootstrap):
    """Kafka creates it before the first record."""
    log = tmp_path / LOG
    log.mkdir()
    (log / "00000000000000000000.log").touch()
    (log / "leader-epoch-checkpoint").touch()
    if bootstrap:  # of kafka-storage format --standalone
        (log / "00000000000000000000-0000000000.checkpoint").write_bytes(b"x")
    directory = only(tmp_path)
    assert (directory.leader_epoch_checkpoint, directory.faults) == ((), ())


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log",
        "00000000000000000009-0000000001.checkpoint",
        "00000000000000000000.log.deleted",
        "00000000000000000007.index",
    ],
)
def test_an_empty_leader_epoch_checkpoint_beside_records_is_a_fault(tmp_path, name):
    log = tmp_path / LOG
    log.mkdir()
    (log / name).write_bytes(b"x")
    (log / "leader-epoch-checkpoint").touch()
    directory = only(tmp_path)
    assert directory.leader_epoch_checkpoint is None
    assert "the file is empty" in [fault.reason for fault in directory.faults]


def test_leader_epoch_checkpoint():
    assert read_leader_epoch_checkpoint("0\n0\n") == ()
    assert read_leader_epoch_checkpoint("0\n2\n1 0\n3 1005\n") == ((1, 0), (3, 1005))
    for invalid in ("", "0", "1\n0\n", "0\n2\n1 0\n", "0\n1\n1\n", "0\n1\n1 x\n"):
        with pytest.raises(InvalidSideFileError):
            read_leader_epoch_checkpoint(invalid)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0\n2\n1 0\n5\n", "entry 2 of 2 is '5', not an epoch and an offset"),
        ("0\n2\n1 0\n", "the header states 2 entries, the file has 1"),
        ("0\n2\n1 0\n5 161", "the last entry '5 161' has no line end: it may be cut"),
    ],
)
def test_a_torn_leader_epoch_checkpoint_is_said_to_be_torn(text: str, words: str) -> None:
    with pytest.raises(InvalidSideFileError, match=re.escape(words)):
        read_leader_epoch_checkpoint(text)


def test_partition_metadata():
    assert read_partition_metadata("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ") == "AAAAAAAAAAAAAAAAAAAAAQ"
    with pytest.raises(InvalidSideFileError):
        read_partition_metadata("version: 0")


def test_capture_json():
    assert read_capture_json('{"captured_at": "2026-11-21T09:44:09.058Z"}').captured_at == 1795254249058
    assert read_capture_json('{"captured_at": "2026-11-21T10:44:09.058+01:00"}').captured_at == 1795254249058
    assert read_capture_json('{"captured_at": "2026-11-21T09:44:09"}').captured_at == 1795254249000
    assert not read_capture_json('{"captured_at": "2026-11-21T09:44:09"}').followed
    assert read_capture_json('{"captured_at": "2026-11-21T09:44:09", "followed": true}').followed
    for invalid in (
        '{"captured_at": 5}',
        '{"captured_at": "2026-11-21T09:44:09", "followed": 1}',
        '{"captured_at": "yesterday"}',
        "{}",
        "[" * 100_000,
        '{"captured_at": "0001-01-01T00:00:00Z"}',
        '{"captured_at": "1970-01-01T00:00:00Z"}',
        '{"captured_at": "2100-01-01T00:00:00Z"}',
        '{"captured_at": "9999-12-31T23:59:59.999Z"}',
    ):
        with pytest.raises(InvalidSideFileError):
            read_capture_json(invalid)


def test_a_fault_of_a_name_that_is_no_text_is_text(tmp_path):
    """On disk a name may be any bytes; no table holds half of a surrogate pair."""
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    (log / os.fsdecode(b"\xff.log")).touch()
    (fault,) = find_controller_dirs([tmp_path]).directories[0].faults
    assert fault.file == "__cluster_metadata-0/\\udcff.log"
