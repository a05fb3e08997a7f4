"""kraftlake.toml: defaults of flags, names of clusters, thresholds of expectations, Spark settings.

A flag on the command line overrides the file. docs/kraftlake.toml documents every setting.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.runtime.outcome import Failure, reason_of

VARIABLE = "KRAFTLAKE_CONFIG"
FILE = Path("kraftlake.toml")
# The flags that the file may set.
NAMED = (
    "lake",
    "captures",
    "master",
    "catalog",
    "database",
    "fail_on",
    "wait",
    "log",
    "max_evidence_age_hours",
)
SOURCES = ("lake", "captures")
TABLES = ("clusters", "expectations", "spark")
SHOWN_CONFIGS = "shown_configs"
CLUSTER_KEYS = {"id", "environment", "owner", "paths", "bootstrap_controllers", "command_config"}


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster named in the file; environment and owner are None if they are not set.

    paths: captures below them are of this cluster, whatever they contain. bootstrap_controllers: where
    kraftlake follow reads it, HOST:PORT,...; command_config: a client's properties file for that.
    """

    name: str
    id: str
    environment: str | None = None
    owner: str | None = None
    paths: tuple[str, ...] = ()
    bootstrap_controllers: str | None = None
    command_config: str | None = None

    @property
    def row(self) -> dict[str, str | None]:
        """Its row of table cluster_names."""
        return {
            "cluster_id": self.id,
            "name": self.name,
            "environment": self.environment,
            "owner": self.owner,
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of the file; empty without a file."""

    file: Path | None = None
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def flags(self) -> dict[str, Any]:
        return {name: self.content[name] for name in NAMED if name in self.content}

    @property
    def clusters(self) -> list[NamedCluster]:
        return [
            NamedCluster(name, **facts | {"paths": tuple(facts.get("paths", ()))})
            for name, facts in self.content.get("clusters", {}).items()
        ]

    @property
    def expectations(self) -> Mapping[str, Any]:
        return self.content.get("expectations", {})

    @property
    def spark(self) -> Mapping[str, str]:
        """Spark settings, which override spark-defaults.conf."""
        return self.content.get("spark", {})

    @property
    def shown_configs(self) -> frozenset[str]:
        """Names of configs to show although Kafka does not define them."""
        return frozenset(self.content.get(SHOWN_CONFIGS, ()))

    @property
    def cluster_paths(self) -> list[tuple[str, str]]:
        """(path, cluster id) of each path of a cluster."""
        return [(path, cluster.id) for cluster in self.clusters for path in cluster.paths]

    def cluster_id(self, word: str) -> str:
        """The id of the cluster with this name; the word itself if no cluster has it."""
        return next((c.id for c in self.clusters if c.name == word), word)


def read_settings(named: Path | None) -> Settings:
    """The settings of the file given by the flag, the variable, or in its default place. Raises Failure."""
    given = named or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    file = given or FILE
    if given is None and not file.is_file():
        return Settings()
    import tomllib

    try:
        content = tomllib.loads(file.read_text())
    except RecursionError:
        raise Failure(f"{file} cannot be read: its values are nested too deeply") from None
    except (OSError, ValueError) as error:  # a number of 5,000 digits is neither bad UTF-8 nor bad TOML
        raise Failure(f"{file} cannot be read: {reason_of(error)}") from None
    _check(file, content)
    return Settings(file, content)


def _check(file: Path, content: Mapping[str, Any]) -> None:
    """Raises Failure for unknown settings and wrong types."""
    known = (*NAMED, SHOWN_CONFIGS, *TABLES)
    for name in content:
        if name not in known:
            raise Failure(f"{file}: unknown setting {name}; known settings: {', '.join(known)}")
    _check_shown(file, content.get(SHOWN_CONFIGS, []))
    for name in TABLES:
        if not isinstance(content.get(name, {}), dict):
            raise Failure(f"{file}: {name} must be a table, as in [{name}.SOMETHING]")
    ids: dict[str, str] = {}
    for name, facts in content.get("clusters", {}).items():
        if not isinstance(facts, dict) or "id" not in facts or set(facts) - CLUSTER_KEYS:
            raise Failure(
                f"{file}: cluster {name} must have an id; environment, owner, paths, "
                "bootstrap_controllers and command_config are optional"
            )
        paths = facts.get("paths", [])
        if not all(isinstance(value, str) for key, value in facts.items() if key != "paths"):
            raise Failure(f"{file}: all settings of cluster {name} except paths must be strings")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise Failure(f"{file}: paths of cluster {name} must be a list of paths")
        if "/" in facts["id"]:
            raise Failure(f"{file}: id of cluster {name} contains a slash")
        if facts["id"] in ids:
            raise Failure(f"{file}: {name} and {ids[facts['id']]} have the same id")
        ids[facts["id"]] = name
    for name, value in content.get("spark", {}).items():
        if not isinstance(value, str):
            raise Failure(f'{file}: [spark] takes strings under quoted names: "spark.{name}" = "..."')


def _check_shown(file: Path, names: Any) -> None:
    """Raises Failure for what is not a list of names, and for passwords."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Failure(f'{file}: {SHOWN_CONFIGS} must be a list of names: ["my.plugin.interval.ms"]')
    if not names:
        return
    # Loads Kafka's messages, which few verbs need.
    from kraft_core.format.secrets import is_secret_name

    for name in names:
        if is_secret_name(name, {name}):
            raise Failure(f"{file}: {SHOWN_CONFIGS}: Kafka defines {name} as a password; it is never shown")


def apply(parser: argparse.ArgumentParser, settings: Settings) -> None:
    """Set the file's values as the defaults of the parser's flags; a required flag or group becomes optional.

    Where a verb does not require --lake or --captures, they are alternatives, and the file does not choose
    between them.
    """
    groups = [group for group in parser._mutually_exclusive_groups if group.required]
    for action in parser._actions:
        group = next((group for group in groups if action in group._group_actions), None)
        if action.dest in SOURCES and not action.required and group is None:
            continue
        if action.dest in settings.flags and action.option_strings:
            action.default = _converted(action, settings.flags[action.dest], settings.file)
            action.required = False
            if group is not None:
                group.required = False
            parser.set_defaults(**{action.dest: action.default})


def _converted(action: argparse.Action, value: Any, file: Path | None) -> Any:
    """A value of the file, converted as the flag's would be. Raises Failure."""
    convert = action.type if callable(action.type) else str
    many = action.nargs == "+"
    if many != isinstance(value, list):
        raise Failure(f"{file}: {action.dest} must be {'a list' if many else 'one value'}")
    if action.choices is not None and value not in action.choices:
        raise Failure(f"{file}: {action.dest} must be one of {', '.join(map(str, action.choices))}")
    try:
        return [convert(v) for v in value] if many else convert(value)
    except (TypeError, ValueError, argparse.ArgumentTypeError):
        raise Failure(f"{file}: {value!r} is not a valid {action.dest}") from None


def with_cluster_ids(args: argparse.Namespace, settings: Settings) -> None:
    """Replace cluster names with ids in all flags that take a cluster."""
    for flag in ("cluster", "cluster_id"):
        word = getattr(args, flag, None)
        if isinstance(word, str):
            setattr(args, flag, settings.cluster_id(word))
        elif isinstance(word, Iterable):
            setattr(args, flag, [_with_cluster_id(settings, w) for w in word])


def _with_cluster_id(settings: Settings, word: str) -> str:
    """A cluster's name, or PATH=NAME, with its id."""
    path, equals, name = word.rpartition("=")
    return f"{path}{equals}{settings.cluster_id(name)}"
