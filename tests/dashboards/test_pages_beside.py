"""Clusters that the page has no room for have a page each, in a folder beside it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dashboards.report import page as page_module
from dashboards.report import standing, write
from dashboards.report.formatting import HOUR
from dashboards.report.page import file_name, page
from dashboards.report.write import folder_of, made_report, put_report
from tests.bench.report import NOW_MS, declared, epochs, fleet
from tests.dashboards.small_lakes import written_report
from tests.dashboards.worlds import NOW, states, told


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of more clusters than a page has room for."""
    return fleet(tmp_path_factory.mktemp("large") / "lake", 64, 20, 100, 40)


def test_every_cluster_has_its_details(large: Path, tmp_path: Path) -> None:
    """Each link of the fleet leads to a part of the page or to a file, and each of these leads back."""
    lake, out = large, tmp_path / "a page.html"
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


def test_pages_of_clusters_that_are_gone_go(large: Path, tmp_path: Path) -> None:
    lake, out = large, tmp_path / "page.html"
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


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake of eight clusters, whose page has room for one of them."""
    monkeypatch.setattr(page_module, "MOST_BYTES", 1)
    return fleet(tmp_path / "lake", 8, 20, 100, 40)


def test_a_page_stands_while_its_cluster_does_not_change(small: Path, tmp_path: Path) -> None:
    """Later, after another writing of the same rows, and where one page of many is not as it was made."""
    lake, out = small, tmp_path / "page.html"
    names = [*written_report(lake, out, NOW_MS).beside]
    before = stamps(out)
    later = written_report(lake, out, NOW_MS + 60_000)
    assert (later.beside, later.standing, later.cluster_pages) == ({}, set(names), len(names))
    assert stamps(out) == before
    edited, shortened, gone, _ = (folder_of(out) / name for name in names[:4])
    edited.write_text(edited.read_text().replace("Voters", "Voter"))
    shortened.write_bytes(shortened.read_bytes()[:-1])
    gone.unlink()
    (folder_of(out) / ".killed.html.part").touch()
    assert [*written_report(lake, out, NOW_MS).beside] == names[:3]
    assert stamps(out).keys() == before.keys()
    assert "Voters" in edited.read_text()


def test_a_page_is_written_again_when_its_cluster_changes(small: Path, tmp_path: Path) -> None:
    lake, out = small, tmp_path / "page.html"
    names = [*written_report(lake, out, NOW_MS).beside]
    first, second = (name.removesuffix(".html") for name in names[:2])
    more = pa.Table.from_pylist(epochs(first, 31)[30:], schema=declared("epochs"))
    write_deltalake(lake / "epochs", more, mode="append")
    assert [*written_report(lake, out, NOW_MS).beside] == [f"{first}.html"]
    row = {"cluster_id": second, "name": "billing", "environment": None, "owner": None}
    made = made_report(lake, NOW_MS, out, (), [row])
    assert [*made.beside] == [f"{second}.html"]
    put_report(made, out)
    # Without the settings the cluster has its id again.
    assert [*written_report(lake, out, NOW_MS).beside] == [f"{second}.html"]
    # Each night's capture is a day old at the end: that it is overdue comes with time alone.
    overdue = written_report(lake, out, NOW_MS + 3 * 24 * HOUR)
    assert overdue.standing == set()
    text = (folder_of(out) / names[0]).read_text()
    assert "last captured 2026-03-31 03:00:00Z, overdue after 1 d 2 h" in text
    assert written_report(lake, out, NOW_MS + 4 * 24 * HOUR).beside == {}


def test_another_version_of_the_program_writes_every_page_again(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, out = small, tmp_path / "page.html"
    names = written_report(lake, out, NOW_MS).beside.keys()
    monkeypatch.setattr(standing, "program", lambda: "of another version")
    assert written_report(lake, out, NOW_MS).beside.keys() == names
    assert written_report(lake, out, NOW_MS).beside == {}


def test_a_page_of_half_the_clusters_is_none(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails for all clusters together, and for no half of them, fails."""
    whole = write.under_min_isr

    def spans(lake: Path, clusters: Sequence[str] = ()) -> list[dict[str, Any]]:
        if not clusters:
            raise ValueError("of all clusters")
        return whole(lake, clusters)

    monkeypatch.setattr(write, "under_min_isr", spans)
    with pytest.raises(ValueError, match="of all clusters"):
        made_report(small, NOW_MS, tmp_path / "page.html")


def test_a_page_is_known_again_by_another_process(small: Path, tmp_path: Path) -> None:
    lake, out = small, tmp_path / "page.html"
    written_report(lake, out, NOW_MS)
    before = stamps(out)
    script = (
        "import sys; from pathlib import Path; from dashboards.report import page, write; "
        "page.MOST_BYTES = 1; "
        "print(len(write.made_report(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])).standing))"
    )
    words = [sys.executable, "-c", script, lake, str(NOW_MS), out]
    assert int(subprocess.run(words, capture_output=True, text=True, check=True).stdout) == len(before)


def stamps(page: Path) -> dict[str, tuple[int, int]]:
    """Which files there are, and which of them are the same as before."""
    found = {file.name: file.stat() for file in folder_of(page).iterdir()}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in found.items()}
