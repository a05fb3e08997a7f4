"""What `sql` and `serve` answer and what they refuse: every statement goes through one question session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dashboards.definitions import defined, every_definition
from dashboards.view_columns import FUNCTIONS, VIEWS
from jobs.cli import main
from jobs.questions.question_session import question_session
from jobs.runtime.outcome import one_line
from transforms.lake.tables import TABLES

CHECKOUT = Path(__file__).parents[3]
# docs/format.md speaks to a session of Spark's own: there a statement may make a view.
DOCUMENTS = [
    CHECKOUT / "README.md",
    *(file for file in sorted((CHECKOUT / "docs").glob("*.md")) if file.name != "format.md"),
]
QUOTED = re.compile(r'kraftlake sql "([^"]+)"')
BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)

WRITES = (
    "DELETE FROM captures",
    "UPDATE captures SET node_id = 9",
    "MERGE INTO captures USING voter_sets ON false WHEN MATCHED THEN DELETE",
    "INSERT INTO captures SELECT * FROM captures",
    "INSERT OVERWRITE captures SELECT * FROM captures",
    "INSERT OVERWRITE DIRECTORY '{place}' USING csv SELECT 1",
    "INSERT OVERWRITE LOCAL DIRECTORY '{place}' USING csv SELECT 1",
    "CREATE TABLE made USING parquet LOCATION '{place}' AS SELECT 1 AS a",
    "CREATE TABLE delta.`{place}` AS SELECT 1 AS a",
    "CREATE TABLE default.made (a INT) USING parquet",
    "CREATE VIEW made AS SELECT 1 AS a",
    "CREATE TEMPORARY VIEW made AS SELECT 1 AS a",
    "CREATE TEMPORARY VIEW made USING csv OPTIONS (path '/etc/passwd')",
    "CREATE DATABASE made LOCATION '{place}'",
    "CREATE FUNCTION made AS 'java.lang.System'",
    "CREATE TEMPORARY FUNCTION made(x INT) RETURNS INT RETURN x",
    "DECLARE VARIABLE made INT DEFAULT 1",
    "CACHE TABLE captures",
    "ALTER TABLE captures SET TBLPROPERTIES ('a' = 'b')",
    "ANALYZE TABLE captures COMPUTE STATISTICS",
    "LOAD DATA INPATH '/etc/passwd' INTO TABLE captures",
    "TRUNCATE TABLE captures",
    "OPTIMIZE captures",
    "VACUUM captures RETAIN 0 HOURS",
    "RESTORE TABLE captures TO VERSION AS OF 0",
    "DROP VIEW voter_history",
    "DROP TABLE captures",
    "DROP DATABASE kraft CASCADE",
    "BEGIN DELETE FROM captures; END",
    "EXECUTE IMMEDIATE 'DELETE FROM captures'",
    "EXPLAIN DELETE FROM captures",
)
FILES_READ = (
    "SELECT * FROM csv.`/etc/passwd`",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM delta.`{lake}/captures`",
    "SELECT (SELECT MAX(value) FROM text.`/etc/passwd`)",
    "SELECT 1 WHERE EXISTS (SELECT * FROM text.`/etc/passwd`)",
    "WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a",
    "SELECT node_id FROM captures WHERE 'root' IN (SELECT value FROM text.`/etc/passwd`)",
    "SELECT * FROM captures JOIN LATERAL (SELECT * FROM text.`/etc/passwd`)",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "FROM captures |> UNION ALL SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM captures WITH ('path' = '/etc')",
    "SELECT TRANSFORM (node_id) USING 'cat /etc/passwd' FROM captures",
    "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
    "EXPLAIN SELECT * FROM text.`/etc/passwd`",
    "DESCRIBE QUERY SELECT * FROM text.`/etc/passwd`",
    "DESCRIBE HISTORY '{lake}/captures'",
    "SHOW COLUMNS IN text.`/etc/passwd`",
    "SELECT * FROM default.anything",
)
CODE = (
    "SELECT reflect('java.lang.System', 'exit', 3)",
    "SELECT java_method('java.lang.System', 'exit', 3)",
    "SELECT try_reflect('java.lang.System', 'exit', 3)",
    "SELECT REFLECT('java.lang.System', 'getenv', 'HOME')",
    "SELECT builtin.reflect('java.lang.System', 'exit', 3)",
    "SELECT system.builtin.reflect('java.lang.System', 'exit', 3)",
    "SELECT IDENTIFIER('reflect')('java.lang.System', 'exit', 3)",
    "SELECT transform(array(1), x -> reflect('java.lang.System', 'exit', x))",
    "SELECT COUNT(*) FROM captures GROUP BY reflect('java.lang.System', 'exit', 3)",
    "SELECT COUNT(*) FROM captures HAVING MAX(reflect('java.lang.System', 'exit', 3)) = 1",
    "SELECT * FROM captures ORDER BY reflect('java.lang.System', 'exit', 3)",
    "SELECT * FROM captures LIMIT length(reflect('java.lang.System', 'exit', 3))",
    "SELECT * FROM captures TIMESTAMP AS OF reflect('java.lang.System', 'exit', 3)",
    "SELECT * FROM range(length(reflect('java.lang.System', 'exit', 3)))",
    "SELECT SUM(1) OVER (ORDER BY reflect('java.lang.System', 'exit', 3)) FROM captures",
    "SELECT * FROM VALUES (reflect('java.lang.System', 'exit', 3))",
    "ADD JAR 'x.jar'",
    "ADD FILE '/etc/passwd'",
    "LIST JARS",
    "CALL kraft.anything()",
)
SETTINGS = (
    "SET",
    "SET -v",
    "SET spark.sql.warehouse.dir",
    "SET spark.sql.variable.substitute=true",
    "SET spark.sql.extensions=x",
    "SET spark.hadoop.fs.file.impl=x",
    "SET java.io.tmpdir=/etc",
    "RESET",
    "USE default",
)
ANSWERED = (
    "SELECT COUNT(*) FROM captures",
    "SELECT COUNT(*) FROM kraft.captures JOIN spark_catalog.kraft.voter_sets USING (cluster_id)",
    "WITH a AS (SELECT node_id FROM captures) SELECT DISTINCT node_id FROM a ORDER BY 1 LIMIT 3 OFFSET 1",
    "SELECT node_id FROM captures EXCEPT SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3",
    "SELECT CASE WHEN node_id = 1 THEN 'a' END, node_id IN (1, 2), CAST(node_id AS STRING) FROM captures",
    "SELECT node_id, COUNT(*) FROM captures GROUP BY ROLLUP (node_id) HAVING COUNT(*) > 1",
    "SELECT ROW_NUMBER() OVER (PARTITION BY node_id ORDER BY captured_at) FROM captures",
    "SELECT * FROM captures LATERAL VIEW explode(array(1)) one AS a",
    "SELECT * FROM captures c, LATERAL (SELECT c.node_id + 1 AS next)",
    "SELECT /*+ BROADCAST(v) */ COUNT(*) FROM captures c JOIN voter_sets v ON c.cluster_id = v.cluster_id",
    "SELECT * FROM (SELECT node_id FROM captures) PIVOT (COUNT(*) FOR node_id IN (1, 2))",
    "SELECT transform(array(1, 2), x -> x + 1), sha2('a', 256), date_format(now(), 'yyyy')",
    "SELECT COUNT(*) FROM captures VERSION AS OF 0",
    "FROM captures |> AGGREGATE COUNT(*)",
    "SELECT * FROM range(3)",
    "VALUES (1, 'a')",
    "TABLE captures",
    "EXPLAIN SELECT * FROM captures",
    "DESCRIBE TABLE captures",
    "DESCRIBE TABLE EXTENDED captures",
    "DESCRIBE DATABASE kraft",
    "DESCRIBE FUNCTION sum",
    "DESCRIBE HISTORY captures",
    "SHOW TABLES",
    "SHOW VIEWS",
    "SHOW DATABASES",
    "SHOW COLUMNS IN captures",
    "SHOW CREATE TABLE voter_history",
    "SHOW USER FUNCTIONS",
    "USE kraft",
    "SET spark.sql.session.timeZone",
    "SET spark.sql.session.timeZone=UTC",
    "SET TIME ZONE 'UTC'",
)


@pytest.fixture(scope="module")
def questions(catalog_lake: Any) -> Any:
    """A session over the golden lake that only answers questions."""
    return question_session(catalog_lake.spark, None)


def parsed(questions: Any, sql: str) -> Any:
    return questions._jsparkSession.sessionState().sqlParser().parsePlan(sql)


@pytest.mark.parametrize("sql", [*WRITES, *FILES_READ, *CODE, *SETTINGS])
def test_what_is_no_question_is_refused(questions: Any, catalog_lake: Any, tmp_path: Path, sql: str) -> None:
    """In one sentence, before anything of it is looked up or run."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as refused:
        questions.sql(sql.format(place=tmp_path / "made", lake=catalog_lake.path))
    assert one_line(refused.value).startswith("refused: ")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("sql", ANSWERED)
