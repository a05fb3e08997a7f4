"""The lake's folder and lake.json: the format version, checked without Spark, and the generation."""

from __future__ import annotations

import json
from pathlib import Path

FORMAT_VERSION = 1


class NoLakeError(Exception):
    """A folder that is no lake, or a lake of another format; the message says what to do."""


def check_lake(path: Path) -> None:
    """Raises NoLakeError where `path` is no lake that this version reads."""
    marker = path / "lake.json"
    if not marker.is_file():
        raise NoLakeError(
            f"{path} is no lake (no lake.json): kraftlake run --captures ... --lake {path} makes one"
        )
    try:
        version = json.loads(marker.read_text())["format_version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NoLakeError(
            f"{marker} cannot be read ({error}): restore it from a copy of the lake, or load the captures "
            "into a new lake: kraftlake run --captures ... --lake ANOTHER"
        ) from error
    if version != FORMAT_VERSION:
        raise NoLakeError(
            f"{path} has lake format {version}, this kraftlake reads {FORMAT_VERSION}: "
            "load the captures into a new lake, or use the kraftlake that wrote it"
        )


def generation(path: Path) -> int:
    """How often rows were removed from the lake: a load is repeated only within one generation."""
    marker = path / "lake.json"
    return json.loads(marker.read_text()).get("generation", 0) if marker.is_file() else 0


def begin_generation(path: Path) -> None:
    """Must be called before rows are removed, so that they can be loaded again."""
    marker, fresh = path / "lake.json", path / ".lake.json"
    content = json.loads(marker.read_text())
    fresh.write_text(json.dumps(content | {"generation": generation(path) + 1}) + "\n")
    fresh.replace(marker)


def prepare_lake(path: Path) -> None:
    """Make an absent or empty folder a lake. Raises NoLakeError for any other folder that is none."""
    marker = path / "lake.json"
    if not marker.exists():
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise NoLakeError(f"{path} is not empty and is no lake: name another folder with --lake")
        try:
            path.mkdir(parents=True, exist_ok=True)
            marker.write_text(json.dumps({"format_version": FORMAT_VERSION}) + "\n")
        except OSError as error:
            raise NoLakeError(f"{path} cannot be made a lake: {error.strerror}") from error
    check_lake(path)
