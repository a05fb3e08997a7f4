"""What the log directories of brokers tell of the metadata that they were given: topics and leader epochs.

A broker keeps in each partition's directory the topic's id and the leader epochs under which messages were
written. What no capture has of them was in metadata records that no capture contains; what is restored must
lie above them, or brokers truncate messages.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kraft_core.format.capture import CAPTURE_JSON
from kraft_core.format.log_dirs import CLEAN_SHUTDOWN, LOG_DIR_NAME, is_log_folder
from kraft_core.format.side_files import (
    InvalidSideFileError,
    read_capture_json,
    read_clean_shutdown,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    side_file_text,
)
from kraft_core.image.brokers import Broker, is_online
from kraft_core.image.change import Key
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS, TOPICS
from kraft_core.restore.choice import UNSEEN_RECORDS, PossibleLoss
from kraft_core.restore.later import BECOMES_STRAY, TOPICS_UNKNOWN, Consequence
from kraft_core.restore.replay import PartitionKey, ReplayedLog
from kraft_core.wording import first_named

_PARTITION = re.compile(r"(.+)-(\d+)(\.[^.]+-(delete|stray|future))?", re.ASCII)
# What follows the name of a directory that the broker serves, or is about to.
_IN_USE = (None, "future")
_MOST_NAMED = 10

Content = TypeVar("Content")


class BrokerDirError(ValueError):
    """A directory that is not a broker's, or whose files are insufficient; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition's directory. leader_epoch: the last under which a message was written, -1 for none.

    is_future: it is a copy that is to replace the one in another log directory (-future).
    """

    broker_id: int
    topic_id: str
    topic_name: str
    partition_id: int
    leader_epoch: int
    is_future: bool = False

    @property
    def name(self) -> str:
        return f"{self.topic_name}-{self.partition_id}"

    @property
    def key(self) -> PartitionKey:
        return self.topic_id, self.partition_id


@dataclass(frozen=True, slots=True)
class BrokerLogDir:
    """One of a broker's log directories. directory_id: None before Kafka 3.7. held: its partitions, by name;
    not what is stray or deleted. copied_at (ms): of a copy, by its capture.json; None where it is none.
    foreign: names of folders that are no partition's, with which Kafka does not start. has_metadata_log: it
    holds a metadata log, too. clean_shutdown: the broker epoch in its .kafka_cleanshutdown, which a broker
    writes as it shuts down and removes as it starts (NO_EPOCH: a file without one, as before 3.7); None if
    there is none, or one that Kafka cannot read. removed: partitions that the broker no longer serves
    (-delete, -stray).
    """

    broker_id: int
    directory_id: str | None
    held: tuple[HeldPartition, ...]
    copied_at: int | None = None
    foreign: tuple[str, ...] = ()
    has_metadata_log: bool = False
    removed: tuple[HeldPartition, ...] = ()
    clean_shutdown: int | None = None


def broker_log_dir(log_dir: Path, cluster_id: str | None) -> BrokerLogDir:
    """What a log directory holds. Raises BrokerDirError, also for a directory of another cluster.

    cluster_id: None where its meta.properties names none.
    """
    meta = _read(log_dir / "meta.properties", read_meta_properties)
    if meta.node_id is None or meta.cluster_id != cluster_id:
        raise BrokerDirError(f"{log_dir}: its meta.properties is not that of a node of cluster {cluster_id}")
    held, stated = tuple(_held(log_dir, meta.node_id, _IN_USE)), log_dir / CAPTURE_JSON
    note = _read(stated, read_capture_json) if stated.exists() else None
    names = _folders(log_dir)
    foreign = tuple(name for name in names if not is_log_folder(name))
    has_log = LOG_DIR_NAME in names or (note is not None and note.metadata_log)
    copied_at = None if note is None else note.captured_at
    removed = tuple(_removed(log_dir, meta.node_id))
    clean = _clean_shutdown(log_dir / CLEAN_SHUTDOWN)
    return BrokerLogDir(meta.node_id, meta.directory_id, held, copied_at, foreign, has_log, removed, clean)


def _clean_shutdown(path: Path) -> int | None:
    try:
        return read_clean_shutdown(side_file_text(path))
    except (OSError, UnicodeDecodeError, InvalidSideFileError):
        return None


def of_one_id(log_dirs: Mapping[str, BrokerLogDir]) -> Iterator[tuple[str, str]]:
    """Paths of directories of one broker with the same directory id: the first, and another."""
    seen: dict[tuple[int, str], str] = {}
    for path, log_dir in log_dirs.items():
        if log_dir.directory_id is not None:
            first = seen.setdefault((log_dir.broker_id, log_dir.directory_id), path)
            if first != path:
                yield first, path


def held_twice(log_dirs: Mapping[str, BrokerLogDir]) -> Iterator[tuple[str, str, str]]:
    """Paths of two directories of one broker that hold the same partition, and its name.

    No broker has it twice, except while a copy is to replace the other (LogManager.loadLog).
    """
    named = dict.fromkeys(of_one_id(log_dirs), "")
    seen: dict[tuple[int, PartitionKey], str] = {}
    for path, log_dir in log_dirs.items():
        for each in log_dir.held:
            first = path if each.is_future else seen.setdefault((each.broker_id, each.key), path)
            if first != path and (first, path) not in named:
                named[first, path] = each.name
    return ((*paths, name) for paths, name in named.items() if name)


def stray_partitions(log_dir: Path, broker_id: int) -> tuple[HeldPartition, ...]:
    """The partitions of a log directory that Kafka has renamed to -stray. Raises BrokerDirError."""
    return tuple(_held(log_dir, broker_id, ("stray",)))


def _folders(log_dir: Path) -> list[str]:
    try:
        return sorted(path.name for path in log_dir.iterdir() if path.is_dir())
    except OSError as error:
        raise BrokerDirError(f"{log_dir}: {error.strerror}") from error


def _held(log_dir: Path, broker_id: int, suffixes: Collection[str | None]) -> Iterator[HeldPartition]:
    for folder, match in _named(log_dir, suffixes):
        topic_id = _read(folder / "partition.metadata", read_partition_metadata)
        leader_epoch = max((epoch for epoch, _ in _epochs(folder)), default=-1)
        yield HeldPartition(broker_id, topic_id, match[1], int(match[2]), leader_epoch, match[4] == "future")


def _removed(log_dir: Path, broker_id: int) -> Iterator[HeldPartition]:
    """Those that still say of which topic they are: Kafka may be deleting them."""
    for folder, match in _named(log_dir, ("delete", "stray")):
        with suppress(BrokerDirError):
            topic_id = _read(folder / "partition.metadata", read_partition_metadata)
            yield HeldPartition(broker_id, topic_id, match[1], int(match[2]), leader_epoch=-1)


def _named(log_dir: Path, suffixes: Collection[str | None]) -> Iterator[tuple[Path, re.Match[str]]]:
    for name in _folders(log_dir):
        match = _PARTITION.fullmatch(name)
        if match is not None and name != LOG_DIR_NAME and match[4] in suffixes:
            yield log_dir / name, match


def _epochs(folder: Path) -> tuple[tuple[int, int], ...]:
    """Leader epochs of a partition's log, with their first offsets.

    A log without messages has none, or an empty file that Kafka makes before it writes any (CheckpointFile).
    """
    checkpoint = folder / "leader-epoch-checkpoint"
    if not os.path.lexists(checkpoint):
        return ()
    return _read(checkpoint, lambda text: _epochs_of(folder, text))


def _epochs_of(folder: Path, text: str) -> tuple[tuple[int, int], ...]:
    return () if not text and not _has_messages(folder) else read_leader_epoch_checkpoint(text)


def _has_messages(folder: Path) -> bool:
    """As far as its segments were copied."""
    return any(segment.stat().st_size for segment in folder.glob("*.log"))


def _read(path: Path, reader: Callable[[str], Content]) -> Content:
    try:
        return reader(side_file_text(path))
    except (OSError, UnicodeDecodeError, InvalidSideFileError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise BrokerDirError(f"{path} cannot be read: {why}") from error


@dataclass(frozen=True, slots=True)
class BrokersEvidence:
    """log_dirs: all that were given. seen: by partition the highest leader epoch of a log.

    logs: captured ones, without what certainly was not committed: brokers know only what was.
    """

    log_dirs: tuple[BrokerLogDir, ...]
    seen: Mapping[PartitionKey, int]

    @classmethod
    def of(cls, log_dirs: Iterable[BrokerLogDir], logs: Iterable[ReplayedLog]) -> BrokersEvidence:
        seen: dict[PartitionKey, int] = {}
        for log in logs:
            for key, (leader_epoch, _) in log.partitions_seen.items():
                seen[key] = max(seen.get(key, -1), leader_epoch)
        return cls(tuple(log_dirs), seen)

    @property
    def held(self) -> tuple[HeldPartition, ...]:
        return tuple(each for log_dir in self.log_dirs for each in log_dir.held)

    @property
    def epochs(self) -> Mapping[tuple[int, PartitionKey], int]:
        """By broker and partition the last leader epoch of the replica in its directory."""
        held = [each for each in self.held if not each.is_future]
        return {(each.broker_id, each.key): each.leader_epoch for each in held}

    def unseen(self, newest: Image | None) -> Iterator[PossibleLoss]:
        """What no log knows: proof that records are missing.

        newest: at the end of the source's log, None where others go on. A broker renames a directory after
        the partition was removed there: it was given back since, or records are missing.
        """
        found: dict[str, None] = {}
        for each in self.held:
            if each.key not in self.seen:
                found[f"{each.name} of topic id {each.topic_id} on broker {each.broker_id}"] = None
            elif each.leader_epoch > self.seen[each.key]:
                found[f"{each.name} in leader epoch {each.leader_epoch} on broker {each.broker_id}"] = None
        removed = [each for log_dir in self.log_dirs for each in log_dir.removed]
        lacking = self.lacking(newest) if removed and newest is not None else ()
        for each in removed:
            if (each.broker_id, each.key) in lacking:
                found[f"{each.name} of topic id {each.topic_id} removed on broker {each.broker_id}"] = None
        if found:
            yield PossibleLoss(
                UNSEEN_RECORDS,
                "Brokers show what no captured record that may be committed contains, so others are missing: "
                f"{first_named(list(found), _MOST_NAMED)}.",
            )

    def unknown(self) -> Iterator[Consequence]:
        """Topics and partitions that no log ever knew."""
        topics = {topic for topic, _ in self.seen}
        for each in self.held:
            if each.key not in self.seen:
                named = f"topic {each.topic_name} (id {each.topic_id})"
                if each.topic_id in topics:
                    named = f"partition {each.partition_id} of {each.topic_name}"
                yield Consequence(TOPICS_UNKNOWN, TOPICS, named, BECOMES_STRAY)

    def stray(self, restored: Image) -> dict[int, set[str]]:
        """By broker the directories that the restored metadata does not know there."""
        found: dict[int, set[str]] = {}
        for each in self.held:
            kept: Partition | None = restored.tables.get(PARTITIONS, each.key)
            if kept is None or each.broker_id not in kept.replicas:
                found.setdefault(each.broker_id, set()).add(each.name)
        return found

    def lacking(self, image: Image) -> frozenset[tuple[int, PartitionKey]]:
        """Replicas, by broker and partition, that the directory which they are in by the metadata lacks.

        Before metadata.version 3.7-IV2 brokers register no directories: those given are taken for all of a
        broker. A future copy counts only where the metadata has the replica: there Kafka puts it in the place
        of a current copy that is missing (LogManager.recoverAbandonedFutureLogs), and nowhere else.
        """
        given: dict[int, set[str | None]] = {}
        for log_dir in self.log_dirs:
            given.setdefault(log_dir.broker_id, set()).add(log_dir.directory_id)
        registered_dirs = {broker_id: _registered_dirs(image, broker_id) for broker_id in given}
        # By name, too: under another one Kafka takes it for another partition.
        held = {(each.broker_id, each.key, each.topic_name) for each in self.held if not each.is_future}
        placed = {(d.directory_id, each.key, each.topic_name) for d in self.log_dirs for each in d.held}
        found: set[tuple[int, PartitionKey]] = set()
        partitions: Iterator[tuple[Key, Partition]] = image.tables.items(PARTITIONS)
        for (topic_id, partition_id), partition in partitions if given else ():
            key = topic_id, partition_id
            for broker_id, directory in zip(partition.replicas, partition.directories, strict=False):
                if broker_id not in given:
                    continue
                registered = registered_dirs[broker_id]
                needed = {directory} if directory in registered else registered
                named = key, partition.topic_name
                is_held = (broker_id, *named) in held or (directory, *named) in placed
                if needed <= given[broker_id] and not is_held:
                    found.add((broker_id, key))
        return frozenset(found)

    def unregistered(self, image: Image) -> Iterator[tuple[int, str]]:
        """Broker and directory id of directories that a registered broker has not registered."""
        for log_dir in self.log_dirs:
            registered = _registered_dirs(image, log_dir.broker_id)
            if registered and log_dir.directory_id and log_dir.directory_id not in registered:
                yield log_dir.broker_id, log_dir.directory_id


def _registered_dirs(image: Image, broker_id: int) -> set[str]:
    broker: Broker | None = image.tables.get(BROKERS, (broker_id,))
    return set() if broker is None else set(broker.log_dirs)


def offline_replicas(image: Image) -> frozenset[tuple[int, PartitionKey]]:
    """Replicas, by broker and partition, in a directory that their broker no longer has registered.

    It has failed: on a new disk the broker begins them anew. A given directory that holds one may be a copy
    of before.
    """
    found: set[tuple[int, PartitionKey]] = set()
    partitions: Iterator[tuple[Key, Partition]] = image.tables.items(PARTITIONS)
    for (topic_id, partition_id), partition in partitions:
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=False):
            broker: Broker | None = image.tables.get(BROKERS, (broker_id,))
            if broker is not None and not is_online(broker, directory):
                found.add((broker_id, (topic_id, partition_id)))
    return frozenset(found)
