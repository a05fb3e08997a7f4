"""Rule 49 from bytes to a finding: logs that Kafka refuses to replay, and logs that only seem so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.snapshot_writer import snapshot_bytes, snapshot_header
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.uuid_text import uuid_text
from tests.jobs.lakes import content, opened, run
from tests.kraft_core.batches import raw
from tests.kraft_core.image.refused import EVERY_REFUSAL, TOPIC, UNKNOWN
from tests.kraft_core.image.worlds import Made, change_fields, partition_fields, topic_fields
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import FINDINGS, PARTITIONS, REFUSED_RECORDS

MESSAGES = {message.type_name: message for message in METADATA_RECORDS}
A_TOPIC: list[Made] = [
    ("TOPIC_RECORD", topic_fields("t", TOPIC)),
    ("PARTITION_RECORD", partition_fields(TOPIC)),
]
CHANGE: Made = ("PARTITION_CHANGE_RECORD", change_fields(TOPIC, isr=[1]))
OF_UNKNOWN: Made = ("PARTITION_CHANGE_RECORD", change_fields(UNKNOWN, isr=[1]))
CLUSTERS = ("truncated", "supplied", "grown")
# Type 9999 of a Kafka to come.
OF_NEWER_KAFKA = bytes([1, 0x8F, 0x4E, 0, 0])


def value(made: Made) -> bytes:
    message = MESSAGES[made[0]]
    version = max(message.versions)
    return write_metadata_value(message, version, message.default(version) | made[1])


def batch(first: int, made: Sequence[Made | bytes], epoch: int = 1) -> bytes:
    values = [one if isinstance(one, bytes) else value(one) for one in made]
    return write_batch(first, epoch, [raw(first + n, one) for n, one in enumerate(values)])


def capture(path: Path, *batches: bytes, base: int = 0, node: int = 1) -> Path:
    """A directory of node 1, or another, of the cluster that its parent folder is named after."""
    log_dir = path / LOG_DIR_NAME
    log_dir.mkdir(parents=True)
    held = {"version": 1, "cluster.id": path.parent.name, "node.id": node}
    held["directory.id"] = uuid_text(bytes([node]) * 16)
    (path / "meta.properties").write_text("".join(f"{name}={of}\n" for name, of in held.items()))
    (log_dir / f"{base:020d}.log").write_bytes(b"".join(batches))
    return path


def checkpoint(path: Path, made: Sequence[Made | bytes], damage: bytes = b"") -> None:
    """Of offsets below 3, in the log directory of a capture. damage: bytes that its end is replaced by."""
    values = [one if isinstance(one, bytes) else value(one) for one in made]
    held = snapshot_bytes([snapshot_header(0)], values, 1, 0, 10)
    file = path / LOG_DIR_NAME / "00000000000000000003-0000000001.checkpoint"
    file.write_bytes(held[: -len(damage)] + damage if damage else held)


def damaged(batch_: bytes) -> bytes:
    """Its last byte is another."""
    return batch_[:-1] + bytes([batch_[-1] ^ 1])


def refused(lake: Path) -> dict[str, list[tuple[int, int, str]]]:
    """By cluster the offsets and states of the findings of rule 49."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    for row in rows_with(lake, FINDINGS):
        if row["rule"] == 49:
            place = row["first_offset"], row["end_offset"], row["state"]
            found.setdefault(row["cluster_id"], []).append(place)
    return {cluster: sorted(places) for cluster, places in found.items()}


