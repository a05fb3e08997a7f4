"""What the page, the summary and the verbs say of a cluster id that names several histories."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from dashboards.report.write import made_report
from dashboards.summary import summary
from jobs.runtime.lake_clusters import lake_clusters, one_cluster
from jobs.runtime.outcome import Failure
from tests.dashboards.small_lakes import write
from transforms.lake.lives import cluster_ids_of, divided_ids, expanded
from transforms.lake.tables import CAPTURES, CLUSTER_NAMES, LIVES

NEWEST, OLDER, LONE = "tutorial/bbbbbbbb", "tutorial/aaaaaaaa", "lone"
AT = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Captures of two lives of one id, and of a cluster of another."""
    times = {"captured_at": AT, "captured_at_source": "flag", "last_captured_at": AT}
    facts = {"node_id": 1, "directory_id": "d", **times}
    lives = ((NEWEST, "bbbbbbbb"), (OLDER, "aaaaaaaa"), (LONE, None))
    captures = [facts | {"cluster_id": id_, "capture_id": id_, "life": life} for id_, life in lives]
    write(tmp_path, CAPTURES, captures)
    rows = [
        {"cluster_id": id_, "kafka_cluster_id": "tutorial", "life": life, "is_newest": id_ == NEWEST}
        for id_, life in lives
        if life is not None
    ]
    # The captures of the last one were never committed.
    rows.append(rows[0] | {"cluster_id": "tutorial/cccccccc", "life": "cccccccc", "is_newest": False})
    write(tmp_path, LIVES, rows)
    write(tmp_path, CLUSTER_NAMES, [{"cluster_id": "tutorial", "name": "test"}])
    return tmp_path


def test_page_and_summary_say_which_life_it_is(lake: Path) -> None:
    newest = "newest of 2 histories of cluster id tutorial"
    older = f"earlier history of cluster id tutorial; the newest is {NEWEST}"
    text = made_report(lake, 1_795_000_000_000, Path("page.html")).data.decode()
    assert newest in text
    assert "test/bbbbbbbb" in text
    assert older in text
    lines = summary(lake, [NEWEST, OLDER, LONE]).lines
    assert f"cluster {NEWEST} (test/bbbbbbbb): 1 capture of 1 replica (node 1)" in lines
    assert [line.strip() for line in lines if "histor" in line] == [newest, older]


def test_a_cluster_id_stands_for_all_its_lives(lake: Path) -> None:
    for word in ("tutorial", "test"):
        assert lake_clusters(lake, [word, LONE]) == [LONE, OLDER, NEWEST]
    assert lake_clusters(lake, [OLDER]) == lake_clusters(lake, ["test/aaaaaaaa"]) == [OLDER]
    assert lake_clusters(lake) == [LONE, OLDER, NEWEST]
    with pytest.raises(Failure, match="no capture of cluster tutorial/cccccccc"):
        lake_clusters(lake, ["tutorial/cccccccc"])
    assert cluster_ids_of(lake, ["tutorial", LONE, "none"]) == {
        "tutorial": [OLDER, NEWEST],
        LONE: [LONE],
        "none": ["none"],
    }
    assert expanded(lake, ["tutorial"]) == [OLDER, NEWEST]
    assert divided_ids(lake) == {"tutorial"}


def test_one_cluster_is_the_newest_life_and_says_so(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"has 2 histories: this answer is about {NEWEST}, which is the newest; all: {OLDER}, {NEWEST}"
    for word in ("tutorial", "test", NEWEST):
        assert one_cluster(lake, word) == NEWEST
        assert words in capsys.readouterr().err
    assert one_cluster(lake, OLDER) == OLDER
    assert f"which is an earlier one; {NEWEST} is the newest; all: " in capsys.readouterr().err
    assert one_cluster(lake, LONE) == LONE
    assert capsys.readouterr().err == ""
    with pytest.raises(Failure, match="has 2 clusters: choose one with --cluster: lone, tutorial"):
        one_cluster(lake, None)
