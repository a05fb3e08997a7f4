"""What ends a query on format("kraft")."""

from __future__ import annotations


class SourceError(Exception):
    """A query that cannot be answered: the message says what is wrong, where, and what to do next.

    It quotes no value of a record: Spark keeps texts of exceptions in its event log.
    """
