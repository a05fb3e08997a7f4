"""Outputs of `kafka-metadata-quorum describe` beside captures, with their time and cluster.

They are text files named `<from>[-<to>][-<anything>].txt`, from and to in ms since the epoch: when the
command started and ended. Without an end it is assumed to have run for at most 10 s (findings.describe). File
times are ignored: a copied file is the same observation. The output of `--replication` contains no cluster
id; it belongs to the cluster of the `--status` outputs in its folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.runtime.outcome import reason_of
from kraft_core.findings.describe import is_output, parse_describe
from kraft_core.findings.facts import Observation
from kraft_core.format.controller_dir import NONE_UNREADABLE
from kraft_core.format.log_dirs import Seen, UnreadPath, directories_below, is_log_dir, is_unreadable

NAME = re.compile(r"\d{13}(?:-(\d{13}))?(?:[-_.].*)?\.txt", re.ASCII)
CLUSTER = re.compile(r"^ClusterId:[ \t]*(\S+)", re.MULTILINE)
MAX_SIZE_BYTES = 256 * 1024
INTS = range(-(1 << 31), 1 << 31)
# Milliseconds up to the year 9999; no offset comes near.
LONGS = range(-1, 253_402_300_800_000)


@dataclass(frozen=True, slots=True)
class DescribeFile:
    """An output. observation_id: SHA-256 (hex) of its name and text."""

    cluster_id: str
    observation_id: str
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class DescribeFiles:
    """The outputs found, each once, and those that are skipped."""

    files: tuple[DescribeFile, ...] = ()
    left_out: tuple[UnreadPath, ...] = ()


def _not_given(path: Path) -> None:
    """No path has a cluster id of its own."""


def find_describe_files(
    roots: Iterable[Path],
    clusters: frozenset[str] = frozenset(),
    given: Callable[[Path], str | None] = _not_given,
    unreadable: Mapping[Path, str] = NONE_UNREADABLE,
) -> DescribeFiles:
    """The outputs in the trees, of these clusters if any are named. given: the id of a path, if any.

    unreadable: files of the trees that the caller could not supply, with the reason.
    """
    found: dict[tuple[str, str], DescribeFile] = {}
    missed = (path for path in unreadable if NAME.fullmatch(path.name))
    left_out = [UnreadPath(path, unreadable[path], is_unreadable=True) for path in missed]
    for folder in folders(roots):
        texts = dict(outputs_in(folder, left_out))
        named = {match[1] for text in texts.values() if (match := CLUSTER.search(text))}
        for path, text in texts.items():
            own = CLUSTER.search(text)
            of_path = given(path)
            of = {of_path} if of_path else {own[1]} if own else named
            if any("/" in id_ for id_ in of):
                left_out.append(UnreadPath(path, "its ClusterId contains a slash"))
            elif len(of) != 1:
                left_out.append(UnreadPath(path, "no --status output beside it contains its cluster id"))
            elif not clusters or of <= clusters:
                try:
                    file = described(path.name, text, *of)
                except ValueError as error:
                    left_out.append(UnreadPath(folder, str(error)))
                else:
                    found[file.cluster_id, file.observation_id] = file
    return DescribeFiles(tuple(found[key] for key in sorted(found)), tuple(left_out))


def folders(roots: Iterable[Path]) -> Iterator[Path]:
    """The folders in which captures are looked for, also those that a link leads to, but no log directory."""
    seen: Seen = set()
    for root in roots:
        for found in directories_below(root, seen):
            if isinstance(found, Path) and not is_log_dir(found):
                yield found


def outputs_in(folder: Path, left_out: list[UnreadPath]) -> Iterator[tuple[Path, str]]:
    """The outputs in a folder with their texts, by name. left_out: those that are skipped are added."""
    for path in sorted(folder.glob("*.txt")):
        if not NAME.fullmatch(path.name):
            continue
        try:
            # A pipe would never end.
            if not path.is_file():
                continue
            size = path.stat().st_size
            if size > MAX_SIZE_BYTES:
                raise ValueError(
                    f"{size} bytes are too many for a describe output (at most {MAX_SIZE_BYTES})"
                )
            text = path.read_text()
        except (OSError, ValueError) as error:
            left_out.append(UnreadPath(path, reason_of(error), is_unreadable(error)))
        else:
            if is_output(text):
                yield path, text


def described(name: str, text: str, cluster_id: str) -> DescribeFile:
    """Parse an output. Raises ValueError where it is incomplete or holds impossible values."""
    ended = NAME.fullmatch(name)
    observed_to = int(ended[1]) if ended and ended[1] else None
    observations = parse_describe(name, text, observed_to, cluster_id)
    if not observations:
        raise ValueError(f"{name}: it contains no describe output")
    if not all(map(is_possible, observations)):
        raise ValueError(f"{name}: a number is out of range for Kafka")
    observation_id = hashlib.sha256(f"{name}\n{text}".encode()).hexdigest()
    return DescribeFile(cluster_id, observation_id, tuple(observations))


def is_possible(observed: Observation) -> bool:
    """Whether ids and epochs fit 32 bits, and times and offsets are at most the last ms of the year 9999."""
    nodes = [node for node, _ in (*observed.voters, *observed.observers)]
    ids = (observed.node_id, observed.leader_epoch, *nodes)
    times = (observed.observed_from, observed.observed_to, observed.last_fetch_at, observed.last_caught_up_at)
    offsets = (observed.high_watermark, observed.log_end_offset, observed.lag_records)
    return all(value is None or value in INTS for value in ids) and all(
        value is None or value in LONGS for value in (*times, *offsets)
    )
