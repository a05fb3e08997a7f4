"""Reading the captures of many cluster ids a group at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.transforms.quality.sound_cluster import a_row
from transforms.ingest import id_groups
from transforms.ingest.captured_lives import captured_lives
from transforms.lake.commits import TableWriter
from transforms.lake.tables import CAPTURES, LIVES

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
OF_ID = {"a": ["a"], "b": ["b/one", "b/two"], "c": ["c"], "d": ["d"]}


def captured(cluster_id: str, name: str, crc: int, end: int) -> dict[str, Any]:
    """A row of captures: a log of one range that begins with a batch of that CRC."""
    held = {
        "leader_epoch": 1,
        "first_offset": 0,
        "end_offset": end,
        "digest": f"{crc}:{end}",
        "first_appended_at": NOON + timedelta(seconds=crc),
        "last_appended_at": NOON + timedelta(seconds=crc + end),
        "first_batch_crc": crc,
    }
    life = cluster_id.partition("/")[2] or None
    directory = {"node_id": crc, "directory_id": "A" * 22, "snapshots": []}
    return a_row(
        CAPTURES, cluster_id=cluster_id, capture_id=name, epoch_ranges=[held], life=life, **directory
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Captures of three cluster ids; of b as two lives, of c as one, which they are not."""
    rows = [captured("a", f"a{n}", 1, 10 + n) for n in range(5)]
    rows += [captured("b/one", "b1", 1, 10), captured("b/two", "b2", 2, 20), captured("b/two", "b3", 2, 30)]
    rows += [captured("c", "c1", 1, 10), captured("c", "c2", 2, 10)]
    writer = TableWriter(tmp_path, None)
    for table in (CAPTURES, LIVES):
        writer.create(table)
    writer.append(CAPTURES, rows)
    return tmp_path


@pytest.mark.parametrize(("rows", "groups"), [(1, 4), (6, 2), (50, 1)])
def test_groups_have_all_ids(lake: Path, monkeypatch: pytest.MonkeyPatch, rows: int, groups: int) -> None:
    monkeypatch.setattr(id_groups, "ROWS_AT_ONCE", rows)
    found = list(id_groups.id_groups(lake, CAPTURES, OF_ID))
    assert len(found) == groups
    assert {id_: names for some in found for id_, names in some.items()} == OF_ID


def test_without_a_table_there_is_one_group(tmp_path: Path) -> None:
    assert list(id_groups.id_groups(tmp_path, CAPTURES, OF_ID)) == [OF_ID]
    assert list(id_groups.id_groups(tmp_path, CAPTURES, {})) == []


def test_lives_are_the_same_in_small_groups(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = {each.kafka_cluster_id: each for each in captured_lives(lake, list(OF_ID), None)}
    assert {name: (len(each.lives), each.is_settled) for name, each in together.items()} == {
        "a": (1, True),
        "b": (2, False),  # under other names than these lives have
        "c": (2, False),
        "d": (0, True),
    }
    rows = together["b"].rows(together["b"].held())
    assert sorted(row["nodes"] for row in rows) == [[1], [2]]
    monkeypatch.setattr(id_groups, "ROWS_AT_ONCE", 1)
    apart = {each.kafka_cluster_id: each for each in captured_lives(lake, list(OF_ID), None)}
    assert apart == together
    assert {name: each.targets for name, each in apart.items()} == {
        name: each.targets for name, each in together.items()
    }
