"""Lag by replica and commit rate: what samples of a running quorum show, whole or binned."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dashboards.report.page import page
from dashboards.report.samples import MOST_BINS, Rate, Samples, ask_samples, binned, samples_of
from kraft_core.format.capture import FOLLOWED_NODE_ID
from tests.dashboards.small_lakes import write, written_report
from tests.dashboards.worlds import (
    NOW,
    at,
    capture,
    few_of,
    sample_rows,
    samples_told,
    states,
    told,
)
from transforms.lake.arrow_rows import EPOCH
from transforms.lake.tables import CAPTURES, OBSERVATIONS

Row = dict[str, Any]


def sampled(rows: list[Row]) -> Samples:
    found = binned(pa.Table.from_pylist(rows))
    samples = samples_of(found["sampled_lags"], found["sampled_watermarks"])
    assert samples is not None
    return samples


def test_few_samples_are_told_each() -> None:
    found = sampled([*sample_rows(at(0), 100, {2: 0, 3: 4}), *sample_rows(at(60), 220, {2: 1, 3: 0})])
    assert found.times == (at(0), at(60))
    assert [(each.replica.node_id, each.status) for each in found.replicas] == [
        (1, "Leader"),
        (2, "Follower"),
        (3, "Follower"),
    ]
    assert [[lag.most for lag in each.lags] for each in found.replicas] == [[0, 0], [0, 1], [4, 0]]
    assert [each.now for each in found.replicas] == [0, 1, 0]
    assert found.rates == (Rate(at(0), at(60), 120, 220),)
    assert found.rates[0].a_second == 2


def test_many_samples_keep_the_worst_lag_of_each_bin() -> None:
    rows = [row for n in range(10_000) for row in sample_rows(at(n), 2 * n, {2: 900 if n == 4_321 else 0})]
    found = sampled(rows)
    node_2 = found.replicas[1]
    assert len(node_2.lags) == MOST_BINS
    assert node_2.samples == 10_000
    assert node_2.worst is not None
    assert node_2.worst.most == 900
    assert node_2.worst.start <= at(4_321) <= node_2.worst.end
    assert [lag.most for lag in node_2.lags].count(0) == MOST_BINS - 1
    assert sum(rate.records for rate in found.rates) == 2 * (9_999 - (found.rates[0].start - at(0)) // 1000)
    assert {round(rate.a_second, 6) for rate in found.rates} == {2}


def test_a_new_leaders_lower_watermark_is_no_loss() -> None:
    rows = [row for n, reached in enumerate((100, 90, 130)) for row in sample_rows(at(n), reached, {})]
    assert [rate.records for rate in sampled(rows).rates] == [0, 30]


def test_an_answer_without_a_high_watermark_has_lags_alone() -> None:
    found = sampled([*sample_rows(at(0), None, {2: None}), *sample_rows(at(1), 7, {2: None})])
    assert found.rates == ()
    assert [(each.now, each.lags) for each in found.replicas if each.replica.node_id == 2] == [(None, ())]


def test_the_page_has_the_section_only_where_samples_are() -> None:
    text = page(states("a"), {"a": told()}, NOW, "lake").text
    assert "Lag and commit rate" not in text
    rows = told() | samples_told()
    text = re.sub(r"<[^>]*>", " ", page(states("a"), {"a": rows}, NOW, "lake").text)
    assert "Lag and commit rate" in text
    assert re.search(r"node 3 \(\w+\), follower: up to 40 behind", text)
    assert "was 40 records behind, 2026-11-21" in text
    assert "records committed a second, from" in text


def test_of_many_observers_those_behind_most_are_drawn() -> None:
    lags: dict[int, int | None] = {node: node if node > 50 else 0 for node in range(2, 103)}
    rows = few_of({"captures": [capture(1, NOW, 9)]}) | binned(
        pa.Table.from_pylist([*sample_rows(at(0), 5, lags), *sample_rows(at(60), 9, lags)])
    )
    text = page(states("a"), {"a": rows}, NOW, "lake").text
    assert "The 12 replicas that were behind most; the table has all 102." in text
    assert 'class="node">node 102, observer: up to 102 behind' in text
    assert 'class="node">node 5,' not in text


def stored(rows: list[Row], source: str) -> list[Row]:
    """Rows of table observations of one cluster."""
    return [
        {name: value for name, value in row.items() if name != "at"}
        | {
            "cluster_id": "a",
            "source": source,
            "observation_id": f"{row['at']}",
            "observed_from": EPOCH + timedelta(milliseconds=row["at"] - 3),
            "observed_to": EPOCH + timedelta(milliseconds=row["at"]),
        }
        for row in rows
    ]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Of cluster a one followed copy, two samples, and a describe output, which is none."""
    lake = tmp_path / "lake"
    followed = capture(1, at(60), 9) | {"node_id": FOLLOWED_NODE_ID, "directory_id": "x" * 22}
    times = {"captured_at": EPOCH + timedelta(milliseconds=at(60))}
    times["last_captured_at"] = times["captured_at"]
    write(lake, CAPTURES, [{**followed, **times, "cluster_id": "a", "snapshots": None}])
    observed = [
        *stored(sample_rows(at(0), 5, {2: 3}), "1-2-live.txt"),
        *stored(sample_rows(at(60), 9, {2: 0}), "1-2-live.txt"),
        *stored(sample_rows(at(90), 99, {2: 77}), "1-status.txt"),
    ]
    write(lake, OBSERVATIONS, observed)
    return lake


def test_samples_are_read_from_the_lake(lake: Path) -> None:
    (found,) = ask_samples(lake, ["a"]).values()
    samples = samples_of(found["sampled_lags"], found["sampled_watermarks"])
    assert samples is not None
    assert samples.times == (at(0), at(60))
    assert [rate.records for rate in samples.rates] == [4]
    assert ask_samples(lake, ["b"]) == {"b": {}}
    assert ask_samples(lake.with_name("none"), ["a"]) == {"a": {}}
    assert ask_samples(lake, []) == {}


def test_what_was_followed_is_no_replica(lake: Path, tmp_path: Path) -> None:
    made = written_report(lake, tmp_path / "page.html", NOW)
    assert not made.failed
    text = made.data.decode()
    assert "node -1" not in text
    assert "of 0 replicas, and followed" in text
    assert f"<td>followed</td><td><code>{'x' * 22}</code></td>" in text
