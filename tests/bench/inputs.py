"""Files to measure with, made once and kept: by Kafka's own classes where a Kafka is set up, else by ours."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.control import LEADER_CHANGE
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.uuid_text import uuid_text
from tests.bench.frame import Bench

NAMED = {"TopicRecord": 2, "PartitionRecord": 3, "PartitionChangeRecord": 5, "NoOpRecord": 20}
SEGMENT_BYTES = 1 << 30
CHECKPOINT_BATCH = 1000
T0_MS = 1_750_000_000_000


def made(path: Path, make: Callable[[Path], None]) -> Path:
    """A file or folder, made beside its place and renamed: a run that is interrupted leaves no half one."""
    if not path.exists():
        making = path.with_name(f"{path.name}.making")
        if making.is_dir():
            shutil.rmtree(making)
        making.unlink(missing_ok=True)
        making.parent.mkdir(parents=True, exist_ok=True)
        make(making)
        making.rename(path)
    return path


def mixed_log(bench: Bench, records: int) -> Path:
    """A controller directory whose log has about so many records of many types in batches of all sizes."""

    def make(folder: Path) -> None:
        bench.say(f"making a log of {records:,} records")
        if bench.kafka:
            bench.kafka.run("gen/gen-big", folder, str(records), str(SEGMENT_BYTES), "42", str(records // 2))
        else:
            write_directory(folder, mixed_batches(records), "P8uJ9VpCWoAK1iFpZ7Wm5w", 1)

    return made(bench.folder / f"mixed-{'kafka' if bench.kafka else 'own'}-{records}", make)


def first_segment(directory: Path) -> Path:
    return min((directory / LOG_DIR_NAME).glob("*.log"))


def one_record_batches(bench: Bench, records: int) -> Path:
    """A segment in which every batch has one record, as an idle or a calm cluster writes."""

    def make(path: Path) -> None:
        kinds = [write_batch(0, 1, [value(kind, 0)]) for kind in NAMED]
        with path.open("wb") as file:
            file.writelines(renumbered(kinds[n % len(kinds)], n) for n in range(records))

    return made(bench.folder / f"one-record-batches-{records}" / f"{0:020d}.log", make)


def checkpoint(bench: Bench, records: int) -> Path:
    """A checkpoint of topics and their partitions."""

    def make(path: Path) -> None:
        kinds = ("TopicRecord", *["PartitionRecord"] * 19)
        body = write_batch(0, 1, [value(kinds[n % len(kinds)], n) for n in range(CHECKPOINT_BATCH)])
        with path.open("wb") as file:
            file.writelines(renumbered(body, at) for at in range(0, records, CHECKPOINT_BATCH))

    return made(bench.folder / "checkpoints" / f"{records:020d}-{1:010d}.checkpoint", make)


def batches_of(size_bytes: int) -> Iterator[bytes]:
    """The first batches of the mixed log that have so many bytes or a few more."""
    written = 0
    for batch in mixed_batches():
        if written >= size_bytes:
            return
        yield batch
        written += len(batch)


def mixed_batches(records: int | None = None) -> Iterator[bytes]:
    """Batches of 1 to 200 records of several types, until so many are written; without end if None."""
    kinds = list(NAMED)
    made = [
        (size, write_batch(0, 1, [value(kinds[-1 - n % 3], n) for n in range(size)]))
        for size in (1, 1, 1, 3, 5, 200, 1, 40)
    ]
    at = 0
    while records is None or at < records:
        for size, batch in made:
            yield renumbered(batch, at)
            at += size


def leader_change(voter_ids: Sequence[int]) -> bytes:
    """The batch at offset 0 of an epoch whose leader is the first of the voters, elected by all."""
    voters = [{"voterId": node} for node in voter_ids]
    elected = {"version": 0, "leaderId": voter_ids[0], "voters": voters, "grantingVoters": voters}
    key = struct.pack(">hh", 0, LEADER_CHANGE)
    record = RawRecord(0, T0_MS, key, write_control_value(LEADER_CHANGE, elected))
    return write_batch(0, 1, [record], is_control=True)


def value(kind: str, number: int, topic: int = 0) -> RawRecord:
    """A record of a kind, its offset and its fields by its number, of the topic with that number."""
    message = by_api_key[NAMED[kind]]
    fields = message.default(0)
    values = {
        "name": f"topic-of-usual-length-{topic or number:05d}",
        "topicId": uuid_text(topic.to_bytes(16)),
        "partitionId": number,
        "replicas": [1, 2, 3],
        "isr": [1, 2],
        "leader": 1,
    }
    fields |= {name: given for name, given in values.items() if name in fields}
    written = write_metadata_value(message, 0, fields)
    return RawRecord(offset=number, timestamp=T0_MS + number, key=None, value=written)


def renumbered(batch: bytes, base_offset: int) -> bytes:
    """The batch at another offset: its checksum does not cover it."""
    return struct.pack(">q", base_offset) + batch[8:]


def write_directory(folder: Path, batches: Iterator[bytes], cluster_id: str, node_id: int) -> None:
    """A controller directory of one segment."""
    log = folder / LOG_DIR_NAME
    log.mkdir(parents=True)
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n")
    with (log / f"{0:020d}.log").open("wb") as file:
        file.writelines(batches)
