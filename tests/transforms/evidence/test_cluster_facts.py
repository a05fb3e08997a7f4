"""Facts of groups of clusters: grouping, pinned versions, a file that cannot be read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from transforms.evidence import cluster_facts
from transforms.evidence.cluster_facts import (
    ClusterGroup,
    FreshRows,
    cluster_groups,
    cluster_row,
    group_facts,
)
from transforms.evidence.pinned_tables import PinnedTables
from transforms.lake.delta_rs import cluster_ids, opened
from transforms.lake.tables import BATCHES, CAPTURES
from transforms.quality.derived import derive_in_driver

ENDLESS = 10**9


@pytest.fixture
def other_lake(lake: Any, tmp_path: Path) -> Path:
    """A copy of the golden lake."""
    return shutil.copytree(lake.path, tmp_path / "lake")


def test_a_group_reads_what_each_of_its_clusters_reads(lake: Any) -> None:
    tables, clusters = PinnedTables.newest(lake.path), cluster_ids(lake.path)
    together = group_facts(tables, clusters, {})
    for cluster in clusters:
        found, alone = (
            cluster_row(together, cluster),
            cluster_row(group_facts(tables, [cluster], {}), cluster),
        )
        assert {k: sorted(map(repr, v)) for k, v in found.items()} == {
            k: sorted(map(repr, v)) for k, v in alone.items()
        }
        assert found["captures"]
        assert found["control_records"]
        assert found["snapshots"]


def test_large_clusters_are_alone_and_small_ones_together(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tables, clusters = PinnedTables.newest(lake.path), cluster_ids(lake.path)
    counts = cluster_facts.batch_counts(opened(lake.path, BATCHES), clusters)
    largest, second = sorted(counts.values())[-2:][::-1]
    monkeypatch.setattr(cluster_facts, "GROUP_BATCHES", largest - 1)
    first, *groups = cluster_groups(tables, clusters, {clusters[0]: FreshRows()})
    assert [counts[c] for c in first.clusters] == [largest]
    assert sorted(c for group in (first, *groups) for c in group.clusters) == clusters
    assert len(groups) < len(clusters) - 1
    assert all(sum(counts[c] for c in group.clusters) < largest for group in groups)
    assert second in [counts[c] for c in groups[0].clusters]
    assert [list(g.fresh) for g in (first, *groups) if g.fresh] == [[clusters[0]]]
    monkeypatch.setattr(cluster_facts, "GROUP_BATCHES", ENDLESS)
    monkeypatch.setattr(cluster_facts, "GROUP_CLUSTERS", 1)
    assert len(cluster_groups(tables, clusters, {})) == len(clusters)


def test_a_later_commit_is_not_read(other_lake: Path) -> None:
    """What was pinned stays, so that all tasks of a run read the same rows."""
    cluster = cluster_ids(other_lake)[0]
    tables = PinnedTables.newest(other_lake)
    before = cluster_row(group_facts(tables, [cluster], {}), cluster)
    for table in (BATCHES, CAPTURES):
        folder = other_lake / table.name
        write_deltalake(folder, DeltaTable(folder).to_pyarrow_table(), mode="append")
    assert cluster_row(group_facts(tables, [cluster], {}), cluster) == before
    newest = PinnedTables.newest(other_lake)
    assert len(cluster_row(group_facts(newest, [cluster], {}), cluster)["captures"]) == 2 * len(
        before["captures"]
    )


def test_tables_that_do_not_exist_have_no_rows(tmp_path: Path) -> None:
    row = cluster_row(group_facts(PinnedTables.newest(tmp_path), ["c"], {}), "c")
    assert row.pop("cluster_id") == "c"
    assert set(map(len, row.values())) == {0}


def test_fresh_captures_take_the_place_of_stored_ones(lake: Any) -> None:
    cluster = cluster_ids(lake.path)[0]
    facts = group_facts(PinnedTables.newest(lake.path), [cluster], {})
    stored = cluster_row(facts, cluster)["captures"]
    fresh = FreshRows(
        captures=[stored[0] | {"node_id": 99}, stored[0] | {"capture_id": "new"}],
        observations=[{"observation_id": "new"}],
        snapshot_deviations=[{"kind": "topic"}],
    )
    row = cluster_row(facts, cluster, fresh)
    assert [(c["capture_id"], c["node_id"]) for c in row["captures"]] == [
        *((c["capture_id"], c["node_id"]) for c in stored[1:]),
        (stored[0]["capture_id"], 99),
        ("new", stored[0]["node_id"]),
    ]
    assert row["observations"][-1] == {"observation_id": "new"}
    assert row["snapshot_deviations"] == [{"kind": "topic"}]


def test_a_file_that_cannot_be_read_fails_the_cluster_that_needs_it(other_lake: Path) -> None:
    sound = cluster_ids(other_lake)[:2]
    folder = other_lake / BATCHES.name
    before = set(folder.glob("*.parquet"))
    rows = DeltaTable(folder).to_pyarrow_table()
    rows = rows.slice(0, 10).set_column(
        rows.schema.get_field_index("cluster_id"), "cluster_id", [["bad"] * 10]
    )
    write_deltalake(folder, rows, mode="append")
    (written,) = set(folder.glob("*.parquet")) - before
    written.write_bytes(b"no Parquet")
    tables = PinnedTables.newest(other_lake)
    derived = derive_in_driver(tables, ClusterGroup((*sound, "bad")))
    failures = dict(zip(*derived.select(["cluster_id", "failure"]).to_pydict().values(), strict=True))
    assert failures.pop("bad")
    assert failures == dict.fromkeys(sound)
