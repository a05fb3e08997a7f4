"""Java programs beside tests: compiled against the jars of a release, and asked by lines on stdin."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.kafka import LAB, is_fetched


def jars(release: str) -> str:
    """The class path of a release. Skips the test where it is not fetched."""
    if not is_fetched(release):
        pytest.skip(f"no Kafka {release} in {LAB}: tests/kafka/bin/get {release}")
    return f"{LAB}/kafka-{release}/libs/*"


def ask(
    source: Path, main: str, release: str, lines: Iterable[str], folder: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """What the class `main` of a source prints for these lines. folder: for its classes; options: of java."""
    libs = jars(release)
    subprocess.run(["javac", "-nowarn", "-cp", libs, "-d", str(folder), str(source)], check=True)
    return subprocess.run(
        ["java", *options, "-cp", f"{folder}:{libs}", main],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
    )
