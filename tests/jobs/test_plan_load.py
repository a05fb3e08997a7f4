"""kraftlake plan load as a user calls it: one record is added to the logs of a healthy quorum."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from jobs.cli import main
from kraft_core.messages.releases import RELEASES, Release
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.plan import load_records
from tests.long.load_mutations import LOG, MutableLog, framed, large_batch, no_metadata_version, written

HEALTHY = "tests/golden/disk-failure/before-wipe"
SOON = ("--now", "2026-11-21T09:31:05Z")  # its captures were taken at 09:21:04
NODES = (1, 2, 3)  # 3 leads
Change = Callable[[MutableLog], None]
Load = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def _in_the_checkout(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parents[1])


@pytest.fixture
def load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Load:
    """The exit code and the answer over captures of which each of these nodes' logs is changed."""

    def loaded(release: str, change: Change | None = None, nodes: Sequence[int] = NODES) -> tuple[int, str]:
        folder = tmp_path / "captures"
        if not folder.exists():
            shutil.copytree(HEALTHY, folder)
        for node in nodes if change is not None else ():
            log = MutableLog.of(folder / f"node-{node}" / LOG / "00000000000000000000.log")
            assert change is not None
            change(log)
            log.write()
        code = main(["plan", "load", release, "--captures", str(folder), *SOON])
        return code, capsys.readouterr().out

    return loaded


def adds(*values: bytes | None) -> Change:
    return lambda log: log.append(*values)


def test_a_release_reads_what_it_wrote(load: Load) -> None:
    code, out = load("4.3.1")
    assert code == 0
    assert out.startswith("SAFE: it reads and replays every record\n")
    assert "  3@LG9ACM7UQWG8M2L8RodsFg: 58 records, 1 checkpoint, the log loaded from 0 to 54 " in out


def test_a_level_above_the_release(load: Load) -> None:
    code, out = load("3.9.2")
    assert code == 5
    assert out.startswith(
        "REFUSED: every controller of Kafka 3.9 that replays this log terminates at FEATURE_LEVEL_RECORD "
        "version 0 "
        "at offset 4: java.lang.RuntimeException: Tried to apply FeatureLevelRecord FeatureLevelRecord("
        "name='metadata.version', featureLevel=30), but this controller only supports versions 1-21\n"
    )
    assert "  1. run Kafka 4.3 or later, which accepts these records\n" in out


def test_a_level_below_the_release(capsys: pytest.CaptureFixture[str]) -> None:
    old = "tests/golden/old-mv-3.3-IV0-fatal-on-4.3.1/at-3.9.2"
    assert main(["plan", "load", "4.3.1", "--captures", old, *SOON]) == 5
    out = capsys.readouterr().out
    assert (
        "featureLevel=4), but this controller only supports versions 7-30\n"
        in out.splitlines(keepends=True)[0]
    )
    assert "  1. run Kafka 3.3 to 3.9, which accepts these records\n" in out


def test_a_level_in_a_checkpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "load", "4.3.1", "--captures", "tests/golden/v4.4.0-mini", *SOON]) == 5
    out = capsys.readouterr().out
    assert out.startswith(
        "REFUSED: Kafka 4.3 fails to start on 1@U_Q1TYZXSbKi02BeFgFOEw, 2@7hihqNmVKcFQLxL8BG"
    )
    assert "FEATURE_LEVEL_RECORD version 0 in a checkpoint (__cluster_metadata-0/00000000000000000289-" in out


def test_a_bootstrap_checkpoint_without_metadata_version(load: Load, tmp_path: Path) -> None:
    """Kafka reads it at every start, though the log is not empty; it was SAFE."""
    load("4.3.1")
    log = MutableLog.of(tmp_path / "captures" / "node-2" / "bootstrap.checkpoint")
    log.batches = log.batches[:1]
    log.write()
    code, out = load("4.3.1")
    assert code == 5
    assert out.startswith(
        "REFUSED: Kafka 4.3 fails to start on 2@hhGPlVHKRveBalUKpbBWVA at the level of metadata.version in a "
        "checkpoint: java.lang.RuntimeException: No FeatureLevelRecord for metadata.version was found"
    )
    assert "steps:\n  1. copy bootstrap.checkpoint from a node of the same cluster that starts" in out


