"""The definitions of the lake's views and functions: SQL text, and what a query needs of them.

dashboards.catalog and dashboards.published run them by Spark, dashboards.embedded_sql without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from functools import cache
from importlib import resources

from dashboards import history_views, quorum_functions
from dashboards.databases import KRAFT
from dashboards.view_columns import VIEWS
from transforms.lake.tables import HISTORIES, TABLES, Table

# Views over tables and over what over_tables makes, in the order in which they build on each other.
FILES = ("views.sql", "histories.sql")
SELECTS = {"select", "with", "from", "values"}
# Statements that need only the tables, views and functions that they name.
QUERIES = SELECTS | {"describe", "desc", "explain"}


def needed(asked: str, evaluated: Set[str] = frozenset()) -> set[str] | None:
    """The tables, views and functions that SQL names, and those that their definitions name.

    None if that does not cover the statement: SHOW, for one, needs all of them. The views `evaluated` are
    there, and left out.
    """
    if not _are_all(asked, QUERIES):
        return None
    definitions = {defined(statement): statement for statement in every_definition()}
    found: set[str] = set()
    mentioned = named(asked) - evaluated
    while mentioned:
        name = mentioned.pop()
        found.add(name)
        mentioned |= named(definitions.get(name, "")) - found
    return found


def are_selects(asked: str) -> bool:
    """Whether SQL asks for rows and nothing else."""
    return _are_all(asked, SELECTS)


def _are_all(asked: str, kinds: set[str]) -> bool:
    """Whether every statement begins with one of these words."""
    begin = {word.lower() for word in re.findall(r"(?:^|;)\s*(\w+)", asked)}
    return bool(begin) and begin <= kinds


def every_definition() -> list[str]:
    """The definitions of all views and functions."""
    return [*over_tables(KRAFT), *of_files()]


def of_files() -> list[str]:
    """The definitions in FILES."""
    return [statement for file in FILES for statement in statements(file)]


def over_tables(database: str) -> list[str]:
    """The definitions of what is made of tables alone; functions name the tables with their database."""
    return [*history_views.statements(database), *quorum_functions.statements(database)]


def chosen(definitions: Iterable[str], names: set[str] | None) -> list[str]:
    """The definitions of the named views and functions; all, if None."""
    return [d for d in definitions if names is None or defined(d) in names]


def tables_among(names: Set[str] | None) -> list[Table]:
    """The tables that are named; all, if None."""
    return [table for table in TABLES if names is None or table.name in names]


def defined(statement: str) -> str:
    """The name of the view or function that a CREATE OR REPLACE statement defines."""
    return re.split(r"\W+", statement, maxsplit=5)[4]


def commented(definition: str) -> str:
    """A definition for Spark: a view's with its question and the meaning of its columns (DESCRIBE TABLE)."""
    name = defined(definition)
    if name not in VIEWS:
        return definition
    head, query = re.split(r"\sAS\s", definition, maxsplit=1)
    columns = ", ".join(f"`{column}` COMMENT {_quoted(text)}" for column, text in VIEWS[name].items())
    if re.match(r"SELECT (\w\.)?\*", query):
        # By name: a lake of an earlier version has its columns in another order, or more of them.
        query = f"SELECT {', '.join(f'`{column}`' for column in VIEWS[name])} FROM ({query})"
    return f"{head} ({columns}) COMMENT {_quoted(questions()[name])} AS {query}"


@cache
def questions() -> dict[str, str]:
    """What each view answers: the comment above its definition."""
    found: dict[str, str] = {}
    for file in FILES:
        text = resources.files("dashboards").joinpath(file).read_text()
        for comment, name in re.findall(r"((?:^-- .*\n)+)CREATE OR REPLACE VIEW (\w+)", text, re.MULTILINE):
            found[name] = " ".join(comment.replace("\n-- ", " ").removeprefix("-- ").split())
    for table in HISTORIES:
        found[f"{table.name}_now"] = f"{table.comment}: what is still valid at the end of the captured log"
        found[f"{table.name}_committed"] = (
            f"{table.comment}: what is committed, whose end counts if it is, too"
        )
    return found


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def named(sql: str) -> set[str]:
    """The words of SQL, and so whatever it names."""
    return set(re.findall(r"\w+", sql.lower()))


@cache
def statements(file: str) -> tuple[str, ...]:
    """The statements of a packaged SQL file, without comments."""
    text = resources.files("dashboards").joinpath(file).read_text()
    text = re.sub(r"^ *--.*$", "", text, flags=re.MULTILINE)
    return tuple(s.strip() for s in text.split(";") if s.strip())
