"""Clusters that the page has no room for have a page each, in a folder beside it."""

from __future__ import annotations

import re
from pathlib import Path

from dashboards.report.page import file_name, page
from dashboards.report.write import folder_of
from tests.bench.report import NOW_MS, fleet
from tests.dashboards.small_lakes import written_report
from tests.dashboards.worlds import NOW, states, told


def test_every_cluster_has_its_details(tmp_path: Path) -> None:
    """Each link of the fleet leads to a part of the page or to a file, and each of these leads back."""
    lake, out = fleet(tmp_path / "lake", 64, 20, 100), tmp_path / "a page.html"
    made = written_report(lake, out, NOW_MS)
    assert len(made.detailed) + len(made.beside) == made.clusters == 64
    assert len(made.beside) >= 4
    text = out.read_text()
    rows = text.partition('<table class="fleet">')[2].partition("</table>")[0]
    links = re.findall(r'<a href="([^"]*)">cluster-\d{4}</a>', rows)
    assert len(links) == 64
    files = [link for link in links if not link.startswith("#")]
    assert {link.partition("/")[0] for link in files} == {"a%20page-clusters"}
    assert {link.partition("/")[2] for link in files} == {f.name for f in folder_of(out).iterdir()}
    assert "each other has a page, in folder <code>a page-clusters</code>" in text
    one = (folder_of(out) / files[0].partition("/")[2]).read_text()
    assert '<a href="../a%20page.html">Kraftlake</a>' in one
    assert "<h3>Voters and leaders</h3>" in one


def test_pages_of_clusters_that_are_gone_go(tmp_path: Path) -> None:
    lake, out = fleet(tmp_path / "lake", 64, 20, 100), tmp_path / "page.html"
    made = written_report(lake, out, NOW_MS)
    some = [*made.detailed[:2]]
    (folder_of(out) / "notes.txt").write_text("mine")
    written_report(lake, out, NOW_MS, some)
    assert [file.name for file in folder_of(out).iterdir()] == ["notes.txt"]
    (folder_of(out) / "notes.txt").unlink()
    written_report(lake, out, NOW_MS, some)
    assert not folder_of(out).exists()


def test_the_name_of_a_page_is_no_path() -> None:
    assert file_name("rPoTXydvQsK3Nv6AA77Cqg") == "rPoTXydvQsK3Nv6AA77Cqg.html"
    odd = ["../../etc/x", "a/b", "", ".", "..", "x" * 300, "a b", "\ud800", "lives~2"]
    names = [file_name(cluster) for cluster in odd]
    assert all(re.fullmatch(r"[0-9a-f]{22}\.html", name) for name in names)
    assert len(set(names)) == len(odd)


def test_a_thousand_clusters_are_a_page_below_three_megabytes() -> None:
    names = [f"cluster-{n:04}-abcdefgh" for n in range(1_000)]
    listed = states(*names, findings={"errors": 1, "warnings": 0})
    made = page(listed, {s.cluster_id: told() for s in listed[:60]}, NOW, "lake", folder="quorum-clusters")
    assert len(made.text.encode()) < 3_000_000
    assert made.text.count('href="quorum-clusters/') + len(made.detailed) >= 1_000
