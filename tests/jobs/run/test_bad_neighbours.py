"""One run over a sound capture and others, extreme or of no Kafka: each costs itself only."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.planning import Selection, plan
from jobs.runtime.outcome import ExitCode
from kraft_core.format.batch import write_batch
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import content, opened, run
from tests.kraft_core.batches import NO_OP, raw
from transforms.ingest.scanning import DISORDERED, MOST_FAULTS
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, QUARANTINE, RECORDS
from transforms.lake.tables import PARTITIONS as PARTITIONS_TABLE

MINI = "v4.4.0-mini/node-1"
PACKED_RECORDS, CONFIGS = 40_000, 100
TOPIC, PARTITION, CONFIG = 2, 3, 4
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
LONGEST_NAME = "n" * 249


def with_meta(golden: Path, target: Path, *lines: str) -> None:
    """The sound capture with these lines at the end of its meta.properties."""
    shutil.copytree(golden / MINI, target)
    with (target / "meta.properties").open("a") as meta:
        meta.write("\n" + "\n".join(lines) + "\n")


def extreme_values() -> bytes:
    """The longest names and strings of Kafka, megabytes of configs, characters that nothing may interpret."""
    config = {"resourceType": 2, "resourceName": LONGEST_NAME, "name": "cleanup.policy"}
    odd = "\x00\u202e\ufeff\x1b[31m\n"
    return metadata(
        0,
        [
            (TOPIC, 0, {"name": LONGEST_NAME, "topicId": TOPIC_ID}),
            *((CONFIG, 0, config | {"name": f"c{n}", "value": "x" * 32_767}) for n in range(CONFIGS)),
            (CONFIG, 0, config | {"name": odd, "value": odd}),
            (TOPIC, 0, {"name": odd, "topicId": "AAAAAAAAAAAAAAAAAAAAAg"}),
        ],
    )


def extreme_times() -> bytes:
    """A clock before the epoch, and beyond every calendar."""
    topics = [(TOPIC, 0, {"name": f"t{n}", "topicId": TOPIC_ID}) for n in range(1)]
    ends = (-1, -(1 << 62), (1 << 62), (1 << 63) - 1, 0, 253_402_300_800_000)
    return b"".join(metadata(n, topics, at=[at]) for n, at in enumerate(ends))


def many_partitions(count: int) -> bytes:
    """As large a topic as one batch can make."""
    held = {"topicId": TOPIC_ID, "replicas": [1], "isr": [1], "leader": 1}
    partitions = [(PARTITION, 0, held | {"partitionId": n}) for n in range(count)]
    return metadata(0, [(TOPIC, 0, {"name": "wide", "topicId": TOPIC_ID}), *partitions])


def overlapping(batches: int) -> bytes:
    """Each batch begins within the one before: no checksum covers the offsets."""
    batch = write_batch(0, 1, [raw(0, NO_OP), raw(1, NO_OP)])
    return b"".join(n.to_bytes(8, "big") + batch[8:] for n in range(batches))


def neighbours(golden: Path, captures: Path, disordered_batches: int, wide: int) -> None:
    """The sound capture among the others."""
    shutil.copytree(golden / MINI, captures / "sound")
    with_meta(golden, captures / "pair", "cluster.id=\\ud83d\\udca5")
    with_meta(golden, captures / "half", "cluster.id=\\ud800")
    with_meta(golden, captures / "huge", "cluster.id=huge", f"node.id={1 << 40}")
    captured(captures, "packed", write_batch(0, 1, [raw(n, NO_OP) for n in range(PACKED_RECORDS)], codec=4))
    captured(captures, "values", extreme_values())
    # Names on disk are bytes.
    shutil.copytree(golden / MINI, captures / os.fsdecode(b"not-\xff-text"))
    with_meta(golden, captures / "badly-named", "cluster.id=badly-named")
    (captures / "badly-named/__cluster_metadata-0" / os.fsdecode(b"\xff.log")).touch()
    (captures / "1750000000002.txt").symlink_to("n" * 256)
    captured(captures, "times", extreme_times())
    captured(captures, "wide", many_partitions(wide))
    captured(captures, "disordered", overlapping(disordered_batches))
    fields = "ClusterId: deep\nLeaderId: 1\nLeaderEpoch: 1\nHighWatermark: 1\nCurrentObservers: []\n"
    (captures / "1750000000000.txt").write_text(f"{fields}CurrentVoters: {'[' * 100_000}\n")
    os.mkfifo(captures / "1750000000001.txt")


@pytest.mark.parametrize(
    ("disordered_batches", "wide"),
    [(20_000, 10_000), pytest.param(1_000_000, 100_000, marks=pytest.mark.long)],
)
def test_a_sound_cluster_beside_others(
    spark: Any,
    golden: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    disordered_batches: int,
    wide: int,
) -> None:
    neighbours(golden, tmp_path / "captures", disordered_batches, wide)
    lake, alone = tmp_path / "lake", tmp_path / "alone"

    assert run(lake, tmp_path / "captures") == ExitCode.FOUND  # of "disordered"
    text = capsys.readouterr()
    assert "Traceback" not in text.out + text.err
    for reason in (
        *("half of a surrogate pair", "does not fit in 32 bits", "1750000000000.txt"),
        *("not-\\udcff-text: its path is not UTF-8", "File name too long"),
    ):
        assert reason in text.err
    assert run(alone, golden / MINI) == ExitCode.FINE

    (sound,) = rows_with(alone, CAPTURES, ["cluster_id"])
    cluster = sound["cluster_id"]
    assert content(opened(spark, lake), cluster) == content(opened(spark, alone), cluster)
    counts = records_by_cluster(lake)
    assert counts["\U0001f4a5"] == counts[cluster] > 0
    assert (counts["packed"], counts["values"], counts["times"]) == (PACKED_RECORDS, CONFIGS + 3, 6)
    partitions = rows_with(lake, PARTITIONS_TABLE, ["partition_id"], cluster_id=["wide"])
    assert counts["wide"] == wide + 1 == len(partitions) + 1
    (rest,) = rows_with(lake, QUARANTINE, cluster_id=["disordered"])
    assert (rest["reason"], rest["lost_to_offset"]) == (DISORDERED, None)
    # Each range but the first begins out of order.
    (disordered,) = rows_with(lake, CAPTURES, ["epoch_ranges"], cluster_id=["disordered"])
    assert len(disordered["epoch_ranges"]) == MOST_FAULTS + 1


def records_by_cluster(lake: Path) -> Counter[str]:
    return Counter(row["cluster_id"] for row in rows_with(lake, RECORDS, ["cluster_id"]))


def test_a_path_that_is_no_text_costs_its_capture(golden: Path, tmp_path: Path) -> None:
    """Names on disk are bytes: no table can hold this one."""
    shutil.copytree(golden / MINI, tmp_path / os.fsdecode(b"not-\xff-text"))
    shutil.copytree(golden / MINI, tmp_path / "sound")
    planned = plan(Selection((tmp_path,)))
    assert [copy.directory.path.name for copy in planned.captures] == ["sound"]
    (line,) = map(str, planned.left_out)
    assert "its path is not UTF-8" in line
