"""Which files are joined: how many stay, what is written again, in how many places a cluster's rows are."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.lake.joined_files import (
    SMALL_BYTES,
    SORTED_BYTES,
    TIMES,
    StoredFile,
    files_to_join,
)

MIB = 1024 * 1024
CLUSTERS = 1000


def written(names: count[int], size_bytes: int) -> list[StoredFile]:
    """Rows of all clusters in sorted files of 24 MiB, as joining leaves them."""
    sizes = [24 * MIB] * (size_bytes // (24 * MIB))
    sizes += [size_bytes % (24 * MIB)] if size_bytes % (24 * MIB) else []
    width = CLUSTERS // len(sizes)
    return [
        StoredFile(str(next(names)), size, f"{nth * width:05}", f"{(nth + 1) * width:05}")
        for nth, size in enumerate(sizes)
    ]


def new(names: count[int], size_bytes: int) -> StoredFile:
    """As a run appends it."""
    return StoredFile(str(next(names)), size_bytes, "00000", f"{CLUSTERS:05}")


def joined(files: list[StoredFile], names: count[int], whole: bool = False) -> tuple[list[StoredFile], int]:
    """The files afterwards, and the bytes that were written."""
    bins = files_to_join(files, whole)
    gone = {file.path for some in bins for file in some}
    assert sum(map(len, bins)) == len(gone)
    made = [file for some in bins for file in written(names, sum(each.size_bytes for each in some))]
    return [file for file in files if file.path not in gone] + made, sum(f.size_bytes for f in made)


@pytest.mark.parametrize("nightly", [70 * 1024, 360 * 1024, 4 * MIB])
@pytest.mark.parametrize("most", [12, 50])
def test_a_year_of_nights_writes_little_again(nightly: int, most: int) -> None:
    names = count()
    files, again, places = written(names, 190 * MIB), 0, 0
    for _ in range(730):
        files.append(new(names, nightly))
        if sum(file.size_bytes < SMALL_BYTES for file in files) > most:
            files, more = joined(files, names)
            again += more
            places = max(places, sum(file.lowest == "00000" for file in files))
            assert sum(file.size_bytes < SMALL_BYTES for file in files) <= 5
    grown = 730 * nightly
    assert again <= (TIMES + 2) * grown * 2
    # Besides those of the runs that are full, whose rows no joining brings nearer.
    assert places - grown // (SORTED_BYTES // 2) <= 5


@settings(deadline=None)
@given(st.lists(st.integers(1, 15 * MIB), max_size=16))
def test_what_stays_is_much_larger_than_all_that_is_smaller(sizes: list[int]) -> None:
    names = count()
    files = [new(names, size) for size in sizes]
    chosen = {file.path for some in files_to_join(files) for file in some}
    for file in files:
        if file.path not in chosen:
            smaller = sum(other.size_bytes for other in files if other.size_bytes < file.size_bytes)
            assert file.size_bytes > TIMES * smaller


def test_the_whole_is_joined_where_that_is_asked_for() -> None:
    names = count()
    files = [*written(names, 100 * MIB), new(names, 1)]
    assert files_to_join(files) == []
    assert files_to_join(files, whole=True) == [files]
    full = StoredFile("full", SORTED_BYTES // 2, "00000", "01000")
    assert files_to_join([full, *files], whole=True) == [files]
    assert files_to_join(files[:1], whole=True) == []


def test_files_of_one_run_are_joined_at_once_or_not_at_all() -> None:
    names = count()
    run = written(names, 96 * MIB)
    few, many = [new(names, 5 * MIB), new(names, 5 * MIB)], [new(names, 7 * MIB), new(names, 7 * MIB)]
    assert files_to_join([*run, *few]) == [few]
    assert files_to_join([*run, *many]) == [[*run, *many]]
