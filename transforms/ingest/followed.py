"""Copies of a followed log (FOLLOWED_NODE_ID): one that has grown has what it had before."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_core.format.capture import FOLLOWED_NODE_ID
from transforms.lake.arrow_rows import Row

# The columns of captures that tell.
COMPARED = ("capture_id", "node_id", "directory_id", "log_start_offset", "log_end_offset")


def is_superseded(row: Row, others: Iterable[Row]) -> bool:
    """Whether a row of captures is of a followed log, of which another row has all that it has."""
    return row["node_id"] == FOLLOWED_NODE_ID and any(_has_all(other, row) for other in others)


def _has_all(other: Row, row: Row) -> bool:
    return (
        other["node_id"] == FOLLOWED_NODE_ID
        and other["directory_id"] == row["directory_id"]
        and other["capture_id"] != row["capture_id"]
        and (other["log_start_offset"] or 0) <= (row["log_start_offset"] or 0)
        and (row["log_end_offset"] or 0) <= (other["log_end_offset"] or 0)
    )
