"""YAML read strictly: scalars stay the text that they are, and every error names its line.

YAML's implicit types would change values that Kafka takes as text: 0644, 1_000, 12:30 and 1e3 are numbers to
one version of YAML or the other. Here a plain true, false or null is one, and everything else is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

_TRUTHS = {
    "true": "true",
    "True": "true",
    "TRUE": "true",
    "false": "false",
    "False": "false",
    "FALSE": "false",
}
_NOTHING = ("", "~", "null", "Null", "NULL")
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class InvalidFileError(ValueError):
    """The text is not YAML, or not what is expected there; the message names the line."""


@dataclass(frozen=True, slots=True)
class YamlNode:
    """content: text, None for null, nodes of a sequence, or nodes by key. line: from 1 on."""

    content: str | Sequence[YamlNode] | Mapping[str, YamlNode] | None
    line: int

    def error(self, message: str) -> InvalidFileError:
        return InvalidFileError(f"line {self.line}: {message}")


def documents(text: str) -> Iterator[YamlNode]:
    """Every document that is not empty. Raises InvalidFileError."""
    try:
        for node in cast("Iterator[Any]", yaml.compose_all(text, Loader=_LOADER)):
            if node is not None and not _is_empty(node):
                yield _Tree().of(node)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise InvalidFileError(f"{where}{what}") from None


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and _is_plain(node) and node.value in _NOTHING


def _is_plain(node: Any) -> bool:
    """Whether a scalar stands there without quotes; libyaml's parser says so with an empty style."""
    return not node.style


class _Tree:
    """Converts the nodes of one document; an alias is the node that it stands for."""

    def __init__(self) -> None:
        self._made: dict[int, YamlNode | None] = {}

    def of(self, node: Any) -> YamlNode:
        line = node.start_mark.line + 1
        if id(node) in self._made:
            made = self._made[id(node)]
            if made is None:
                raise InvalidFileError(f"line {line}: a value contains itself")
            return made
        self._made[id(node)] = None
        made = self._made[id(node)] = YamlNode(self._content(node), line)
        return made

    def _content(self, node: Any) -> str | Sequence[YamlNode] | Mapping[str, YamlNode] | None:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.of(each) for each in cast("list[Any]", node.value)]
        text = cast(str, node.value)
        if _is_plain(node):
            return None if text in _NOTHING else _TRUTHS.get(text, text)
        return text

    def _mapping(self, node: Any) -> Mapping[str, YamlNode]:
        found: dict[str, YamlNode] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise InvalidFileError(f"line {line}: a key is not text")
            if _is_plain(key) and key.value == "<<":
                raise InvalidFileError(f"line {line}: merge keys (<<) are not supported: write the keys out")
            name = cast(str, key.value)
            if name in found:
                raise InvalidFileError(
                    f"line {line}: {name!r} is a duplicate; it is first in line {found[name].line}"
                )
            found[name] = self.of(value)
        return found
