"""A new plan on Kafka's real log classes, where the scripts that fetch Kafka lie beside the project."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.long.drift.__main__ import main

SCRIPTS = Path(os.environ.get("KAFKA_SCRIPTS", "../shared/kafka"))


@pytest.mark.long
@pytest.mark.skipif(not (SCRIPTS / "bin" / "get").is_file(), reason="no scripts that fetch Kafka")
@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason="mvn or javac is missing")
def test_the_engine_still_agrees_with_kafka() -> None:
    assert main([str(SCRIPTS)]) == 0
