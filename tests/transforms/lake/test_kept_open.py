"""Tables that stay open are the newest versions, whoever committed, and each user's own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from transforms.lake.storage import kept_open as module
from transforms.lake.storage.kept_open import kept_open


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    append(tmp_path / "table")
    return tmp_path / "table"


def append(folder: Path) -> None:
    write_deltalake(folder, pa.table({"a": [1]}), mode="append")


def opened(folder: Path) -> DeltaTable:
    with kept_open(folder, lambda: DeltaTable(folder)) as held:
        return held


def test_a_table_is_opened_once_while_its_log_stands(folder: Path) -> None:
    first = opened(folder)
    assert opened(folder) is first
    append(folder)
    assert opened(folder) is not first
    assert opened(folder).version() == 1


def test_a_log_that_was_changed_in_place_is_read_again(folder: Path) -> None:
    first = opened(folder)
    (log,) = (folder / "_delta_log").glob("*.json")
    status, text = log.stat(), log.read_bytes()
    log.write_bytes(b"x" * len(text))
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DeltaError):
        opened(folder)
    log.write_bytes(text)
    assert opened(folder) is not first


def test_a_commit_in_the_same_tick_of_the_clock_is_seen(folder: Path) -> None:
    """A folder's time of change has the kernel's resolution, some milliseconds."""
    first = opened(folder)
    log, held = module._open[folder]
    append(folder)
    module._open[folder] = replace(log, listed=module._status(folder / "_delta_log")), held
    assert (opened(folder).version(), first.version()) == (1, 0)


def test_commits_below_a_checkpoint_are_not_looked_at_again(folder: Path) -> None:
    for _ in range(4):
        append(folder)
    DeltaTable(folder).create_checkpoint()
    append(folder)
    opened(folder)
    names = set(module._open[folder][0].files)
    assert names == {f"{4:020}.checkpoint.parquet", f"{4:020}.json", f"{5:020}.json", "_last_checkpoint"}
    (folder / "_delta_log" / f"{0:020}.json").unlink()  # as log retention does
    assert opened(folder).version() == 5


@pytest.mark.parametrize("name", [f"{4:020}.checkpoint.parquet", f"{5:020}.json"])
def test_what_is_read_again_is_looked_at_again(folder: Path, name: str) -> None:
    for _ in range(4):
        append(folder)
    DeltaTable(folder).create_checkpoint()
    append(folder)
    opened(folder)
    place = folder / "_delta_log" / name
    place.write_bytes(b"x" * place.stat().st_size)
    with pytest.raises(DeltaError):
        opened(folder)


def test_a_table_is_its_users_own(folder: Path) -> None:
    """Whoever asks within the block has another, which does not move."""
    with kept_open(folder, lambda: DeltaTable(folder)) as held:
        inner = opened(folder)
        assert inner is not held
        write_deltalake(held, pa.table({"a": [2]}), mode="append")
        assert (held.version(), inner.version()) == (1, 0)
    assert opened(folder).version() == 1


def test_few_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    for number in range(9):
        append(tmp_path / str(number))
        opened(tmp_path / str(number))
    assert len(module._open) <= 3


def test_where_there_is_none_the_error_is_that_of_opening(tmp_path: Path) -> None:
    with pytest.raises(DeltaError):
        opened(tmp_path / "nothing")


def test_a_table_that_its_user_commits_to_stays_open(folder: Path) -> None:
    with kept_open(folder, lambda: DeltaTable(folder)) as held:
        write_deltalake(held, pa.table({"a": [2]}), mode="append")
    assert opened(folder) is held
    assert held.to_pyarrow_table()["a"].to_pylist() == [2, 1]
    with kept_open(folder, lambda: DeltaTable(folder)) as held:
        write_deltalake(held, pa.table({"a": [3]}), mode="append")
        append(folder)
    assert opened(folder) is not held
    assert opened(folder).version() == 3
