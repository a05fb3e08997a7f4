"""format("kraft_quorum") on files: what each directory says beside its log."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from transforms.lake.spark_rows import parse_type
from transforms.source.errors import SourceError
from transforms.source.quorum import KraftQuorumDataSource


def read(*paths: Path, schema: Any = None, **options: str) -> list[dict[str, Any]]:
    source = KraftQuorumDataSource({"paths": json.dumps([str(path) for path in paths]), **options})
    reader = source.reader(schema=schema or source.schema())
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def test_a_row_a_directory(golden: Path) -> None:
    rows = read(golden / "uncommitted-truncation" / "after")
    assert [(row["node_id"], row["leader_id"], row["leader_epoch"]) for row in rows] == [
        (1, 2, 3),
        (2, 2, 3),
        (3, 2, 3),
        (4, 2, 3),
    ]
    first = rows[0]
    assert first["directory"] == str(golden / "uncommitted-truncation/after/node-1")
    assert first["cluster_id"] == "iWP35uOsShu1pFlBJh_E7w"
    assert first["epochs"][0] == {"leader_epoch": 1, "start_offset": 0}
    assert (first["log_readable"], first["faults"]) == (True, [])
    assert first["segments"] >= 1 < first["size_bytes"]
    assert [row["node_id"] for row in read(golden / "uncommitted-truncation/after", nodeId="3")] == [3]


def test_a_static_quorum_names_its_voters(golden: Path) -> None:
    assert any(row["current_voters"] for row in read(golden / "static-upgrade"))


def test_what_is_missing_is_null_and_what_is_broken_is_a_fault(golden: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden / "v4.4.0-mini", tmp_path / "v"))
    states = list(root.rglob("quorum-state"))
    states[0].unlink()
    (row,) = read(states[0].parents[1])
    assert [row[name] for name in ("leader_id", "leader_epoch", "data_version")] == [None, None, None]
    assert row["faults"] == []
    states[0].write_text("{")
    (row,) = read(states[0].parents[1])
    assert row["leader_id"] is None
    assert [fault["file"] for fault in row["faults"]] == ["__cluster_metadata-0/quorum-state"]


def test_one_sentence_for_what_is_wrong(golden: Path, tmp_path: Path) -> None:
    root = golden / "v4.4.0-mini"
    wrong, other = (parse_type(f"STRUCT<{each}>") for each in ("leader: INT", "leader_id: BIGINT"))
    for call, said in (
        (lambda: read(tmp_path), "no controller directory"),
        (lambda: read(tmp_path / "x"), "does not exist"),
        (
            lambda: read(root, types="TopicRecord"),
            "unknown option types; known: path, clusterId, nodeId",
        ),
        (
            lambda: read(root, schema=wrong),
            "unknown column leader; did you mean leader_id",
        ),
        (lambda: read(root, schema=other), "leader_id is int, not bigint"),
    ):
        with pytest.raises(SourceError, match=re.escape(said)):
            call()
