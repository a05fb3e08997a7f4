"""The lake's folder and lake.json: format version, generation, and the configs that the lake shows."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

FORMAT_VERSION = 1
MARKER = "lake.json"
# What killed writers leave in the lake's folder: lake.json before it has its name, and folders of tables, as
# earlier versions made them.
BEGUN_MARKERS, BEGUN_TABLES = f".{MARKER}-*", ".*-*/"


class NoLakeError(Exception):
    """A folder that is no lake, or a lake of another format or setting; the message says what to do."""


def check_lake(path: Path) -> None:
    """Raises NoLakeError where `path` is no lake that this version reads."""
    marker = path / MARKER
    if not marker.is_file():
        raise NoLakeError(
            f"{path} is no lake (no lake.json): kraftlake run --captures ... --lake {path} makes one"
        )
    try:
        content = json.loads(marker.read_text())
        version = content["format_version"]
        _check_content(content)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoLakeError(
            f"{marker} cannot be read ({error}): restore it from a copy of the lake, or load the captures "
            "into a new lake: kraftlake run --captures ... --lake ANOTHER"
        ) from error
    if version != FORMAT_VERSION:
        raise NoLakeError(
            f"{path} has lake format {version}, this kraftlake reads {FORMAT_VERSION}: "
            "load the captures into a new lake, or use the kraftlake that wrote it"
        )


def _check_content(content: dict[str, Any]) -> None:
    """Raises ValueError where a value is not what the functions below expect."""
    generation, shown = content.get("generation", 0), content.get("shown_configs", [])
    if type(generation) is not int:
        raise ValueError(f"generation is {generation!r}")
    if not isinstance(shown, list) or not all(isinstance(name, str) for name in cast("list[Any]", shown)):
        raise ValueError(f"shown_configs is {shown!r}")


def generation(path: Path) -> int:
    """How often earlier versions removed rows from the lake; now the logs of the tables count it."""
    marker = path / MARKER
    return json.loads(marker.read_text()).get("generation", 0) if marker.is_file() else 0


def shown_configs(path: Path) -> frozenset[str]:
    """The configs that the lake shows although Kafka does not define them."""
    return frozenset(json.loads((path / MARKER).read_text()).get("shown_configs", ()))


def check_shown(path: Path, names: Set[str]) -> None:
    """Raises NoLakeError where a lake shows others than these: its rows cannot be decoded again.

    A lake keeps the names that it was made with, so that its tables depend on captures only, not on which
    run read them.
    """
    held = shown_configs(path)
    if held != names:
        raise NoLakeError(
            f"{path} was made with shown_configs = {json.dumps(sorted(held))}, the settings have "
            f"{json.dumps(sorted(names))}: restore the setting in kraftlake.toml, or load the captures into "
            "a new lake: kraftlake run --captures ... --lake ANOTHER"
        )


def prepare_lake(path: Path, names: Set[str] = frozenset()) -> None:
    """Make an absent or empty folder a lake that shows these configs beside those that Kafka defines.

    Raises NoLakeError for any other folder that is none, and for a lake that shows others.
    """
    marker = path / MARKER
    if not marker.is_file():
        # Another run may make it at the same time: then the folder is full, and has a lake.json.
        if not _is_free(path) and not marker.is_file():
            raise NoLakeError(f"{path} is not empty and is no lake: name another folder with --lake")
        content = {"format_version": FORMAT_VERSION, "shown_configs": sorted(names)}
        try:
            _create_marker(path, json.dumps(content) + "\n")
        except OSError as error:
            raise NoLakeError(f"{path} cannot be made a lake: {error.strerror}") from error
    check_lake(path)
    check_shown(path, names)


def _is_free(path: Path) -> bool:
    """Whether a lake can be made there: there is no folder, or it is empty but for what others begin."""
    if not path.exists():
        return True
    return path.is_dir() and set(path.iterdir()) <= set(path.glob(BEGUN_MARKERS))


def _create_marker(path: Path, content: str) -> None:
    """Make lake.json, and the folder, unless there is one: of several at once, one makes it, whole."""
    path.mkdir(parents=True, exist_ok=True)
    begun = path / BEGUN_MARKERS.replace("*", uuid.uuid4().hex)
    begun.write_text(content)
    try:
        with suppress(FileExistsError):
            os.link(begun, path / MARKER)
    finally:
        begun.unlink()


def remove_begun(path: Path, hours: int) -> None:
    """Remove what killed writers left in the lake's folder more than so many hours ago."""
    for begun in (*path.glob(BEGUN_MARKERS), *path.glob(BEGUN_TABLES)):
        if begun.stat().st_mtime < time.time() - hours * 3600:
            shutil.rmtree(begun) if begun.is_dir() else begun.unlink()
