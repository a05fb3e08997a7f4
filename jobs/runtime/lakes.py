"""The lake given to a verb, checked before anything large is imported."""

from __future__ import annotations

import re
from pathlib import Path

from jobs.runtime.outcome import Failure
from transforms.lake.storage import NoLakeError, check_lake

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def lake_folder(word: str) -> Path:
    """The value of --lake. Raises Failure for a URL, which would name a folder `s3:` here."""
    if _URL.match(word):
        raise Failure(
            f"--lake {word}: a lake is a folder on a file system, not a URL; docs/running.md (The lake's "
            "storage) describes how readers get a copy in an object store"
        )
    return Path(word)


def must_be_whole(path: Path) -> None:
    """Raises Failure if files of a lake are lost; does nothing where there is no lake yet."""
    damage = damage_of(path)
    if damage is not None:
        raise Failure(damage)


def damage_of(path: Path, open_files: bool = False) -> str | None:
    """The first loss of files in a lake, and how to learn more; None if they are sound, or it is no lake.

    open_files: also read the footer of each data file.
    """
    from transforms.lake.table_damage import damaged_tables

    try:
        check_lake(path)
    except NoLakeError:
        return None
    damage = [words for of_table in damaged_tables(path, open_files).values() for words in of_table]
    return f"{path}/{damage[0]}: kraftlake check --lake {path} lists what is lost" if damage else None


def must_be_lake(path: Path, up_to_date: bool = False) -> None:
    """Raises Failure unless the path is a lake that this version reads.

    up_to_date: also raise where columns of this version are missing, which Spark queries would reference.
    """
    try:
        check_lake(path)
        from transforms.lake.schema import check_schema, missing_columns

        (check_schema if up_to_date else missing_columns)(path)
    except NoLakeError as error:
        raise Failure(str(error)) from None
