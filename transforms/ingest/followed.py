"""Copies of a followed log (FOLLOWED_NODE_ID): the longest has what the others have."""

from __future__ import annotations

from kraft_core.format.capture import FOLLOWED_NODE_ID
from transforms.lake.arrow_rows import Row


def is_superseded(row: Row, longest: Row | None) -> bool:
    """Whether a row of captures is a shorter copy of the same followed log as another row."""
    return (
        longest is not None
        and row["node_id"] == FOLLOWED_NODE_ID
        and row["directory_id"] == longest["directory_id"]
        and row["capture_id"] != longest["capture_id"]
        and (row["log_end_offset"] or 0) <= (longest["log_end_offset"] or 0)
    )
