"""quarantine names the offsets that were lost: all of them, and none that was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from kraft_core.format.batch import HEADER_BYTES, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.metadata import by_api_key
from tests.jobs.lakes import asking, opened, run
from tests.kraft_core.batches import log_of, no_op_batch, raw, resealed
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import QUARANTINE, RECORDS, TOPICS

# Offsets 5 to 14, between good batches.
BATCH = no_op_batch(5, records=10)
RECORD_BYTES = (len(BATCH) - HEADER_BYTES) // 10


def overwritten(at: int, new: bytes) -> bytes:
    return resealed(BATCH[:at] + new + BATCH[at + len(new) :])


# The batch, and the offsets that are lost of it: (first, end), None if none is.
CASES: dict[str, tuple[bytes, tuple[int, int] | None]] = {
    "malformed": (overwritten(HEADER_BYTES + 3 * RECORD_BYTES, b"\x01"), (8, 15)),
    "malformed at once": (overwritten(HEADER_BYTES, b"\x7e"), (5, 15)),
    "more than counted": (overwritten(HEADER_BYTES - 4, (4).to_bytes(4, "big")), (9, 15)),
    "fewer than counted": (overwritten(HEADER_BYTES - 4, (12).to_bytes(4, "big")), None),
    "unknown codec": (overwritten(21, b"\x00\x07"), (5, 15)),
    "bad checksum": (BATCH[:-1] + b"\xff", (5, 15)),
}


def captured(folder: Path, name: str, log: bytes) -> None:
    """A captured directory of a cluster of that name."""
    log_dir = folder / name / LOG_DIR_NAME
    log_dir.mkdir(parents=True)
    (folder / name / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
    (log_dir / f"{0:020}.log").write_bytes(log)


def test_whole_batches(spark: Any, tmp_path: Path) -> None:
    for name, (batch, _) in CASES.items():
        captured(tmp_path / "tree", name, log_of(no_op_batch(0, records=5), batch, no_op_batch(15)))
    assert run(tmp_path / "lake", tmp_path / "tree") == ExitCode.FOUND
    lake = opened(spark, tmp_path / "lake")
    (*lost,) = rows_with(lake.path, QUARANTINE)
    assert {row["cluster_id"] for row in lost} == CASES.keys()
    read = [r for r in rows_with(lake.path, RECORDS) if r["unread_reason"] is None]
    for row in lost:
        cluster, (_, expected) = row["cluster_id"], CASES[row["cluster_id"]]
        found = (row["lost_from_offset"], row["lost_to_offset"])
        assert found == (expected or (None, None)), cluster
        held = {r["offset"] for r in read if r["cluster_id"] == cluster}
        assert held == set(range(16)) - set(range(*(expected or (0, 0)))), cluster


TOPIC_IDS = {"a": "AAAAAAAAAAAAAAAAAAAAAQ", "b": "AAAAAAAAAAAAAAAAAAAAAg"}


def topic(offset: int, name: str) -> bytes:
    """A batch that creates a topic."""
    value = write_metadata_value(by_api_key[2], 0, {"name": name, "topicId": TOPIC_IDS[name]})
    return write_batch(offset, 1, [raw(offset, value)])


def test_what_is_lost_marks_what_follows(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch that cannot be decoded, a segment that was not captured: tables, functions, shell and page."""
    tree, path = tmp_path / "tree", tmp_path / "lake"
    damaged = CASES["malformed"][0]
    logs = {
        "whole": log_of(topic(4, "a"), no_op_batch(5, records=10), topic(15, "b")),
        "damaged": log_of(topic(4, "a"), damaged, topic(15, "b")),
    }
    logs["counted"] = log_of(topic(4, "a"), CASES["fewer than counted"][0], topic(15, "b"))
    for name, log in logs.items():
        captured(tree, name, log_of(no_op_batch(0, records=4), log))
    captured(tree, "gap", log_of(no_op_batch(0, records=4), topic(4, "a")))
    (tree / "gap" / LOG_DIR_NAME / f"{15:020}.log").write_bytes(topic(15, "b"))
    run(path, tree, flags=("--report", str(tmp_path / "page.html")))
    said = capsys.readouterr().out
    found = {
        (r["cluster_id"], r["topic_name"]): (r["incomplete_from_offset"], r["incomplete_to_offset"])
        for r in rows_with(path, TOPICS)
    }
    assert found == {
        ("whole", "a"): (None, None),
        ("whole", "b"): (None, None),
        ("counted", "a"): (None, None),
        ("counted", "b"): (None, None),
        ("damaged", "a"): (8, None),
        ("damaged", "b"): (8, None),
        ("gap", "a"): (5, None),
        ("gap", "b"): (5, None),
    }
    ask = asking(spark, path)
    for cluster, first, last in (("damaged", 8, 14), ("gap", 5, 14)):
        missing = f"records {first} to {last} are missing"
        assert f"metadata: {missing}" in said
        asked = {4: {"a": "valid"}, 15: {"a": "undecided", "b": "undecided"}}
        for offset, validity in asked.items():
            rows = ask(f"SELECT topic_name, validity FROM topics_as_of('{cluster}', {offset})").collect()
            assert {r["topic_name"]: r["validity"] for r in rows} == validity
        main(["shell", "--lake", str(path), "--cluster", cluster, "ls", "/image/topics/byName"])
        assert missing in capsys.readouterr().err
    main(["shell", "--lake", str(path), "--cluster", "whole", "ls", "/image/topics/byName"])
    assert "missing" not in capsys.readouterr().err
    assert "Missing records: what they changed is unknown" in (tmp_path / "page.html").read_text()
