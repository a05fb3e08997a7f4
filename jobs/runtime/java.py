"""The Java that Spark will start, checked first: PySpark's own errors fill pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from jobs.runtime.outcome import ExitCode, Failure

LEAST = 17
_VERSION = re.compile(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)')
_ASK_SECONDS = 30


def is_submitted() -> bool:
    """Whether spark-submit started this program and its JVM."""
    return "SPARK_ENV_LOADED" in os.environ


def java_of(environ: Mapping[str, str] = os.environ) -> Path:
    """The Java that Spark will use. Raises Failure unless Spark can run on it."""
    java = _java(environ)
    version = _version(java)
    if version is None:
        raise _wrong(f"{java} cannot be run")
    if version < LEAST:
        raise _wrong(f"{java} is Java {version}")
    return java


def release_of(java: Path) -> str:
    """The text of the file beside its bin that says what it is; empty where there is none."""
    try:
        return (java.resolve().parents[1] / "release").read_text()
    except (OSError, UnicodeDecodeError, IndexError):
        return ""


def release_name(java: Path) -> str:
    """Its version, such as 17.0.15."""
    line = next((line for line in release_of(java).splitlines() if line.startswith("JAVA_VERSION=")), "")
    return line.partition("=")[2].strip('"') or "of an unknown version"


def _java(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise _wrong(f"JAVA_HOME is {home}, which has no bin/java")
        return java
    found = shutil.which("java", path=environ.get("PATH"))
    if found is None:
        raise _wrong("Java was not found")
    return Path(found)


def _version(java: Path) -> int | None:
    """The major version: by the file beside its bin, which takes no time, else by what it says of itself."""
    found = _VERSION.search(release_of(java))
    if found is None:
        try:
            asked = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        found = _VERSION.search(asked.stderr + asked.stdout)
    return None if found is None else int(found[1])


def _wrong(what: str) -> Failure:
    return Failure(
        f"{what}: Spark needs Java {LEAST} or later; install one, and set JAVA_HOME to its folder",
        ExitCode.ENVIRONMENT,
    )
