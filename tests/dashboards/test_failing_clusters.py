"""A page over clusters of which one cannot be shown: its part says why, the others are as without it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from dashboards import embedded_sql
from dashboards.report.write import DamagedLakeError, made_report
from dashboards.summary import summary
from jobs.runtime.settings import NamedCluster
from tests.dashboards.histories import version
from tests.dashboards.small_lakes import BY_NAME, write, write_for, written_report
from transforms.lake.tables import CAPTURES, CLUSTER_NAMES, DERIVATIONS, EPOCHS, FINDINGS, VOTER_CHANGES

Row = dict[str, Any]
NOW = 1_795_262_400_000
PAGE = Path("page.html")
CLUSTERS = ["cluster-0", "cluster-1"]
FAILING = "cluster-1"
SOUND = [cluster for cluster in CLUSTERS if cluster != FAILING]
TIME = datetime(2026, 11, 21, 9, tzinfo=UTC)
# In the year 12026.
BEYOND = pa.scalar(317_330_000_000_000_000, pa.timestamp("us", tz="UTC"))


def sound_lake(lake: Path) -> None:
    """A capture of each cluster, and every table of the views, of which few have rows."""
    write_for(lake, "admin_events", {})
    taken = {"captured_at": TIME, "last_captured_at": TIME, "node_id": 1, "directory_id": "d"}
    write(
        lake,
        CAPTURES,
        [{"cluster_id": cluster, "capture_id": f"of {cluster}"} | taken for cluster in CLUSTERS],
    )
    write(lake, DERIVATIONS, [{"cluster_id": cluster} for cluster in CLUSTERS])
    (lake / "lake.json").write_text('{"format_version": 1}')


def beyond_the_calendar(lake: Path) -> None:
    """Python's ends with the year 9999."""
    rows = DeltaTable(lake / CAPTURES.name).to_pyarrow_table()
    for name in ("captured_at", "last_captured_at"):
        times = pc.if_else(pc.equal(rows["cluster_id"], FAILING), BEYOND, rows[name])
        rows = rows.set_column(rows.column_names.index(name), name, times)
    write(lake, CAPTURES, rows)


def value_that_fails_a_view(lake: Path) -> None:
    """As the definition of admin_events was once: the whole query fails for one cluster's quota."""
    quota = {"cluster_id": FAILING, "entity_name": "user=bob", "key": "producer_byte_rate", "value": 1e308}
    write(lake, BY_NAME["client_quotas"], [version(6, None, **quota)])


def unknown_kind(lake: Path) -> None:
    change = {"kind": "eaten", "voter_id": 1, "changed_at": TIME, "offset": 1, "leader_epoch": 1}
    write(lake, VOTER_CHANGES, [{"cluster_id": FAILING, "directory_id": "d"} | change])


def unknown_state(lake: Path) -> None:
    of_rule = {"state": "odd", "severity": "error", "rule": 1, "first_seen_at": TIME, "last_seen_at": TIME}
    write(lake, FINDINGS, [{"cluster_id": FAILING} | of_rule])


def no_epoch(lake: Path) -> None:
    write(lake, EPOCHS, [{"cluster_id": FAILING, "leader_epoch": epoch} for epoch in (None, 1)])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (beyond_the_calendar, "OverflowError: "),
        (value_that_fails_a_view, "Cannot cast string '1e308'"),
        (unknown_kind, "KeyError: "),
        (unknown_state, "ValueError: "),
        (no_epoch, "TypeError: "),
    ],
)
def test_a_cluster_that_cannot_be_shown_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None], reason: str
) -> None:
    guard = (r" AND abs\(value\) < 1e16", "")
    monkeypatch.setattr(embedded_sql, "EQUIVALENTS", (*embedded_sql.EQUIVALENTS, guard))
    sound_lake(tmp_path)
    page = tmp_path / "page.html"
    written = written_report(tmp_path, page, NOW, SOUND)
    assert (written.failed, written.clusters) == ({}, len(SOUND))
    alone = parts(page)
    damage(tmp_path)
    written = written_report(tmp_path, page, NOW)
    (failed,) = written.failed.items()
    assert failed[0] == FAILING
    assert reason in failed[1]
    assert written.clusters == len(CLUSTERS)
    assert set(written.detailed) == set(SOUND)
    of_failing, *others = parts(page)
    assert f"{FAILING} could not be shown: {failed[1]}" in of_failing
    assert others == alone
    fleet = page.read_text().partition("</table>")[0]
    assert "1 of 2 clusters needs action." in fleet
    assert fleet.count("could not be shown: ") == 1


def parts(page: Path) -> list[str]:
    """The text of each cluster's part."""
    found = page.read_text().split('<details class="cluster"')[1:]
    return [" ".join(html.unescape(re.sub("<[^>]*>", " ", f"<{part}")).split()) for part in found]


def test_the_settings_name_clusters_that_the_lake_does_not(tmp_path: Path) -> None:
    sound_lake(tmp_path)
    write(tmp_path, CLUSTER_NAMES, [{"cluster_id": CLUSTERS[0], "name": "in-the-lake"}])
    assert "in-the-lake" in made_report(tmp_path, NOW, PAGE).data.decode()
    names = [NamedCluster("in-the-settings", CLUSTERS[1]).row]
    page = made_report(tmp_path, NOW, PAGE, names=names).data.decode()
    assert f"in-the-settings</a><code>{CLUSTERS[1]}</code>" in page
    assert "in-the-lake" not in page


def test_a_cluster_that_cannot_be_shown_has_its_name(tmp_path: Path) -> None:
    sound_lake(tmp_path)
    no_epoch(tmp_path)
    write(tmp_path, CLUSTER_NAMES, [{"cluster_id": FAILING, "name": "in-the-lake"}])
    page = made_report(tmp_path, NOW, PAGE).data.decode()
    assert '<span class="title">in-the-lake</span>' in page
    assert '<a href="#c1">in-the-lake</a><ul><li>could not be shown: ' in page
    names = [NamedCluster("in-the-settings", FAILING).row]
    assert '<a href="#c1">in-the-settings</a>' in made_report(tmp_path, NOW, PAGE, names=names).data.decode()


def test_damage_of_the_lake_is_no_fault_of_a_cluster(tmp_path: Path) -> None:
    sound_lake(tmp_path)
    no_epoch(tmp_path)
    (file,) = (tmp_path / EPOCHS.name).glob("*.parquet")
    file.write_bytes(b"no parquet")
    with pytest.raises(DamagedLakeError):
        written_report(tmp_path, tmp_path / "page.html", NOW)
    assert not (tmp_path / "page.html").exists()


def test_a_cluster_that_cannot_be_summed_up_costs_itself(tmp_path: Path) -> None:
    sound_lake(tmp_path)
    alone = summary(tmp_path, SOUND)
    no_epoch(tmp_path)
    found = summary(tmp_path, CLUSTERS)
    (failed,) = found.failed.items()
    assert failed[0] == FAILING
    assert failed[1].startswith("TypeError: ")
    assert found.lines == alone.lines != []
