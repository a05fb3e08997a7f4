"""Findings as text: one cause is one entry; as JSON lines each is a line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from jobs.findings import formatted

Row = dict[str, Any]
TIME = datetime(2026, 11, 21, 9, tzinfo=UTC)


def lost(epoch: int, **more: Any) -> Row:
    row = {
        "cluster_id": "c",
        "finding_id": f"id-{epoch}",
        "rule": 5,
        "name": "committed_stay",
        "state": "open",
    }
    row |= {
        "severity": "error",
        "reason": None,
        "first_offset": epoch,
        "end_offset": epoch + 1,
        "evidence": "",
    }
    row |= {"leader_epochs": [epoch], "replicas": ["1"], "source": "KIP-595", "first_seen_at": TIME}
    sentence = f"1 held the committed offset {epoch} of epoch {epoch} and lost it."
    return row | {"last_seen_at": TIME, "sentence": sentence} | more


def test_alike_findings_are_one_entry_with_every_id() -> None:
    rows = [lost(epoch) for epoch in range(1, 5)]
    lines = list(formatted([*rows, lost(9, replicas=["2"])], "text"))
    assert sum(line.startswith("ERROR") for line in lines) == 2
    assert lines[0].startswith("ERROR  id-1  rule 5 committed_stay")
    assert "    and 3 more like it: id-2, id-3, id-4" in lines
    assert [json.loads(line)["finding_id"] for line in formatted(rows, "jsonl")] == [
        "id-1",
        "id-2",
        "id-3",
        "id-4",
    ]
