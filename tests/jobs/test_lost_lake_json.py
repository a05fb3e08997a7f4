"""A lake that lost its lake.json: verbs say what brings it back, and check --restore does."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import CAPTURES, CONFIGS

PLUGIN = "my.plugin.interval.ms"


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """It showed a plugin's config, and hid another one."""
    lake = tmp_path / "lake"
    prepare_lake(lake, {PLUGIN})
    writer = TableWriter(lake, None)
    for table in (CAPTURES, CONFIGS):
        writer.create(table)
    values = {PLUGIN: "5", "retention.ms": "1000", "my.plugin.key": None}
    writer.append(CONFIGS, [a_row(CONFIGS, name=name, value=value) for name, value in values.items()])
    (lake / "lake.json").unlink()
    return lake


def test_every_verb_says_what_brings_it_back(
    lost: Path, golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captures = ("--captures", str(golden / "v4.4.0-mini"))
    for words in (["metrics"], ["clusters"], ["run", *captures], ["run", *captures, "--dry-run"], ["check"]):
        assert main([*words, "--lake", str(lost)]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.endswith(
            f"has tables but no lake.json: kraftlake check --restore --lake {lost} writes it again"
        )


def test_it_is_written_as_it_was(lost: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--restore", "--lake", str(lost)]
    assert main(words) == 2
    assert f"show {PLUGIN}, which Kafka does not define: list the names" in capsys.readouterr().err
    assert not (lost / "lake.json").exists()
    settings = lost.parent / "kraftlake.toml"
    settings.write_text(f'shown_configs = ["{PLUGIN}"]')
    assert main([*words, "--config", str(settings)]) == 0
    prepare_lake(lost, {PLUGIN})  # a run takes it
    before = (lost / "lake.json").read_text()
    assert main(words) == 0  # a lake that has one is left as it is
    assert (lost / "lake.json").read_text() == before


def test_what_is_no_lake_is_not_made_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("not a lake")
    assert main(["check", "--restore", "--lake", str(tmp_path)]) == 2
    assert "is not a lake (no lake.json)" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
