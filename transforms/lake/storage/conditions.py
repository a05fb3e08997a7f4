"""Whether a store creates an object only if there is none, as commits need: tested before the first commit.

A store that ignores the condition lets the second of two commits overwrite the first; one that checks it too
early, the slower of two at once.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Container
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from transforms.lake.storage import objects
from transforms.lake.storage.files import MARKER, begun_name
from transforms.lake.storage.location import Location, StoreUrl

# Of a store that was seen to let two of two racers win in every second race, 1 of 65,000 passes.
ROUNDS, RACERS = 16, 2


class UnsafeStoreError(OSError):
    """A store that loses commits where two writers meet; the message says what to do."""


def check_conditional_puts(lake: Location, names: Container[str] = ()) -> None:
    """Raises UnsafeStoreError where the lake's store overwrites what it should not, and OSError.

    names: of the lake's files, where they are known. What was found is noted in the lake, for its place and
    server, until maintain removes the note after a week: it is named like what a killed writer of lake.json
    leaves.
    """
    if isinstance(lake, StoreUrl) and _note_name(lake, objects.endpoint()) not in names:
        _check(lake, objects.endpoint())


def _note_name(lake: StoreUrl, server: str | None) -> str:
    place = hashlib.sha256(f"{server} {lake}".encode()).hexdigest()[:16]
    return begun_name(MARKER, f"conditional-{place}")


@cache
def _check(lake: StoreUrl, server: str | None) -> None:
    note = lake / _note_name(lake, server)
    try:
        objects.content(note)
        return
    except FileNotFoundError:
        pass
    if any(_winners(lake) > 1 for _ in range(ROUNDS)) or _overwrites(lake):
        raise UnsafeStoreError(
            f"the store of {lake} overwrites objects in spite of If-None-Match: *, so that concurrent "
            f"writers would lose commits; use a store that supports conditional writes"
        )
    objects.put_new(note, b"")


def _winners(lake: StoreUrl) -> int:
    """How many of several writers at once make the same object."""
    place = _probe(lake)
    with ThreadPoolExecutor(RACERS) as threads:
        won = list(threads.map(lambda racer: objects.put_new(place, str(racer).encode()), range(RACERS)))
    objects.delete(place)
    return sum(tag is not None for tag in won)


def _overwrites(lake: StoreUrl) -> bool:
    """Whether an object that has been there for a moment is made once more."""
    place = _probe(lake)
    objects.put_new(place, b"1")
    made = objects.put_new(place, b"2")
    objects.delete(place)
    return made is not None


def _probe(lake: StoreUrl) -> StoreUrl:
    return lake / begun_name(MARKER, uuid.uuid4().hex)
