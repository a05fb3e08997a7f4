"""The bounds of the high watermark that hold together at one moment."""

from __future__ import annotations

from itertools import product
from random import Random

from kraft_core.evidence.watermark_at import WatermarkAt, newest_watermark, watermark_at


def lower(bound: int, as_of: int | None) -> dict[str, int | None]:
    return {"as_of": as_of, "lower_bound": bound, "upper_bound": None}


def upper(bound: int, as_of: int | None) -> dict[str, int | None]:
    return {"as_of": as_of, "lower_bound": None, "upper_bound": bound}


EVENING = [lower(987, 10), lower(1215, 30), upper(1230, 39), lower(1222, 42), upper(1000, 20)]


def test_a_lower_bound_is_not_joined_with_an_upper_one_of_before() -> None:
    assert newest_watermark(EVENING) == WatermarkAt(39, 1215, 1230, 1222, 42)


def test_each_bound_that_is_taken_away_is_missed() -> None:
    def without(*gone: int) -> WatermarkAt:
        return newest_watermark(row for nth, row in enumerate(EVENING) if nth not in gone)

    assert without(3) == WatermarkAt(39, 1215, 1230)
    assert without(1) == WatermarkAt(39, 987, 1230, 1222, 42)
    assert without(0, 1) == WatermarkAt(39, None, 1230, 1222, 42)
    assert without(2) == WatermarkAt(20, 987, 1000, 1222, 42)
    assert without(2, 4) == WatermarkAt(42, 1222, None)
    assert without(0, 1, 3) == WatermarkAt(39, None, 1230)
    assert newest_watermark([]) == WatermarkAt(None, None, None)


def test_a_proof_without_a_time_holds_at_no_moment() -> None:
    assert newest_watermark([lower(7, None)]) == WatermarkAt(None, None, None, 7, None)
    assert newest_watermark([lower(7, None), lower(5, 3), upper(9, None)]) == WatermarkAt(3, 5, None, 7)
    assert newest_watermark([lower(7, None), upper(9, 4), lower(5, 3)]) == WatermarkAt(4, 5, 9, 7, None)
    assert watermark_at([upper(9, None), lower(1, None)], 4) == WatermarkAt(4, None, None)


def test_bounds_of_a_rising_high_watermark_hold_at_every_moment() -> None:
    """Proofs made from a true high watermark never exclude it; each one that holds is used."""
    random = Random(5)
    for _ in range(300):
        truth = [0]
        for _ in range(20):
            truth.append(truth[-1] + random.choice([0, 0, 1, 3]))
        proofs = [
            lower(truth[at] - random.randrange(3), at) if random.random() < 0.5
            else upper(truth[at] + random.randrange(3), at)
            for at in random.choices(range(21), k=6)
        ]  # fmt: skip
        for moment, proof in product(range(21), proofs):
            found = watermark_at(proofs, moment)
            assert found.lower is None or found.lower <= truth[moment]
            assert found.upper is None or found.upper >= truth[moment]
            if proof["lower_bound"] is not None and proof["as_of"] <= moment:  # type: ignore[operator]
                assert found.lower is not None
                assert found.lower >= proof["lower_bound"]
            if proof["upper_bound"] is not None and proof["as_of"] >= moment:  # type: ignore[operator]
                assert found.upper is not None
                assert found.upper <= proof["upper_bound"]
