"""What the source reads of files: each record once, where it lies, and every byte that cannot be read."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, IsNotNull, IsNull, Not, StringStartsWith

from kraft_core.format.batch import crc32c
from kraft_core.format.compression import GZIP
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.log_files import parse_segment_name
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch, read_log
from kraft_core.format.secrets import redact
from kraft_core.format.segment import Damage, scan
from kraft_core.format.snapshot import parse_name, read_snapshot
from tests.kraft_core.columnar.test_json_text import GOLDEN, expected
from transforms.lake.spark_rows import parse_type
from transforms.source import planning
from transforms.source.errors import SourceError
from transforms.source.filters import Wanted
from transforms.source.kraft import KraftDataSource
from transforms.source.options import FileOptions

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


def test_a_file_is_divided_where_batches_end(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In ranges of any size: each record once."""
    root = golden / "v4.4.0-mini"
    whole = read(root)
    for size in (100, 1000, 4096):
        monkeypatch.setattr(planning, "LEAST_RANGE_BYTES", size)
        monkeypatch.setattr(planning, "RANGE_BYTES", size)
        parts = planning.partitions(FileOptions((str(root),)), Wanted())
        assert len(parts) > 3
        assert in_order(read(root)) == in_order(whole)


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


DAMAGED = sorted(path.name for path in (GOLDEN / "corrupt").iterdir() if path.is_dir())


