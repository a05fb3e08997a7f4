"""The views and table functions of every history: current, committed, as of an offset, at a time."""

from __future__ import annotations

from collections.abc import Iterator

from transforms.lake.tables import HISTORIES, Table

# The columns of a version's end: null in NAME_committed while the end is not committed.
ENDS = (
    "valid_to_offset",
    "valid_to_at",
    "valid_to_exact",
    "earliest_to_offset",
    "earliest_to_at",
    "ended_by",
    "end_commit_status",
)


def statements(database: str) -> Iterator[str]:
    """For each history: views NAME_now and NAME_committed, functions NAME_as_of and NAME_at.

    The functions qualify their table by its database: Spark resolves names where a function is called.
    """
    for table in HISTORIES:
        name = table.name
        yield f"CREATE OR REPLACE VIEW {name}_now AS SELECT * FROM {name} WHERE valid_to_offset IS NULL"
        yield f"CREATE OR REPLACE VIEW {name}_committed AS {_committed(table)}"
        yield _function(f"{database}.{name}", f"{name}_as_of", "at_offset BIGINT", "offset")
        yield _function(f"{database}.{name}", f"{name}_at", "at_time TIMESTAMP", "at")


def _committed(table: Table) -> str:
    """The committed versions; one whose end is not committed is still valid."""
    ended = "end_commit_status = 'committed'"
    columns = [f"IF({ended}, {n}, NULL) AS {n}" if n in ENDS else f"`{n}`" for n in table.names]
    return f"SELECT {', '.join(columns)} FROM {table.name} WHERE commit_status = 'committed'"


def _function(table: str, name: str, moment: str, part: str) -> str:
    """The versions of a cluster valid at an offset (its record included) or at a time.

    Where only a snapshot shows when one began or ended, it may have before: its validity there is undecided,
    and so is that of a version that missing records may have changed by then (incomplete_from_offset).
    """
    at = moment.split()[0]
    begun, ended = f"valid_from_{part} <= {at}", f"valid_to_{part} <= {at}"
    may_have_begun = f"NOT valid_from_exact AND COALESCE(earliest_from_{part} <= {at}, true)"
    incomplete = (
        f"incomplete_from_offset IS NOT NULL AND COALESCE(incomplete_from_{part} <= {at}, true) "
        f"AND COALESCE(incomplete_to_{part} > {at}, true)"
    )
    may_have_ended = f"NOT valid_to_exact AND COALESCE(earliest_to_{part} <= {at}, true)"
    undecided = f"COALESCE({may_have_ended}, false) OR COALESCE({incomplete}, false)"
    return (
        f"CREATE OR REPLACE FUNCTION {name}(of_cluster STRING, {moment}) RETURNS TABLE RETURN "
        f"SELECT *, CASE WHEN COALESCE({begun}, false) AND NOT ({undecided}) "
        f"THEN 'valid' ELSE 'undecided' END AS validity "
        f"FROM {table} WHERE cluster_id = of_cluster AND COALESCE({begun} OR {may_have_begun}, false) "
        f"AND NOT COALESCE({ended}, false)"
    )
