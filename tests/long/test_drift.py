"""A new plan on Kafka's real log classes."""

from __future__ import annotations

import shutil

import pytest

from tests.long.drift.__main__ import main


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason="mvn or javac is missing")
def test_the_engine_still_agrees_with_kafka() -> None:
    assert main([]) == 0
