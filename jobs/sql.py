"""kraftlake sql: query the lake with SQL; results as a table, JSON lines or CSV on stdout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from jobs.arguments import add_format, add_lake_path
from jobs.maintenance.publishing import add_catalog, database_of, registering
from jobs.questions.row_text import FORMATS, show_safe_csv
from jobs.questions.statements import Statement, place_of, read_statements
from jobs.runtime.crash import failure_of, must_be_writable
from jobs.runtime.interrupt import cancelling, starting_spark
from jobs.runtime.lakes import must_be_lake, warn_of_earlier
from jobs.runtime.local_paths import local_path, output_file, put_in_place
from jobs.runtime.long_lists import add_limit, first_of, limit_of
from jobs.runtime.outcome import ExitCode, Failure, one_line
from jobs.runtime.output import print_line, warn_line
from jobs.runtime.progress import Progress
from jobs.runtime.prompt import prompt
from jobs.time_travel.asked_moments import out_of_reach
from kraft_core.wording import did_you_mean

EXAMPLES = """examples:
  kraftlake sql "SELECT * FROM voter_history" --lake .lake
  kraftlake sql "SHOW TABLES" --lake .lake --format json
  kraftlake sql --file morning.sql --lake .lake --format csv
  kraftlake sql --lake .lake
  kraftlake sql "SELECT * FROM topics_now" --lake .lake --format csv --csv-safe > topics.csv
  kraftlake sql "SELECT * FROM voter_sets" --lake .lake --format parquet --out voter_sets.parquet

