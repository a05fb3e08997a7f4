"""kraftlake doctor: what of the environment works, and what to do about the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.doctor import NOTE, OK, WRONG
from transforms.lake.storage import prepare_lake

PARTS = ["java", "spark", "jars", "archive", "kernel", "disk", "memory", "clock"]
Found = dict[str, tuple[str, str]]


def doctor(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> Found:
    """State and text of each part."""
    capsys.readouterr()
    assert main(["doctor", "--format", "json", *words]) == code
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {row["part"]: (row["state"], row["text"]) for row in rows}


def test_every_part_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(capsys, 0)
    assert list(found) == PARTS
    assert found["java"][0] == found["jars"][0] == OK
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == PARTS
    assert {line.split()[0] for line in lines} <= {OK, NOTE}


def test_a_wrong_java_is_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    found = doctor(capsys, 78)
    assert found["java"][0] == WRONG
    assert "set JAVA_HOME" in found["java"][1]
    assert found["clock"][0] == OK


def test_it_says_why_the_archive_is_not_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xshare:off")
    state, words = doctor(capsys, 0)["archive"]
    assert (state, "because -Xshare:off is set" in words) == (NOTE, True)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")
    from jobs.runtime import class_archive

    monkeypatch.setattr(class_archive, "folder", lambda: tmp_path)
    state, words = doctor(capsys, 0)["archive"]
    assert (state, "which does not exist yet: python -m" in words) == (NOTE, True)
    from jobs.runtime.java import java_of
    from jobs.runtime.session import local_command

    class_archive.archive_of(local_command(java_of())).write_bytes(b"no archive")
    state, words = doctor(capsys, 0)["archive"]
    assert state == NOTE
    assert "file header" in words


def test_jars_that_lack_and_settings_of_sparks_scripts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KRAFTLAKE_JARS", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    found = doctor(capsys, 0)
    assert found["jars"] == (NOTE, f"7 of Delta's jars are not in {tmp_path}: the first run fetches them")
    assert found["spark"][0] == NOTE
    assert "SPARK_CONF_DIR is set" in found["spark"][1]


def test_a_lake(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    state, words = doctor(capsys, 78, "--lake", str(lake))["lake"]
    assert state == WRONG
    assert "kraftlake run --captures" in words
    prepare_lake(lake)
    assert doctor(capsys, 0, "--lake", str(lake))["lake"] == (OK, f"{lake}, format 1, clusters: 0")
