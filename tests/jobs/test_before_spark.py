"""What is wrong with a command, the settings or the lake is said before Spark starts, and changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from jobs import job, run
from jobs.cli import main
from jobs.runtime import session
from jobs.runtime.outcome import ExitCode, Failure
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import CAPTURES, FINDINGS

CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """With a capture of one cluster."""
    prepare_lake(tmp_path / "lake")
    writer = TableWriter(tmp_path / "lake", None)
    writer.create(CAPTURES)
    writer.append(CAPTURES, [a_row(CAPTURES, cluster_id=CLUSTER)])
    return tmp_path / "lake"


def content(folder: Path) -> list[tuple[Path, int]]:
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["forget", "--cluster", "x"], "has nothing of cluster x"),
        (["forget", "--cluster", CLUSTER[:-1]], f"; did you mean {CLUSTER}?"),
        (["derive", "--cluster", "x"], "has no capture of cluster x"),
        (["validate", "--cluster", "x"], "has no capture of cluster x"),
        (["validate", "--cluster", "orders-prd", "--config", "NAMES"], "; did you mean orders-prod?"),
        (["forget", "--cluster", "orders-prd", "--config", "NAMES"], "; did you mean orders-prod?"),
        (
            ["run", "--captures", "GOLDEN", "--cluster", "orders-prd", "--config", "NAMES"],
            "mean orders-prod?",
        ),
        (["validate", "--failing", "captures.log_is_gaples"], "; did you mean captures.log_is_gapless?"),
        (
            ["validate", "--failing", "captures.age"],
            "; those of captures are captures.captured_",
        ),
        (["validate", "--failing", "x"], "a name is like captures.log_is_gapless"),
        (["validate", "--config", "BAD"], "suite captures has no expectation is_fresh"),
        (["run", "--validate", "--captures", "GOLDEN", "--config", "BAD"], "no expectation is_fresh"),
    ],
)
def test_unknown_names(
    lake: Path, golden: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    bad = lake.parent / "bad.toml"
    bad.write_text("[expectations.captures.is_fresh]\nallowed = 1\n")
    names = lake.parent / "names.toml"
    names.write_text(f'[clusters.orders-prod]\nid = "{CLUSTER}"\n')
    named = {"BAD": str(bad), "NAMES": str(names), "GOLDEN": str(golden / "v4.4.0-mini")}
    before = content(lake)
    assert main([*(named.get(word, word) for word in words), "--lake", str(lake)]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1  # no stage
    assert content(lake) == before


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> list[tuple[int, str]]:
    """Exit codes and messages of run, and of run --dry-run."""
    ended: list[tuple[int, str]] = []
    for flags in ([], ["--dry-run"]):
        code = main(["run", *map(str, words), *flags])
        captured = capsys.readouterr()
        assert "node 1" not in captured.out
        ended.append((int(code), captured.err))
    return ended


def test_a_dry_run_refuses_what_a_run_refuses(
    lake: Path, golden: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp, mini = lake.parent, golden / "v4.4.0-mini"
    (tmp / "papers").mkdir()
    (tmp / "papers/letter.txt").write_text("not a lake")
    (tmp / "shown.toml").write_text('shown_configs = ["my.plugin.interval.ms"]')
    (tmp / "file").write_text("")
    for code, says, words in (
        (2, "is not empty and not a lake", ("--lake", tmp / "papers")),
        (2, "was created with shown_configs", ("--lake", lake, "--config", tmp / "shown.toml")),
        (2, "--database x needs a --catalog", ("--lake", lake, "--database", "x")),
        (2, "is not empty and not a lake", ("--lake", tmp / "file")),
    ):
        run, dry = refused(capsys, "--captures", mini, *words)
        assert run == dry
        assert run[0] == code
        assert says in run[1]
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    run, dry = refused(capsys, "--captures", mini, "--lake", tmp / "new")
    assert run == dry
    assert run[0] == 78
    assert not (tmp / "new").exists()  # a first run that fails leaves no lake
    (next((lake / "captures").glob("*.parquet"))).unlink()
    run, dry = refused(capsys, "--captures", mini, "--lake", lake)
    assert run == dry
    assert "kraftlake check" in run[1]


def test_findings_are_those_of_the_lake_in_the_settings(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    TableWriter(lake, None).create(FINDINGS)
    (lake.parent / "kraftlake.toml").write_text(f'lake = "{lake}"\n')
    monkeypatch.chdir(lake.parent)
    assert os.environ.get("KRAFTLAKE_CONFIG") is None
    assert main(["findings", "list"]) == 0
    assert capsys.readouterr() == ("", "no open findings\n")
    assert main(["findings", "list", "--format", "jsonl"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["findings", "ack", "x", "--reason", "known"]) == 2
    assert "there is no finding x" in capsys.readouterr().err


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each session that is asked for, and refused, is to start quickly."""
    found: list[bool] = []

    def opened(*_: Any, quick: bool, **__: Any) -> None:
        found.append(quick)
        raise Failure("no session")

    monkeypatch.setattr(session, "open_session", opened)
    return found


@pytest.mark.parametrize(
    "words",
    [["forget", "--cluster", CLUSTER], ["maintain"], ["derive"], ["validate"]],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("is_small", [True, False])
def test_a_job_over_a_small_lake_starts_quickly(
    lake: Path, monkeypatch: pytest.MonkeyPatch, asked: list[bool], words: list[str], is_small: bool
) -> None:
    """By the class archive, and without Java's warning of a module that MLlib uses."""
    if not is_small:
        monkeypatch.setattr(job, "QUICK_BYTES", 1)
    verb, *more = words
    assert main([verb, "--lake", str(lake), *more]) == ExitCode.USAGE
    assert asked == [is_small]


@pytest.mark.parametrize(
    ("words", "is_quick"),
    [(["ingest"], True), (["ingest", "--verify"], False), (["run"], False), (["run", "--validate"], False)],
)
def test_what_only_reads_new_captures_starts_quickly_however_large_they_are(
    tmp_path: Path,
    golden: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[bool],
    words: list[str],
    is_quick: bool,
) -> None:
    monkeypatch.setattr(run, "QUICK_BYTES", 1)
    where = ["--lake", str(tmp_path / "lake"), "--captures", str(golden / "v4.4.0-mini")]
    assert main([*words, *where]) == ExitCode.USAGE
    assert asked == [is_quick]