@pytest.fixture
def damaged(golden: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A controller directory with the files of a folder of tests/golden/corrupt."""

    def made(name: str) -> Path:
        log = tmp_path / name / "node-1" / LOG_DIR_NAME
        shutil.copytree(golden / "corrupt" / name, log)
        (log.parent / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=damaged\n")
        return log.parent

    return made


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_a_row(damaged: Callable[[str], Path], name: str) -> None:
    """By the scan and the codec of the lake: the same records, and every byte that is none of them."""
    directory = damaged(name)
    rows = read(directory)
    records, damage, incomplete = 0, [], 0
    for path, _ in files_of(directory):
        with mapped(path) as buf:
            first = parse_segment_name(path.name) if path.suffix == ".log" else 0
            for item in scan(buf, next_offset=first):
                if isinstance(item, Damage):
                    damage.append((path.name, item.position, item.size_bytes, item.reason, item.sha256))
                    continue
                for record in read_batch(buf, item):
                    records += 1
                    if record.damage is not None:
                        damage.append((path.name, item.position, *astuple(record.damage)[1:]))
            incomplete += path.suffix != ".log" and not read_snapshot(buf).complete
    found = [row["_corrupt_range"] | row for row in rows if row["_corrupt_range"]]
    read_damage = [
        (Path(r["file"]).name, r["position"], r["size_bytes"], r["reason"], r["sha256"])
        for r in found
        if not r["reason"].startswith("incomplete: ")
    ]
    assert sorted(read_damage) == sorted((n, at, size, why, sha) for n, at, size, why, sha in damage)
    assert len(found) - len(read_damage) == incomplete
    assert sum(row["type"] is not None for row in rows) == records
    if found:
        with pytest.raises(SourceError, match="mode FAILFAST stops here"):
            read(directory, mode="failfast")
    else:
        assert in_order(read(directory, mode="FAILFAST")) == in_order(rows)


def test_secrets_are_nowhere(golden: Path) -> None:
    """In no column of any kind of schema, of captures in which they are."""
    root = golden / "dynamic-membership" / "node-1"
    types = "UserScramCredentialRecord,DelegationTokenRecord,ConfigRecord"
    rows = read(root, types=types)
    structs = {row["type"]: row for row in rows}
    assert len(structs) == 3
    for row in rows:
        scram = row["user_scram_credential"]
        assert scram is None or scram["salt"] is scram["stored_key"] is scram["server_key"] is None
    secrets = set(secrets_of(root))
    assert len(secrets) > 3
    text = repr(rows)
    assert [secret for secret in secrets if secret in text] == []


def secrets_of(root: Path) -> Iterator[str]:
    for path, _ in files_of(root):
        for record in records_of(path):
            if record.message is None or record.value is None:
                continue
            hidden, redacted = redact(record.message, record.value)
            for name, value in record.value.items() if redacted else ():
                if hidden[name] != value and value and len(value) > 4:
                    yield b64encode(value).decode() if isinstance(value, bytes) else str(value)


def test_filters_leave_out_only_what_fails_them(golden: Path) -> None:
    """What Spark pushes down, against what it then finds itself."""
    root = golden / "uncommitted-truncation"
    whole = read(root)
    for filters, holds in FILTERS:
        found = read(root, filters=filters)
        assert [row for row in found if holds(row)] == [row for row in whole if holds(row)]
        assert len(found) < len(whole)


FILTERS: list[tuple[list[Filter], Callable[[dict[str, Any]], bool]]] = [
    ([EqualTo(("offset",), 25)], lambda row: row["offset"] == 25),
    ([In(("offset",), (3, 25))], lambda row: row["offset"] in (3, 25)),
    (
        [GreaterThan(("offset",), 350), Not(EqualTo(("node_id",), 1))],
        lambda row: row["offset"] > 350 and row["node_id"] != 1,
    ),
    ([EqualTo(("type",), "KRaftVoters")], lambda row: row["type"] == "KRaftVoters"),
    ([Not(In(("type",), ("NO_OP_RECORD",)))], lambda row: row["type"] != "NO_OP_RECORD"),
    ([StringStartsWith(("type",), "KRaft")], lambda row: row["type"].startswith("KRaft")),
    ([EqualTo(("source",), "snapshot")], lambda row: row["source"] == "snapshot"),
    ([EqualTo(("node_id",), 2), IsNotNull(("offset",))], lambda row: row["node_id"] == 2),
]


def test_a_filter_for_null_keeps_the_damage(damaged: Callable[[str], Path]) -> None:
    directory = damaged("crc-flip-middle")
    (row,) = [row for row in read(directory) if row["_corrupt_range"]]
    assert row in read(directory, filters=[IsNull(("offset",))])
    assert row not in read(directory, filters=[EqualTo(("offset",), 3)])


def test_options_are_filters(golden: Path) -> None:
    root = golden / "uncommitted-truncation" / "after"
    whole = read(root)
    bounds = {"startingOffset": "20", "endingOffset": "30"}
    lot = read(root, include="log", nodeId="2", types="KRaftVoters,NoOpRecord", **bounds)
    names = ("file", "position", "position_in_batch", "value")
    assert [[row[name] for name in names] for row in lot] == [
        [row[name] for name in names]
        for row in whole
        if row["source"] == "log"
        and 20 <= row["offset"] < 30
        and row["node_id"] == 2
        and row["type"] in ("KRaftVoters", "NO_OP_RECORD")
    ]
    assert lot
    assert {row["source"] for row in read(root, include="checkpoints")} == {"snapshot"}


def test_a_lost_offset_is_told_where_it_may_be_wanted(damaged: Callable[[str], Path]) -> None:
    directory = damaged("crc-flip-middle")
    (lost,) = [row["_corrupt_range"] for row in read(directory) if row["_corrupt_range"]]
    first, end = lost["lost_from_offset"], lost["lost_to_offset"]

    def told(**options: str) -> int:
        return sum(row["_corrupt_range"] is not None for row in read(directory, **options))

    assert told(startingOffset=str(first), endingOffset=str(end)) == 1
    assert told(startingOffset=str(end - 1)) == told(endingOffset=str(first + 1)) == 1
    assert told(startingOffset=str(end)) == told(endingOffset=str(first)) == 0


def test_a_batch_that_cannot_be_unpacked_is_told_where_it_may_be_wanted(
    damaged: Callable[[str], Path],
) -> None:
    """Its records may be of any type; the row has the first lost offset."""
    directory = damaged("good")
    (log,) = (directory / LOG_DIR_NAME).glob("*.log")
    content = log.read_bytes()
    headers = [item for item in scan(content, next_offset=408) if not isinstance(item, Damage)]
    batch = next(h for h in headers if not h.is_control and h.last_offset > h.base_offset)
    packed = bytearray(content[batch.position : batch.end])
    packed[22] |= GZIP  # says so, but is not
    packed[17:21] = crc32c(bytes(packed[21:])).to_bytes(4, "big")
    log.write_bytes(content[: batch.position] + packed + content[batch.end :])

    def told(**options: str) -> list[str]:
        return [
            row["_corrupt_range"]["reason"] for row in read(directory, **options) if row["_corrupt_range"]
        ]

    last = {"startingOffset": str(batch.last_offset)}
    assert told() == told(types="TopicRecord") == told(**last) == ["unpack_failed"]
    assert told(endingOffset=str(batch.base_offset)) == []
    assert told(startingOffset=str(batch.last_offset + 1)) == []
    for options in ({"types": "TopicRecord"}, last):
        with pytest.raises(SourceError, match="unpack_failed"):
            read(directory, mode="FAILFAST", **options)


@pytest.mark.parametrize("filters", [[GreaterThan(("offset",), 3)], [EqualTo(("type",), "TOPIC_RECORD")]])
def test_a_filter_hides_no_damage_from_failfast(
    damaged: Callable[[str], Path], filters: list[Filter]
) -> None:
    """As without pushdown."""
    for name in ("crc-flip-middle", "unknown-record-type", "torn-last-batch"):
        with pytest.raises(SourceError, match="mode FAILFAST stops here"):
            read(damaged(name), filters=filters, mode="FAILFAST")


SCHEMA = (
    "STRUCT<offset: BIGINT, kraft_voters: STRUCT<voters: ARRAY<STRUCT<"
    "endpoints: ARRAY<STRUCT<port: INT>>, voter_id: INT>>>>"
)


def test_a_schema_of_ones_own(golden: Path) -> None:
    """Some columns, in any order; of structs some fields, at any depth."""
    schema = parse_type(SCHEMA)
    root = golden / "uncommitted-truncation/after/node-1"
    rows = read(root, schema=schema, types="VotersRecord", include="log")
    assert rows[0] == {
        "offset": 2,
        "kraft_voters": {"voters": [{"endpoints": [{"port": 29101}], "voter_id": 1}]},
    }
    assert [len(row["kraft_voters"]["voters"]) for row in rows][:3] == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"clusterid": "x"}, "is of cluster x; there is "),
        ({"nodeId": "77"}, "is of node 77; there are nodes 1, 2, 3"),
        ({"nodeId": "one"}, "option nodeId: 'one' is not a non-negative whole number"),
        ({"cluster": "x"}, "unknown option cluster; did you mean clusterId"),
        ({"types": "TopicsRecord"}, "unknown record type TopicsRecord; did you mean TopicRecord"),
        ({"types": " , "}, "option types is empty"),
        ({"include": "logs"}, "option include: logs is not one of log, checkpoints"),
        ({"mode": "DROPMALFORMED"}, "option mode: DROPMALFORMED is not one of PERMISSIVE, FAILFAST"),
        ({"secrets": "show"}, "option secrets: only redact is supported"),
        ({"startingOffset": "-2"}, "option startingOffset: '-2' is not a non-negative whole number"),
        ({"startingOffset": "5", "endingOffset": "4"}, "option endingOffset: 4 is before startingOffset 5"),
    ],
)
def test_wrong_options(golden: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceError, match=re.escape(said)):
        read(golden / "uncommitted-truncation" / "after", **options)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("offsets: BIGINT", "unknown column offsets; did you mean offset"),
        ("offset: INT", "schema: offset is bigint, not int"),
        ("topic: STRUCT<nam: STRING>", "schema: topic has no field nam; did you mean name"),
    ],
)
def test_wrong_schemas(golden: Path, schema: str, said: str) -> None:
    with pytest.raises(SourceError, match=re.escape(said)):
        read(golden / "v4.4.0-mini", schema=parse_type(f"STRUCT<{schema}>"))
