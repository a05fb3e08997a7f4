"""Storage: the one way to a lake's files, which are on a file system or in a store with the protocol of S3.

A location is one or the other. files asks the operating system, or objects a store; lake_json and
table_folders say what the files mean; conditions makes sure that a store is safe to commit to, faults says in
a sentence why it fails. Whoever is above them names lakes and tables, and joins places, but opens, lists and
removes nothing: tests/test_tidy.py looks.

Exported here is what verbs ask before they import anything large.
"""

from __future__ import annotations

from transforms.lake.storage.lake_json import (
    FORMAT_VERSION,
    NoLakeError,
    check_lake,
    check_preparable,
    check_shown,
    has_tables,
    is_lake,
    make_marker,
    prepare_lake,
    remove_begun,
    shown_configs,
)

__all__ = [
    "FORMAT_VERSION",
    "NoLakeError",
    "check_lake",
    "check_preparable",
    "check_shown",
    "has_tables",
    "is_lake",
    "make_marker",
    "prepare_lake",
    "remove_begun",
    "shown_configs",
]
