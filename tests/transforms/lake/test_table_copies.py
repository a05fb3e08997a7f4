"""Which files of a log in a store make a table's newest version."""

from __future__ import annotations

import pytest

from transforms.lake.storage.listing import commit_name
from transforms.lake.storage.table_copies import needed


def commits(*versions: int) -> list[str]:
    return [commit_name(version) for version in versions]


def checkpoint(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


@pytest.mark.parametrize(
    ("listed", "known", "wanted"),
    [
        ([], -1, []),
        (commits(0, 1, 2), -1, commits(0, 1, 2)),
        (commits(0, 1, 2), 2, []),
        (commits(2), 1, commits(2)),
        ([], 1, []),
        ([*commits(0, 1, 2), checkpoint(1)], -1, [checkpoint(1), *commits(1, 2)]),
        ([*commits(0, 1, 2), checkpoint(2)], -1, [checkpoint(2), *commits(2)]),
        (
            [*commits(8, 9, 10, 11), checkpoint(9), "_last_checkpoint"],
            -1,
            [checkpoint(9), *commits(9, 10, 11)],
        ),
        # Commits between the known version and the listed ones are gone.
        ([*commits(18, 19, 20), checkpoint(19)], 5, [checkpoint(19), *commits(19, 20)]),
        # A checkpoint whose commits are missing serves for nothing, an older one does.
        ([*commits(9, 10, 12, 13), checkpoint(9), checkpoint(12)], -1, [checkpoint(12), *commits(12, 13)]),
        ([*commits(9, 10, 11), checkpoint(9), checkpoint(30)], -1, [checkpoint(9), *commits(9, 10, 11)]),
        # Of what is not understood, all: delta-rs says what it is.
        (
            [*commits(9, 10), "00000000000000000009.checkpoint.0000000001.0000000002.parquet", "_sidecars/a"],
            -1,
            ["00000000000000000009.checkpoint.0000000001.0000000002.parquet", *commits(9, 10)],
        ),
        (commits(0, 2), -1, commits(0, 2)),
    ],
)
def test_needed(listed: list[str], known: int, wanted: list[str]) -> None:
    assert needed(listed, known) == wanted
