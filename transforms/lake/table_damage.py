"""Whether all files of a lake's tables exist: Delta logs and the data files in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from urllib.parse import unquote

import pyarrow as pa
from deltalake.exceptions import DeltaError

from transforms.lake.storage.faults import fault_of
from transforms.lake.storage.listing import FolderListing, LakeListing, lake_listing
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.table_folders import check_footer, read_table, table_folder
from transforms.lake.tables import TABLES, Table


def damaged_tables(
    lake: Location,
    open_files: bool = False,
    stored: LakeListing | None = None,
    tables: Collection[Table] = TABLES,
) -> dict[Table, list[str]]:
    """The tables of which something is missing or unreadable, with what it is; sound tables are left out.

    open_files: also read the footer of each data file. stored: the lake's files, if they are known. tables:
    those to look at. Tables that no run has written are sound.
    """
    listed = lake_listing(lake) if stored is None else stored
    found = {table: list(_damage(listed, table, open_files)) for table in tables}
    damaged = {table: damage for table, damage in found.items() if damage}
    # A commit after the listing names files that it lacks.
    now = lake_listing(lake) if damaged else listed
    if any(now.fingerprint(table) != listed.fingerprint(table) for table in damaged):
        return damaged_tables(lake, open_files, now, list(damaged))
    return damaged


def _damage(listed: LakeListing, table: Table, open_files: bool) -> Iterator[str]:
    """What is wrong with a table's files, relative to the lake."""
    folder = table_folder(listed.lake, table)
    try:
        stored = listed.of(table)
    except NotADirectoryError:
        yield f"{folder.name} is not a folder"
        return
    if stored is None:
        return
    commits = stored.versions
    if not commits:
        # A killed run may have left an empty log, which the next run fills.
        if stored.has_data:
            yield f"{folder.name}/_delta_log has no commit"
        return
    missing = _missing_commits(stored.log, commits)
    if missing is not None:
        yield f"{folder.name}/_delta_log/{missing:020d}.json is missing"
        return
    try:
        with read_table(listed.lake, table) as held:
            files = pa.table(held.get_add_actions(flatten=True)).to_pylist()
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        _raise_of_store(error, folder)
        yield f"{folder.name}/_delta_log cannot be read: {_first_line(error)}"
        return
    for file in files:
        path = unquote(file["path"])
        fault = _file_fault(folder, stored, path, file["size_bytes"], open_files)
        if fault:
            yield f"{folder.name}/{path} {fault}"


def _missing_commits(log: list[str], commits: list[int]) -> int | None:
    """The first version without a file, of those that no checkpoint of Delta replaces."""
    checkpoints = [int(name.split(".")[0]) for name in log if fnmatchcase(name, "*.checkpoint*.parquet")]
    newest = max((version for version in checkpoints if version <= commits[-1]), default=-1)
    needed = range(newest + 1, commits[-1] + 1)
    held = set(commits)
    return next((version for version in needed if version not in held), None)


def _file_fault(
    folder: Location, stored: FolderListing, name: str, size_bytes: int, open_file: bool
) -> str | None:
    try:
        held = stored.size_of(name)
        if held != size_bytes:
            return f"has {held:,} of {size_bytes:,} bytes"
        if open_file:
            check_footer(folder, name)
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        _raise_of_store(error, folder)
        return f"cannot be read: {_first_line(error)}"
    return None


def _raise_of_store(error: Exception, folder: Location) -> None:
    """A store that does not answer has lost nothing."""
    if isinstance(folder, StoreUrl) and fault_of(error, folder) is not None:
        raise error


def _first_line(error: Exception) -> str:
    return next(filter(None, (line.strip() for line in str(error).splitlines())), type(error).__name__)
