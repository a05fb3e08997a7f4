"""kraftlake sql: answers in each format, and wrong queries in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from dashboards.listing import listing
from dashboards.view_columns import VIEWS
from jobs import sql
from jobs.cli import main
from jobs.questions.row_text import plain
from jobs.questions.statements import Statement, statements_of
from jobs.time_travel.asked_moments import out_of_reach
from tests.jobs.test_both_engines import EVALUATED
from transforms.lake.tables import TABLES

CHECKOUT = Path(__file__).parents[3]
# The cluster of golden/v4.4.0-mini.
MINI = "roWi3HLRRCuDirielH5nnw"


@pytest.fixture
def lake_path(lake: Any) -> Path:
    return lake.path


def answer(capsys: pytest.CaptureFixture[str], lake: Path, *words: str) -> str:
    capsys.readouterr()
    assert main(["sql", "--lake", str(lake), *words]) == 0
    return capsys.readouterr().out


def test_who_could_vote_when(lake_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(
        capsys,
        lake_path,
        "SELECT `offset`, voter_ids, commit_status FROM voter_history "
        f"WHERE source = 'record' AND cluster_id = '{MINI}'",
        "--format",
        "json",
    )
    assert [json.loads(line) for line in out.splitlines()] == [
        {"offset": 2, "voter_ids": [1], "commit_status": "committed"},
        {"offset": 25, "voter_ids": [1, 2], "commit_status": "committed"},
    ]


def test_table_and_csv(lake_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = f"SELECT leader_epoch, leader_id FROM leader_timeline WHERE cluster_id = '{MINI}' ORDER BY 1"
    table = answer(capsys, lake_path, query)
    assert [line.split() for line in table.splitlines()] == [
        ["leader_epoch", "leader_id"],
        ["------------", "---------"],
        ["1", "1"],
        ["2", "2"],
    ]
    assert answer(capsys, lake_path, query, "--format", "csv") == "leader_epoch,leader_id\n1,1\n2,2\n"


def test_markdown_parquet_and_arrow(
    lake_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = (
        "SELECT leader_epoch, leader_id, elected_at, '|' AS bar FROM leader_timeline "
        f"WHERE cluster_id = '{MINI}' ORDER BY 1"
    )
    shown = answer(capsys, lake_path, query, "--format", "markdown").splitlines()
    assert shown[:2] == ["| leader_epoch | leader_id | elected_at | bar |", "|---|---|---|---|"]
    assert [line.split(" | ")[1] for line in shown[2:]] == ["1", "2"]
    assert shown[2].endswith(r"Z | \| |")
    for form, read in (("parquet", pq.read_table), ("arrow", feather.read_table)):
        out = tmp_path / f"answer.{form}"
        assert answer(capsys, lake_path, query, "--format", form, "--out", str(out)) == ""
        table = read(out)
        assert table.column_names == ["leader_epoch", "leader_id", "elected_at", "bar"]
        assert table["leader_epoch"].to_pylist() == [1, 2]
        assert pa.types.is_timestamp(table.schema.field("elected_at").type)
    out = tmp_path / "answer.csv"
    assert answer(capsys, lake_path, query, "--format", "csv", "--out", str(out)) == ""
    assert out.read_text().startswith("leader_epoch,")
    assert len(list(tmp_path.iterdir())) == 3
    assert main(["sql", "--lake", str(lake_path), query, "--format", "parquet"]) == 2
    assert "--format parquet needs --out FILE and one statement" in capsys.readouterr().err


def test_explain_is_a_text(lake_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = answer(capsys, lake_path, "EXPLAIN SELECT * FROM epochs").splitlines()
    assert lines[0] == "== Physical Plan =="
    assert len(lines) > 2
    assert "\\n" not in "".join(lines)


def test_a_misspelt_table_is_named(lake_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, meant in (("voter_set", "voter_sets"), ("topics_know", "topics_now"), ("captrues", "captures")):
        capsys.readouterr()
        assert main(["sql", "--lake", str(lake_path), f"SELECT * FROM {name}"]) == 2
        assert capsys.readouterr().err.strip().endswith(f" catalog; did you mean {meant}?")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            "topics_at('ID', TIMESTAMP '2020-01-01')",
            "2020-01-01T00:00:00.000Z is before the history of ID, wh",
        ),
        ("topics_at('ID', '2040-01-01 12:00')", "2040-01-01T12:00:00.000Z is after the newest record of ID,"),
        ("topics_as_of('ID', 1000000)", "offset 1000000 is beyond the end of the log; its last offset is "),
        ("topics_as_of('IDx', 1)", "has no capture of cluster IDx; it has "),
        ("topics_as_of('ID', 1)", None),
        ("topics_at('ID', TIMESTAMP 'soon')", None),
        ("topics_at('ID', current_timestamp())", None),
    ],
)
def test_a_moment_that_no_capture_reaches_is_named(lake_path: Path, call: str, says: str | None) -> None:
    said = list(out_of_reach(lake_path, f"SELECT count(*) FROM {call} -- of old".replace("ID", MINI)))
    if says is None:
        assert said == []
    else:
        assert len(said) == 1
        assert says.replace("ID", MINI) in said[0]


def test_a_warning_does_not_change_the_answer(lake_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = f"SELECT count(*) AS n FROM topics_at('{MINI}', TIMESTAMP '2020-01-01')"
    capsys.readouterr()
    assert main(["sql", "--lake", str(lake_path), query, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"n": 0}
    assert err.startswith("warning: 2020-01-01T00:00:00.000Z is before the history of ")
    assert len(err.splitlines()) == 1


def test_a_time_with_a_zone_is_one_of_utc() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2)))
    assert plain(noon) == "2026-11-21T10:00:00.000Z"
    assert plain(noon.replace(tzinfo=None)) == "2026-11-21T12:00:00.000Z"


# In every form that is answered without Spark's catalog.
LISTINGS = (
    "SHOW TABLES",
    "show views",
    "SHOW TABLES IN kraft",
    "SHOW VIEWS FROM `kraft` LIKE 'voter*|QUORUM*'",
    " SHOW TABLES 'voter_sets' ",
    "SHOW TABLES LIKE 'nothing'",
)


def test_every_view_answers(lake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked from one file: the lake is opened once. Those of dashboards/*.sql: test_both_engines.py.

    In the end, SHOW FUNCTIONS needs also what no statement named, and the catalog lacked; then Spark lists
    what SHOW TABLES and SHOW VIEWS answer without it.
    """
    for missing in ("VIEW IF EXISTS kraft.zk_migrations", "TABLE IF EXISTS kraft.cluster_names"):
        lake.spark.sql(f"DROP {missing}")
    file = tmp_path / "views.sql"
    views = sorted(VIEWS.keys() - set(EVALUATED))
    assert len(views) >= 20
    file.write_text("".join(f"SELECT * FROM {view} LIMIT 3;\n" for view in views) + "SHOW FUNCTIONS")
    assert "voters_at" in answer(capsys, lake.path, "--file", str(file))
    for asked in LISTINGS:
        ours, theirs = listing(lake.spark, asked), lake.spark.sql(asked)
        assert ours is not None
        assert ours.schema == theirs.schema
        assert ours.collect() == theirs.collect()
    shown = {row.tableName for row in lake.spark.sql("SHOW TABLES").collect()}
    assert shown == {table.name for table in TABLES} | VIEWS.keys()


