"""Ranges cut at batches: read one by one they give the whole file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kraft_core.batch import BatchHeader
from kraft_core.columnar import fast
from kraft_core.columnar.ranges import plan_ranges
from kraft_core.mapping import mapped
from kraft_core.segment import scan
from tests.kraft_core.columnar.comparing import decoded

GOLDEN = Path(__file__).parents[2] / "golden"
GOOD = GOLDEN / "corrupt" / "good" / "00000000000000000408.log"


@pytest.mark.parametrize("target", [1, 72, 500, 5000, 100_000])
@pytest.mark.parametrize(
    "case", ["good", "crc-flip-middle", "length-huge", "garbage-tail", "torn-last-batch", "all-zero"]
)
def test_ranges_cover_the_file_and_begin_at_good_batches(case, target):
    path = GOLDEN / "corrupt" / case / GOOD.name
    ranges = plan_ranges(path, target)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == path.stat().st_size
    assert [start for start, _ in ranges[1:]] == [end for _, end in ranges[:-1]]
    with mapped(path) as buf:
        beginnings = {item.position for item in scan(buf) if isinstance(item, BatchHeader)}
    assert {start for start, _ in ranges[1:]} <= beginnings
    assert all(end - start >= target for start, end in ranges[:-1])
    one_by_one = pa.concat_tables([decoded(fast, path, ranges=[part]) for part in ranges])
    assert one_by_one.equals(decoded(fast, path))


def test_ranges_are_no_longer_than_needed():
    with mapped(GOOD) as buf:
        ends = [item.end for item in scan(buf) if isinstance(item, BatchHeader)]
    for start, end in plan_ranges(GOOD, 1000)[:-1]:
        assert end == min(at for at in ends if at >= start + 1000)


def test_an_empty_file_has_no_ranges():
    assert plan_ranges(GOLDEN / "corrupt" / "empty-segment" / GOOD.name, 1000) == []


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="0 bytes"):
        plan_ranges(GOOD, 0)
    with pytest.raises(FileNotFoundError):
        plan_ranges(tmp_path / "nothing.log", 1)
