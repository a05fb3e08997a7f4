"""Kafka's shell against ours: the differences that are meant, one by one, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jobs.time_travel.shell_commands import tree_lines
from kraft_core.format.secrets import is_secret_name
from kraft_core.image import tables
from kraft_core.image.delegation_tokens import token_digest
from kraft_core.image.image import Image
from kraft_core.image.tree import find, root

Lines = list[str]


@dataclass(frozen=True)
class Meant:
    """A difference from Kafka's shell, why it is meant, and what it makes of Kafka's lines."""

    name: str
    why: str
    apply: Callable[[Lines, Image], Lines]


def our_tree(image: Image) -> Lines:
    """`tree /image` of ours."""
    ((_, node),) = find(root(image), ("image",))
    return list(tree_lines(node))


def as_meant(kafkas: Iterable[str], image: Image, differences: Iterable[Meant]) -> tuple[Lines, set[str]]:
    """Kafka's lines as ours are meant to be, and the names of the differences that were met."""
    lines, met = list(kafkas), set[str]()
    for difference in differences:
        changed = difference.apply(lines, image)
        if changed != lines:
            met.add(difference.name)
        lines = changed
    return lines, met


def _hide_scram(lines: Lines, _: Image) -> Lines:
    return [re.sub(r"(salt|storedKey|serverKey)=[0-9a-f]*", r"\1=[redacted]", line) for line in lines]


def _hide_tokens(lines: Lines, image: Image) -> Lines:
    """Kafka's token ids become ours; the directory is sorted by name anew."""
    names = {f"  {id_}:": id_ for (id_,), _ in image.tables.items(tables.DELEGATION_TOKENS)}
    hidden: list[tuple[str, str]] = []
    rest: Lines = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line in names:
            id_ = names[line]
            masked = re.sub(r"tokenId=[^(]*\(", "tokenId=[redacted](", after)
            hidden.append((f"  {token_digest(id_)}:", masked))
        elif "DelegationTokenDatatokenId=" not in line:
            rest.append(line)
    at = rest.index("delegationToken:") + 1
    return [*rest[:at], *(line for pair in sorted(hidden) for line in pair), *rest[at:]]


def _hide_configs(lines: Lines, _: Image) -> Lines:
    start, end = lines.index("configs:"), lines.index("delegationToken:")
    hidden: Lines = []
    secret = False
    for line in lines[start:end]:
        if secret:
            hidden.append("      [redacted]")
        else:
            hidden.append(line)
        is_name = line.startswith("    ") and not line.startswith("     ")
        secret = not secret and is_name and is_secret_name(line.strip().rstrip(":"))
    return [*lines[:start], *hidden, *lines[end:]]


def _default_quotas(lines: Lines, image: Image) -> Lines:
    """Kafka prints the name of a default entity as nothing and cannot find its quotas by it."""
    start, end = lines.index("clientQuotas:"), lines.index("cluster:")
    if "  :" not in lines[start:end]:
        return lines
    ((_, node),) = find(root(image), ("image", "clientQuotas"))
    return [*lines[: start + 1], *("  " + line for line in tree_lines(node)), *lines[end:]]


def _provenance(lines: Lines, image: Image) -> Lines:
    at = next(i for i, line in enumerate(lines) if re.match(r"  offset -?\d+, epoch", line))
    ((_, leaf),) = find(root(image), ("image", "provenance"))
    return [*lines[:at], f"  {leaf.text}", *lines[at + 1 :]]


SECRETS = (
    Meant("SCRAM credentials", "who has them can log in as the user", _hide_scram),
    Meant("delegation token ids", "an id is half of a token; a digest tells them apart", _hide_tokens),
    Meant("secret configs", "passwords and keys; Kafka's shell prints them", _hide_configs),
)
DEFAULT_QUOTAS = Meant(
    "default quotas",
    "Kafka's name for a default entity is empty and all but its first part is lost: <default> is no less",
    _default_quotas,
)
CHECKPOINT_OFFSET = Meant(
    "provenance of a checkpoint",
    "Kafka prints the last offset inside the file and when it was written; ours are the log's",
    _provenance,
)


def _cordoned(lines: Lines, _: Image) -> Lines:
    def add(line: str) -> str:
        return line[:-1] + ", cordonedDirectories=null)" if "BrokerRegistration(" in line else line

    return [add(line) for line in lines]


def _features_of_3_9(lines: Lines, _: Image) -> Lines:
    at = lines.index("  metadataVersion:") + 1
    lines = [*lines[:at], f"    Optional[{lines[at].strip()}]", *lines[at + 1 :]]
    at = lines.index("  finalized_kraft.version:")
    lines = [*lines[:at], *lines[at + 2 :]]
    at = lines.index("  zkMigrationState:")
    assert lines[at + 1] == "    NONE"
    return [*lines[:at], *lines[at + 2 :]]


RELEASE_3_9 = (
    Meant("cordoned directories", "a broker registers them since 4.3, whose text ours is", _cordoned),
    Meant(
        "features of 3.9",
        "ours is 4.3's text; kraft.version counts only as a control record; no state of a move never begun",
        _features_of_3_9,
    ),
)
