"""Timestamps within the range of Spark and Python: from the year 1 to the year 9999.

A leader's clock may show any time, and the batch's checksum is valid all the same: no time makes a batch bad.
"""

from __future__ import annotations

# In ms since the epoch: 0001-01-02T00:00:00Z and 9999-12-31T23:59:59.999Z. The first day is left out:
# Python's datetime.fromtimestamp, by which PySpark makes rows, refuses it.
FIRST_MS, LAST_MS = -62_135_510_400_000, 253_402_300_799_999


def representable(ms: int) -> int:
    """The time, clamped to the range of the tables. The kernel compiles this function."""
    return min(max(ms, FIRST_MS), LAST_MS)
