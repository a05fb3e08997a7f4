"""Captured logs with one thing changed, drawn by seed: what another release, or a fault, may have written."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_core.format.batch import RawRecord, RecordHeader, iter_records, write_batch
from kraft_core.format.codec import read_metadata_value, write_metadata_value
from kraft_core.format.errors import DecodeError
from kraft_core.format.segment import Damage, scan
from kraft_core.format.varint import write_unsigned_varint
from kraft_core.messages.metadata import METADATA_RECORDS, by_api_key
from kraft_core.messages.releases import METADATA_LEVELS, METADATA_VERSION, OTHER_FEATURES
from kraft_core.messages.schema import Field
from kraft_core.messages.uuid_text import ZERO_UUID

LOG = "__cluster_metadata-0"
# Sources: a controller's directory, whose newest segment is changed.
SOURCES = (
    "disk-failure/before-wipe/node-1",
    "disk-failure/node-3",
    "dynamic-membership/node-1",
    "static-upgrade/at-3.9.2/node-1",
    "static-upgrade/node-2",
    "born-on-3.4/node-2",
    "v4.4.0-mini/node-1",
    "uncommitted-truncation/after/node-1",
)


@dataclass
class Batch:
    leader_epoch: int
    is_control: bool
    records: list[RawRecord]
    is_broken: bool = False

    def set_value(self, nth: int, value: bytes | None) -> None:
        self.records[nth] = self.records[nth]._replace(value=value)

    def encoded(self) -> bytes:
        first = self.records[0].offset
        made = bytearray(write_batch(first, self.leader_epoch, self.records, is_control=self.is_control))
        if self.is_broken:
            made[-1] ^= 1
        return bytes(made)


@dataclass
class MutableLog:
    """A file of batches: the newest segment or checkpoint of a directory."""

    path: Path
    batches: list[Batch]

    @classmethod
    def of(cls, path: Path) -> MutableLog:
        buf = path.read_bytes()
        batches = [
            Batch(item.leader_epoch, item.is_control, list(iter_records(buf, item)))
            for item in scan(buf)
            if not isinstance(item, Damage)
        ]
        return cls(path, batches)

    def write(self) -> None:
        self.path.write_bytes(b"".join(batch.encoded() for batch in self.batches))

    def data(self) -> list[tuple[Batch, int]]:
        """Where metadata records are."""
        return [(b, nth) for b in self.batches if not b.is_control for nth in range(len(b.records))]

    def append(self, *values: bytes | None, control: int | None = None, **raw: Any) -> None:
        """A batch at the end; in a checkpoint before its footer."""
        at = len(self.batches) - (1 if self.path.suffix == ".checkpoint" else 0)
        last = self.batches[at - 1].records[-1]
        key = None if control is None else (0).to_bytes(2, "big") + control.to_bytes(2, "big")
        records = [
            RawRecord(last.offset + nth, last.timestamp, key, value, **raw)
            for nth, value in enumerate(values, start=1)
        ]
        self.batches.insert(at, Batch(self.batches[at - 1].leader_epoch, control is not None, records))
        for batch in self.batches[at + 1 :]:
            batch.records = [r._replace(offset=r.offset + len(values)) for r in batch.records]


Mutation = Callable[[random.Random, MutableLog], None]


def mutated(source: Path, target: Path, rng: random.Random, name: str) -> None:
    """A copy of a controller's directory, changed by the mutation of that name."""
    shutil.copytree(source, target)
    log = target / LOG
    files = sorted(log.glob("*.log"))[-1:] + [
        c for c in sorted(log.glob("*.checkpoint"))[-1:] if c.name[19] != "0"
    ]
    file = files[-1] if len(files) > 1 and rng.random() < 0.25 else files[0]
    changed = MutableLog.of(file)
    MUTATIONS[name](rng, changed)
    changed.write()


# --- the values of records


def written(api_key: int, version: int | None = None, **fields: Any) -> bytes:
    message = by_api_key[api_key]
    newest = message.versions.high or 0
    return write_metadata_value(message, newest if version is None else version, fields)


