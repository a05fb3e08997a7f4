"""Files that tasks write to a table themselves: their rows, and what its log tells of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import from_arrow_schema

from transforms.lake import clustering, table_files
from transforms.lake.delta_rs import arrow_with, opened
from transforms.lake.lake import Lake
from transforms.lake.schema import outdated_tables, update_schemas
from transforms.lake.storage import prepare_lake
from transforms.lake.table_files import FILES, GREATEST_CHARACTER, Statistics, writing
from transforms.lake.tables import CAPTURES, LOADED, RECORDS, SNAPSHOT_RECORDS, Column, Table

LOAD = {"run_id": "a run", "loaded_at": datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)}
OWN = [c.name for c in LOADED]


def rewritten(lake: Lake, table: Table, path: Path, rows: pa.Table) -> Lake:
    """Another lake, to which tasks write rows of the table."""
    prepare_lake(path)
    other = Lake(lake.spark, path)
    other.create(table)
    assert appended(other, table, files_of(other, table, rows), "load") == len(rows)
    return other


def appended(lake: Lake, table: Table, files: Any, load_id: str) -> int:
    """Let the tasks write, then commit."""
    return lake.append_files(table, lake.written_files(table, files, load_id), load_id)


def read_by_delta(lake: Lake, table: Table) -> Any:
    """The table as Delta's own reader has it. Lake.read takes the files of one as small as these."""
    return lake.spark.read.format("delta").load(lake.location(table))


def files_of(lake: Lake, table: Table, rows: pa.Table) -> Any:
    """What two tasks make of the rows, which they give in small pieces."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for first, end in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from rows.slice(first, end - first).to_batches(max_chunksize=100)

    half = len(rows) // 2
    parts = lake.spark.createDataFrame([(0, half), (half, len(rows))], "first bigint, end bigint")
    write = writing(decode, lake.folder(table), table.arrow_schema, LOAD)
    return parts.coalesce(1).repartition(2, "first").mapInArrow(write, from_arrow_schema(FILES))


@pytest.fixture(scope="module", params=[RECORDS, SNAPSHOT_RECORDS], ids=lambda t: t.name)
def both(lake: Any, request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Lake, Lake]:
    """A table of the golden lake as Spark writes it, and as tasks do."""
    table = request.param
    paths = [tmp_path_factory.mktemp(f"{table.name}-{name}") / "lake" for name in ("spark", "tasks")]
    held = arrow_with(lake.path, table, [n for n in table.names if n not in OWN])
    by_tasks = rewritten(lake, table, paths[1], held)
    prepare_lake(paths[0])
    by_spark = Lake(lake.spark, paths[0])
    by_spark.create(table)
    rows = read_by_delta(by_tasks, table).coalesce(1)
    rows.write.format("delta").mode("append").save(by_spark.location(table))
    return table, by_spark, by_tasks


def test_rows_are_those_given(lake: Any, both: tuple[Table, Lake, Lake]) -> None:
    table, by_spark, by_tasks = both
    columns = [n for n in table.names if n not in OWN]
    by_key = [(name, "ascending") for name in table.key]
    wanted = arrow_with(lake.path, table, columns).sort_by(by_key)
    assert arrow_with(by_tasks.path, table, columns).sort_by(by_key).equals(wanted)
    assert read_by_delta(by_tasks, table).schema == read_by_delta(by_spark, table).schema
    found = read_by_delta(by_tasks, table).select(table.names).toArrow().sort_by(by_key)
    assert found.select(columns).to_pylist() == wanted.to_pylist()
    assert {tuple(row.values()) for row in found.select(OWN).to_pylist()} == {tuple(LOAD.values())}


def test_the_log_tells_what_spark_would(both: tuple[Table, Lake, Lake]) -> None:
    """Of one file with all rows. Spark tells of nested columns too, which nobody asks for; and a text that is
    cut it has end in the greatest ASCII character where that will do.
    """
    table, by_spark, _ = both
    rows = arrow_with(by_spark.path, table, table.names)
    told = Statistics(table.arrow_schema)
    for batch in rows.to_batches(max_chunksize=1000):
        told.add(pa.Table.from_batches([batch]))
    ours = json.loads(told.as_json())
    (log,) = (by_spark.path / table.name / "_delta_log").glob("*1.json")
    (theirs,) = (
        json.loads(json.loads(line)["add"]["stats"])
        for line in log.read_text().splitlines()
        if '"add"' in line
    )
    assert ours["numRecords"] == theirs["numRecords"] == len(rows)
    ours["maxValues"] = {
        name: value.replace(GREATEST_CHARACTER, "\x7f") if isinstance(value, str) else value
        for name, value in ours["maxValues"].items()
    }
    for kind in ("minValues", "maxValues", "nullCount"):
        plain = {name: value for name, value in theirs[kind].items() if not isinstance(value, dict)}
        assert plain == {name: ours[kind].get(name) for name in plain} != {}


def test_rows_are_found_by_any_column(both: tuple[Table, Lake, Lake]) -> None:
    """delta-rs leaves out files by what the log tells of them."""
    table, by_spark, by_tasks = both
    for condition in (
        ds.field("type") == "KRaftVoters",
        ds.field("type").isin(["TOPIC_RECORD", "PARTITION_RECORD"]),
        ds.field("is_control"),
        ds.field("unread_reason").is_null(),
        ds.field("topic").is_valid(),
        ds.field("leader_epoch") > 3,
        ds.field("run_id") == "a run",
        ds.field("loaded_at") == LOAD["loaded_at"],
        ds.field("cluster_id") == "rPoTXydvQsK3Nv6AA77Cqg",
        ds.field(table.key[3]).is_valid(),
    ):
        ours, theirs = (opened(o.path, table).count_rows(filter=condition) for o in (by_tasks, by_spark))
        assert ours == theirs > 0, condition


def test_a_load_comes_once(both: tuple[Table, Lake, Lake]) -> None:
    table, _, by_tasks = both
    rows = arrow_with(by_tasks.path, table, table.names)
    version = DeltaTable(by_tasks.path / table.name).version()
    assert appended(by_tasks, table, files_of(by_tasks, table, rows), "load") == 0
    assert appended(by_tasks, table, files_of(by_tasks, table, rows.slice(0, 0)), "nothing") == 0
    assert DeltaTable(by_tasks.path / table.name).version() == version


def test_joined_files_hold_the_same_rows_in_small_groups(
    both: tuple[Table, Lake, Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So small that nearly all are left out where only a few records are looked for."""
    table, _, by_tasks = both
    given = arrow_with(by_tasks.path, table, [n for n in table.names if n not in OWN]).slice(0, 3500)
    lake = rewritten(by_tasks, table, tmp_path / "lake", given.slice(0, 2500))
    appended(lake, table, files_of(lake, table, given.slice(2500)), "another load")
    rows = arrow_with(lake.path, table, table.names)
    assert len(rows) == len(given)
    for group_rows in ("GROUP_ROWS", "SORTED_GROUP_ROWS"):
        monkeypatch.setattr(clustering, group_rows, 1000)
    lake.writer.compact(table)
    (file,) = DeltaTable(lake.path / table.name).file_uris()
    metadata = pq.ParquetFile(file).metadata
    groups = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert sum(groups) == len(rows) > max(groups) == 1000
    by_key = [(name, "ascending") for name in table.key]
    joined = arrow_with(lake.path, table, table.names)
    assert joined.sort_by(by_key).equals(rows.sort_by(by_key))
    for read in (read_by_delta(lake, table), lake.read(table)):
        assert read.toArrow().sort_by(by_key).to_pylist() == rows.sort_by(by_key).to_pylist()


