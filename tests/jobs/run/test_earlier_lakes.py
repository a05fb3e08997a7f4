"""Lakes of earlier versions: what tables lack is added, or the lake is refused with what to do next."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.cli import main
from transforms.lake.commits import TableWriter
from transforms.lake.lake import Lake
from transforms.lake.schema import check_schema, outdated_tables, update_schemas
from transforms.lake.storage import NoLakeError, prepare_lake
from transforms.lake.tables import (
    RECORDS,
    REPLAY_VERSION,
    REPLAYS,
    SEGMENTS,
    SNAPSHOTS,
    TOPICS,
    Column,
    Table,
)

LATER = ("header_at", "size_bytes")


def without(table: Table, *names: str) -> Table:
    """The table as it was before it had these columns."""
    columns = tuple(c for c in table.columns if c.name not in names)
    return Table(table.name, table.comment, columns, table.key)


@pytest.mark.parametrize("verb", ["derive", "sql", "run"])
def test_a_lake_that_lacks_what_was_never_read_is_refused(
    verb: str, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare_lake(tmp_path / "lake")
    TableWriter(tmp_path / "lake", None).create(without(SEGMENTS, "node_id", "directory_id"))
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
    assert outdated_tables(tmp_path) == [SNAPSHOTS]
    update_schemas(lake.writer)
    check_schema(tmp_path)
    assert outdated_tables(tmp_path) == []
    added = {f.name: (f.dataType, f.metadata) for f in lake.read(SNAPSHOTS).schema.fields}
    comments = {c.name: {"comment": c.comment} for c in SNAPSHOTS.columns}
    assert added == {f.name: (f.dataType, comments[f.name]) for f in SNAPSHOTS.schema.fields}


def test_a_table_of_another_comment_is_updated(tmp_path: Path) -> None:
    """Comments change more often than columns."""
    older = tuple(
        Column(c.name, c.type, f"once: {c.comment}", c.nullable) for c in without(SNAPSHOTS, *LATER).columns
    )
    TableWriter(tmp_path, None).create(Table(SNAPSHOTS.name, SNAPSHOTS.comment, older, SNAPSHOTS.key))
    update_schemas(TableWriter(tmp_path, None))
    assert outdated_tables(tmp_path) == []


def test_fields_of_structs_are_added(tmp_path: Path) -> None:
    """As of a lake that was written when a record had fewer fields; verbs that only read go on."""
    (topic,) = (c for c in RECORDS.columns if c.name == "topic")
    before = Column("topic", "STRUCT<name: STRING>", topic.comment)
    columns = tuple(before if c is topic else c for c in RECORDS.columns)
    TableWriter(tmp_path, None).create(Table(RECORDS.name, RECORDS.comment, columns, RECORDS.key))
    check_schema(tmp_path)
    assert outdated_tables(tmp_path) == [RECORDS]
    update_schemas(TableWriter(tmp_path, None))
    assert outdated_tables(tmp_path) == []


QUERY = "SELECT topic_name FROM topics_now ORDER BY 1"


def asked(lake: Path, *flags: str) -> int:
    return main(["sql", QUERY, "--lake", str(lake), *flags])


@pytest.fixture(scope="module")
def newest(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of this version."""
    lake = tmp_path_factory.mktemp("newest") / "lake"
    assert main(["run", "--captures", str(golden / "v4.4.0-mini"), "--lake", str(lake)]) == 0
    return lake


@pytest.mark.parametrize("verb", ["run", "derive"])
def test_a_column_of_another_name_is_filled(
    verb: str, newest: Path, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a lake in which topics.topic_name was topics.name, made by an earlier replay."""
    lake, captures = tmp_path / "lake", ["--captures", str(golden / "v4.4.0-mini")]
    capsys.readouterr()
    assert asked(newest, "--format", "json") == 0
    names = capsys.readouterr().out
    assert len(names.splitlines()) > 0
    shutil.copytree(newest, lake)
    for table, change in ((TOPICS, former_topics), (REPLAYS, former_replays)):
        rows = DeltaTable(lake / table.name).to_pyarrow_table()
        write_deltalake(lake / table.name, change(rows), mode="overwrite", schema_mode="overwrite")
    assert asked(lake) == 2
    assert f"lacks topics.topic_name: kraftlake derive --lake {lake} adds them" in capsys.readouterr().err
    assert main([verb, *(captures if verb == "run" else ()), "--lake", str(lake)]) == 0
    capsys.readouterr()
    assert asked(lake, "--format", "json") == 0
    assert capsys.readouterr().out == names


def former_topics(rows: pa.Table) -> pa.Table:
    return rows.rename_columns({"topic_name": "name"})


def former_replays(rows: pa.Table) -> pa.Table:
    version = pa.array([REPLAY_VERSION - 1] * len(rows), pa.int32())
    return rows.set_column(rows.schema.get_field_index("replay_version"), "replay_version", version)