def test_questions_are_answered(questions: Any, sql: str) -> None:
    questions.sql(sql).collect()


def test_no_variable_of_the_environment_is_shown(questions: Any) -> None:
    ((text,),) = questions.sql("SELECT '${env:HOME} ${system:user.home}'").collect()
    assert text == "${env:HOME} ${system:user.home}"


def test_defaults_of_a_schema_run_no_code(questions: Any) -> None:
    """Spark parses and evaluates the text of EXISTS_DEFAULT by a parser of its own."""
    field = (
        '{"name":"a","type":"string","nullable":true,"metadata":'
        "{\"EXISTS_DEFAULT\":\"reflect('java.lang.System','getProperty','java.home')\"}}"
    )
    schema = '{"type":"struct","fields":[' + field + "]}"
    try:
        answer = str(questions.sql(f'SELECT from_json("{{}}", {schema!r})').collect())
    except Exception as error:
        answer = str(error)
    assert "/jvm" not in answer


def test_every_table_view_and_function_may_be_asked(questions: Any) -> None:
    names = {table.name for table in TABLES} | {
        defined(d) for d in every_definition() if " VIEW " in d.partition("(")[0]
    }
    shown = {row["tableName"] for row in questions.sql("SHOW TABLES").collect()}
    assert names <= shown
    for name in sorted(shown):
        parsed(questions, f"SELECT * FROM {name}")


