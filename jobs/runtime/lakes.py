"""The lake given to a verb, checked before anything large is imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from jobs.runtime.outcome import Failure
from jobs.runtime.output import warn_line
from kraft_core.wording import first_named
from transforms.lake.storage import NoLakeError, check_lake
from transforms.lake.storage.location import Location, LocationError, location, shown

if TYPE_CHECKING:
    from transforms.lake.seen import SeenLake
    from transforms.lake.tables import Table

# Clusters that a warning names.
MOST_NAMED = 3


def lake_folder(word: str) -> Location:
    """The value of --lake, a path or a URL of S3. Raises Failure for any other URL."""
    try:
        return location(word)
    except LocationError as error:
        raise Failure(f"--lake {shown(word)}: {error}") from None


def must_be_whole(path: Location) -> SeenLake | None:
    """What is seen of a lake before anything is read; None where there is no lake yet.

    Raises Failure if files of it are lost. Tables that are as an earlier run found them are not opened.
    """
    try:
        check_lake(path)
    except NoLakeError:
        return None
    from transforms.lake.seen import seen_lake

    seen = seen_lake(path)
    if seen.damage:
        raise Failure(_words(path, seen.damage))
    return seen


def is_lake(path: Location) -> bool:
    """Whether there is a lake."""
    try:
        check_lake(path)
    except NoLakeError:
        return False
    return True


def damage_of(path: Location, open_files: bool = False) -> str | None:
    """The first loss of files in a lake, and how to learn more; None if they are sound, or it is not a lake.

    open_files: also read the footer of each data file.
    """
    from transforms.lake.table_damage import damaged_tables

    if not is_lake(path):
        return None
    damaged = damaged_tables(path, open_files)
    return _words(path, damaged) if damaged else None


def _words(path: Location, damaged: Mapping[Table, Sequence[str]]) -> str:
    first = next(iter(damaged.values()))[0]
    return f"{path}/{first}: kraftlake check --lake {path} lists what is lost"


def must_be_lake(path: Location, up_to_date: bool = False) -> None:
    """Raises Failure unless the path is a lake that this version reads.

    up_to_date: also raise where columns of this version are missing, which Spark queries would reference.
    """
    try:
        check_lake(path)
        from transforms.lake.schema import check_schema, missing_columns
        from transforms.lake.storage.table_folders import listed_once

        with listed_once(path):
            (check_schema if up_to_date else missing_columns)(path)
    except NoLakeError as error:
        raise Failure(str(error)) from None


def warn_of_earlier(lake: Location, clusters: Collection[str] | None = None) -> None:
    """Say of which of the clusters, all by default, the derived rows are older than their captures."""
    from transforms.quality.derived_counts import not_evaluated

    earlier = sorted({row["cluster_id"] for row in not_evaluated(lake, clusters)})
    if earlier:
        named = first_named(earlier, MOST_NAMED)
        warn_line(
            f"warning: what is derived of {named} is older than the captures: kraftlake derive --lake {lake}"
        )
