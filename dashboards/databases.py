"""Databases in which a lake's tables, views and functions are registered."""

from __future__ import annotations

from dataclasses import dataclass

# The database's name in the session's own catalog, and the default in any other.
KRAFT = "kraft"


class CatalogError(Exception):
    """A catalog or database in which the lake cannot be registered; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database of a persistent catalog, which other programs query, too."""

    catalog: str
    name: str = KRAFT

    def __str__(self) -> str:
        """The quoted, qualified name."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in (self.catalog, self.name))
