"""A lake's files: lake.json is made once, and what killed writers left is told from what others begin."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from transforms.lake.storage import NoLakeError, prepare_lake, remove_begun, shown_configs


def test_of_several_makers_one_makes_the_lake(tmp_path: Path) -> None:
    """The others learn that it shows other configs, and it stays as it was made."""

    def make(lake: Path, config: str) -> str | None:
        try:
            prepare_lake(lake, frozenset([config]))
        except NoLakeError:
            return None
        return config

    with ThreadPoolExecutor(8) as threads:
        for n in range(40):
            lake = tmp_path / str(n)
            made = set(threads.map(lambda number, lake=lake: make(lake, f"config.{number}"), range(8)))
            assert {config for config in made if config} == shown_configs(lake)
            assert [path.name for path in lake.iterdir()] == ["lake.json"]


def test_a_maker_is_killed(tmp_path: Path) -> None:
    """Before lake.json has its name: the folder is no lake yet, and can be made one."""
    begun = tmp_path / f".lake.json-{'0' * 32}"
    begun.write_text('{"form')
    prepare_lake(tmp_path)
    assert json.loads((tmp_path / "lake.json").read_text())["format_version"] == 1
    remove_begun(tmp_path, hours=1)
    assert len(list(tmp_path.iterdir())) == 2
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    remove_begun(tmp_path, hours=1)
    assert [path.name for path in tmp_path.iterdir()] == ["lake.json"]


@pytest.mark.parametrize("fill", [lambda p: (p / "letter.txt").touch(), lambda p: (p / ".a-b").touch()])
def test_a_folder_with_other_files_is_never_made_a_lake(fill: Callable[[Path], None], tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(NoLakeError, match="is not empty and not a lake"):
        prepare_lake(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
