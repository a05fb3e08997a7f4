"""Files that change under a query: what is missing is a row, and rows of two states are never returned."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import scan
from transforms.source import planning, reading
from transforms.source.errors import SourceError
from transforms.source.kraft import KraftDataSource

Change = Callable[[Path], object]
SEGMENT = f"{LOG_DIR_NAME}/00000000000000000697.log"
OTHER = f"{LOG_DIR_NAME}/00000000000000002589.log"


@pytest.fixture
def controller(golden: Path, tmp_path: Path) -> Path:
    path = tmp_path / "node-1"
    shutil.copytree(golden / "dynamic-membership/node-1", path)
    return path


def positions(segment: Path) -> list[int]:
    with mapped(segment) as buf:
        return [item.position for item in scan(buf)]


def rows(controller: Path, planned: Callable[[], object] = int, **options: str) -> Iterator[dict[str, Any]]:
    """The rows of a query; `planned` is called once its files are planned."""
    source = KraftDataSource({"paths": json.dumps([str(controller)]), "include": "log", **options})
    reader: Any = source.reader(schema=source.schema())
    parts = reader.partitions()
    planned()
    for part in parts:
        for batch in reader.read(part):
            yield from batch.to_pylist()


@pytest.mark.parametrize("range_bytes", [1 << 24, 10_000])
@pytest.mark.parametrize("kept", [0, 1, 20])
def test_what_a_file_has_lost_since_the_planning_is_a_row(
    controller: Path, monkeypatch: pytest.MonkeyPatch, kept: int, range_bytes: int
) -> None:
    monkeypatch.setattr(planning, "LEAST_RANGE_BYTES", range_bytes)
    monkeypatch.setattr(planning, "RANGE_BYTES", range_bytes)
    segment = controller / SEGMENT
    size, end = segment.stat().st_size, positions(segment)[kept]
    whole = [row for row in rows(controller) if row["file"] != str(segment) or row["position"] < end]
    found = list(rows(controller, lambda: os.truncate(segment, end)))
    lost = [row for row in found if row["_corrupt_range"] is not None]
    assert [row for row in found if row["_corrupt_range"] is None] == whole
    assert {row["_corrupt_range"]["reason"] for row in lost} == {"unreadable: the file became shorter"}
    at = end
    for row in sorted(lost, key=lambda row: row["position"]):
        assert (row["file"], row["position"]) == (str(segment), at)
        at += row["_corrupt_range"]["size_bytes"]
    assert at == size
    os.truncate(segment, size)
    with pytest.raises(SourceError, match="the file became shorter at byte"):
        list(rows(controller, lambda: os.truncate(segment, end), mode="FAILFAST"))


@pytest.mark.parametrize("when", ["planned", "first piece"])
def test_a_file_that_went_away_is_as_many_rows_as_its_pieces(
    controller: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Of each piece that was not read, also if the first ones were."""
    monkeypatch.setattr(planning, "LEAST_RANGE_BYTES", 10_000)
    monkeypatch.setattr(planning, "RANGE_BYTES", 10_000)
    segment = controller / SEGMENT
    size = segment.stat().st_size
    found = rows(controller, segment.unlink if when == "planned" else int)
    seen = []
    for row in found:
        seen.append(row)
        if row["file"] == str(segment) and segment.exists():
            segment.unlink()
    lost = sorted((row["position"], row["_corrupt_range"]) for row in seen if row["_corrupt_range"])
    begin = 0 if when == "planned" else 10_000
    assert [position for position, _ in lost] == list(range(begin, size, 10_000))
    assert sum(corrupt["size_bytes"] for _, corrupt in lost) == size - begin
    assert {corrupt["reason"] for _, corrupt in lost} == {"unreadable: No such file or directory"}


def grow(segment: Path) -> None:
    with segment.open("ab") as file:
        file.write(bytes(1000))


def cut(segment: Path) -> None:
    os.truncate(segment, positions(segment)[20])


def replace(segment: Path) -> None:
    segment.unlink()
    shutil.copy(segment.parents[1] / OTHER, segment)


def clear(segment: Path) -> None:
    segment.write_bytes(bytes(segment.stat().st_size))


@pytest.mark.parametrize("change", [grow, cut, replace, clear, Path.unlink])
def test_a_file_that_changes_under_a_task_ends_the_query(
    controller: Path, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    """After its scan, before its records are decoded. One that only grew has what was scanned."""
    segment, whole, real = controller / SEGMENT, list(rows(controller)), vars(reading)["_scanned"]

    def scanned(piece: planning.FileRange, path: str) -> Any:
        found = real(piece, path)
        if path == str(segment):
            change(segment)
        return found

    monkeypatch.setattr(reading, "_scanned", scanned)
    if change is grow:
        assert list(rows(controller)) == whole
        return
    with pytest.raises(SourceError, match="it changed while it was read; run the query again"):
        list(rows(controller))
