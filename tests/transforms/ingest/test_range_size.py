"""The ranges of a log that tasks decode."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.ingest.decoding import LEAST_RANGE_BYTES, RANGE_BYTES
from transforms.ingest.spark_frames import range_size

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("mebibytes", "tasks"), [(1, 1), (16, 1), (17, 2), (128, 8), (600, 10), (641, 12), (10_000, 158)]
)
def test_two_cores_have_as_many_tasks_each(mebibytes: int, tasks: int) -> None:
    assert ceil(mebibytes * MIB / range_size(mebibytes * MIB, 2)) == tasks


@given(st.integers(1, 2**42), st.integers(1, 64))
def test_no_task_is_small_beside_what_it_costs_to_start(size_bytes: int, cores: int) -> None:
    most = range_size(size_bytes, cores)
    assert most <= RANGE_BYTES
    assert most >= min(size_bytes, LEAST_RANGE_BYTES // 2)
    tasks = ceil(size_bytes / most)
    assert tasks <= cores or tasks % cores == 0
