"""Copies of brokers' log directories among captures, as kraftlake capture --broker-dirs makes them.

They hold no metadata log: meta.properties says whose they are, capture.json when they were copied, and the
folder of each partition which topic id it has. Without a stated time they are not compared with the metadata.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.captures.broker_copies import PARTITION_FILES
from jobs.captures.copying import COPYING
from jobs.runtime.outcome import reason_of
from kraft_core.format.capture import CAPTURE_JSON
from kraft_core.format.log_dirs import UnreadPath, is_unreadable
from kraft_core.format.side_files import (
    InvalidSideFileError,
    read_capture_json,
    read_meta_properties,
    side_file_text,
)
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.restore.broker_dirs import BrokerDirError, HeldPartition, broker_log_dir, stray_partitions
from transforms.lake.arrow_rows import Row, moment

UNFINISHED = (
    "an unfinished copy: kraftlake capture is making it, or was killed; remove it then, and capture again"
)
# The files that are read of a copy.
_FILES = {CAPTURE_JSON, "meta.properties", *PARTITION_FILES}
_INTS = range(1 << 31)


@dataclass(frozen=True, slots=True)
class CapturedBrokerDir:
    """A copy. row: of table broker_directories, without its columns LOADED."""

    cluster_id: str
    capture_id: str
    row: Row


@dataclass(frozen=True, slots=True)
class BrokerDirs:
    """The copies found, each once, and those that are skipped. paths: of all, also skipped ones.

    An unfinished copy of a controller's directory is skipped, too: its metadata log has another name.
    """

    found: tuple[CapturedBrokerDir, ...] = ()
    left_out: tuple[UnreadPath, ...] = ()
    paths: frozenset[Path] = frozenset()


def find_broker_dirs(
    paths: Iterable[Path],
    clusters: Collection[str],
    cluster_of: Callable[[Path, str | None], str | None],
    unreadable: Mapping[Path, str],
) -> BrokerDirs:
    """The copies among log directories without a metadata log, of these clusters if any are named.

    cluster_of: the cluster id of a path, and that in its meta.properties. unreadable: files that the caller
    could not supply, with the reason: a copy that lacks one is skipped.
    """
    missed = {path: reason for path, reason in unreadable.items() if path.name in _FILES}
    found: dict[tuple[str, str], CapturedBrokerDir] = {}
    left_out: list[UnreadPath] = []
    copies: set[Path] = set()
    for path in paths:
        if path.name.startswith(COPYING):
            copies.add(path)
            left_out.append(UnreadPath(path, UNFINISHED))
            continue
        if lost := [file for file in missed if path in file.parents]:
            copies.add(path)
            left_out += [UnreadPath(file, missed[file], is_unreadable=True) for file in lost]
            continue
        if not (path / CAPTURE_JSON).is_file():
            continue
        copies.add(path)
        try:
            captured = _captured(path, cluster_of)
        except (BrokerDirError, InvalidSideFileError, OSError, ValueError) as error:
            left_out.append(UnreadPath(path, reason_of(error), is_unreadable(error)))
            continue
        if not clusters or captured.cluster_id in clusters:
            found[captured.cluster_id, captured.capture_id] = captured
    copied = tuple(found[key] for key in sorted(found))
    return BrokerDirs(copied, tuple(left_out), frozenset(copies))


def _captured(path: Path, cluster_of: Callable[[Path, str | None], str | None]) -> CapturedBrokerDir:
    """Raises BrokerDirError, InvalidSideFileError, OSError, ValueError."""
    note = read_capture_json(side_file_text(path / CAPTURE_JSON))
    own = read_meta_properties(side_file_text(path / "meta.properties")).cluster_id
    cluster_id = cluster_of(path, own)
    if cluster_id is None:
        raise BrokerDirError("no cluster id in meta.properties; give it with --cluster-id")
    log_dir = broker_log_dir(path, own)
    directory_id = log_dir.directory_id or ZERO_UUID
    partitions = list(_rows(log_dir.held, stray_partitions(path, log_dir.broker_id)))
    who = [cluster_id, log_dir.broker_id, directory_id, note.captured_at]
    capture_id = hashlib.sha256(repr([*who, partitions]).encode()).hexdigest()
    row = {
        "cluster_id": cluster_id,
        "capture_id": capture_id,
        "broker_id": log_dir.broker_id,
        "directory_id": directory_id,
        "captured_at": moment(note.captured_at),
        "partitions": partitions,
    }
    return CapturedBrokerDir(cluster_id, capture_id, row)


def _rows(held: Iterable[HeldPartition], stray: Iterable[HeldPartition]) -> Iterator[Row]:
    """The column partitions, in one order: of equal ones that with the highest leader epoch."""
    kinds = [("future" if each.is_future else "current", each) for each in held]
    kinds += [("stray", each) for each in stray]
    rows: dict[tuple[str, str, int, str], Row] = {}
    for kind, each in sorted(kinds, key=lambda of: of[1].leader_epoch):
        if each.partition_id not in _INTS:
            raise BrokerDirError(f"{each.name}: no partition of Kafka has that number")
        rows[each.topic_name, each.topic_id, each.partition_id, kind] = {
            "topic_name": each.topic_name,
            "topic_id": each.topic_id,
            "partition_id": each.partition_id,
            "kind": kind,
            "leader_epoch": each.leader_epoch,
        }
    yield from (rows[key] for key in sorted(rows))
