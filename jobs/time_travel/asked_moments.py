"""Moments passed to the SQL functions NAME_at and NAME_as_of that no captured log reaches.

The functions then have no row, or that of the end of the log: correct, and easily taken for an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.runtime.outcome import Failure
from jobs.time_travel.moment import InvalidMomentError, Moment, iso, parse_moment
from kraft_core.image.replica import OutOfReachError
from transforms.lake.storage.location import Location

_CALL = re.compile(
    r"\b\w+_(?:as_of|at)\s*\(\s*'(?P<cluster>[^']*)'\s*,\s*(?:TIMESTAMP\s*)?(?:'(?P<time>[^']*)'|(?P<offset>\d+))\s*\)",
    re.IGNORECASE,
)


def out_of_reach(lake: Location, statement: str) -> Iterator[str]:
    """A sentence for each such moment, and for each cluster that is not there. Only literals are judged."""
    for call in _CALL.finditer(statement):
        text = call["offset"] or call["time"]
        try:
            moment = parse_moment(text, 0)
        except InvalidMomentError:
            continue  # Spark says what it takes
        sentence = _sentence(lake, call["cluster"], moment)
        if sentence is not None:
            yield sentence


def _sentence(lake: Location, cluster: str, moment: Moment) -> str | None:
    # Histories of a lake: only what asks for a moment pays for their import.
    from jobs.time_travel.lake_source import open_cluster

    try:
        source = open_cluster(lake, cluster)
        newest = source.append_before(source.last_offset + 1)
        if moment.offset is not None:
            source.step_at(moment.offset)
        elif moment.time is not None:
            if source.offset_at(moment.time) < 0:
                first = iso(source.append_before(1))
                return (
                    f"{iso(moment.time)} is before the history of {cluster}, which covers {first} to "
                    f"{iso(newest)}"
                )
            if newest is not None and moment.time > newest:
                beyond = f"is after the newest record of {cluster}, which is of {iso(newest)}"
                later = f"{iso(moment.time)} {beyond}"
                return f"{later}: what happened after that is not known"
    except (OutOfReachError, Failure) as error:
        return str(error)
    return None