def documented() -> list[str]:
    found: list[str] = []
    for file in DOCUMENTS:
        text = file.read_text()
        found += [*QUOTED.findall(text), *BLOCK.findall(text)]
    return [sql for sql in found if sql != "..."]


def test_every_documented_statement_is_a_question(questions: Any) -> None:
    assert len(documented()) >= 22
    for sql in documented():
        for statement in filter(str.strip, sql.split(";")):
            parsed(questions, statement)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM captures", "DeleteFromTable"),
        ("SELECT * FROM csv.`/etc/passwd`", "csv./etc/passwd"),
        ("SELECT reflect('java.lang.System', 'exit', 3)", "reflect"),
    ],
)
def test_sql_refuses_in_one_line(lake: Any, capsys: pytest.CaptureFixture[str], sql: str, said: str) -> None:
    capsys.readouterr()
    assert main(["sql", sql, "--lake", str(lake.path)]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
    assert line.startswith("kraftlake sql: refused: ")
    assert said in line
    assert "--write" in line


def test_who_must_may_write(lake: Any, tmp_path: Path) -> None:
    sql = f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'made'}' USING csv SELECT COUNT(*) FROM captures"
    assert main(["sql", sql, "--lake", str(lake.path), "--write"]) == 0
    assert [file.read_text() for file in (tmp_path / "made").glob("*.csv")] == ["55\n"]


# --- what the data dictionary says, the catalog says ---


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_of_a_view_has_its_meaning(questions: Any, view: str) -> None:
    """Spark parses a view's text when it is read: it may consist of what a question may."""
    fields = questions.table(view).schema.fields
    assert {field.name: field.metadata.get("comment") for field in fields} == VIEWS[view]
    assert [field.name for field in fields] == list(VIEWS[view])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_of_a_table_has_its_meaning(catalog_lake: Any, table: Any) -> None:
    fields = catalog_lake.spark.table(table.name).schema.fields
    assert {field.name: field.metadata.get("comment") for field in fields} == {
        column.name: column.comment for column in table.columns
    }


def test_no_view_is_left_out(catalog_lake: Any) -> None:
    shown = {row.viewName for row in catalog_lake.spark.sql("SHOW VIEWS").collect()}
    assert shown == set(VIEWS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_column_of_a_function_has_its_meaning(catalog_lake: Any, function: str) -> None:
    frame = catalog_lake.spark.sql(f"SELECT * FROM {function}('none', TIMESTAMP '2026-11-21 09:15:20')")
    assert frame.columns == list(FUNCTIONS[function])
