"""Errors on the command line: one clear line, the right exit code, no traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.cli import VERBS, main

CHECKOUT = Path(__file__).parents[2]


def kraftlake(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """The command as a user calls it, in its own process."""
    command = [sys.executable, "-m", "jobs.cli", *map(str, words)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)


def refused(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """It exits with the code, prints these words in few lines on stderr, and no traceback."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) <= 4, result.stderr
    for word in words:
        assert word in result.stderr


def test_a_wrong_path(tmp_path: Path) -> None:
    began = time.monotonic()
    result = kraftlake("run", "--captures", tmp_path / "nowhere", "--lake", tmp_path / "lake")
    assert time.monotonic() - began < 20  # Spark is not started for it
    refused(result, 2, "nowhere does not exist")
    assert not (tmp_path / "lake").exists()


def test_an_empty_tree(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = kraftlake("run", "--captures", tmp_path / "empty", "--lake", tmp_path / "lake")
    refused(result, 3, "no controller directory")


def test_no_cluster_id(tmp_path: Path, golden: Path) -> None:
    shutil.copytree(golden / "v4.4.0-mini/node-1/__cluster_metadata-0", tmp_path / "x/__cluster_metadata-0")
    result = kraftlake("run", "--captures", tmp_path / "x", "--lake", tmp_path / "lake")
    refused(result, 2, "no cluster id", "--cluster-id", "contains its cluster id and its node id")
    assert "\\n" not in result.stderr


def test_a_log_of_kafka_2_8(tmp_path: Path) -> None:
    (tmp_path / "old/@metadata-0").mkdir(parents=True)
    result = kraftlake("run", "--captures", tmp_path / "old", "--lake", tmp_path / "lake")
    refused(result, 3, "2.8")


def test_a_folder_that_is_not_a_lake(tmp_path: Path, golden: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/letter.txt").write_text("not a lake")
    elsewhere = "is not a lake (no lake.json): it has other files; choose another folder with --lake"
    refused(kraftlake("sql", "SELECT 1", "--lake", tmp_path / "papers"), 2, elsewhere)
    none = tmp_path / "none"
    refused(
        kraftlake("metrics", "--lake", none), 2, f"kraftlake run --captures ... --lake {none} creates one"
    )
    result = kraftlake("run", "--captures", golden / "v4.4.0-mini", "--lake", tmp_path / "papers")
    refused(result, 2, "is not empty and not a lake")
    assert [p.name for p in (tmp_path / "papers").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    "url", ["gs://b/l", "abfss://a@b/l", "hdfs://b/l", "file:///data/lake", "s3://bucket"]
)
def test_a_lake_is_no_other_url(
    url: str,
    golden: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of every verb, on the command line and in the settings: there is no folder of that name afterwards."""
    monkeypatch.chdir(tmp_path)
    captures = ("--captures", str(golden / "v4.4.0-mini"))
    more = {"run": captures, "ingest": captures, "sql": ("SELECT 1",), "findings": ("list",)}
    more |= {
        "explain": ("1",),
        "plan": ("remove", "3"),
        "shell": ("ls",),
        "features": ("describe",),
        "diff": ("--from", "1", "--to", "2"),
    }
    assert set(more) < set(VERBS)
    (tmp_path / "url.toml").write_text(f'lake = "{url}"\n')
    without = {"capture", "restore", "dump", "config", "version", "completion", "describe"}
    for verb in sorted(VERBS.keys() - without):
        flags = (*more.get(verb, ()), "--lake", url)
        assert main([verb, *flags]) == 2, verb
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"kraftlake {verb}: --lake {url.replace('a@', '')}: ")
        assert "s3://bucket/path" in line
    assert main(["clusters", "--config", "url.toml"]) == 2
    assert "s3://bucket/path" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["url.toml"]


@pytest.mark.parametrize(
    "words",
    [
        *(("report", "--lake", "lake", "--out"), ("metrics", "--lake", "lake", "--out")),
        *(("capture", "node-1", "--to"), ("clusters", "--lake", "lake", "--log")),
        *(("run", "--captures", "c", "--lake", "lake", flag) for flag in ("--scratch", "--report")),
        *(("diff", "--from", "1", "--to", "end"), ("plan", "remove", "3", "--captures")),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
@pytest.mark.parametrize("url", ["s3://bucket/path", "s3:path", "https://key:secret@host/path?sig=secret"])
def test_other_paths_are_no_urls(
    words: tuple[str, ...],
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They would name a folder `s3:` of the current one."""
    monkeypatch.chdir(tmp_path)
    assert main([*words, url]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(" is a URL: give a file or folder on this machine")
    assert "secret" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_lake_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "lake.json").write_text('{"format_version": 99}')
    refused(kraftlake("derive", "--lake", tmp_path), 2, "lake format 99")


def test_no_such_cluster(tmp_path: Path, golden: Path) -> None:
    words = ("--captures", golden / "v4.4.0-mini", "--lake", tmp_path / "lake", "--cluster", "elsewhere")
    refused(kraftlake("run", *words), 2, "elsewhere")


def test_unreadable_directories(tmp_path: Path) -> None:
    """A link to itself cannot be opened, not even by root."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x/__cluster_metadata-0").symlink_to(tmp_path / "x/__cluster_metadata-0")
    result = kraftlake("run", "--captures", tmp_path / "x", "--lake", tmp_path / "lake")
    refused(
        result,
        3,
        "unreadable",
        "Too many levels of symbolic links",
        "\nkraftlake run: no controller directory",
    )


def test_dry_run_needs_no_spark_and_makes_no_lake(tmp_path: Path, golden: Path) -> None:
    result = kraftlake("run", "--captures", golden / "v4.4.0-mini", "--lake", tmp_path / "lake", "--dry-run")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 2
    assert "node 1" in result.stdout
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("words", [(), ("fly",), ("run",), ("sql", "--lake", ".")])
def test_wrong_usage(words: tuple[str, ...]) -> None:
    result = kraftlake(*words)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_help_has_examples() -> None:
    """In its own process; test_settings covers every verb."""
    result = kraftlake("run", "--help")
    assert result.returncode == 0
    assert "kraftlake run" in result.stdout.split("examples:")[1]
