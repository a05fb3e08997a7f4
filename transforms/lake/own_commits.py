"""Whether a table was changed by this program alone, as its log tells."""

from __future__ import annotations

from transforms.lake.commits import COMMIT_ID
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import exists, read_table
from transforms.lake.tables import Table


def own_version(lake: Location, table: Table, after: int | None) -> int | None:
    """The newest version of a table, if only TableWriter has committed after that one; otherwise None.

    after: None for a table that did not exist.
    """
    if not exists(lake, table):
        return None
    with read_table(lake, table) as held:
        version = held.version()
        later = version - (-1 if after is None else after)
        found = held.history(later) if later > 0 else []
    is_own = later == len(found) and all(COMMIT_ID in commit for commit in found)
    return version if is_own else None
