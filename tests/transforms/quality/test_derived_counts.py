"""Which clusters a run derives again although nothing of them is new."""

from __future__ import annotations

from pathlib import Path

from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.tables import DERIVATIONS
from transforms.quality.derived_counts import underived


def test_a_cluster_that_could_not_be_derived_is_tried_again(tmp_path: Path) -> None:
    assert underived(tmp_path, ["a", "b"]) == set()
    TableWriter(tmp_path, None).create(DERIVATIONS)
    rows = [a_row(DERIVATIONS, cluster_id=c, failure=why) for c, why in (("a", None), ("b", "KeyError"))]
    TableWriter(tmp_path, None).put(DERIVATIONS, rows, by="cluster_id")
    assert underived(tmp_path, ["a", "b"]) == {"b"}
    assert underived(tmp_path, ["a"]) == set()
