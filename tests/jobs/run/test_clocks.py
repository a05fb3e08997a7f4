"""Leaders whose clocks are out of this world: their clusters are read like any other, and so are others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dashboards import embedded_sql
from jobs.cli import main
from kraft_core.format.segment import scan
from tests.jobs.lakes import asking, opened, run
from tests.kraft_core.batches import resealed
from transforms.lake.delta_rs import rows_with
from transforms.lake.spark_rows import to_rows
from transforms.lake.tables import BATCHES, CAPTURES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS

DYNAMIC = "rPoTXydvQsK3Nv6AA77Cqg"
FAR_MS = 300_000_000_000_000
FIRST, LAST = "0001-01-02T00:00:00+00:00", "9999-12-31T23:59:59.999000+00:00"


def restamped(captured: Path, target: Path, cluster_id: str, wrong: Callable[[int], int]) -> Path:
    """A capture as another cluster whose clock shows `wrong` of its times (ms): all checksums hold."""
    shutil.copytree(captured, target)
    meta = target / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("cluster.id")]
    meta.write_text("\n".join([*lines, f"cluster.id={cluster_id}"]) + "\n")
    for path in [*sorted(target.rglob("*.log")), *sorted(target.rglob("*.checkpoint"))]:
        log = bytearray(path.read_bytes())
        for header in scan(bytes(log)):
            batch = bytearray(log[header.position : header.position + header.size_bytes])
            for at, ms in ((27, header.base_timestamp), (35, header.max_timestamp)):
                batch[at : at + 8] = wrong(ms).to_bytes(8, "big", signed=True)
            log[header.position : header.position + header.size_bytes] = resealed(bytes(batch))
        path.chmod(0o644)
        path.write_bytes(log)
    return target


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_mad_clocks_fail_no_load(golden: Path, tmp_path: Path) -> None:
    """One far behind the calendar, one far beyond it, and a sound cluster in the same run."""
    sound, changing = golden / "v4.4.0-mini/node-1", golden / "dynamic-membership/node-1"
    captures = [
        restamped(sound, tmp_path / "past", "past", lambda ms: ms - FAR_MS),
        restamped(changing, tmp_path / "future", "future", lambda ms: ms + FAR_MS),
        restamped(sound, tmp_path / "sound", "sound", lambda ms: ms),
    ]
    lake = tmp_path / "lake"
    assert run(lake, *captures) == 0

    def times(table: Any, cluster: str, column: str = "appended_at") -> set[str]:
        return {iso(row[column]) for row in rows_with(lake, table, [column], cluster_id=[cluster])}

    for cluster, held in (("past", FIRST), ("future", LAST)):
        assert times(BATCHES, cluster) == times(RECORDS, cluster) == {held}
        (capture,) = rows_with(lake, CAPTURES, cluster_id=[cluster])
        assert {iso(stretch["last_appended_at"]) for stretch in capture["epoch_ranges"]} == {held}
    assert times(SNAPSHOT_RECORDS, "future") == times(SNAPSHOTS, "future", "header_at") - {"None"} == {LAST}
    assert {time[:4] for time in times(BATCHES, "sound")} == {"2026"}
    rows = {c: rows_with(lake, RECORDS, ["offset", "type"], cluster_id=[c]) for c in ("past", "sound")}
    assert by_offset(rows["past"]) == by_offset(rows["sound"])


# What the views tell of a cluster but for times, which these do not depend on: their columns and order.
TOLD = {
    "leader_changes": "`offset`, topic_id, partition_id, leader_before, leader, cause, caused_by_broker, "
    "caused_by_offset, is_unclean, is_exact, earliest_offset",
    "why_fenced": "from_offset, to_offset, broker_id, cause, state_before, from_exact, to_exact, "
    "leaders_moved, left_leaderless",
    "partition_batches": "`offset`, topic_id, partition_count, first_partition, last_partition, "
    "replication_factor, with_topic, is_exact, earliest_offset",
    "admin_events": "`offset`, subject, operation, resource_type, `before`, `after`, is_exact, "
    "earliest_offset",
}


@pytest.fixture(scope="module")
def drawn_clock(spark: Any, golden: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A capture whose leaders' clocks go back and forth within an hour, few above the first; and its lake."""
    random, known = Random(30), dict[int, int]()
    free = [3_600_000, *random.sample(range(3_500_000), 3_500)]

    def drawn(ms: int) -> int:
        return known.setdefault(ms, ms + free[len(known)])

    path = tmp_path_factory.mktemp("clocks")
    captured = restamped(golden / "dynamic-membership/node-3", path / "node-3", DYNAMIC, drawn)
    assert run(path / "lake", captured) == 0
    return captured, opened(spark, path / "lake")


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("view", TOLD)
def test_what_views_tell_is_the_same_by_clocks_that_go_back(
    lake: Any, drawn_clock: tuple[Path, Any], view: str
) -> None:
    """As in the golden lake, where clocks were fine. By both engines, but for the view that joins all."""
    told = f"SELECT {TOLD[view]} FROM {{}} WHERE cluster_id = '{DYNAMIC}' ORDER BY 1, 2, 3, 4"
    expected = embedded_sql.query(lake.path, view, told.format(view))
    assert expected is not None
    assert len(expected)
    found = embedded_sql.query(drawn_clock[1].path, view, told.format(view))
    assert found is not None
    assert found.to_pylist() == expected.to_pylist()
    if view != "admin_events":
        by_spark = asking(lake.spark, drawn_clock[1].path)(told.format(f"kraft.{view}"))
        assert to_rows(by_spark) == expected.to_pylist()


@pytest.mark.parametrize("partition", range(4))
def test_explain_is_the_same_by_clocks_that_go_back(
    drawn_clock: tuple[Path, Any], capsys: pytest.CaptureFixture[str], partition: int
) -> None:
    """By a lake and by the capture."""
    captured, lake = drawn_clock
    for at in ("1500", "3000"):
        words = ("--topic", "t-rf2", "--partition", str(partition), "--at", at)
        assert main(["explain", "--captures", str(captured), *words]) == 0
        expected = capsys.readouterr().out
        assert "appended together with" in expected
        assert main(["explain", "--lake", str(lake.path), *words]) == 0
        assert capsys.readouterr().out == expected


def iso(time: datetime | None) -> str:
    return "None" if time is None else time.isoformat()


def by_offset(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return sorted((row["offset"], row["type"]) for row in rows)
