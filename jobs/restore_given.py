"""JSON from a file that may have been edited, read value by value with its type."""

from __future__ import annotations

from typing import Any, TypeVar

_MOST = (1 << 63) - 1  # no id, offset or time (ms) of Kafka is above it, or below 0

Kind = TypeVar("Kind", str, int, bool, list[Any], dict[str, Any])


class Given:
    """An object of JSON."""

    def __init__(self, content: Any) -> None:
        """Raises TypeError for what is not an object."""
        if not isinstance(content, dict):
            raise TypeError(f"{content!r} is not an object")
        self._content: dict[str, Any] = content

    def one(self, name: str, kind: type[Kind]) -> Kind:
        """Raises KeyError, and TypeError for another type: a truth value is not a number. ValueError."""
        return _of(name, self._content[name], kind)

    def maybe(self, name: str, kind: type[Kind]) -> Kind | None:
        """None where it is null. Raises as one()."""
        return None if self._content[name] is None else self.one(name, kind)

    def items(self, name: str, kind: type[Kind]) -> tuple[Kind, ...]:
        """Of a list. Raises as one()."""
        return tuple(_of(name, item, kind) for item in self.one(name, list))


def _of(name: str, value: Any, kind: type[Kind]) -> Kind:
    if type(value) is not kind:
        raise TypeError(f"{name} {value!r} is not a {kind.__name__}")
    if isinstance(value, int) and not 0 <= value <= _MOST:
        raise ValueError(f"{name} {value}")
    return value
