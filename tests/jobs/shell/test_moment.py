"""Moments as users write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.time_travel.moment import InvalidMomentError, Moment, iso, parse_moment

NEWEST = 1795254241281  # 2026-11-21T09:44:01.281Z


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1894", Moment(offset=1894)),
        ("0", Moment(offset=0)),
        ("end", Moment()),
        ("@1795254241281", Moment(time=NEWEST)),
        ("2026-11-21T09:42:33Z", Moment(time=ms("2026-11-21T09:42:33+00:00"))),
        ("2026-11-21T09:42:33.250", Moment(time=ms("2026-11-21T09:42:33.250+00:00"))),
        ("2026-11-21T09:42:33.2509", Moment(time=ms("2026-11-21T09:42:33.250+00:00"))),
        ("9999-12-31T23:59:59.999999", Moment(time=253402300799999)),
        ("2026-11-21T09:42:33+02:00", Moment(time=ms("2026-11-21T07:42:33+00:00"))),
        ("2026-11-21 09:42", Moment(time=ms("2026-11-21T09:42:00+00:00"))),
        ("2026-11-21", Moment(time=ms("2026-11-21T00:00:00+00:00"))),
        ("09:42", Moment(time=ms("2026-11-21T09:42:00+00:00"))),
        ("3:12", Moment(time=ms("2026-11-21T03:12:00+00:00"))),
        ("09:42:33.5", Moment(time=ms("2026-11-21T09:42:33.500+00:00"))),
    ],
)
def test_forms(text, moment):
    assert parse_moment(text, NEWEST) == moment


@pytest.mark.parametrize(
    "text", ["", "yesterday", "-1", "1.5", "@", "@x", "25:00", "9:7", "2026-13-01", "١٢"]
)
def test_other_texts_are_no_moments(text):
    with pytest.raises(InvalidMomentError, match="is not a moment: give an offset"):
        parse_moment(text, NEWEST)


def test_times_are_shown_in_utc():
    assert iso(NEWEST) == "2026-11-21T09:44:01.281Z"
    assert (iso(None), iso(-1)) == ("-", "-")
