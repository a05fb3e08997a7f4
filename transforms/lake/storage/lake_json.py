"""lake.json: a lake's format version and the configs that it shows."""

from __future__ import annotations

import json
import time
from collections.abc import Set
from fnmatch import fnmatchcase
from typing import Any, cast

from transforms.lake.storage import files, objects
from transforms.lake.storage.conditions import check_conditional_puts
from transforms.lake.storage.files import MARKER
from transforms.lake.storage.location import Location, StoreUrl

FORMAT_VERSION = 1
# What killed writers leave in the lake's folder: lake.json, memos and commits before they have their names.
BEGUN_MARKERS = files.begun_name(MARKER)
BEGUN_OTHERS = (files.begun_name("memo.json"), f"*/_delta_log/{files.begun_name('*.json')}")
# Of stores, where lake.json is made once: what this process has read.
_known: dict[Location, str] = {}


class NoLakeError(Exception):
    """A folder that is not a lake, or a lake of another format or setting; the message says what to do."""


def is_lake(path: Location) -> bool:
    """Whether there is a lake.json, of whatever content."""
    if not isinstance(path, StoreUrl):
        return files.is_file(path / MARKER)
    try:
        _text(path)
    except FileNotFoundError:
        return False
    return True


def _text(path: Location) -> str:
    """The content of lake.json. Raises OSError and ValueError."""
    marker = path / MARKER
    if marker in _known:
        return _known[marker]
    content = files.text_of(marker)
    if isinstance(marker, StoreUrl):
        _known[marker] = content
    return content


def check_lake(path: Location) -> None:
    """Raises NoLakeError where `path` is not a lake that this version reads."""
    marker = path / MARKER
    if not is_lake(path):
        raise _lost(path) or NoLakeError(f"{path} is not a lake (no lake.json): {_way_out(path)}")
    try:
        content = json.loads(_text(path))
        version = content["format_version"]
        _check_content(content)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise NoLakeError(
            f"{marker} cannot be read ({error}): restore it from a copy of the lake, or load the captures "
            "into a new lake: kraftlake run --captures ... --lake ANOTHER"
        ) from error
    if version != FORMAT_VERSION:
        raise NoLakeError(
            f"{path} has lake format {version}, but this kraftlake reads {FORMAT_VERSION}: "
            "load the captures into a new lake, or use the kraftlake that wrote it"
        )


def _check_content(content: dict[str, Any]) -> None:
    """Raises ValueError where a value is not what the functions below expect."""
    shown = content.get("shown_configs", [])
    if not isinstance(shown, list) or not all(isinstance(name, str) for name in cast("list[Any]", shown)):
        raise ValueError(f"shown_configs is {shown!r}")


def shown_configs(path: Location) -> frozenset[str]:
    """The configs that the lake shows although Kafka does not define them."""
    return frozenset(json.loads(_text(path)).get("shown_configs", ()))


def check_shown(path: Location, names: Set[str]) -> None:
    """Raises NoLakeError where a lake shows others than these: its rows cannot be decoded again.

    A lake keeps the names that it was made with, so that its tables depend on captures only, not on which
    run read them.
    """
    held = shown_configs(path)
    if held != names:
        raise NoLakeError(
            f"{path} was created with shown_configs = {json.dumps(sorted(held))}, but the settings have "
            f"{json.dumps(sorted(names))}: restore the setting in kraftlake.toml, or load the captures into "
            "a new lake: kraftlake run --captures ... --lake ANOTHER"
        )


def check_preparable(path: Location, names: Set[str] = frozenset()) -> None:
    """Raises NoLakeError where prepare_lake does, and changes nothing."""
    if is_lake(path):
        check_lake(path)
        check_shown(path, names)
    # Another run may make it at the same time: then the folder is full, and has a lake.json.
    elif not _is_free(path) and not is_lake(path):
        raise _lost(path) or NoLakeError(
            f"{path} is not empty and not a lake: choose another folder with --lake"
        )


def _way_out(path: Location) -> str:
    """What to do where there is no lake: a run makes none among other files."""
    if _is_free(path):
        return f"kraftlake run --captures ... --lake {path} creates one"
    return "it has other files; choose another folder with --lake"


def _lost(path: Location) -> NoLakeError | None:
    """What to say of a folder that has tables of a lake, and lost its lake.json; None of any other."""
    if not has_tables(path):
        return None
    return NoLakeError(
        f"{path} has tables but no lake.json: kraftlake check --restore --lake {path} writes it again"
    )


def has_tables(path: Location) -> bool:
    """Whether any Delta table lies in the folder. Raises OSError where a store does not say."""
    if isinstance(path, StoreUrl):
        return any(found.name.split("/")[1:2] == ["_delta_log"] for found in objects.below(path))
    return files.is_folder(path) and any(files.found(path, "*/_delta_log/"))


def prepare_lake(path: Location, names: Set[str] = frozenset()) -> None:
    """Make an absent or empty folder a lake that shows these configs beside those that Kafka defines.

    Raises NoLakeError for any other folder that is none, and for a lake that shows others.
    """
    check_preparable(path, names)
    make_marker(path, names)
    check_lake(path)
    check_shown(path, names)


def make_marker(path: Location, names: Set[str]) -> None:
    """Write lake.json where there is none. Raises NoLakeError."""
    if not is_lake(path):
        content = {"format_version": FORMAT_VERSION, "shown_configs": sorted(names)}
        try:
            check_conditional_puts(path)
            files.create(path / MARKER, json.dumps(content) + "\n")
        except OSError as error:
            raise NoLakeError(f"{path} cannot be made into a lake: {error.strerror or error}") from error


def _is_free(path: Location) -> bool:
    """Whether a lake can be made there: there is not a folder, or it is empty but for what others begin."""
    if not files.exists(path):
        return True
    return files.is_folder(path) and all(fnmatchcase(name, BEGUN_MARKERS) for name in files.names_in(path))


def remove_begun(path: Location, hours: int) -> None:
    """Remove what killed writers left in the lake's folder more than this many hours ago."""
    patterns = (BEGUN_MARKERS, *BEGUN_OTHERS)
    for begun in (found for pattern in patterns for found in files.found(path, pattern)):
        if files.modified_at(begun) < time.time() - hours * 3600:
            files.remove_any(begun)