def test_names_are_listed_without_the_catalog(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lake.spark.sql("DROP VIEW IF EXISTS kraft.committed_ends")
    rows = answer(capsys, lake.path, "SHOW VIEWS LIKE 'committed_e*'", "--format", "json").splitlines()
    assert [json.loads(row)["viewName"] for row in rows] == ["committed_ends"]
    assert "committed_ends" not in {row.viewName for row in lake.spark.sql("SHOW VIEWS IN kraft").collect()}
    for other in ("SHOW TABLES IN default", "SHOW TABLES LIKE '(a'", "SHOW TABLE EXTENDED LIKE '*'", "SHOW"):
        assert listing(lake.spark, other) is None


def test_a_view_that_the_catalog_lacks_answers(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Its rows are evaluated for the session that asks, which is not the one that opened the lake."""
    lake.spark.sql("DROP VIEW IF EXISTS kraft.committed_ends")
    out = answer(capsys, lake.path, "SELECT COUNT(*) AS n FROM committed_ends", "--format", "json")
    assert json.loads(out) == {"n": 7}


@pytest.mark.parametrize("statement", ["SELEC 1", "DELETE FROM committed_ends"])
def test_for_what_is_refused_nothing_is_registered(lake: Any, statement: str) -> None:
    """Of such a statement it is not known what it needs: that would be all tables and views, for seconds."""
    lake.spark.sql("DROP VIEW IF EXISTS kraft.committed_ends")
    assert main(["sql", statement, "--lake", str(lake.path)]) == 2
    assert "committed_ends" not in {row.viewName for row in lake.spark.sql("SHOW VIEWS IN kraft").collect()}


def test_a_failing_statement_of_a_file_is_named(
    lake_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "morning.sql"
    file.write_text("-- epochs\nSELECT 1 AS a;\n\nSELECT * FROM nowhere;\nSELECT 2 AS b;\nSELECT c;\n")
    flags = ["sql", "--lake", str(lake_path), "--file", str(file), "--format", "json"]
    capsys.readouterr()
    assert main(flags) == 2
    first = capsys.readouterr()
    assert first.out == '{"a": 1}\n'
    assert first.err.startswith(f"kraftlake sql: {file}, line 4: [TABLE_OR_VIEW_NOT_FOUND]")
    assert main([*flags, "--keep-going"]) == 2
    all_of_them = capsys.readouterr()
    assert all_of_them.out == '{"a": 1}\n{"b": 2}\n'
    lines = all_of_them.err.splitlines()
    assert [line.split("[")[0] for line in lines] == [
        f"kraftlake sql: {file}, line 4: ",
        f"kraftlake sql: {file}, line 6: ",
        "kraftlake sql: 2 of 4 statements failed",
    ]


def test_a_long_answer_ends_with_how_many_more_rows_there_are(
    lake_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT explode(sequence(1, 1234)) AS n"
    flags = ["sql", "--lake", str(lake_path), query, "--format", "csv"]
    assert len(answer(capsys, lake_path, query, "--format", "csv").splitlines()) == 1 + 1234
    for limit, more in ((2, "... 1,232 more: --limit 0 shows all rows\n"), (1234, ""), (0, "")):
        assert main([*flags, "--limit", str(limit)]) == 0
        shown = capsys.readouterr()
        assert len(shown.out.splitlines()) == 1 + (limit or 1234)
        assert shown.err == more
    with pytest.raises(SystemExit, match="2"):
        main(["sql", "--lake", str(lake_path), query, "--limit", "-3"])
    assert "-3 is not a number of lines" in capsys.readouterr().err


def test_a_moved_lake_works(lake_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(lake_path, tmp_path / "moved")
    out = answer(capsys, tmp_path / "moved", "SELECT COUNT(*) AS n FROM captures", "--format", "json")
    assert json.loads(out) == {"n": 55}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT nothing FROM voter_sets", "UNRESOLVED_COLUMN"),
        ("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_a_wrong_query_is_one_line(
    lake_path: Path, capsys: pytest.CaptureFixture[str], query: str, said: str
) -> None:
    capsys.readouterr()
    assert main(["sql", query, "--lake", str(lake_path)]) == 2
    err = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(err) == 1
    assert said in err[0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT timestamp'294247-01-01'", "year 294247 is out of range: cast such values to STRING"),
        ("SELECT date'-0001-01-01'", "cast such values to STRING"),
        ("SELECT assert_true(node_id < 0) FROM captures", "is not true"),
        ("SELECT raise_error(cluster_id) FROM captures", MINI),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "StackOverflowError"),
    ],
)
def test_an_answer_that_fails_half_way_is_one_line(
    lake_path: Path, capsys: pytest.CaptureFixture[str], query: str, words: str
) -> None:
    """Where Spark or Python give up on a value, not on the statement."""
    if "raise_error" in query:
        query += f" WHERE cluster_id = '{words}'"
    assert main(["sql", "--lake", str(lake_path), query]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("kraftlake sql: ")
    assert words in err


def test_a_thread_of_the_jvm_without_a_session_answers(
    lake_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after Ctrl-C, which ends a connection to the JVM: each has a thread there, as each of Python has."""
    with ThreadPoolExecutor(1) as threads:
        answer_all = sql._answer_all
        monkeypatch.setattr(sql, "_answer_all", lambda *words: threads.submit(answer_all, *words).result())
        assert answer(capsys, lake_path, "SELECT 42 AS n", "--format", "csv") == "n\n42\n"


def test_times_are_utc_wherever_it_runs(
    lake_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first and the last time are those that a log's are clamped to."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    times = ("0001-01-02T00:00:00.000Z", "2026-11-21T09:14:44.500Z", "9999-12-31T23:59:59.999Z")
    query = ", ".join(f"TIMESTAMP '{at}' t{n}" for n, at in enumerate(times))
    try:
        out = answer(capsys, lake_path, f"SELECT {query}", "--format", "json")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert tuple(json.loads(out).values()) == times


def test_what_is_no_number_is_text_in_json(lake_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, lake_path, "SELECT double('NaN') a, -double('inf') b", "--format", "json")
    assert json.loads(out, parse_constant=pytest.fail) == {"a": "nan", "b": "-inf"}


def test_statements_are_split_outside_quotes_and_comments() -> None:
    text = "SELECT ';' AS a; -- one; two\nSELECT `x;y` FROM t;\n"
    assert list(statements_of(text)) == [
        Statement("SELECT ';' AS a", 1),
        Statement("SELECT `x;y` FROM t", 2),
    ]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("/* a; b */ SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("/* don't */ SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("/* -- x */ SELECT 1/* ; /* ; */ ; */AS a;", ["SELECT 1 AS a"]),
        ("SELECT /*+ BROADCAST(v) */ 1", ["SELECT /*+ BROADCAST(v) */ 1"]),
        ("SELECT 1; /* ; /* */", ["SELECT 1", "/* ; /* */"]),
        (r"SELECT 'it\'s; x'; SELECT 2", [r"SELECT 'it\'s; x'", "SELECT 2"]),
        (r"SELECT r'a\'; SELECT 'r'; SELECT 3", [r"SELECT r'a\'", "SELECT 'r'", "SELECT 3"]),
        ("SELECT 'a''b;c'; SELECT 4 / 2 - 1", ["SELECT 'a''b;c'", "SELECT 4 / 2 - 1"]),
    ],
)
def test_quotes_and_comments_are_those_of_spark(text: str, statements: list[str]) -> None:
    assert [statement.text for statement in statements_of(text)] == statements


def test_a_statement_begins_on_the_line_of_its_first_word() -> None:
    text = "-- a comment; \n\n  SELECT 1;;\n\n-- b\n   -- c\n\n'x\ny' || `z`;\n  \n SELECT 2"
    assert [(s.text, s.line) for s in statements_of(text)] == [
        ("SELECT 1", 3),
        ("'x\ny' || `z`", 8),
        ("SELECT 2", 11),
    ]


def test_a_long_statement_is_split_at_once() -> None:
    """In time that grows with its length, not with its square."""
    began = time.process_time()
    long = "-x " * 2_000_000
    found = list(statements_of(f"SELECT '{long}';{long}"))
    assert [statement.text for statement in found] == [f"SELECT '{long}'", long.strip()]
    assert time.process_time() - began < 10


def test_nothing_is_left_where_the_user_is(lake_path: Path, tmp_path: Path) -> None:
    """Nor is anything needed there: in /proc nobody makes a folder."""
    words = [sys.executable, "-m", "jobs.cli", "sql", "SELECT COUNT(*) > 0 AS answer FROM captures", "--lake"]
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp_path)}
    done = subprocess.run([*words, lake_path], cwd="/proc", env=variables, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["true"]), done.stderr
    assert not [*tmp_path.glob("*warehouse*")]
