"""What the source reads of files: each record once, where it lies, and every byte that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_log
from kraft_core.format.snapshot import parse_name
from tests.kraft_core.columnar.test_json_text import expected
from transforms.source.kraft import KraftDataSource

SCENARIOS = ("all-record-types", "v4.4.0-mini", "uncommitted-truncation", "born-on-3.4")


def read(*paths: Path | str, schema: Any = None, filters: Any = None, **options: str) -> list[dict[str, Any]]:
    """Rows as Spark gets them, by the calls that its workers make."""
    given = {"paths": json.dumps([str(path) for path in paths]), **options}
    source = KraftDataSource(given)
    reader: Any = source.reader(schema=schema or source.schema())
    if filters is not None:
        list(reader.pushFilters(filters))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def snapshot_of(path: Path) -> tuple[int, int]:
    """End offset and epoch of a checkpoint."""
    named = parse_name(path.name)
    return (0, 0) if named is None else (named.end_offset, named.leader_epoch)


def records_of(path: Path) -> list[Record]:
    with mapped(path) as buf:
        return [record for record in read_log(buf) if isinstance(record, Record)]


def files_of(root: Path) -> Iterator[tuple[Path, Any]]:
    for directory in find_controller_dirs([root]).directories:
        bootstrap = () if directory.bootstrap is None else (directory.bootstrap,)
        for file in (*directory.segments, *directory.checkpoints, *bootstrap):
            yield file.path, directory


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_record_of_every_file(golden: Path, scenario: str) -> None:
    root = golden / scenario
    found = read(root)
    wanted = []
    for path, directory in files_of(root):
        meta = directory.meta
        id_ = None if path.suffix == ".log" else snapshot_of(path)
        for record in records_of(path):
            value = expected(record)
            wanted.append(
                {
                    "cluster_id": meta.cluster_id if meta else None,
                    "node_id": meta.node_id if meta else None,
                    "source": "log" if id_ is None else "snapshot",
                    "file": str(path),
                    "position": record.batch.position,
                    "position_in_batch": record.position_in_batch,
                    "offset": record.offset if id_ is None else id_[0] - 1,
                    "leader_epoch": record.leader_epoch if id_ is None else id_[1],
                    "type": record.type,
                    "version": record.version,
                    "is_control": record.batch.is_control,
                    "value": value,
                }
            )
    shown = [
        {name: row[name] for name in wanted[0]} | {"value": row["value"] and json.loads(row["value"])}
        for row in found
        if row["type"] is not None
    ]
    key = lambda row: (row["file"], row["position"], row["position_in_batch"])  # noqa: E731
    assert sorted(shown, key=key) == sorted(wanted, key=key)
