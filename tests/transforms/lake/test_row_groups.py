"""Row groups with wanted rows, against all rows: of files with and without order and statistics."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from transforms.lake import row_groups
from transforms.lake.delta_rs import among
from transforms.lake.row_groups import holding

GROUP_ROWS = 8
CLUSTERS = [*(f"c{number:02}" for number in range(20)), "", "c\u00e9", "c\U0001f40d", "\uffff"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> ds.Dataset:
    """Rows of 24 clusters in three files of ten row groups."""
    folder = tmp_path_factory.mktemp("table")
    drawn = random.Random(4)
    for place, (is_sorted, with_statistics) in enumerate([(True, True), (False, True), (True, False)]):
        rows = [
            {"cluster_id": drawn.choice(CLUSTERS), "row": f"{place}-{number}", "odd": number % 2}
            for number in range(10 * GROUP_ROWS)
        ]
        table = pa.Table.from_pylist(rows)
        pq.write_table(
            table.sort_by("cluster_id") if is_sorted else table,
            folder / f"{place}.parquet",
            row_group_size=GROUP_ROWS,
            write_statistics=with_statistics,
        )
    found = ds.dataset(folder)
    assert sum(fragment.metadata.num_row_groups for fragment in found.get_fragments()) == 30
    return found


def rows(found: ds.Dataset, condition: ds.Expression) -> list[str]:
    return sorted(found.to_table(["row"], filter=condition)["row"].to_pylist())


def held(found: ds.Dataset) -> Iterator[pa.Table]:
    """The rows of each row group."""
    for fragment in found.get_fragments():
        yield from (group.to_table() for group in fragment.split_by_row_group())


def wanted_clusters() -> list[Sequence[str]]:
    drawn = random.Random(5)
    return [CLUSTERS, ["absent"], *(drawn.sample(CLUSTERS, drawn.randint(1, 6)) for _ in range(40))]


@pytest.mark.parametrize("clusters", wanted_clusters())
@pytest.mark.parametrize("other", [ds.scalar(True), pc.field("odd") == 1, pc.field("row") == "1-40"])
def test_just_the_row_groups_with_wanted_rows(
    stored: ds.Dataset, monkeypatch: pytest.MonkeyPatch, clusters: Sequence[str], other: ds.Expression
) -> None:
    condition = among({"cluster_id": clusters}) & other
    every = rows(stored, condition)
    assert holding(stored, condition, clusters) is stored
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    meeting = sum(bool(len(group.filter(condition))) for group in held(stored))
    for found in (holding(stored, condition, clusters), holding(stored, condition, None)):
        assert rows(found, condition) == every
        assert len(list(found.get_fragments())) == meeting


def test_row_groups_of_other_clusters_are_left_out_by_their_statistics(
    stored: ds.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the sorted file few remain to be read, of that without statistics all."""
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    read: list[Any] = []
    made = ds.FileSystemDataset

    def noted(groups: list[Any], *others: Any) -> ds.FileSystemDataset:
        read.append([int(Path(group.path).stem) for group in groups])
        return made(groups, *others)

    monkeypatch.setattr(row_groups.ds, "FileSystemDataset", noted)
    holding(stored, among({"cluster_id": ["c07"]}), ["c07"])
    assert 1 <= read[0].count(0) <= 2
    assert read[0].count(2) == 10


def test_few_row_groups_of_clusters_are_not_looked_into(
    stored: ds.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of clusters alone, where rows are sorted: the same rows, of few row groups more."""
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    for few, most in ((0, 30), (30, 30)):
        monkeypatch.setattr(row_groups, "MOST_OF_A_CLUSTER", few)
        for clusters in wanted_clusters():
            condition = among({"cluster_id": clusters})
            found = holding(stored, condition, clusters, of_clusters_alone=True)
            just = holding(stored, condition, clusters)
            assert rows(found, condition) == rows(just, condition)
            count, least = (len(list(each.get_fragments())) for each in (found, just))
            assert least <= count <= (most if few else least)


@pytest.mark.parametrize("with_statistics", [True, False])
def test_row_groups_without_a_value_of_a_struct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_statistics: bool
) -> None:
    """Arrow asks no statistics of them. A file may lack the struct."""
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    values = [
        {"level": 1} if number in (3, 70) else {"level": None} if number == 20 else None
        for number in range(80)
    ]
    numbers = list(range(80))
    options = {"row_group_size": GROUP_ROWS, "write_statistics": with_statistics}
    type_ = pa.struct([("level", pa.int16())])
    pq.write_table(
        pa.table({"row": numbers, "of": pa.array(values, type_)}), tmp_path / "0.parquet", **options
    )
    pq.write_table(pa.table({"row": numbers}), tmp_path / "1.parquet", **options)
    stored = ds.dataset(tmp_path, schema=pa.schema([("row", pa.int64()), ("of", type_)]))
    condition = ds.field("of", "level").is_valid()
    read: list[int] = []
    monkeypatch.setattr(
        row_groups.ds,
        "FileSystemDataset",
        lambda groups, *rest, made=ds.FileSystemDataset: read.append(len(groups)) or made(groups, *rest),
    )
    found = holding(stored, condition, None, "of.level")
    assert found.to_table(["row"], filter=condition)["row"].to_pylist() == [3, 70]
    assert read == [2 if with_statistics else 10, 2]
    assert not holding(stored, condition & (ds.field("row") < 0), None, "of.level").count_rows()