def test_rows_of_a_cluster_stand_together_in_joined_files(lake: Any, tmp_path: Path) -> None:
    """However many files had some: a question about one cluster leaves out the row groups of the others."""
    rows = arrow_with(lake.path, CAPTURES, [n for n in CAPTURES.names if n not in OWN])
    copied = rewritten(lake, CAPTURES, tmp_path / "lake", rows.slice(0, 0))
    for nth in range(4):
        appended(
            copied, CAPTURES, files_of(copied, CAPTURES, rows.take(list(range(nth, len(rows), 4)))), f"{nth}"
        )
    copied.writer.compact(CAPTURES)
    (file,) = DeltaTable(copied.path / CAPTURES.name).file_uris()
    ids = pq.read_table(file, columns=["cluster_id"])["cluster_id"].to_pylist()
    assert len(set(ids)) > 2
    assert ids == sorted(ids)


def test_files_are_added_to_a_table_whose_structs_were_extended(lake: Any, tmp_path: Path) -> None:
    """Of a lake that was written when a record had fewer fields."""
    rows = arrow_with(lake.path, RECORDS, [n for n in RECORDS.names if n not in OWN], type=["TOPIC_RECORD"])
    (topic,) = (c for c in RECORDS.columns if c.name == "topic")
    before = Column("topic", "STRUCT<name: STRING>", topic.comment)
    columns = tuple(before if c is topic else c for c in RECORDS.columns)
    prepare_lake(tmp_path / "lake")
    other = Lake(lake.spark, tmp_path / "lake")
    other.create(Table(RECORDS.name, RECORDS.comment, columns, RECORDS.key))
    assert outdated_tables(other.path) == [RECORDS]
    update_schemas(other.writer)
    assert appended(other, RECORDS, files_of(other, RECORDS, rows), "load") == len(rows)
    assert read_by_delta(other, RECORDS).schema == read_by_delta(lake, RECORDS).schema
    found = arrow_with(other.path, RECORDS, ["topic"]).to_pylist()
    assert all(row["topic"]["topic_id"] for row in found)