def framed(frame: int, api_key: int, version: int, body: bytes) -> bytes:
    out = bytearray()
    for number in (frame, api_key, version):
        write_unsigned_varint(out, number)
    return bytes(out) + body


def uuid(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(21)) + "A"


def some_fields(rng: random.Random, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """Any value for each field of a message: small numbers, known and unknown names."""
    return {f.name: _some(rng, f, version) for f in fields if version in f.versions}


def _some(rng: random.Random, field: Field, version: int) -> Any:
    if field.is_nullable(version) and rng.random() < 0.2:
        return None
    if field.array:
        return [_one(rng, field, version) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    return _one(rng, field, version)


def _one(rng: random.Random, field: Field, version: int) -> Any:
    match field.type:
        case "struct":
            return some_fields(rng, field.fields, version)
        case "string":
            return rng.choice(["", "a", "topic", "user", "client-id", "ip", METADATA_VERSION, "é" * 5])
        case "bytes":
            return rng.randbytes(rng.choice([0, 3, 16]))
        case "uuid":
            return rng.choice([ZERO_UUID, uuid(rng)])
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return rng.choice([0.0, 1.5, -1.0])
        case _:
            return rng.choice([-1, 0, 0, 1, 1, 2, 3, 5, 11, 100])


# --- mutations


def _replaced(rng: random.Random, log: MutableLog, change: Callable[[bytes], bytes | None]) -> None:
    batch, nth = rng.choice([(b, n) for b, n in log.data() if b.records[n].value])
    batch.set_value(nth, change(batch.records[nth].value or b""))


def unknown_type(rng: random.Random, log: MutableLog) -> None:
    log.append(framed(1, rng.choice([13, 16, 29, 30, 31, 99, 300, 40000]), 0, b"\0"))


def unknown_version(rng: random.Random, log: MutableLog) -> None:
    def change(value: bytes) -> bytes:
        read = read_metadata_value(value)
        # All versions of records so far have the fields of the ones before; tags are optional.
        newest = read.message.versions.high or 0
        same = write_metadata_value(read.message, newest, read.value | {})
        return framed(1, read.api_key, newest + rng.randint(1, 3), same[3:])

    _replaced(rng, log, change)


def newest_version(rng: random.Random, log: MutableLog) -> None:
    for _ in range(20):
        _replaced(rng, log, _at_newest_version)


def _at_newest_version(value: bytes) -> bytes:
    read = read_metadata_value(value)
    return write_metadata_value(read.message, read.message.versions.high or 0, read.value)


def other_version(rng: random.Random, log: MutableLog) -> None:
    """Only the number of the version is another."""
    _replaced(rng, log, lambda value: value[:2] + bytes([rng.randint(0, 5)]) + value[3:])


def frame_version(rng: random.Random, log: MutableLog) -> None:
    _replaced(rng, log, lambda value: bytes([rng.choice([0, 2, 7])]) + value[1:])


def more_bytes(rng: random.Random, log: MutableLog) -> None:
    _replaced(rng, log, lambda value: value + rng.randbytes(rng.randint(1, 3)))


def fewer_bytes(rng: random.Random, log: MutableLog) -> None:
    _replaced(rng, log, lambda value: value[: rng.randint(0, len(value) - 1)])


def flipped_byte(rng: random.Random, log: MutableLog) -> None:
    def change(value: bytes) -> bytes:
        at = rng.randrange(len(value))
        return value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]

    _replaced(rng, log, change)


def tags(rng: random.Random, log: MutableLog) -> None:
    """The record's last byte is the number of its tagged fields."""

    def change(value: bytes) -> bytes:
        section = bytearray()
        drawn = [rng.choice([0, 1, 2, 3, 8, 9, 50, 1000]) for _ in range(rng.randint(1, 3))]
        write_unsigned_varint(section, len(drawn) + (rng.random() < 0.2))
        for tag in drawn:
            body = rng.choice([b"", b"\0", b"\1", b"\2", b"\1\1", b"\2\0\0\0\1", b"\0\0\0\1"])
            write_unsigned_varint(section, tag)
            write_unsigned_varint(section, len(body) + (rng.random() < 0.1))
            section += body
        return value[:-1] + bytes(section)

    rest = [(b, n) for b, n in log.data() if (b.records[n].value or b"1")[-1] == 0]
    batch, nth = rng.choice(rest)
    batch.set_value(nth, change(batch.records[nth].value or b""))


def many_tags(rng: random.Random, log: MutableLog) -> None:
    section = bytearray()
    count = rng.choice([9_999, 10_000, 10_001, 12_000])
    write_unsigned_varint(section, count)
    for tag in range(count):
        write_unsigned_varint(section, tag + 10)
        write_unsigned_varint(section, 0)
    log.append(framed(1, 20, 0, bytes(section)))


def negative_tags(_: random.Random, log: MutableLog) -> None:
    log.append(framed(1, 20, 0, b"\xff\xff\xff\xff\x0f"))


def long_list(rng: random.Random, log: MutableLog) -> None:
    renewers = ["U:a"] * rng.choice([999_999, 1_000_000, 1_000_001])
    log.append(written(10, owner="User:a", requester="User:a", renewers=renewers, tokenId="t"))


def large_batch(_: random.Random, log: MutableLog) -> None:
    big = written(4, resourceType=4, resourceName="", name="x", value="y" * 32_000)
    log.append(*[big] * 300)


def envelope(rng: random.Random, log: MutableLog) -> None:
    value: bytes | None = written(20)
    match rng.choice(["null", "empty", "key", "headers", "timestamp"]):
        case "null":
            log.append(None)
        case "empty":
            log.append(b"")
        case "headers":
            log.append(value, headers=(RecordHeader("a", b"b"),))
        case "key":
            log.append(value)
            batch = next(b for b in reversed(log.batches) if not b.is_control)
            batch.records[-1] = batch.records[-1]._replace(key=b"key")
        case _:
            log.append(value, value)
            batch = next(b for b in reversed(log.batches) if not b.is_control)
            batch.records[-1] = batch.records[-1]._replace(timestamp=batch.records[-1].timestamp + 5)


def text(rng: random.Random, log: MutableLog) -> None:
    """A config whose name is invalid UTF-8, too long or null."""
    head = b"\x04" + b"\x01"
    name = rng.choice([b"\x03\xff\xfe", b"\x00", None])
    if name is None:
        out = bytearray()
        write_unsigned_varint(out, 0x8001)
        name = bytes(out) + b"n" * 0x8000
    log.append(framed(1, 4, 0, head + name + b"\x02v" + b"\0"))


def feature_level(rng: random.Random, log: MutableLog) -> None:
    name = rng.choice([METADATA_VERSION, METADATA_VERSION, *OTHER_FEATURES, "unknown.version"])
    high = max(METADATA_LEVELS) + 2 if name == METADATA_VERSION else 3
    log.append(written(12, name=name, featureLevel=rng.randint(-1 if rng.random() < 0.1 else 0, high)))


def control(rng: random.Random, log: MutableLog) -> None:
    match rng.randrange(3):
        case 0:
            log.append(
                (0).to_bytes(2, "big") + rng.choice([0, 1, 2, 3]).to_bytes(2, "big") + b"\0", control=5
            )
        case 1:
            log.append(b"\0\0\0\0\0", control=rng.choice([0, 1, 7, 9, 200]))
        case _:
            version = rng.choice([1, 2])
            log.append(version.to_bytes(2, "big") + b"\0\0\0\1\0\0\0", control=2)


def any_record(rng: random.Random, log: MutableLog) -> None:
    """A record of any type with any values: mostly one that no log below it allows."""
    message = rng.choice([m for m in METADATA_RECORDS if m.api_key not in (6, 16)])
    high = message.versions.high or 0
    for _ in range(5):
        version = rng.randint(0, high)
        try:
            log.append(write_metadata_value(message, version, some_fields(rng, message.fields, version)))
        except ValueError:
            continue
        return


def changed_record(rng: random.Random, log: MutableLog) -> None:
    """A field of a record has another value."""

    def change(value: bytes) -> bytes:
        read = read_metadata_value(value)
        fields = [f for f in read.message.fields if read.version in f.versions]
        if not fields:
            return value
        field = rng.choice(fields)
        try:
            new = read.value | {field.name: _some(rng, field, read.version)}
            return write_metadata_value(read.message, read.version, new)
        except ValueError:
            return value

    _replaced(rng, log, change)


def lost_record(rng: random.Random, log: MutableLog) -> None:
    _replaced(rng, log, lambda _: written(20))


def repeated_records(rng: random.Random, log: MutableLog) -> None:
    for _ in range(rng.randint(1, 4)):
        batch, nth = rng.choice(log.data())
        log.append(batch.records[nth].value)


def transaction(rng: random.Random, log: MutableLog) -> None:
    words = rng.choice([[23], [24], [25], [23, 24], [23, 25], [23, 23], [23, 24, 24], [23, 20, 25, 25]])
    for api_key in words:
        log.append(written(api_key))


def refused_in_transaction(rng: random.Random, log: MutableLog) -> None:
    log.append(written(23))
    any_record(rng, log)
    if rng.random() < 0.7:
        log.append(written(rng.choice([24, 25])))


def zk_migration(rng: random.Random, log: MutableLog) -> None:
    log.append(written(21, zkMigrationState=rng.randint(-1, 5)))


def no_metadata_version(_: random.Random, log: MutableLog) -> None:
    """Wherever the file finalizes it."""
    for batch, nth in log.data():
        raw = batch.records[nth]
        if METADATA_VERSION.encode() in (raw.value or b"") and (raw.value or b"")[1] == 12:
            batch.set_value(nth, written(20))


def refused_between(rng: random.Random, log: MutableLog, *, cut: bool = True) -> None:
    """What is refused where the log ends inside, and not at its end. cut: the log, at any batch of that."""
    before = len(log.batches)
    if rng.random() < 0.4:
        no_metadata_version(rng, log)
        before = 1
    low = written(12, name=METADATA_VERSION, featureLevel=rng.choice([8, 12, 13]))
    for _ in range(rng.randint(1, 3)):
        begun = [written(23), low] if rng.random() < 0.5 else [low, written(23)]
        log.append(*begun) if rng.random() < 0.5 else [log.append(each) for each in begun]
        for value in rng.sample([written(20), low], rng.randint(0, 2)):
            log.append(value)
        log.append(written(rng.choice([24, 25])))
        if rng.random() < 0.5:
            log.append(written(21, zkMigrationState=rng.choice([0, 4])))
    log.append(written(12, name=METADATA_VERSION, featureLevel=rng.choice([14, 21])))
    if cut and log.path.suffix == ".log":
        del log.batches[rng.randint(min(before, len(log.batches)), len(log.batches)) :]


def broken_crc(rng: random.Random, log: MutableLog) -> None:
    rng.choice(log.batches).is_broken = True


def nothing(_: random.Random, __: MutableLog) -> None:
    pass


MUTATIONS: dict[str, Mutation] = {
    function.__name__: function
    for function in (
        unknown_type,
        unknown_version,
        newest_version,
        other_version,
        frame_version,
        more_bytes,
        fewer_bytes,
        flipped_byte,
        tags,
        many_tags,
        negative_tags,
        long_list,
        large_batch,
        envelope,
        text,
        feature_level,
        control,
        any_record,
        changed_record,
        lost_record,
        repeated_records,
        transaction,
        refused_in_transaction,
        zk_migration,
        no_metadata_version,
        refused_between,
        broken_crc,
        nothing,
    )
}


def drawn(golden: Path, target: Path, rng: random.Random, count: int) -> Iterator[tuple[str, Path]]:
    """So many mutated directories, each with the name of its mutation: every mutation in turn."""
    names = list(MUTATIONS)
    for nth in range(count):
        name = names[nth % len(names)]
        made = target / f"{nth}-{name}"
        for _ in range(20):
            try:
                mutated(golden / rng.choice(SOURCES), made, rng, name)
            except DecodeError:
                shutil.rmtree(made)
                continue
            yield name, made
            break
