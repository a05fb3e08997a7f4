"""The table of the bench: which groups there are, when an aim is met, and what inputs are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.frame import Row, groups, table
from tests.bench.inputs import made


def test_a_group_is_a_module_with_rows():
    assert "decode" in groups()
    assert not {"frame", "inputs", "test-frame"} & set(groups())


def test_aims():
    assert Row("a", 24.9, at_least=25).is_met is False
    assert Row("a", 25, at_least=25).is_met is True
    assert Row("a", 1.31, at_most=1.3).is_met is False
    assert Row("a", 9e9).is_met is True


def test_columns_are_aligned_and_a_missed_aim_stands_out():
    rows = [("decode", Row("long name", 1234.5, "s", at_most=2)), ("one", Row("b", 0.25, detail="1 of 4"))]
    assert table(rows) == [
        "group   what       figure   aim           measured",
        "decode  long name  1,234 s  <= 2  MISSED",
        "one     b          0.25 x                 1 of 4",
    ]


@pytest.mark.parametrize("half", [Path.mkdir, Path.touch])
def test_an_interrupted_run_leaves_no_half_input(tmp_path, half):
    def interrupted(path: Path) -> None:
        half(path)
        raise KeyboardInterrupt

    place = tmp_path / "inputs" / "log"
    with pytest.raises(KeyboardInterrupt):
        made(place, interrupted)
    assert not place.exists()
    made(place, lambda path: path.write_text("whole"))
    assert made(place, interrupted).read_text() == "whole"