@pytest.mark.parametrize("cut", [1, 8])
def test_a_log_of_the_leader_that_others_show_to_be_cut_off(load: Load, tmp_path: Path, cut: int) -> None:
    """What else the leader had written is not known; it was SAFE, and so was a plan for the voters."""
    load("4.3.1")
    folder = tmp_path / "captures"
    log = MutableLog.of(folder / "node-3" / LOG / "00000000000000000000.log")
    log.batches = log.batches[:-cut]
    log.write()
    code, out = load("4.3.1")
    gap = (
        "NOT KNOWN: leader 3: its log lacks what it had written by then, as other logs show: copied in part, "
        "or earlier\n"
    )
    assert (code, out.splitlines(keepends=True)[0]) == (1, gap)


def test_a_log_of_another_topic_id(load: Load, tmp_path: Path) -> None:
    """Kafka 4.3.1 ends with this very text; it was SAFE."""
    load("4.3.1")
    file = tmp_path / "captures" / "node-2" / LOG / "partition.metadata"
    file.write_text(f"version: 0\ntopic_id: {'B' * 21}Q")
    code, out = load("4.3.1")
    assert code == 5
    assert out.startswith(
        f"REFUSED: Kafka 4.3 fails to start on 2@hhGPlVHKRveBalUKpbBWVA at topic id {'B' * 21}Q in "
        f"{LOG}/partition.metadata: org.apache.kafka.common.errors.InconsistentTopicIdException: Tried to "
        f"assign topic ID Optional[{'A' * 21}Q] to log for topic partition {LOG},but log already contained "
        f"topic ID {'B' * 21}Q\n"
    )
    assert f"steps:\n  1. copy {LOG}/partition.metadata from a node of the same cluster that starts" in out


STATIC = "tests/golden/static-upgrade/at-3.9.2"
_STATIC_SOON = ("--now", "2026-11-21T10:15:00Z")


