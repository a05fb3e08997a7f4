"""The page of the golden lake: its numbers are those that SQL gives; the verb and its errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dashboards import embedded_sql
from dashboards.report.history_queries import admin_events
from jobs.cli import main
from transforms.lake.spark_rows import to_rows

NOW = "2026-11-21T12:00:00Z"
# The cluster of golden/uncommitted-truncation, -removal and -then-committed.
TRUNCATED = "iWP35uOsShu1pFlBJh_E7w"


class Shown(HTMLParser):
    """The rows of a page's tables, by caption: the text of each cell."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: dict[str, list[list[str]]] = {}
        self.all_tables: list[tuple[str, list[list[str]]]] = []
        self._in_caption = False
        self._rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "table":
            self._rows = []
        self._in_caption = tag == "caption"
        if tag == "tr":
            self._rows.append([])
        if tag == "td":
            self._rows[-1].append("")
        if tag in ("small", "li", "span") and self._rows and self._rows[-1]:
            self._rows[-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._rows = []

    def handle_data(self, data: str) -> None:
        if self._in_caption:
            self.tables[data] = self._rows
            self.all_tables.append((data, self._rows))
        elif self._rows and self._rows[-1]:
            self._rows[-1][-1] += data

    def rows(self, caption: str) -> list[list[str]]:
        """Those of the last table with the caption."""
        return tidy(self.tables[caption])

    def all_rows(self, caption: str) -> list[list[str]]:
        """Those of all clusters."""
        return [row for name, rows in self.all_tables if name == caption for row in tidy(rows)]


def tidy(rows: list[list[str]]) -> list[list[str]]:
    return [[" ".join(cell.split()) for cell in row] for row in rows if row]


def number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def shown_bound(value: int | None) -> str:
    return "?" if value is None else number(value)


def when(time: datetime | None) -> str:
    return "–" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def listed(values: list[int]) -> str:
    return re.sub(r", (\d+)$", r" and \1", ", ".join(map(str, values)))


@pytest.fixture(scope="module")
def made(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the golden lake."""
    out = tmp_path_factory.mktemp("page") / "page.html"
    assert main(["report", "--lake", str(lake.path), "--out", str(out), "--now", NOW]) == 0
    return out


@pytest.fixture(scope="module")
def ask(ask: Any) -> Any:
    """Answers of SQL over the golden lake."""
    return lambda statement: to_rows(ask(statement))


def test_the_fleet_equals_sql(made: Path, ask: Any) -> None:
    rows = ask(
        """SELECT c.*, v.voter_ids, v.commit_status, e.leader_epoch, e.leader_id, w.lower_bound,
                  w.latest_upper_bound, w.as_of, m.committed_end_offset, COALESCE(f.errors, 0) AS errors,
                  COALESCE(f.warnings, 0) AS warnings
           FROM (SELECT cluster_id, MAX(captured_at) AS captured_at FROM captures GROUP BY cluster_id) c
           LEFT JOIN current_voters v USING (cluster_id)
           LEFT JOIN (SELECT * FROM leader_timeline WHERE next_elected_at IS NULL) e USING (cluster_id)
           LEFT JOIN watermark_bounds w USING (cluster_id)
           LEFT JOIN committed_ends m USING (cluster_id)
           LEFT JOIN (SELECT cluster_id, COUNT_IF(severity = 'error') AS errors,
                             COUNT_IF(severity = 'warning') AS warnings
                      FROM findings WHERE state = 'open' GROUP BY cluster_id) f USING (cluster_id)"""
    )
    shown = {row[1].split()[0]: row for row in Shown(made.read_text()).rows(
        "Clusters, most urgent first")}  # fmt: skip
    assert set(shown) == {r["cluster_id"] for r in rows}
    for r in rows:
        _, _, voters, leader, watermark, found, captured, _ = shown[r["cluster_id"]]
        assert voters == f"{listed(r['voter_ids'])} {r['commit_status']}"
        assert leader == f"node {r['leader_id']} epoch {r['leader_epoch']}"
        assert watermark == (
            f"{shown_bound(r['lower_bound'])} … {shown_bound(r['latest_upper_bound'])} "
            f"at {when(r['as_of'])} committed up to {number(r['committed_end_offset'])}"
        )
        assert found.split()[::2] == [str(r["errors"]), str(r["warnings"])]
        assert captured.endswith(when(r["captured_at"]))


def test_a_cluster_equals_sql(lake: Any, ask: Any, tmp_path: Path) -> None:
    out = tmp_path / "one.html"
    words = ["report", "--lake", str(lake.path), "--out", str(out), "--cluster", TRUNCATED, "--now", NOW]
    assert main(words) == 0
    page = Shown(out.read_text())
    epochs = ask(f"SELECT * FROM epochs WHERE cluster_id = '{TRUNCATED}' ORDER BY leader_epoch DESC")
    assert [row[:5] for row in page.rows("Epochs")] == [
        [number(e["leader_epoch"]), f"node {e['leader_id']}", when(e["elected_at"]),
         number(e["start_offset"]), listed(e["granting_voters"])]
        for e in epochs
    ]  # fmt: skip
    changes = ask(
        f"""SELECT c.*, s.truncated_by_epoch, s.evidence FROM voter_changes c
            JOIN voter_sets s USING (cluster_id, `offset`, leader_epoch)
            WHERE cluster_id = '{TRUNCATED}' ORDER BY `offset` DESC, voter_id"""
    )
    assert [(row[0], row[1], row[6]) for row in page.rows("Membership changes")] == [
        (when(c["changed_at"]), f"{number(c['offset'])} / e{c['leader_epoch']}", c["evidence"])
        for c in changes
    ]
    truncated = [row[5] for row in page.rows("Membership changes") if "truncated" in row[5]]
    assert truncated == ["✕ truncated by epoch 7", "✕ truncated by epoch 3"]
    (bounds,) = ask(f"SELECT * FROM watermark_bounds WHERE cluster_id = '{TRUNCATED}'")
    told = page.rows("Bounds")
    newest = bounds["later_lower_bound"] or bounds["lower_bound"]
    assert next(row[2] for row in told if row[1] == "at least") == number(newest)
    assert next(row[2] for row in told if row[1] == "at most") == number(bounds["latest_upper_bound"])


def test_every_event_is_in_the_page(lake: Any, made: Path) -> None:
    """The page has the newest, and those that repeat each other as one. So has Spark: test_both_engines."""
    rows = admin_events(lake.path)
    asked = "SELECT cluster_id, operation, `offset` FROM admin_events"
    found = embedded_sql.query(lake.path, "admin_events", asked)
    assert found
    in_sql = found.to_pylist()
    for cluster in {row["cluster_id"] for row in rows}:
        ours = [row for row in rows if row["cluster_id"] == cluster]
        events = [event for event in in_sql if event["cluster_id"] == cluster]
        newest = sorted(events, key=lambda event: -event["offset"])[: sum(row["times"] for row in ours)]
        counts = Counter[str]()
        for row in ours:
            counts[row["operation"]] += row["times"]
        assert counts == Counter(event["operation"] for event in newest)
    shown = {row[2] for row in Shown(made.read_text()).all_rows("Administrative operations")}
    assert {"add partitions", "elect leader", "reassign partition", "create topic"} <= shown


def test_the_verb_says_what_it_wrote(lake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    capsys.readouterr()
    assert main(["report", "--lake", str(lake.path), "--out", str(out)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["page"] == str(out)
    assert said["page_bytes"] == out.stat().st_size < 1_000_000
    assert said["clusters"] == said["clusters_detailed"] == 7
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lake", "{tmp}", "--out", "{tmp}/p.html"], "is not a lake"),
        (["--lake", "{lake}", "--out", "{lake}/lake.json/p.html"], "lake.json is not a folder"),
        (["--lake", "{lake}", "--out", "{tmp}"], "is a folder"),
        (["--lake", "{lake}", "--out", "{tmp}/p.html", "--cluster", "x"], "no capture of cluster x"),
        (["--lake", "{lake}", "--out", "{tmp}/p.html", "--now", "soon"], "is not a time such as"),
    ],
)
def test_wrong_usage_is_named(
    lake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    capsys.readouterr()
    try:
        code = main(["report", *(word.format(tmp=tmp_path, lake=lake.path) for word in words)])
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert said in "\n".join(capsys.readouterr().err.strip().splitlines()[-2:])  # then where help is