def test_the_first_file_has_no_structs_but_those_of_its_first_rows(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest goes to a file with all of them; readers do not see which file a row is in."""
    monkeypatch.setattr(table_files, "ROW_GROUP_ROWS", 100)
    rows = arrow_with(lake.path, RECORDS, [n for n in RECORDS.names if n not in OWN]).sort_by("type")
    rows = pa.concat_tables([rows.slice(0, 450), rows.slice(len(rows) - 250)])
    prepare_lake(tmp_path / "lake")
    other = Lake(lake.spark, tmp_path / "lake")
    other.create(RECORDS)
    write = writing(iter, other.folder(RECORDS), RECORDS.arrow_schema, LOAD)
    batches = rows.combine_chunks().to_batches(max_chunksize=50)
    written = [row for found in write(iter(batches)) for row in found.to_pylist()]
    lacking = [
        n for n in rows.column_names if all(batch[n].null_count == len(batch) for batch in batches[:2])
    ]
    fitting = [all(batch[n].null_count == len(batch) for n in lacking) for batch in batches]
    assert written[0]["row_count"] == 50 * fitting.index(False)
    assert fitting.index(False) % 2
    first, rest = (pq.read_schema(tmp_path / "lake" / RECORDS.name / file["path"]).names for file in written)
    assert set(first) < set(rest) == set(RECORDS.names)
    assert all(pa.types.is_struct(RECORDS.arrow_schema.field(name).type) for name in set(rest) - set(first))
    assert other.append_files(RECORDS, written, "load") == len(rows)
    by_key = [(name, "ascending") for name in RECORDS.key]
    wanted = rows.sort_by(by_key).to_pylist()
    names = rows.column_names
    assert arrow_with(other.path, RECORDS, names).sort_by(by_key).to_pylist() == wanted
    assert other.read(RECORDS).select(names).toArrow().sort_by(by_key).to_pylist() == wanted
    for field, name in (
        ("topic", "name"),
        ("partition_change", "partition_id"),
        ("abort_transaction", "reason"),
    ):
        count = sum(row[field] is not None and row[field][name] is not None for row in wanted)
        held = ds.field(field, name).is_valid()
        assert opened(other.path, RECORDS).count_rows(filter=held) == count
    other.writer.compact(RECORDS)
    assert arrow_with(other.path, RECORDS, names).sort_by(by_key).to_pylist() == wanted


def test_row_groups_are_bounded_and_a_task_without_rows_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("n", pa.int64()), ("text", pa.string()), ("run_id", pa.string())])
    batches = [pa.record_batch({"n": range(k), "text": ["x" * 100] * k}) for k in (10, 0, 10, 10, 10, 5)]
    write = writing(lambda given: given, tmp_path, schema, {"run_id": "a run"})
    for limit, value, groups in (("ROWS", 20, [20, 20, 5]), ("BYTES", 500, [10, 10, 10, 10, 5])):
        with monkeypatch.context() as patched:
            patched.setattr(table_files, f"ROW_GROUP_{limit}", value)
            (file,) = (row for found in write(iter(batches)) for row in found.to_pylist())
        written = pq.ParquetFile(tmp_path / file["path"])
        metadata = written.metadata
        assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == groups
        assert file["row_count"] == 45
        assert file["size_bytes"] == (tmp_path / file["path"]).stat().st_size
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    assert list(write(iter(batches[1:2]))) == []
    assert list(tmp_path.iterdir()) == []


def test_long_texts_and_the_ends_of_time() -> None:
    schema = pa.schema([("text", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("flag", pa.bool_())])
    told = Statistics(schema)
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)]
    rows = {"text": ["b" * 40, "a" * 40], "at": ends, "flag": [True, None]}
    told.add(pa.table(rows, schema=schema))
    assert json.loads(told.as_json()) == {
        "numRecords": 2,
        "minValues": {"text": "a" * 32, "at": "0001-01-01T00:00:00.000Z"},
        "maxValues": {"text": "b" * 32 + "\U0010ffff", "at": "9999-12-31T23:59:59.999Z"},
        "nullCount": {"text": 0, "at": 0, "flag": 1},
    }
    between = datetime(2026, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)
    told = Statistics(schema)
    told.add(pa.table({"text": [None], "at": [between], "flag": [None]}, schema=schema))
    found = json.loads(told.as_json())
    assert found["minValues"] == {"at": "2026-01-01T00:00:00.001Z"}
    assert found["maxValues"] == {"at": "2026-01-01T00:00:00.002Z"}
