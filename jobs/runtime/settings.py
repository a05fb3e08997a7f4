"""kraftlake.toml: defaults for flags, names of clusters, what the expectations allow.

A flag that is given wins over the file. docs/kraftlake.toml documents every setting.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.runtime.outcome import Failure

VARIABLE = "KRAFTLAKE_CONFIG"
FILE = Path("kraftlake.toml")
# The flags that the file may give defaults for.
NAMED = ("lake", "captures", "master", "catalog", "database", "fail_on", "wait", "log")
SOURCES = ("lake", "captures")
TABLES = ("clusters", "expectations", "spark")
CLUSTER_KEYS = {"id", "environment", "owner"}


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster that a person has named; environment and owner are None where the file does not say."""

    name: str
    id: str
    environment: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """What the file says; empty where there is none."""

    file: Path | None = None
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def flags(self) -> dict[str, Any]:
        return {name: self.content[name] for name in NAMED if name in self.content}

    @property
    def clusters(self) -> list[NamedCluster]:
        return [NamedCluster(name, **facts) for name, facts in self.content.get("clusters", {}).items()]

    @property
    def expectations(self) -> Mapping[str, Any]:
        return self.content.get("expectations", {})

    @property
    def spark(self) -> Mapping[str, str]:
        """Settings of Spark's, which win over spark-defaults.conf."""
        return self.content.get("spark", {})

    def cluster_id(self, word: str) -> str:
        """The id of the cluster that the word names; the word itself where it names none."""
        return next((c.id for c in self.clusters if c.name == word), word)


def read_settings(named: Path | None) -> Settings:
    """The settings of the file named by the flag, the variable or its usual place. Raises Failure."""
    given = named or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    file = given or FILE
    if given is None and not file.is_file():
        return Settings()
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Failure(f"{file} cannot be read: {error}") from None
    check(file, content)
    return Settings(file, content)


def check(file: Path, content: Mapping[str, Any]) -> None:
    """Raises Failure where the file says what no verb understands."""
    known = (*NAMED, *TABLES)
    for name in content:
        if name not in known:
            raise Failure(f"{file}: there is no setting {name}; there are {', '.join(known)}")
    for name in TABLES:
        if not isinstance(content.get(name, {}), dict):
            raise Failure(f"{file}: {name} is a table, as in [{name}.SOMETHING]")
    ids: dict[str, str] = {}
    for name, facts in content.get("clusters", {}).items():
        if not isinstance(facts, dict) or "id" not in facts or set(facts) - CLUSTER_KEYS:
            raise Failure(
                f"{file}: cluster {name} has an id, and perhaps environment and owner, nothing else"
            )
        if not all(isinstance(value, str) for value in facts.values()):
            raise Failure(f"{file}: id, environment and owner of cluster {name} are text")
        if facts["id"] in ids:
            raise Failure(f"{file}: {name} and {ids[facts['id']]} are names of one cluster")
        ids[facts["id"]] = name
    for name, value in content.get("spark", {}).items():
        if not isinstance(value, str):
            raise Failure(f'{file}: a setting of [spark] is text, its name in quotes: "spark.{name}" = "..."')


def apply(parser: argparse.ArgumentParser, settings: Settings) -> None:
    """Give the parser's flags the defaults of the file; what is required may then be left out.

    A lake or captures that a verb does not require are one of several sources it may be given: the file does
    not choose between them.
    """
    for action in parser._actions:
        if action.dest in SOURCES and not action.required:
            continue
        if action.dest in settings.flags and action.option_strings:
            action.default = converted(action, settings.flags[action.dest], settings.file)
            action.required = False
            parser.set_defaults(**{action.dest: action.default})


def converted(action: argparse.Action, value: Any, file: Path | None) -> Any:
    """A value of the file as the flag would give it. Raises Failure."""
    convert = action.type if callable(action.type) else str
    many = action.nargs == "+"
    if many != isinstance(value, list):
        raise Failure(f"{file}: {action.dest} is {'a list' if many else 'one value'}")
    if action.choices is not None and value not in action.choices:
        raise Failure(f"{file}: {action.dest} is one of {', '.join(map(str, action.choices))}")
    try:
        return [convert(v) for v in value] if many else convert(value)
    except (TypeError, ValueError, argparse.ArgumentTypeError):
        raise Failure(f"{file}: {value!r} means nothing for {action.dest}") from None


def with_cluster_ids(args: argparse.Namespace, settings: Settings) -> None:
    """Put ids in the place of names, wherever a verb takes a cluster."""
    for flag in ("cluster", "cluster_id"):
        word = getattr(args, flag, None)
        if isinstance(word, str):
            setattr(args, flag, settings.cluster_id(word))
        elif isinstance(word, Iterable):
            setattr(args, flag, [settings.cluster_id(w) for w in word])
