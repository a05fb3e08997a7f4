"""Leaders whose clocks are out of this world: their clusters are read like any other, and so are others."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.segment import scan
from tests.jobs.lakes import run
from tests.kraft_core.batches import resealed
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import BATCHES, CAPTURES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS

FAR_MS = 300_000_000_000_000
FIRST, LAST = "0001-01-02T00:00:00+00:00", "9999-12-31T23:59:59.999000+00:00"


def restamped(captured: Path, target: Path, cluster_id: str, by_ms: int) -> Path:
    """A capture as another cluster whose clock is wrong by so many ms: all checksums hold."""
    shutil.copytree(captured, target)
    meta = target / "meta.properties"
    lines = [line for line in meta.read_text().splitlines() if not line.startswith("cluster.id")]
    meta.write_text("\n".join([*lines, f"cluster.id={cluster_id}"]) + "\n")
    for path in [*target.rglob("*.log"), *target.rglob("*.checkpoint")]:
        log = bytearray(path.read_bytes())
        for header in scan(bytes(log)):
            batch = bytearray(log[header.position : header.position + header.size_bytes])
            for at, ms in ((27, header.base_timestamp), (35, header.max_timestamp)):
                batch[at : at + 8] = (ms + by_ms).to_bytes(8, "big", signed=True)
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
        restamped(sound, tmp_path / "past", "past", -FAR_MS),
        restamped(changing, tmp_path / "future", "future", FAR_MS),
        restamped(sound, tmp_path / "sound", "sound", 0),
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


def iso(time: datetime | None) -> str:
    return "None" if time is None else time.isoformat()


def by_offset(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return sorted((row["offset"], row["type"]) for row in rows)
