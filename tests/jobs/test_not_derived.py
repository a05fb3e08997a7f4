"""What was ingested and not derived, or could not be derived: no answer rests on what was derived before."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.captures import ingest as captures_ingest
from jobs.cli import main
from jobs.quorum import quorum_facts
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.tables import DERIVATIONS, REPLAY_VERSION, REPLAYS
from transforms.quality.derived_counts import begin_ingest, derived, end_change, ingested

CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
FAILURE = "a cycle of epochs"
INGESTED = f"what was ingested of {CLUSTER} last is not derived yet: kraftlake derive --lake "
FAILED = f"the newest captures of {CLUSTER} could not be derived: {FAILURE}"
EARLIER = f"the records of {CLUSTER} were replayed by an earlier version, which found less: kraftlake derive"
BEGUN = f"a run is changing what is derived of {CLUSTER}, or was interrupted: ask again when it has ended"
NOW = ("--now", "2026-11-21T09:44:10Z")
QUESTIONS = (
    ("describe", "topics"),
    ("describe", "quorum", "--at", "2000"),
    ("export",),
    ("explain", "--topic", "t-small", "--partition", "0"),
    ("explain", "--offset", "355"),
    ("explain", "--recovery", *NOW),
    ("plan", "lose", "1", *NOW),
    ("plan", "restart-broker", "11", *NOW),
)


def ingest(lake: Path) -> None:
    """As if an ingest had loaded a capture after the derivation."""
    begin_ingest(TableWriter(lake, None), [CLUSTER], RunRecord("ingest", Progress()).columns)


def test_it_counts_until_it_is_derived_whatever_the_clocks_say(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run's clock is a day behind, as another machine's may be."""
    lake, behind = tmp_path / "lake", datetime.now(UTC) - timedelta(days=1)
    captures = golden / "dynamic-membership"
    at_lake = ("--lake", str(lake))
    assert main(["run", "--captures", str(captures / "node-1"), *at_lake]) == 0
    assert not ingested(lake)
    with monkeypatch.context() as patched:
        patched.setattr(RunRecord, "started_at", property(lambda _: behind, lambda *_: None), raising=False)
        assert main(["ingest", "--captures", str(captures / "node-2"), *at_lake]) == 0
    assert ingested(lake) == {CLUSTER}
    assert main(["plan", "lose", "1", *at_lake, *NOW]) == 1
    assert INGESTED in " ".join(capsys.readouterr().out.split())
    assert main(["run", "--captures", str(captures / "node-2"), *at_lake]) == 0
    assert not ingested(lake)


