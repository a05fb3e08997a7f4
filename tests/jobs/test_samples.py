"""Samples that grow old: one an hour stays, the one in which a replica was furthest behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.maintenance.samples import ALL_KEPT, superfluous
from tests.dashboards.small_lakes import write
from transforms.lake.tables import OBSERVATIONS

Row = dict[str, Any]
BEGAN = datetime(2026, 11, 21, 9, tzinfo=UTC)


def sample(
    minutes: float, lag: int = 0, epoch: int = 1, cluster: str = "a", live: str = "-live"
) -> list[Row]:
    """The rows of a sample: a status, and the lags of a leader and of a follower."""
    at = BEGAN + timedelta(minutes=minutes)
    row: Row = {"cluster_id": cluster, "observed_from": at - timedelta(milliseconds=2), "observed_to": at}
    status = {"kind": "status", "source": f"{minutes}-status{live}.txt", "leader_epoch": epoch}
    lags = {"kind": "replication", "source": f"{minutes}-replication{live}.txt"}
    return [
        row | {"observation_id": f"{cluster} {minutes:g} status"} | status,
        *(
            row | {"observation_id": f"{cluster} {minutes:g} replication", "lag_records": behind} | lags
            for behind in (0, lag)
        ),
    ]


def gone(lake: Path, now: datetime, oldest: datetime | None = None) -> list[str]:
    found = superfluous(lake, now - ALL_KEPT, oldest)
    return sorted(set(found["observation_id"].to_pylist()))


def outputs(*minutes: float, cluster: str = "a") -> list[str]:
    return sorted(f"{cluster} {each:g} {kind}" for each in minutes for kind in ("status", "replication"))


def later(hours: float) -> datetime:
    return BEGAN + ALL_KEPT + timedelta(hours=hours)


def test_one_an_hour_stays_that_of_the_greatest_lag(tmp_path: Path) -> None:
    lags = {0: 0, 10: 7, 20: 3, 59: 7, 60: 0, 70: 0, 130: 1}
    write(tmp_path, OBSERVATIONS, [row for at, lag in lags.items() for row in sample(at, lag)])
    assert gone(tmp_path, later(24)) == outputs(0, 10, 20, 60)
    # A day old is the first hour, and of that what is over.
    assert gone(tmp_path, later(0.5)) == outputs(0, 20)
    assert gone(tmp_path, later(0)) == []


def test_of_each_epoch_one_stays(tmp_path: Path) -> None:
    rows = [*sample(0, 5), *sample(10, epoch=2), *sample(20, epoch=2), *sample(30, epoch=3), *sample(600)]
    write(tmp_path, OBSERVATIONS, rows)
    assert gone(tmp_path, later(24)) == outputs(10)


def test_what_is_too_old_goes_but_the_newest(tmp_path: Path) -> None:
    rows = [*sample(0, 5), *sample(70), *sample(130), *sample(10, cluster="b"), *sample(20, cluster="b")]
    write(tmp_path, OBSERVATIONS, rows)
    assert gone(tmp_path, later(24), BEGAN + timedelta(hours=2)) == [
        *outputs(0, 70),
        *outputs(10, cluster="b"),
    ]
    assert gone(tmp_path, later(24), later(24)) == [*outputs(0, 70), *outputs(10, cluster="b")]


def test_describe_outputs_stay(tmp_path: Path) -> None:
    write(tmp_path, OBSERVATIONS, [row for at in (0, 10, 20) for row in sample(at, live="")])
    assert gone(tmp_path, later(240), later(240)) == []