@pytest.mark.usefixtures("spark")
def test_a_record_is_refused_only_where_nothing_below_it_is_missing(tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    first, second, third = batch(0, A_TOPIC), batch(2, [CHANGE]), batch(3, [OF_UNKNOWN, OF_UNKNOWN])
    capture(captures / "refused" / "a", first, second, third)
    capture(captures / "sound" / "a", first, second, batch(3, [CHANGE, CHANGE]))
    capture(captures / "gap" / "a", first, third)
    capture(captures / "begins-later" / "a", second, third, base=2)
    capture(captures / "damaged" / "a", first, damaged(second), third)
    capture(captures / "newer" / "a", first, batch(2, [OF_NEWER_KAFKA]), third)
    capture(captures / "contested" / "a", first, second, third)
    capture(captures / "contested" / "b", first, batch(2, [("NO_OP_RECORD", {})]), third, node=2)
    every = [made for made, _ in EVERY_REFUSAL]
    capture(captures / "every-cause" / "a", batch(0, every))
    lake = tmp_path / "lake"
    assert run(lake, captures) == ExitCode.FOUND
    found = refused(lake)
    assert found.keys() == {"refused", "every-cause"}
    assert found["refused"] == [(3, 5, "open")]
    of_every = [n for n, (_, why) in enumerate(EVERY_REFUSAL) if why is not None]
    rows = rows_with(lake, REFUSED_RECORDS, cluster_id=["every-cause"])
    assert sorted(row["offset"] for row in rows) == of_every
    assert {offset for offset, _, _ in found["every-cause"]} <= set(of_every)
    # The histories hold what brokers apply.
    versions = rows_with(lake, PARTITIONS, cluster_id=["refused"])
    assert sorted(row["valid_from_offset"] for row in versions) == [1, 2]


@pytest.mark.usefixtures("spark")
def test_a_checkpoint_that_kafka_refuses_to_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A finding only where all of it is understood, and none of the log above it, to which it may matter."""
    captures = tmp_path / "captures"
    orphan: Made = ("PARTITION_RECORD", partition_fields(UNKNOWN))
    above = batch(3, [CHANGE, OF_UNKNOWN])
    for cluster, made, damage in (
        ("orphan", [*A_TOPIC, orphan, ("PARTITION_RECORD", partition_fields(UNKNOWN, 1))], b""),
        ("sound", A_TOPIC, b""),
        ("not-whole", [*A_TOPIC, orphan], b"\x01"),
        ("newer", [*A_TOPIC, OF_NEWER_KAFKA, orphan], b""),
    ):
        checkpoint(capture(captures / cluster / "a", above, base=3), made, damage)
    # From the log it is known what the checkpoint holds.
    whole = batch(0, [*A_TOPIC, ("TOPIC_RECORD", topic_fields("u", UNKNOWN))])
    checkpoint(capture(captures / "not-loaded" / "a", whole, batch(3, [CHANGE])), [*A_TOPIC, orphan])
    lake = tmp_path / "lake"
    assert run(lake, captures) == ExitCode.FOUND
    assert refused(lake) == {"orphan": [(2, 3, "open")], "sound": [(4, 5, "open")]}
    (found,) = rows_with(lake, FINDINGS, cluster_id=["orphan"], rule=[49])
    assert found["sentence"].startswith("Checkpoint 3-1 of 1@")
    assert (
        "holds a PARTITION_RECORD that cannot be replayed, and 1 more record: partition " in found["sentence"]
    )
    assert "Every controller of Kafka 4.3.1 that loads it terminates (" in found["sentence"]
    assert found["sentence"].endswith("continues with other metadata (TopicsDelta).")
    capsys.readouterr()
    assert main(["shell", "--lake", str(lake), "--cluster", "orphan", "--at-offset", "4", "ls", "/"]) == 0
    said = capsys.readouterr().err
    assert "PARTITION_RECORD of the checkpoint at 2 cannot be replayed: partition 0 of unknown topic" in said


@pytest.mark.parametrize("order", [pytest.param("ab", marks=pytest.mark.long), "ba"])
def test_runs_in_any_order_come_to_the_same(spark: Any, tmp_path: Path, order: str) -> None:
    """A later capture shows that the record was truncated, or supplies what was missing below it."""
    captures = tmp_path / "captures"
    first, second, third = batch(0, A_TOPIC), batch(2, [CHANGE]), batch(3, [OF_UNKNOWN, OF_UNKNOWN])
    capture(captures / "truncated" / "a", first, second, third)
    capture(captures / "truncated" / "b", first, second, batch(3, [CHANGE], epoch=2))
    capture(captures / "supplied" / "a", first, third)
    capture(captures / "supplied" / "b", first, second, third, node=2)
    capture(captures / "grown" / "a", first, second, third)
    capture(captures / "grown" / "b", first, second, third, batch(5, [CHANGE, OF_UNKNOWN]))
    whole = tmp_path / "whole"
    run(whole, captures)
    assert refused(whole) == {"supplied": [(3, 5, "open")], "grown": [(3, 7, "open")]}
    for name in order:
        run(tmp_path / order, *(captures / cluster / name for cluster in CLUSTERS))
    for cluster in CLUSTERS:
        steps = content(opened(spark, tmp_path / order), cluster)
        assert steps == content(opened(spark, whole), cluster)
