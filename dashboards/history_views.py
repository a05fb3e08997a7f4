"""Views and table functions that every history has: what stands now, what is committed, what stood when."""

from __future__ import annotations

from collections.abc import Iterator

from transforms.lake.tables import HISTORIES, Table

# What a version's end is made of: unknown to those who count only what is committed.
ENDS = ("valid_to_offset", "valid_to_at", "ended_by", "end_commit_status")


def statements(database: str) -> Iterator[str]:
    """For each history: views NAME_now and NAME_committed, functions NAME_as_of and NAME_at.

    The functions name the database of their table: Spark looks up what they ask where they are called.
    """
    for table in HISTORIES:
        name = table.name
        yield f"CREATE OR REPLACE VIEW {name}_now AS SELECT * FROM {name} WHERE valid_to_offset IS NULL"
        yield f"CREATE OR REPLACE VIEW {name}_committed AS {committed(table)}"
        yield function(f"{database}.{name}", f"{name}_as_of", "at_offset BIGINT", "offset")
        yield function(f"{database}.{name}", f"{name}_at", "at_time TIMESTAMP", "at")


def committed(table: Table) -> str:
    """The committed versions; one whose end is not committed goes on."""
    ended = "end_commit_status = 'committed'"
    columns = [f"IF({ended}, {n}, NULL) AS {n}" if n in ENDS else f"`{n}`" for n in table.names]
    return f"SELECT {', '.join(columns)} FROM {table.name} WHERE commit_status = 'committed'"


def function(table: str, name: str, moment: str, part: str) -> str:
    """What stood in a cluster at an offset (its record included) or at a time."""
    at = moment.split()[0]
    return (
        f"CREATE OR REPLACE FUNCTION {name}(of_cluster STRING, {moment}) RETURNS TABLE RETURN "
        f"SELECT * FROM {table} WHERE cluster_id = of_cluster AND valid_from_{part} <= {at} "
        f"AND (valid_to_{part} IS NULL OR valid_to_{part} > {at})"
    )