def test_it_counts_from_before_its_rows_are_committed(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ingest that ends at its commit may have loaded some."""

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    lake = tmp_path / "lake"
    monkeypatch.setattr(captures_ingest, "commit", end)
    assert main(["ingest", "--captures", str(golden / "dynamic-membership"), "--lake", str(lake)]) != 0
    assert ingested(lake) == {CLUSTER}
    assert not derived(lake)


def fail(lake: Path) -> None:
    """As if the last derivation had failed."""
    (row,) = rows_with(lake, DERIVATIONS, cluster_id=[CLUSTER])
    TableWriter(lake, None).put(DERIVATIONS, [row | {"failure": FAILURE}], by="cluster_id")


def begin(lake: Path) -> None:
    """As if a run had been killed while it changed what is derived."""
    (row,) = rows_with(lake, DERIVATIONS, cluster_id=[CLUSTER])
    TableWriter(lake, None).put(DERIVATIONS, [row | {"begun_by": "killed"}], by="cluster_id")


def replay_earlier(lake: Path) -> None:
    """As if an earlier version had replayed it."""
    writer, rows = TableWriter(lake, None), rows_with(lake, REPLAYS, cluster_id=[CLUSTER])
    earlier = [row | {"replay_version": REPLAY_VERSION - 1} for row in rows]
    writer.replace_where(REPLAYS, among({"cluster_id": [CLUSTER]}), earlier)


@pytest.fixture(scope="module")
def lakes(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By what is said of CLUSTER."""
    folder = tmp_path_factory.mktemp("lakes")
    found = {INGESTED: folder / "ingested", FAILED: folder / "failed", BEGUN: folder / "begun"}
    found[EARLIER] = folder / "earlier"
    for (_, path), change in zip(found.items(), (ingest, fail, begin, replay_earlier), strict=True):
        shutil.copytree(lake.path, path)
        change(path)
    return found


@pytest.mark.parametrize("words", [INGESTED, FAILED], ids=["ingested", "failed"])
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_it_is_not_known(
    lakes: dict[str, Path], capsys: pytest.CaptureFixture[str], question: tuple[str, ...], words: str
) -> None:
    assert main([*question, "--lake", str(lakes[words]), "--cluster", CLUSTER]) == 1
    said = capsys.readouterr()
    assert words in " ".join((said.out + said.err).split())


@pytest.mark.parametrize("question", QUESTIONS[-4:], ids=" ".join)
def test_no_verdict_rests_on_an_earlier_replay(
    lakes: dict[str, Path], capsys: pytest.CaptureFixture[str], question: tuple[str, ...]
) -> None:
    assert main([*question, "--lake", str(lakes[EARLIER]), "--cluster", CLUSTER]) == 1
    said = capsys.readouterr()
    assert EARLIER in " ".join((said.out + said.err).split())


@pytest.mark.parametrize("question", QUESTIONS[-4:], ids=" ".join)
def test_no_verdict_rests_on_what_is_half_derived(
    lakes: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    question: tuple[str, ...],
) -> None:
    monkeypatch.setattr(quorum_facts, "PATIENCE_S", 0.1)
    assert main([*question, "--lake", str(lakes[BEGUN]), "--cluster", CLUSTER]) == 1
    said = capsys.readouterr()
    assert BEGUN in " ".join((said.out + said.err).split())


def test_a_run_that_ends_is_waited_for(
    lakes: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(lakes[BEGUN], lake)
    ended = threading.Timer(2, lambda: end_change(TableWriter(lake, None), [CLUSTER]))
    ended.start()
    assert main(["explain", "--recovery", *NOW, "--lake", str(lake), "--cluster", CLUSTER]) == 0
    ended.join()
    assert "node" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            INGESTED,
            "what was ingested last is not derived yet (kraftlake derive); the rest of this report is",
        ),
        (
            FAILED,
            f"could not be derived from the newest captures; the rest of this report is older: {FAILURE}",
        ),
    ],
    ids=["ingested", "failed"],
)
def test_the_page_says_so(lakes: dict[str, Path], tmp_path: Path, words: str, says: str) -> None:
    page = tmp_path / "page.html"
    assert main(["report", "--lake", str(lakes[words]), "--out", str(page)]) == 0
    assert says in page.read_text()


def test_other_clusters_are_known(lakes: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    other = ("--lake", str(lakes[INGESTED]), "--cluster", "iWP35uOsShu1pFlBJh_E7w")
    assert main(["explain", "--recovery", *other, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]


@pytest.mark.parametrize("words", [INGESTED, FAILED], ids=["ingested", "failed"])
def test_what_is_listed_is_older(
    lakes: dict[str, Path], capsys: pytest.CaptureFixture[str], words: str
) -> None:
    for question in (("sql", "SELECT 1"), ("findings", "list"), ("findings", "list", "--cluster", CLUSTER)):
        assert main([*question, "--lake", str(lakes[words])]) == 0
        assert f"what is derived of {CLUSTER} is older than the captures" in capsys.readouterr().err
    other = ("--lake", str(lakes[words]), "--cluster", "iWP35uOsShu1pFlBJh_E7w")
    assert main(["findings", "list", *other]) == 0
    assert "older" not in capsys.readouterr().err


def test_metrics_tell_it(lakes: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--lake", str(lakes[INGESTED])]) == 0
    told = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("kraftlake_not_derived{")
    ]
    assert [line.endswith(" 1") for line in told if CLUSTER in line] == [True]
    assert len(told) > 1
    assert all(line.endswith(" 0") for line in told if CLUSTER not in line)
