"""Storage: the one way to a lake's files, which are on a local file system.

files asks the operating system; lake_json and table_folders say what the files mean. Whoever is above them
names lakes and tables, and joins paths, but opens, lists and removes nothing: tests/test_tidy.py looks.

Exported here is what verbs ask before they import anything large.
"""

from __future__ import annotations

from transforms.lake.storage.lake_json import (
    FORMAT_VERSION,
    NoLakeError,
    check_lake,
    check_shown,
    generation,
    is_lake,
    prepare_lake,
    remove_begun,
    shown_configs,
)

__all__ = [
    "FORMAT_VERSION",
    "NoLakeError",
    "check_lake",
    "check_shown",
    "generation",
    "is_lake",
    "prepare_lake",
    "remove_begun",
    "shown_configs",
]
