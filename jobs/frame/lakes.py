"""The lake that a verb is given, looked at before anything large is imported."""

from __future__ import annotations

from pathlib import Path

from jobs.frame.outcome import Failure
from transforms.lake_files import NoLakeError, check_lake


def must_be_lake(path: Path) -> None:
    """Raises Failure where there is no lake that this version reads."""
    try:
        check_lake(path)
        from transforms.lake_schema import missing_columns

        missing_columns(path)
    except NoLakeError as error:
        raise Failure(str(error)) from None
