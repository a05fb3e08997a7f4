"""One Spark session for all tests that need one; the golden captures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The captures by real Kafka (tests/golden/README.md)."""
    return GOLDEN


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The session that every Spark test shares."""
    from jobs.runtime.session import open_session

    session = open_session("local[2]", quick=True)
    yield session
    session.stop()
