"""A moment, an offset or a time, as a user writes it.

1894                       the offset, its record included
2026-11-21T09:42:33Z       a time; without a zone it is UTC, a date alone is its midnight
09:42 or 09:42:33          that time on the day of the newest record
@1795254093606             ms since the epoch
end                        the newest record
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, TypeVar

from jobs.runtime.output import warn_line
from kraft_core.columnar.timestamps import representable

if TYPE_CHECKING:
    from jobs.time_travel.source import MetadataSource
    from kraft_core.image.image import Image

FORMS = "an offset, a time such as 2026-11-21T09:42:33Z or 09:42, @ms since the epoch, or end"

T = TypeVar("T")
_EPOCH = datetime.fromtimestamp(0, UTC)
_DIGITS = re.compile(r"\d{1,19}", re.ASCII)
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.]\d{1,6})?)?", re.ASCII)


class InvalidMomentError(ValueError):
    """The text is not a moment, or the source does not cover it; the message states which."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An offset (inclusive) or a time (ms); both None: the newest."""

    offset: int | None = None
    time: int | None = None


def parse_moment(text: str, newest: int) -> Moment:
    """newest: time of the newest record (ms), the day of a bare time of day. Raises InvalidMomentError."""
    if text == "end":
        return Moment()
    if _DIGITS.fullmatch(text):
        return Moment(offset=int(text))
    if text.startswith("@") and _DIGITS.fullmatch(text[1:]):
        return Moment(time=int(text[1:]))
    try:
        moment = _on_day_of(newest, text) if _CLOCK.fullmatch(text) else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise InvalidMomentError(f"{text!r} is not a moment: give {FORMS}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Rounded down: what happened within the next millisecond came later.
    return Moment(time=(moment - _EPOCH) // timedelta(milliseconds=1))


def _on_day_of(newest: int, text: str) -> datetime:
    day = datetime.fromtimestamp(representable(newest) / 1000, UTC).date()
    return datetime.combine(day, time.fromisoformat(text if text[2] == ":" else f"0{text}"))


def image_at(source: MetadataSource, moment: Moment, newest: int) -> Image:
    """The metadata at a moment; newest: time of the newest record (ms). Raises InvalidMomentError."""
    return at_offset_of(source, moment, newest, source.image_at)


def at_offset_of(source: MetadataSource, moment: Moment, newest: int, asked: Callable[[int | None], T]) -> T:
    """What is asked of the offset (None: the newest) of a moment. Raises InvalidMomentError.

    newest: time of the newest record (ms). A time after it is warned of: of what happened since then, nothing
    is known.
    """
    from kraft_core.image.replica import OutOfReachError

    try:
        if moment.time is None:
            return asked(moment.offset)
        offset = source.offset_at(moment.time)
        if offset < 0:
            raise InvalidMomentError(
                f"{iso(moment.time)} is before this history, which {_reach(source, newest)}"
            )
        if moment.time > newest:
            later = f"{iso(moment.time)} is after the newest record, which is of {iso(newest)}"
            warn_line(f"warning: {later}: what happened after that is not known")
        return asked(offset)
    except OutOfReachError as error:
        reach = "" if moment.time is None else f"; this history {_reach(source, newest)}"
        raise InvalidMomentError(f"{error}{reach}") from None


def _reach(source: MetadataSource, newest: int) -> str:
    offset, time = source.oldest_known
    first = f"offset {offset}" if time is None else iso(time)
    return f"covers {first} to {iso(newest)}"


def iso(timestamp: int | None) -> str:
    """A time (ms) as ISO 8601 text, UTC, clamped to year 9999; a dash for none."""
    if timestamp is None or timestamp < 0:
        return "-"
    time = datetime.fromtimestamp(representable(timestamp) / 1000, UTC)
    return time.isoformat(timespec="milliseconds")[:-6] + "Z"
