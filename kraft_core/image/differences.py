"""The differences between two images."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Key
from kraft_core.image.image import Image
from kraft_core.image.tables import KINDS


@dataclass(frozen=True, slots=True)
class Difference:
    """A thing's value in the first image and in the second; None: absent."""

    kind: str
    key: Key
    before: Any | None
    after: Any | None


def differences(before: Image, after: Image) -> Iterator[Difference]:
    """All things that differ, by kind in KINDS' order, then by key.

    Offsets, epochs and times of the images are not compared.
    """
    for kind in KINDS:
        old, new = dict(before.tables.items(kind)), dict(after.tables.items(kind))
        changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        for key in sorted(changed, key=_ordered):
            yield Difference(kind, key, old.get(key), new.get(key))


def _ordered(key: Key) -> tuple[Any, ...]:
    # Names in a quota's entity may be None, which does not compare; its text does.
    return tuple(element if isinstance(element, (int, str)) else repr(element) for element in key)
