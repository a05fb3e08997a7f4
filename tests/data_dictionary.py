"""python -m tests.data_dictionary: write docs/data-dictionary.md from the declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dashboards.definitions import questions
from dashboards.view_columns import FUNCTIONS, METADATA, QUORUM
from kraft_core.columnar.schema import message_columns
from transforms.lake.tables import HISTORIES, RECORDS, SNAPSHOT_RECORDS, TABLES, VERSION, Column, Table

PAGE = Path(__file__).parents[1] / "docs" / "data-dictionary.md"
HEAD = """# Data dictionary

*For anyone who queries a lake with SQL or from Python.*

Generated from the declarations in `transforms/lake/tables` and `dashboards/view_columns.py` by `make docs`;
edit those, not this page. `DESCRIBE TABLE voter_sets` shows the same for one table or view.

## How to read it

- **Times** are UTC, by the writer's clock: the leader's in the log, the machine's in a capture.
- **Offsets**: starts are inclusive (`first_offset`, `from_offset`, `valid_from_offset`), ends are exclusive
  (`end_offset`, `to_offset`, `valid_to_offset`, `log_end_offset`). `offset` is the offset of a record, or the
  one at which a change took effect. `valid_from_offset` is where a version took effect, `record_offset` the
  offset of the record that made it: they differ in a metadata transaction, whose records take effect at its
  end. `record_offset` is null if only a snapshot shows the version.
- **Exact, at or before**: where a column `..._exact` is false, only a snapshot or a report shows the change,
  and it happened at or before the given offset or time; `earliest_...` is the other bound.
- **Names**: a topic is `topic_name` everywhere, a resource `resource_name`. `name` is the name of the row's
  own object: a configuration, a feature, a user, a cluster, a rule. `subject` describes as text what an event
  or a refusal is about: a topic, a topic and one of its configs, a broker.
- **`leader_epoch`** is the epoch of the quorum's leader. In `partitions`, `broker_partitions` and views of
  partitions it is the leader epoch of that partition; there `record_leader_epoch` is the quorum's.
- **`high_watermark`** (table `observations`) is what a leader reported. `lower_bound` and `upper_bound`
  (`high_watermarks` and its views) are what captures prove about it. `committed_end_offset` (view
  `committed_ends`) is the end of what is proven committed: the high watermark was at least that.
- **`commit_status`**: `committed` can never be lost; `truncated` is lost; `uncommitted` was not yet
  committed at `as_of`; `undecided`: the captures prove neither.
- **`run_id`, `loaded_at`** identify the run that wrote a row.
"""
VIEWS_HEAD = """## Views

A column that a view takes from a table has the same type. Each history NAME also has the views `NAME_now`
(what is still valid) and `NAME_committed` (what is committed), with the same columns.
"""
FUNCTIONS_HEAD = """## Functions

Each history NAME has the functions `NAME_as_of(cluster_id, offset)` and `NAME_at(cluster_id, time)`, with the
columns of NAME and `validity`: `valid`, or `undecided` where a snapshot or missing records leave open whether
the version was valid then.
"""


MESSAGES = tuple(message.column for message in message_columns())


def main() -> None:
    PAGE.write_text(page())


def page() -> str:
    """The dictionary: tables, what histories have in common, fields of records, views, functions."""
    histories = "\n".join(f"- `{table.name}`: {table.comment}." for table in HISTORIES)
    parts = [
        HEAD,
        "## Tables",
        *(_table(table) for table in TABLES if table not in HISTORIES),
        f"## Histories\n\nEach has its own columns, then those of every history:\n\n{histories}",
        *(_table(table) for table in HISTORIES),
        f"### Columns of every history\n\n{_typed(VERSION)}",
        f"## Fields of records\n\nIn `records` and `snapshot_records`; see Kafka's schemas.\n\n{_fields()}",
        VIEWS_HEAD,
        *(_view(name, comments) for name, comments in (QUORUM | METADATA).items()),
        FUNCTIONS_HEAD,
        *(f"### {name}(cluster_id, time)\n\n{_meanings(comments)}" for name, comments in FUNCTIONS.items()),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(table: Table) -> str:
    shared: tuple[str, ...] = ()
    note = ""
    if table in HISTORIES:
        shared = tuple(column.name for column in VERSION)
        note = "\n\nThese columns, and [those of every history](#columns-of-every-history)."
    if table in (RECORDS, SNAPSHOT_RECORDS):
        shared = MESSAGES
        note = "\n\nThese columns, and one struct per record type: [fields of records](#fields-of-records)."
    keys = ", ".join(f"`{name}`" for name in table.key)
    own = [column for column in table.columns if column.name not in shared]
    return f"### {table.name}\n\n{table.comment}. Key: {keys}.{note}\n\n{_typed(own)}"


def _view(name: str, comments: Mapping[str, str]) -> str:
    return f"### {name}\n\n{questions()[name]}\n\n{_meanings(comments)}"


def _typed(columns: Iterable[Column]) -> str:
    rows = (
        (f"`{c.name}`", f"`{_short(c.type)}`{'' if c.nullable else ', never null'}", c.comment)
        for c in columns
    )
    return "\n".join(_rows(("column", "type", "meaning"), rows))


def _meanings(comments: Mapping[str, str]) -> str:
    return "\n".join(_rows(("column", "meaning"), ((f"`{name}`", text) for name, text in comments.items())))


def _fields() -> str:
    structs = (column for column in RECORDS.columns if column.name in MESSAGES)
    rows = ((f"`{c.name}`", f"`{_short(c.type)[7:-1]}`") for c in structs)
    return "\n".join(_rows(("column", "fields"), rows))


def _short(type_: str) -> str:
    """A type on one line, with a space after each comma and colon."""
    return re.sub(r"([,:])\s*", r"\1 ", type_)


def _rows(names: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(names)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    main()
