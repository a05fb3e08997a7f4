"""The lake given to a verb, checked before anything large is imported."""

from __future__ import annotations

from pathlib import Path

from jobs.runtime.outcome import Failure
from transforms.lake.storage import NoLakeError, check_lake


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
