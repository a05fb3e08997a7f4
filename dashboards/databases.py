"""Databases that a lake's tables, views and functions are registered in."""

from __future__ import annotations

from dataclasses import dataclass

# The database of the session's own catalog, and by default of any other.
KRAFT = "kraft"


class CatalogError(Exception):
    """A catalog or database that the lake cannot be registered in; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database of a catalog that outlives the session and that other programs ask, too."""

    catalog: str
    name: str = KRAFT

    def __str__(self) -> str:
        """As SQL writes it."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in (self.catalog, self.name))