Statements that read are allowed: SELECT, WITH, SHOW, DESCRIBE, EXPLAIN over the lake's tables and views, and
SET of a few settings (docs/security.md). --write allows any statement, with all permissions of this user.
Without a statement, it prompts for statements that end with ; (history: ~/.kraftlake_history), or reads them
from standard input if that is not a terminal."""

MOST_ROWS = 1000


PARQUET, ARROW = "parquet", "arrow"
BINARY = (PARQUET, ARROW)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="?", help="one SQL statement over the tables and views")
    parser.add_argument("--file", type=local_path, metavar="FILE", help="file with statements separated by ;")
    parser.add_argument(
        "--keep-going", action="store_true", help="continue with the next statement when one fails"
    )
    add_lake_path(parser)
    add_catalog(parser)
    add_format(parser, *FORMATS, *BINARY)
    add_limit(parser, "rows of each answer", MOST_ROWS)
    parser.add_argument("--out", type=output_file, metavar="FILE", help="file to write (default: stdout)")
    parser.add_argument(
        "--csv-safe",
        action="store_true",
        help="put ' before CSV cells that a spreadsheet would take for a formula",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="allow any statement, including those that change tables or read files",
    )


def run(args: argparse.Namespace) -> int:
    """Print the answer of each statement. Raises Failure for a wrong query or lake."""
    must_be_lake(args.lake, up_to_date=True)
    statements = read_statements(args)
    if args.csv_safe and args.format != "csv":
        raise Failure("--csv-safe needs --format csv")
    if args.format in BINARY and args.limit is not None:
        raise Failure(f"--limit does not apply to --format {args.format}: put LIMIT into the statement")
    if args.format in BINARY and (args.out is None or len(statements or ()) != 1):
        raise Failure(f"--format {args.format} needs --out FILE and one statement")
    if args.out is not None:
        must_be_writable(args.out.parent)
    warn_of_earlier(args.lake)
    progress = Progress()
    with progress.shown("session"):
        spark, register = open_catalog(args)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from dashboards.listing import listing

    is_whole = args.write or args.catalog is not None
    java_session: Any = spark._jsparkSession
    parser = java_session.sessionState().sqlParser()
    sessions: Any = spark._jvm.org.apache.spark.sql.classic.SparkSession  # pyright: ignore

    def answer(statement: str, out: TextIO = sys.stdout) -> None:
        try:
            with cancelling(spark):
                for sentence in out_of_reach(args.lake, statement):
                    warn_line(f"warning: {sentence}")
                with progress.shown("tables, views and plan of the statement"):
                    # Ctrl-C ends a connection to the JVM; none is active in the thread of the next one.
                    sessions.setActiveSession(java_session)
                    parser.parsePlan(statement)  # what is refused needs no tables
                    # Of a lake that is registered as it is asked for, the catalog does not have all names.
                    frame = None if is_whole else listing(spark, statement)
                    if frame is None:
                        register(statement, spark)
                        frame = spark.sql(statement)
                show(args, frame, out)
        except PySparkException as error:
            words = one_line(error)
            meant = _meant(error)
            raise Failure(f"{words.rstrip('.')}{meant}" if meant else words) from None
        except Py4JJavaError as error:
            raise failure_of(error, args.lake) or Failure(_root_cause(error.java_exception)) from None

    if statements is None:
        prompt(answer)
    elif args.out is None or args.format in BINARY:
        _answer_all(args, statements, answer)
    else:
        with text_file(args.out) as file:
            _answer_all(args, statements, lambda statement: answer(statement, file))
    return ExitCode.FINE


def _answer_all(
    args: argparse.Namespace, statements: Sequence[Statement], answer: Callable[[str], None]
) -> None:
    """Raises Failure for the first that fails, or with --keep-going after the last."""
    failed = 0
    for statement in statements:
        try:
            answer(statement.text)
        except Failure as failure:
            words = f"{place_of(args, statement)}{failure}"
            if not args.keep_going:
                raise Failure(words, failure.exit_code) from None
            sys.stdout.flush()
            warn_line(f"kraftlake sql: {words}")
            failed += 1
    if failed:
        raise Failure(f"{failed} of {len(statements)} statements failed")


def show(args: argparse.Namespace, frame: Any, out: TextIO) -> None:
    """Print an answer in the format of the flags; Parquet and Arrow go to their file."""
    if args.format in BINARY:
        write_frame(frame, args.format, args.out)
        return
    names = frame.columns
    if names == ["plan"] and args.format == "table":  # EXPLAIN answers with one text of many lines
        for (plan,) in _rows(frame):
            for line in plan.splitlines():
                print_line(line, out)
        return
    shown = show_safe_csv if args.csv_safe else FORMATS[args.format]
    # Ask for rows one at a time: an answer may be larger than memory.
    with first_of(_rows(frame), limit_of(args, out), "rows", frame.count) as rows:
        shown(names, rows, out)


def _meant(error: Any) -> str:
    """The table or view whose name is nearest to one that is not there."""
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return ""
    from dashboards.definitions import defined, every_definition
    from transforms.lake.tables import TABLES

    name = str((error.getMessageParameters() or {}).get("relationName", ""))
    known = {table.name for table in TABLES} | {defined(statement) for statement in every_definition()}
    return did_you_mean(name.replace("`", "").rpartition(".")[2], known)


def _rows(frame: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of an answer. Raises Failure for a time that Python does not have; Spark has more years."""
    try:
        yield from map(tuple, frame.toLocalIterator())
    except (ValueError, OverflowError) as error:
        raise Failure(f"{one_line(error)}: cast such values to STRING") from None


def _root_cause(thrown: Any) -> str:
    """What Java threw first, in one line: where Spark itself does not translate an error."""
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    lines = str(thrown.getMessage() or thrown.getClass().getSimpleName()).splitlines()
    return lines[0].split(" SQLSTATE:")[0] if lines else "Spark failed"


def open_catalog(args: argparse.Namespace) -> tuple[Any, Callable[[str, Any], None]]:
    """A session, and what registers for a session what a statement needs of the lake."""
    database = database_of(args)
    from jobs.runtime.session import open_session

    with starting_spark():
        spark = open_session(quick=True, own=args.settings.spark, lake=args.lake)
    register = registering(spark, args.lake, database, whole=args.write)
    if not args.write:
        from jobs.questions.question_session import question_session

        spark = question_session(spark, database)
    return spark, register


@contextmanager
def text_file(out: Path) -> Iterator[TextIO]:
    """A text file that is put in place at the end. Raises OSError."""
    with put_in_place(out) as part, part.open("w") as file:
        yield file


def write_frame(frame: Any, form: str, out: Path) -> None:
    """Write Spark's answer as one file, its columns with their types. Raises OSError.

    The answer must fit into memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table: pa.Table = frame.toArrow()
    with put_in_place(out) as part:
        if form == PARQUET:
            pq.write_table(table, part)
        else:
            with pa.ipc.new_file(part, table.schema) as writer:
                writer.write_table(table)
