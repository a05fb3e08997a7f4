"""Facts of batches, read in pieces: equal to what a plain comparison of all batches finds."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from transforms.evidence import batch_facts
from transforms.evidence.batch_facts import (
    MAX_CONFLICTS,
    batch_conflicts,
    batch_counts,
    batch_ends,
)

Row = dict[str, Any]
SCHEMA = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory_id", pa.string()),
        ("base_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("crc", pa.int64()),
        ("size_bytes", pa.int64()),
        ("last_offset", pa.int64()),
    ]
)
SEEDS = range(12)


def batch(cluster: str, node: int, base: int, epoch: int = 1, **other: Any) -> Row:
    row = {
        "cluster_id": cluster,
        "node_id": node,
        "directory_id": f"disk {node}",
        "base_offset": base,
        "leader_epoch": epoch,
        "crc": 7 * base,
        "size_bytes": 80,
        "last_offset": base,
    }
    return row | other


def dataset_of(folder: Path, rows: list[Row], files: int = 1) -> ds.Dataset:
    """The rows in files of the same number of rows."""
    size = -(-len(rows) // files)
    for number in range(files):
        part = pa.Table.from_pylist(rows[number * size : (number + 1) * size], SCHEMA)
        pq.write_table(part, folder / f"{number}.parquet")
    return ds.dataset(folder, schema=SCHEMA)


def random_batches(rnd: random.Random) -> list[Row]:
    """Three clusters of three replicas whose logs are mostly equal, in files of any order."""
    rows: list[Row] = []
    for cluster in "abc":
        base, epoch = 0, 1
        while base < 400:
            end = base + rnd.randint(1, 9)
            for node in range(3):
                if rnd.random() < 0.9:
                    other = {"crc": node} if rnd.random() < 0.1 else {}
                    moved = rnd.randint(1, 60) if rnd.random() < 0.01 else 0
                    first, last = base + moved, end - 1 + moved
                    rows.append(batch(cluster, node, first, epoch, last_offset=last, **other))
            base = end
            epoch += rnd.random() < 0.02
    rnd.shuffle(rows)
    return rows


def plain_conflicts(rows: list[Row], clusters: str) -> Counter[str]:
    """All batches by place, compared at once; a damaged base offset moves one onto others."""
    places: defaultdict[tuple[str, int, int], defaultdict[tuple[int, ...], set[tuple[int, str]]]]
    places = defaultdict(lambda: defaultdict(set))
    for row in rows:
        content = row["last_offset"], row["crc"], row["size_bytes"]
        place = row["cluster_id"], row["leader_epoch"], row["base_offset"]
        places[place][content].add((row["node_id"], row["directory_id"]))
    ordered = sorted(place for place in places if place[0] in clusters)
    copies = {place: list(places[place].items()) for place in ordered if len(places[place]) > 1}
    for before, place in pairwise(ordered):
        reaching = [item for item in places[before].items() if item[0][0] >= place[2]]
        if before[:2] == place[:2] and reaching:
            copies[place] = reaching + list(places[place].items())
    nth: Counter[tuple[str, int]] = Counter()
    found: Counter[str] = Counter()
    for place in sorted(copies):
        nth[place[:2]] += 1
        if nth[place[:2]] <= MAX_CONFLICTS:
            found.update(repr((place, content, sorted(held))) for content, held in copies[place])
    return found


def reported(conflicts: pa.Table) -> Counter[str]:
    return Counter(
        repr(
            (
                (row["cluster_id"], row["leader_epoch"], row["base_offset"]),
                (row["last_offset"], row["crc"], row["size_bytes"]),
                sorted((held["node_id"], held["directory_id"]) for held in row["held_by"]),
            )
        )
        for row in conflicts.to_pylist()
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_conflicts_in_pieces_are_those_of_the_whole(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many batches a piece has, and in whatever files and order they lie."""
    rnd = random.Random(seed)
    rows = random_batches(rnd)
    batches = dataset_of(tmp_path, rows, files=rnd.randint(1, 5))
    expected = plain_conflicts(rows, "ab")
    assert expected
    monkeypatch.setattr(batch_facts, "SAMPLED_ONE_OF", rnd.choice([1, 7]))
    for compared in (1, 20, 100, 10**6):
        assert reported(batch_conflicts(batches, ["a", "b"], compared)) == expected


