"""Outputs of `kafka-metadata-quorum describe` beside captures: found, dated, and told of which cluster.

They are text files named `<from>[-<to>][-<anything>].txt`, from and to in ms since the epoch: when the
command was started and had ended. Without the end it is taken as 60 s later, the client's own limit
(default.api.timeout.ms). File times say nothing: a copied file is the same observation. `--replication` names
no cluster; it belongs to the one that the `--status` outputs of its folder name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kraft_core.logdir import LOG_DIR_NAME

NAME = re.compile(r"(\d{13})(?:-(\d{13}))?(?:[-_.][^/]*)?\.txt", re.ASCII)
CLUSTER = re.compile(r"^ClusterId:[ \t]*(\S+)", re.MULTILINE)
OUTPUT = re.compile(r"^(?:ClusterId:|NodeId\s)", re.MULTILINE)
API_TIMEOUT_MS = 60_000
MAX_SIZE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, order=True)
class DescribeFile:
    """An output: the moments between which it was asked for and answered, in ms, and what it said."""

    cluster_id: str
    observed_from: int
    observed_to: int
    text: str


@dataclass(frozen=True, slots=True)
class DescribeFiles:
    """The outputs found, each once, and a line for each that is left out."""

    files: tuple[DescribeFile, ...]
    left_out: tuple[str, ...] = ()


def find_describe_files(roots: Iterable[Path], clusters: frozenset[str] = frozenset()) -> DescribeFiles:
    """The outputs in the trees, of these clusters if any are named."""
    found: set[DescribeFile] = set()
    left_out: list[str] = []
    for folder in folders(roots):
        outputs = list(outputs_in(folder, left_out))
        named = {match[1] for _, _, text in outputs if (match := CLUSTER.search(text))}
        for path, (observed_from, observed_to), text in outputs:
            own = CLUSTER.search(text)
            of = {own[1]} if own else named
            if len(of) != 1:
                left_out.append(f"{path}: no --status output beside it says of which one cluster it is")
            elif not clusters or of <= clusters:
                found.add(DescribeFile(*of, observed_from, observed_to, text))
    return DescribeFiles(tuple(sorted(found)), tuple(left_out))


def folders(roots: Iterable[Path]) -> Iterator[Path]:
    """Every folder of the trees but the log directories themselves."""
    for root in roots:
        for folder, inner, _ in os.walk(root):
            inner[:] = sorted(name for name in inner if name != LOG_DIR_NAME)
            yield Path(folder)


def outputs_in(folder: Path, left_out: list[str]) -> Iterator[tuple[Path, tuple[int, int], str]]:
    """(path, interval, text) of the outputs in a folder, by name."""
    for path in sorted(folder.glob("*.txt")):
        match = NAME.fullmatch(path.name)
        if match is None:
            continue
        try:
            if path.stat().st_size > MAX_SIZE_BYTES:
                continue
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            left_out.append(f"{path}: {error}")
            continue
        if OUTPUT.search(text):
            observed_from = int(match[1])
            yield path, (observed_from, int(match[2] or observed_from + API_TIMEOUT_MS)), text
