"""The options of format("kraft") and format("kraft_quorum") on files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from kraft_core.messages.schema import Message
from kraft_core.wording import did_you_mean
from transforms.source.columns import LOG, SNAPSHOT, message_of
from transforms.source.errors import SourceError

# The value of option include: the column source of what it selects.
INCLUDED = {"log": LOG, "checkpoints": SNAPSHOT}
MODES = ("PERMISSIVE", "FAILFAST")
REDACT = "redact"
_FILE_SCHEMES = ("file://", "file:")
OF_QUORUM = ("path", "paths", "clusterId", "nodeId")
OF_FILES = (*OF_QUORUM, "types", "startingOffset", "endingOffset", "include", "mode", "secrets")


@dataclass(frozen=True, slots=True)
class FileOptions:
    """What to read of which captures; None: no bound.

    starting_offset inclusive, ending_offset exclusive. include: values of column source.
    """

    paths: tuple[str, ...]
    cluster_id: str | None = None
    node_id: int | None = None
    types: tuple[Message, ...] | None = None
    starting_offset: int | None = None
    ending_offset: int | None = None
    include: frozenset[str] = frozenset(INCLUDED.values())
    mode: Literal["PERMISSIVE", "FAILFAST"] = "PERMISSIVE"


def file_options(given: Mapping[str, str], known: Iterable[str] = OF_FILES) -> FileOptions:
    """The options from their texts, whose names are in any case. Raises SourceError."""
    options = {name.lower(): text for name, text in given.items()}
    must_be_known(given, known)
    if options.get("secrets", REDACT) != REDACT:
        raise SourceError(
            "option secrets: only redact is supported; kraftlake dump --show-secrets prints secrets"
        )
    types = _words(options, "types")
    starting, ending = (_number(options, name) for name in ("startingOffset", "endingOffset"))
    if starting is not None and ending is not None and ending < starting:
        raise SourceError(f"option endingOffset: {ending} is before startingOffset {starting}")
    return FileOptions(
        paths=_paths(options),
        cluster_id=options.get("clusterid"),
        node_id=_number(options, "nodeId"),
        types=None if types is None else tuple(dict.fromkeys(map(message_of, types))),
        starting_offset=starting,
        ending_offset=ending,
        include=_included(_words(options, "include")),
        mode="FAILFAST" if _mode(options) == "FAILFAST" else "PERMISSIVE",
    )


def must_be_known(given: Iterable[str], known: Iterable[str], prefix: str | None = None) -> None:
    """Raises SourceError for an option that is not known; all are that begin with a prefix (lower case)."""
    names = {name.lower(): name for name in known}
    for name in given:
        if name.lower() in names or (prefix is not None and name.lower().startswith(prefix)):
            continue
        near = did_you_mean(name, names.values())
        kinds = [] if prefix is None else [f"{prefix}*"]
        listed = ", ".join([*(option for option in names.values() if option != "paths"), *kinds])
        raise SourceError(f"unknown option {name}{near or f'; known: {listed}'}")


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    paths = [options["path"]] if "path" in options else []
    if "paths" in options:  # load() of a list
        paths += json.loads(options["paths"])
    if not any(paths):
        raise SourceError(
            "no path is given: give a folder, an archive or a URL with controller directories, as in "
            'load("/backup/controllers"), or in SQL OPTIONS (path "/backup/controllers")'
        )
    return tuple(_local(path) for path in paths)


def _local(path: str) -> str:
    """A path of this machine without its scheme, which Spark's users write."""
    scheme = next((s for s in _FILE_SCHEMES if path.startswith(s)), "")
    return path.removeprefix(scheme)


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise SourceError(f"option {name}: {text!r} is not a non-negative whole number")
    return int(text)


def _words(options: Mapping[str, str], name: str) -> list[str] | None:
    text = options.get(name)
    if text is None:
        return None
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise SourceError(f"option {name} is empty: leave it out, or list values separated by commas")
    return words


def _included(words: list[str] | None) -> frozenset[str]:
    for word in words or ():
        if word.lower() not in INCLUDED:
            raise SourceError(f"option include: {word} is not one of {', '.join(INCLUDED)}")
    return frozenset(INCLUDED[word.lower()] for word in (words or INCLUDED))


def _mode(options: Mapping[str, str]) -> str:
    mode = options.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise SourceError(f"option mode: {options['mode']} is not one of {', '.join(MODES)}")
    return mode
