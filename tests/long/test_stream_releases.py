"""Spark's stream and kraftlake follow on controllers of other releases: their rows are those of captures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli import main
from tests.long.live_quorum import kafka_tools
from tests.long.live_stream import Driver, ObservedCluster, alike, captured_rows, controllers, driving
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import LOG_RANGES, RECORDS


@pytest.fixture(scope="module", params=["3.9.2", "4.4.0"])
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObservedCluster]:
    """A quorum of one controller."""
    path = tmp_path_factory.mktemp("release") / "live"
    port = 29520 if request.param == "3.9.2" else 29540
    live = ObservedCluster(kafka_tools(request.param), path, port, release=request.param)
    try:
        live.format(1, "--standalone")
        live.start(1)
        live.leader(1)
        yield live
    finally:
        live.close()


@pytest.mark.long
def test_a_stream_reads_what_is_committed(live: ObservedCluster, tmp_path: Path) -> None:
    committed = live.watermark(1)
    driver = Driver(tmp_path / "now", {"bootstrap.controllers": controllers(live, 1)}, {"availableNow": True})
    with driving(driver):
        assert driver.ended() == 0, driver.said
    rows = alike(driver.rows())
    held = captured_rows(live.capture("now", 1), live.cluster_id, len(rows))
    assert rows == [held[offset] for offset in range(len(rows))]
    assert len(rows) >= committed


@pytest.mark.long
def test_follow_loads_what_is_committed(live: ObservedCluster, tmp_path: Path) -> None:
    committed, lake = live.watermark(1), tmp_path / "lake"
    words = ["follow", "--bootstrap-controllers", controllers(live, 1), "--lake", str(lake), "--for", "0s"]
    assert main(words) == 0
    offsets = sorted(row["offset"] for row in rows_with(lake, RECORDS, ["offset"]))
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= committed
    assert {row["commit_status"] for row in rows_with(lake, LOG_RANGES)} == {"committed"}
