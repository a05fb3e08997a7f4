"""A real Kafka for the tests: scripts that fetch and drive it; its releases lie in $KAFKA_LAB (README.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent
LAB = Path(os.environ.get("KAFKA_LAB", SCRIPTS.parents[1] / ".kafka-lab")).absolute()
RELEASE = "4.3.1"


def is_fetched(release: str = RELEASE) -> bool:
    """Whether bin/get has fetched the release and compiled the helper classes."""
    return (LAB / f"kafka-{release}" / "libs").is_dir() and (LAB / "classes").is_dir()


needs_kafka = pytest.mark.skipif(not is_fetched(), reason=f"no Kafka {RELEASE} in {LAB}: make kafka")