def _of_static(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(["plan", "load", "4.3.1", "--captures", str(folder), *_STATIC_SOON, *words])
    return capsys.readouterr().out


def test_a_directory_without_meta_properties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No node starts without it, and bootstrap.checkpoint is beside it; it was SAFE."""
    folder = tmp_path / "captures"
    shutil.copytree(STATIC, folder)
    assert _of_static(folder, capsys).startswith("SAFE")
    meta = folder / "node-2" / "meta.properties"
    entries = dict(line.split("=") for line in meta.read_text().splitlines() if "=" in line)
    meta.unlink()
    out = _of_static(folder, capsys, "--cluster-id", entries["cluster.id"], "--node-id", "2")
    assert out.startswith("NOT KNOWN: 2: meta.properties was not captured")


def test_a_reserved_directory_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka ends with `Invalid reserved directory ID`; it was SAFE."""
    folder = tmp_path / "captures"
    shutil.copytree(STATIC, folder)
    meta = folder / "node-2" / "meta.properties"
    kept = [line for line in meta.read_text().splitlines() if not line.startswith("directory.id")]
    meta.write_text("\n".join([*kept, f"directory.id={'A' * 21}Q", ""]))
    out = _of_static(folder, capsys)
    assert out.startswith("NOT KNOWN: ")
    assert f"no release starts with the reserved directory id {'A' * 21}Q" in out


_UNREADABLE = [
    (framed(1, 99, 0, b"\0"), "Unknown metadata id 99"),
    (framed(2, 20, 0, b"\0"), "unknown frame version 2(only frame version 1 is supported)"),
    (framed(0, 20, 0, b"\0"), "frame version 0. Note that upgrades from the preview release"),
    (written(20) + b"x", "Found 1 byte(s) of garbage after 20"),
    (written(20)[:-1], "Failed to deserialize record with type 20, caused by java.nio.BufferUnderflow"),
    (b"", "Got an unexpected empty value in the record"),
    (None, "Missing value in the record when a value was expected"),
]


@pytest.mark.parametrize(("value", "words"), _UNREADABLE)
def test_a_record_that_no_node_can_read(value: bytes | None, words: str, load: Load) -> None:
    """It need not be committed: the raft layer reads the whole log, on brokers, too."""
    code, out = load("4.3.1", adds(value), [2])
    assert code == 5
    assert out.startswith("REFUSED: Kafka 4.3 fails to start on 2@hhGPlVHKRveBalUKpbBWVA at ")
    assert words in out.splitlines()[0]


def test_limits_of_4_4(load: Load) -> None:
    tags = bytearray(b"\x91\x4e")  # 10,001
    for tag in range(10, 10_011):
        tags += bytes([tag & 0x7F | 0x80, tag >> 7]) + b"\0" if tag > 127 else bytes([tag, 0])
    _, out = load("4.4.0", adds(framed(1, 20, 0, bytes(tags))))
    assert "REFUSED: " in out
    assert "Tried to read 10001 tagged fields, which exceeds the maximum allowed count of 10000." in out
    assert load("4.3.1")[0] == 0


@pytest.mark.parametrize("most", [1_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_list_beyond_the_limit_of_4_4(load: Load, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A list of a million takes as long as all else here: by default the release is one of a lower limit."""
    release = RELEASES["4.4"]
    assert release.most_elements == 1_000_000
    monkeypatch.setitem(cast(dict[str, Release], RELEASES), "4.4", replace(release, most_elements=most))
    if most < release.most_elements:  # or what is too short to hold a longer list is not asked about
        monkeypatch.setattr(load_records, "_LIMITED_BYTES", 0)
    renewers = ["U:a"] * (most + 1)
    token = written(10, owner="User:a", requester="User:a", renewers=renewers, tokenId="t")
    _, out = load("4.4.0", adds(token), [3])
    assert (
        f"Tried to read a collection of size {most + 1}, which exceeds the maximum allowed size of {most}."
        in out
    )
    assert load("4.3.1")[0] == 0


def test_a_version_whose_new_fields_are_left_out(load: Load) -> None:
    """TopicRecord has one version; the fields of a later one come after those of version 0."""
    _, out = load("4.3.1", adds(framed(1, 2, 1, written(2, 0, name="t", topicId="A" * 21 + "Q")[3:])))
    assert out.startswith("RISKY: fields added by newer record versions are ignored: ")
    assert "TOPIC_RECORD version 1, read as version 0" in out


def test_a_nested_struct_of_an_unknown_version(load: Load) -> None:
    record = written(
        27,
        0,
        controllerId=9,
        incarnationId=ZERO_UUID,
        zkMigrationReady=False,
        endPoints=[{"name": "C", "host": "h", "port": 1, "securityProtocol": 0}],
        features=[],
    )
    _, out = load("4.3.1", adds(record[:2] + b"\1" + record[3:]), [1])
    assert (
        "caused by org.apache.kafka.common.errors.UnsupportedVersionException: Can't read version 1 of "
        in out
    )


def test_a_record_that_replay_refuses(load: Load) -> None:
    change = adds(written(5, 0, partitionId=0, topicId="A" * 21 + "Q"))
    code, out = load("4.3.1", change)
    assert code == 5
    assert out.startswith("REFUSED: every controller of Kafka 4.3 that replays this log terminates at ")
    assert "change of unknown partition" in out or "unknown topic" in out


def test_it_decides_nothing_before_it_is_committed(load: Load) -> None:
    change = adds(written(5, 0, partitionId=0, topicId="A" * 21 + "Q"))
    code, out = load("4.3.1", change, [3])
    assert code == 1
    assert out.startswith("NOT KNOWN: ")
    assert "  whether PARTITION_CHANGE_RECORD version 0 at offset 54 is committed: it is refused (" in out


def test_a_log_without_a_metadata_version(load: Load) -> None:
    _, out = load("4.3.1", lambda log: no_metadata_version(random.Random(0), log))
    assert "REFUSED: " in out
    assert "java.lang.IllegalStateException: Unknown metadata version for FeaturesImage\n" in out
    assert "  1. inspect NO_OP_RECORD version 0 at offset 53\n" in out


def without_level(*values: bytes) -> Change:
    """No metadata.version where the log ended, then each of these in a batch of its own."""

    def change(log: MutableLog) -> None:
        no_metadata_version(random.Random(0), log)
        for value in values:
            log.append(value)

    return change


LEVEL = written(12, name="metadata.version", featureLevel=30)


def test_an_end_that_the_next_leaders_log_may_have_is_not_known_to_load(load: Load) -> None:
    """The followers' logs, which the next leader may have, are refused, and the leader's is not."""
    load("4.3.1", without_level(LEVEL), [3])
    code, out = load("4.3.1", without_level(), [1, 2])
    assert code == 1
    assert out.startswith(
        "NOT KNOWN: whether a log is loaded only up to NO_OP_RECORD version 0 at offset 53: there it is "
        "refused (metadata.version has no level); capture again once every voter has more\n"
    )
    assert "; Kafka throws java.lang.IllegalStateException: Unknown metadata version" in out


def test_an_end_that_a_follower_may_load_first_is_not_known_to_load(load: Load) -> None:
    """What a majority has is committed, and what a voter lags behind is loaded in part."""
    load("4.3.1", without_level(LEVEL, written(20)), [1, 3])
    code, out = load("4.3.1", without_level(), [2])
    assert (code, out[:11]) == (1, "NOT KNOWN: ")
    assert "whether a log is loaded only up to NO_OP_RECORD version 0 at offset 53" in out


def test_an_end_between_those_that_were_captured_is_not_known_to_load(load: Load) -> None:
    """The next leader's log may have the begin of a transaction without its end; it was SAFE."""

    def change(log: MutableLog) -> None:
        log.append(written(23), written(12, name="metadata.version", featureLevel=8))
        log.append(written(24))
        log.append(LEVEL)

    code, out = load("4.3.1", change, [3])
    assert (code, out[:11]) == (1, "NOT KNOWN: ")
    assert (
        "  whether a log is loaded only up to BEGIN_TRANSACTION_RECORD version 0 at offset 54: there it is "
        "refused (Detected in-progress transaction at offset 54, but the metadata.version 3.4-IV0 does not "
    ) in out
    code, out = load("4.3.1", change, [1, 2])
    assert (code, out[:6]) == (0, "SAFE: ")


def test_an_end_that_every_voter_has_passed_is_loaded_by_none(load: Load) -> None:
    code, out = load("4.3.1", without_level(LEVEL))
    assert (code, out[:6]) == (0, "SAFE: ")


def test_what_every_end_has_is_refused(load: Load) -> None:
    """Also where the last batches are not proven committed."""
    load("4.3.1", without_level(written(20), written(20)), [3])
    code, out = load("4.3.1", without_level(), [1, 2])
    assert (code, out[:9]) == (5, "REFUSED: ")
    assert "Unknown metadata version for FeaturesImage" in out.splitlines()[0]


@pytest.mark.parametrize("level", [8, 14])
def test_a_level_that_does_not_represent_the_metadata(load: Load, level: int) -> None:
    """A controller of 4.3.1 ends with UnwritableMetadataException; it was SAFE."""
    lower = written(12, name="metadata.version", featureLevel=level)
    code, out = load("4.3.1", adds(lower))
    assert (code, out[:11]) == (1, "NOT KNOWN: ")
    assert "represents REGISTER_CONTROLLER_RECORD version 0 (__cluster_metadata-0/" in out.splitlines()[0]
    code, out = load("4.3.1", adds(LEVEL))
    assert (code, out[:6]) == (0, "SAFE: ")


def test_an_atomic_batch_beyond_8_mb_is_read(load: Load) -> None:
    code, out = load("4.3.1", lambda log: large_batch(random.Random(0), log))
    assert (code, out[:6]) == (0, "SAFE: ")


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("lost", ["log", "half of the log", "a byte", "directory"])
def test_what_is_not_captured_is_not_known(node: int, lost: str, tmp_path: Path, load: Load) -> None:
    load("4.3.1")
    directory = tmp_path / "captures" / f"node-{node}"
    segment = directory / LOG / "00000000000000000000.log"
    if lost == "log":
        segment.unlink()
    elif lost == "directory":
        shutil.rmtree(directory)
    else:
        data = bytearray(segment.read_bytes())
        half = len(data) // 2
        data[half] ^= 1
        segment.write_bytes(data[:half] if lost == "half of the log" else data)
    code, out = load("4.3.1")
    assert code == 1
    assert out.startswith("NOT KNOWN: "), out
    assert "\nmissing:\n" in out
    assert "  1. capture what is missing: every voter, its log, checkpoints and quorum-state" in out


def test_an_answer_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "load", "3.9.2", "--captures", HEALTHY, *SOON, "--format", "json"]) == 5
    made = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "refused"
    assert made["error_message"].startswith("java.lang.RuntimeException: Tried to apply FeatureLevelRecord ")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["load", "--captures", HEALTHY], "load takes a release, such as 4.3.1"),
        (
            ["load", "9.9", "--captures", HEALTHY],
            "release 9.9 is not known; known releases: 3.9, 4.0, 4.1, 4.2, 4.3, 4.4",
        ),
        (["load", "3.8", "--captures", HEALTHY], "release 3.8 is not known"),
        (
            ["load", "4.4", "--lake", "x"],
            "which neither a lake nor a running quorum provides: give --captures PATH...",
        ),
    ],
)
def test_wrong_usage(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) == 2
    assert error in capsys.readouterr().err
