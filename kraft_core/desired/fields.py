"""Typed fields of YAML mappings; what is unknown, missing or of another type is an error with its line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kraft_core.desired.state import Configs, ConfigValue
from kraft_core.desired.yaml_tree import YamlNode
from kraft_core.format.secrets import is_secret_config, is_secret_name
from kraft_core.wording import did_you_mean


class Fields:
    """The keys of a mapping, each taken once; `done` refuses those that nobody took."""

    def __init__(self, node: YamlNode, what: str) -> None:
        if not isinstance(node.content, Mapping):
            raise node.error(f"{what} is not a mapping of keys to values")
        self.node = node
        self.what = what
        self._left = dict(node.content)
        self._known: dict[str, None] = {}

    def take(self, name: str) -> YamlNode | None:
        """The value of a key; None if it is not there, or null."""
        self._known[name] = None
        found = self._left.pop(name, None)
        return None if found is None or found.content is None else found

    def has(self, name: str) -> bool:
        self._known[name] = None
        return name in self._left

    def need(self, name: str) -> YamlNode:
        found = self.take(name)
        if found is None:
            raise self.node.error(f"{self.what} has no {name}")
        return found

    def text(self, name: str, default: str | None = None) -> str:
        found = self.need(name) if default is None else self.take(name)
        return text_of(found, name) if found is not None else default or ""

    def number(self, name: str) -> int | None:
        found = self.take(name)
        return None if found is None else number_of(found, name)

    def sequence(self, name: str) -> Sequence[YamlNode]:
        found = self.take(name)
        return () if found is None else sequence_of(found, name)

    def mapping(self, name: str) -> Mapping[str, YamlNode]:
        found = self.take(name)
        return {} if found is None else mapping_of(found, name)

    def done(self) -> None:
        for name, node in self._left.items():
            near = did_you_mean(name, self._known)
            raise node.error(f"{self.what} has no key {name}: {', '.join(self._known)} are known{near}")


def text_of(node: YamlNode, name: str) -> str:
    if not isinstance(node.content, str):
        raise node.error(f"{name} is not text")
    return node.content


def number_of(node: YamlNode, name: str) -> int:
    text = node.content
    if not isinstance(text, str) or not (text.isascii() and text.isdecimal()):
        raise node.error(f"{name} is not a whole number")
    return int(text)


def decimal_of(node: YamlNode, name: str) -> float:
    text = text_of(node, name)
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is None or "_" in text:  # which Python takes for the separator of digits
        raise node.error(f"{name} is not a number")
    if not math.isfinite(value):
        raise node.error(f"{name} is not a finite number")
    return value


def sequence_of(node: YamlNode, name: str) -> Sequence[YamlNode]:
    if isinstance(node.content, str) or not isinstance(node.content, Sequence):
        raise node.error(f"{name} is not a list")
    return node.content


def mapping_of(node: YamlNode, name: str) -> Mapping[str, YamlNode]:
    if not isinstance(node.content, Mapping):
        raise node.error(f"{name} is not a mapping of keys to values")
    return node.content


def configs_of(given: Mapping[str, YamlNode], allowed: AbstractSet[str]) -> Configs:
    """Config values as Kafka takes them: a list is joined by commas; null: set, to whatever value.

    allowed: as in secrets.is_secret_config.
    """
    return {name: _config(name, given[name], allowed) for name in sorted(given)}


def _config(name: str, node: YamlNode, allowed: AbstractSet[str]) -> ConfigValue:
    if node.content is None:
        return ConfigValue(None, is_secret_name(name, allowed))
    if isinstance(node.content, str):
        text = node.content
    else:
        text = ",".join(text_of(each, name) for each in sequence_of(node, name))
    return ConfigValue(text, is_secret_config(name, text, allowed))