def test_a_piece_holds_about_as_many_batches_as_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch is in one piece."""
    monkeypatch.setattr(batch_facts, "SAMPLED_ONE_OF", 10)
    rows = [batch("c", node, base) for node in range(5) for base in range(0, 2000, 2)]
    batches = dataset_of(tmp_path, rows, files=5)
    of_cluster = ds.field("cluster_id") == "c"
    sizes = [batches.count_rows(filter=f) for f in batch_facts._offset_ranges(batches, of_cluster, 500)]
    assert sum(sizes) == len(rows) == 5000
    assert len(sizes) == 10
    assert max(sizes) <= 550


def test_only_the_lowest_conflicts_of_an_epoch_are_reported(tmp_path: Path) -> None:
    """Of two epochs, the second with few."""
    rows = [batch("c", node, base, crc=node) for node in (1, 2) for base in range(100)]
    rows += [batch("c", node, base, 2, size_bytes=node) for node in (1, 2) for base in range(200, 203)]
    found = batch_conflicts(dataset_of(tmp_path, rows), ["c"], 10).to_pylist()
    offsets = Counter((row["leader_epoch"], row["base_offset"]) for row in found)
    expected = [(1, base) for base in range(MAX_CONFLICTS)] + [(2, 200), (2, 201), (2, 202)]
    assert offsets == dict.fromkeys(expected, 2)


def test_a_batch_within_another_one_of_its_epoch_differs_from_it(tmp_path: Path) -> None:
    """As of a log with a damaged base offset, which no CRC covers; in other epochs it may begin there."""
    rows = [batch("c", node, base, last_offset=base + 9) for node in (1, 2) for base in range(0, 100, 10)]
    rows += [batch("c", 3, 45, crc=1), batch("c", 3, 145, 2), batch("d", 1, 15), batch("c", 1, 15, 3)]
    for compared in (1, 10**6):
        found = batch_conflicts(dataset_of(tmp_path, rows), ["c", "d"], compared).to_pylist()
        assert {row["base_offset"] for row in found} == {45}
        assert {(row["crc"], row["last_offset"]): len(row["held_by"]) for row in found} == {
            (280, 49): 2,
            (1, 45): 1,
        }


def test_equal_logs_and_other_epochs_do_not_conflict(tmp_path: Path) -> None:
    rows = [batch("c", node, base) for node in (1, 2, 3) for base in range(50)]
    rows += [batch("c", 1, base, 2, crc=1) for base in range(50)] + [batch("d", 1, 3, crc=1)]
    batches = dataset_of(tmp_path, rows)
    assert batch_conflicts(batches, ["c", "d"]).num_rows == 0
    assert batch_conflicts(batches, ["none"]).num_rows == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_batch_ends(seed: int, tmp_path: Path) -> None:
    """For each end of a snapshot the batch of its own cluster and epoch that holds the record below it."""
    rnd = random.Random(seed)
    rows = random_batches(rnd)
    snapshots = [
        {"cluster_id": cluster, "leader_epoch": rnd.randint(1, 4), "end_offset": rnd.randint(0, 420)}
        for cluster in "ab"
        for _ in range(30)
    ]
    expected = {
        (s["cluster_id"], s["leader_epoch"], s["end_offset"], row["last_offset"] + 1)
        for s in snapshots
        for row in rows
        if row["cluster_id"] == s["cluster_id"] and row["leader_epoch"] == s["leader_epoch"]
        if row["base_offset"] < s["end_offset"] <= row["last_offset"] + 1
    }
    found = batch_ends(dataset_of(tmp_path, rows, files=3), pa.Table.from_pylist(snapshots)).to_pylist()
    assert expected
    assert {tuple(row.values()) for row in found} == expected
    assert list(found[0]) == ["cluster_id", "leader_epoch", "end_offset", "batch_end"]


def test_no_snapshot_has_no_batch_end(tmp_path: Path) -> None:
    bootstrap = {"cluster_id": "c", "leader_epoch": 0, "end_offset": 0}
    batches = dataset_of(tmp_path, [batch("c", 1, 0, 0)])
    assert batch_ends(batches, pa.Table.from_pylist([bootstrap])).num_rows == 0


def test_batches_are_counted_by_cluster(tmp_path: Path) -> None:
    rows = [batch(cluster, 1, base) for cluster, count in (("a", 5), ("b", 3)) for base in range(count)]
    batches = dataset_of(tmp_path, rows, files=3)
    assert batch_counts(batches, ["a", "b", "none"]) == {"a": 5, "b": 3}
    assert batch_counts(batches, ["b"]) == {"b": 3}
