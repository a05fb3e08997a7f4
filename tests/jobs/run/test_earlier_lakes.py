"""Lakes that earlier versions wrote: brought up to date, or refused with what to do next.

earlier-lake.tar.gz: lake.json and the Delta logs of a lake that commit 7c90811 wrote of golden/v4.4.0-mini.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from transforms.lake.lake import Lake
from transforms.lake.schema import add_columns, check_schema, missing_columns
from transforms.lake.storage import NoLakeError
from transforms.lake.tables import SNAPSHOTS, Table

EARLIER = Path(__file__).parent / "earlier-lake.tar.gz"
LATER = ("header_at", "size_bytes")


def without(table: Table, *names: str) -> Table:
    """The table as it was before it had these columns."""
    columns = tuple(c for c in table.columns if c.name not in names)
    return Table(table.name, table.comment, columns, table.key)


@pytest.mark.parametrize("verb", ["derive", "sql", "run"])
def test_a_lake_that_lacks_what_was_never_read_is_refused(
    verb: str, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(EARLIER) as archive:
        archive.extractall(tmp_path / "lake", filter="data")
    more = {"sql": ["SELECT 1"], "run": ["--captures", str(golden / "election-storm")]}.get(verb, [])
    assert main([verb, *more, "--lake", str(tmp_path / "lake")]) == 2
    err = capsys.readouterr().err
    assert "lacks segments.node_id, segments.directory_id" in err
    assert "load the captures into a new lake (kraftlake run --captures" in err


def test_columns_that_may_be_null_are_added(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.create(without(SNAPSHOTS, *LATER))
    with pytest.raises(NoLakeError, match=f"snapshots.header_at, .*kraftlake derive --lake {tmp_path}"):
        check_schema(tmp_path)
    add_columns(lake, missing_columns(tmp_path))
    check_schema(tmp_path)
    added = {f.name: f.dataType for f in lake.read(SNAPSHOTS).schema.fields}
    assert added == {f.name: f.dataType for f in SNAPSHOTS.schema.fields}
