"""plan on a lake: what the newest captures do not show takes the answer away."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.quorum.quorum_facts import superseded_by
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import EPOCHS, VOTER_SETS


@pytest.mark.parametrize(
    ("offset", "status", "is_superseded"),
    [
        (99, "committed", False),
        (100, "committed", True),
        (100, "undecided", False),
        (100, "truncated", False),
    ],
)
def test_voters_that_changed_beyond_the_captures(
    offset: int, status: str, *, is_superseded: bool, tmp_path: Path
) -> None:
    """As a followed log shows: it is no capture, and may reach further."""
    prepare_lake(tmp_path, frozenset())
    writer = TableWriter(tmp_path, None)
    writer.create(EPOCHS)
    writer.create(VOTER_SETS)
    row = a_row(VOTER_SETS, cluster_id="a", offset=offset, leader_epoch=1, source="record")
    writer.append(VOTER_SETS, [row | {"commit_status": status}])
    quorum: Any = SimpleNamespace(epoch=1, log_end=100, as_of=0)
    words = superseded_by(tmp_path, "a", quorum)
    assert words == (
        f"the voters changed at offset {offset}, beyond the end of the newest captures"
        if is_superseded
        else None
    )
