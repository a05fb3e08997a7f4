"""What differs between two images."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Key
from kraft_core.image.image import Image
from kraft_core.image.tables import KINDS


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing: its value in the first image and in the second; None where it is not there."""

    kind: str
    key: Key
    before: Any | None
    after: Any | None


def differences(before: Image, after: Image) -> Iterator[Difference]:
    """Everything that is not equal, kind by kind in KINDS' order, sorted by key within a kind.

    Offsets, epochs and times of the images themselves are no difference.
    """
    for kind in KINDS:
        old, new = dict(before.tables.items(kind)), dict(after.tables.items(kind))
        changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        for key in sorted(changed, key=_ordered):
            yield Difference(kind, key, old.get(key), new.get(key))


def _ordered(key: Key) -> tuple[Any, ...]:
    # A quota's entity holds names that may be None, which no other key does; its text sorts as well.
    return tuple(element if isinstance(element, (int, str)) else repr(element) for element in key)
