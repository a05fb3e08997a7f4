"""Captures in which every kind of secret was planted as a random marker, and the search for markers.

Two replicas of a golden cluster, whose logs continue with records, sound, damaged and unknown, and whose side
files, checkpoints and describe outputs hold secrets where Kafka writes none.
"""

from __future__ import annotations

import os
import secrets
import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from kraft_core.format.batch import RawRecord, RecordHeader, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.compression import GZIP
from kraft_core.messages.configs import CONFIG_TYPES
from kraft_core.messages.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from kraft_core.messages.metadata import METADATA_RECORDS, by_api_key
from kraft_core.messages.schema import Message
from tests.leaked_configs import LEAKED

CLUSTER = "roWi3HLRRCuDirielH5nnw"
FIRST_OFFSET, EPOCH, TIME = 383, 2, 1_795_254_702_000
CONFIG = by_api_key[4]
RESOURCES = {"topic": 2, "broker": 4, "client-metrics": 16, "group": 32}

# Names that Kafka does not define, beside LEAKED; the settings allow PLUGIN and PLUGIN_URL.
PLUGIN, PLUGIN_URL, HARMLESS = "my.plugin.interval", "my.plugin.url", "log.dir"
SETTINGS = f'shown_configs = ["{PLUGIN}", "{PLUGIN_URL}"]\n'
# Values of a config that Kafka defines and does not type as a password.
CREDENTIALS = {
    "url": "https://alice:{}@registry.example/path",
    "url-without-user": "jdbc:postgresql://:{}@db.example/x",
    "jaas": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" other="{}";',
    "pem": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
    "bearer": "Authorization: Bearer {}",
    "basic": "Basic {}==",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.{}.x",
    "connection-string": "Endpoint=sb://x/;SharedAccessKeyName=a;AccountKey={}",
    "json": '{{"client_secret": "{}"}}',
    "xml": "<password>{}</password>",
    "url-unescaped": "https://alice:a/{}@registry.example/path",
    "oracle": "jdbc:oracle:thin:alice/{}@//db.example/x",
    "azure-sas": "https://x.example/c?sv=2022-11-02&sig={}%3D",
    "azure-signature": "SharedAccessSignature sr={}",
    "aws": "AKIAIOSFODNN7EXAMPLE/{}",
    "service": "glpat-{}",
}


@dataclass
class Markers:
    """A random marker for each kind of secret, and for each value that is to be shown."""

    hidden: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def hide(self, kind: str) -> str:
        assert kind not in self.hidden
        self.hidden[kind] = f"ZqZq{secrets.token_hex(9)}"
        return self.hidden[kind]

    def show(self, kind: str) -> str:
        self.shown[kind] = f"ZsZs{secrets.token_hex(9)}"
        return self.shown[kind]

    def found(self, haystack: bytes, kinds: dict[str, str]) -> set[str]:
        """The kinds of which a marker is in the haystack, in any of its forms."""
        return {kind for kind_of in _by_form(tuple(kinds.items())) for kind in _held(haystack, kind_of)}


@cache
def forms(marker: str) -> tuple[bytes, ...]:
    """The marker in UTF-8, UTF-16, hex, and in base64 wherever it stands in what was encoded."""
    raw = marker.encode()
    # Without the last byte the first is a part of the big-endian form, too.
    return (
        raw,
        marker.encode("utf-16-le")[:-1],
        raw.hex().encode(),
        *map(partial(_in_base64, raw), range(3)),
    )


@cache
def _by_form(kinds: tuple[tuple[str, str], ...]) -> list[dict[bytes, str]]:
    """For each form, the kinds by how their markers look in it: equally long, and they begin alike."""
    of_kinds = [[(form, kind) for form in forms(marker)] for kind, marker in kinds]
    return [dict(of_form) for of_form in zip(*of_kinds, strict=True)]


def _held(haystack: bytes, kind_of: dict[bytes, str]) -> Iterator[str]:
    """The kinds whose markers are there. Looks only where a marker may begin: there are hundreds."""
    beginning = os.path.commonprefix(list(kind_of))  # noqa: RUF071 (these are no paths)
    assert beginning
    at = haystack.find(beginning)
    while at >= 0:
        there = haystack[at : at + len(next(iter(kind_of)))]
        if there in kind_of:
            yield kind_of[there]
        at = haystack.find(beginning, at + 1)


def _in_base64(raw: bytes, shift: int) -> bytes:
    """Of what is encoded after `shift` bytes; without characters that also hang on what stands around it."""
    encoded = b64encode(bytes(shift) + raw)
    return encoded[4 if shift else 0 : (shift + len(raw)) // 3 * 4]


def config(name: str, value: str, resource: str = "topic", resource_name: str = "orders") -> bytes:
    fields = {
        "resourceType": RESOURCES[resource],
        "resourceName": resource_name,
        "name": name,
        "value": value,
    }
    return write_metadata_value(CONFIG, 0, fields)


def secret_fields() -> Iterator[tuple[Message, str]]:
    """Every field of a metadata record, in every layout, that the facts mark as secret."""
    for record in METADATA_RECORDS:
        for message in (record, *record.older):
            if message.api_key is not None and any(f.secret for f in message.fields):
                yield from ((message, f.name) for f in message.fields if f.secret)


def _newest(message: Message) -> int:
    return list(message.versions)[-1]


def with_secrets(message: Message, markers: Markers, kind: str) -> bytes:
    """A record with a marker in each of its secret fields."""
    value = message.default(_newest(message)) | {
        f.name: f.name for f in message.fields if f.type == "string" and not f.array
    }
    for f in message.fields:
        if f.secret:
            marker = markers.hide(f"{kind} {message.name} {message.layout or ''} {f.name}")
            value[f.name] = marker.encode() if f.type == "bytes" else marker
    return write_metadata_value(message, _newest(message), value)


def sound_values(markers: Markers, kind: str) -> Iterator[bytes]:
    """Values of records that Kafka could have written."""
    for message in dict.fromkeys(message for message, _ in secret_fields() if message.layout is None):
        yield with_secrets(message, markers, kind)
    passwords = [name for name, type_ in CONFIG_TYPES.items() if type_ == "password"]
    for number, name in enumerate(passwords):
        resource = list(RESOURCES)[number % len(RESOURCES)]
        yield config(name, markers.hide(f"{kind} {name}"), resource)
    for resource in RESOURCES:
        yield config("sasl.jaas.config", markers.hide(f"{kind} password of {resource}"), resource, "other")
    listener = "listener.name.external.scram-sha-512.sasl.jaas.config"
    yield config(listener, markers.hide(f"{kind} {listener}"), "broker", "1")
    for name in LEAKED:
        yield config(name, markers.hide(f"{kind} {name}"))
    for number, (what, text) in enumerate(CREDENTIALS.items()):
        value = text.format(markers.hide(f"{kind} value {what}"))
        yield config(HARMLESS, value, "broker", str(number))
        value = text.format(markers.hide(f"{kind} value {what} of an allowed name"))
        yield config(PLUGIN_URL, value, "broker", str(number))
    yield config(HARMLESS, markers.show(f"{kind} of Kafka"), "broker", "1000")
    yield config(PLUGIN, markers.show(f"{kind} of an allowed name"), "broker", "1000")


def unread_values(markers: Markers, kind: str) -> Iterator[bytes]:
    """Values that cannot be read as the records they claim to be, or hold more than those."""
    for number, value in enumerate(list(sound_values(Markers(), kind))[:4]):
        yield value + markers.hide(f"{kind} after the end {number}").encode()
    for name in ("sasl.jaas.config", "cookie"):
        yield config(name, markers.hide(f"{kind} cut {name}"))[:-2]
        yield config(name, markers.hide(f"{kind} not UTF-8 {name}") + "~~").replace(b"~~", b"\xff\xfe")
    for message in {m.api_key: m for m, _ in secret_fields()}.values():
        whole = bytearray(with_secrets(message, markers, f"{kind} newer"))
        whole[2] = 9  # a version that is not known yet
        yield bytes(whole)
    yield b"\x01\xe7\x07\x00" + markers.hide(f"{kind} unknown type").encode()
    yield b"\x07" + markers.hide(f"{kind} unknown frame").encode()
    yield markers.hide(f"{kind} no frame").encode()
    yield tagged(config("retention.ms", "1"), markers.hide(f"{kind} unknown tagged field"))
    topic = {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    yield tagged(
        write_metadata_value(by_api_key[2], 0, topic), markers.hide(f"{kind} tagged field of a topic")
    )


def tagged(value: bytes, text: str) -> bytes:
    """A record's value with an unknown tagged field."""
    raw = text.encode()
    return value[:-1] + bytes([1, 99, len(raw)]) + raw


def raw(offset: int, value: bytes, **more: Any) -> RawRecord:
    return RawRecord(offset, TIME + offset, more.pop("key", None), value, **more)


class _Log:
    """Batches of one epoch that continue a log."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.batches: list[bytes] = []

    def add(self, values: Iterable[bytes], codec: int = 0, **more: Any) -> None:
        records = [raw(self.offset + n, value, **more) for n, value in enumerate(values)]
        self.batches.append(write_batch(self.offset, EPOCH, records, codec=codec))
        self.offset += len(records)


def log(markers: Markers) -> tuple[bytes, int]:
    """What is appended to the replicas' logs, and its end offset."""
    log = _Log(FIRST_OFFSET)
    # Alone in its batch each: the kernel leaves batches with tokens to the other codec as a whole.
    for value in sound_values(markers, "record"):
        log.add([value])
    log.add(sound_values(markers, "compressed"), codec=GZIP)
    for value in unread_values(markers, "unread"):
        log.add([value])
    log.add(unread_values(markers, "compressed unread"), codec=GZIP)
    header = (RecordHeader(markers.hide("header key"), markers.hide("header").encode()),)
    log.add([config("retention.ms", "1")], key=markers.hide("key").encode(), headers=header)
    for message, _ in secret_fields():
        if message.layout is not None:
            log.add([with_secrets(message, markers, f"layout {log.offset}")])
    control = markers.hide("unknown control record").encode()
    log.batches.append(
        write_batch(log.offset, EPOCH, [raw(log.offset, control, key=b"\0\0\0\x63")], is_control=True)
    )
    log.offset += 1
    return b"".join(log.batches), log.offset


def checkpoint(folder: Path, end_offset: int, markers: Markers, kind: str) -> None:
    """A checkpoint whose secrets are not those of the log."""

    def control(position: int, type_: int, value: dict[str, int]) -> bytes:
        key = b"\0\0" + type_.to_bytes(2, "big")
        record = RawRecord(position, TIME, key, write_control_value(type_, {"version": 0} | value))
        return write_batch(position, EPOCH, [record], is_control=True)

    values = [*sound_values(markers, kind), *unread_values(markers, f"{kind} unread")]
    records = [raw(1 + n, value) for n, value in enumerate(values)]
    (folder / f"{end_offset:020d}-{EPOCH:010d}.checkpoint").write_bytes(
        control(0, SNAPSHOT_HEADER, {"lastContainedLogTimestamp": TIME})
        + b"".join(write_batch(record.offset, EPOCH, [record]) for record in records)
        + control(1 + len(records), SNAPSHOT_FOOTER, {})
    )


def plant(golden: Path, folder: Path) -> Markers:
    """Make the captures."""
    markers = Markers()
    shutil.copytree(
        golden / "v4.4.0-mini", folder, ignore=shutil.ignore_patterns("dump", "*.md", "summary.*")
    )
    appended, end_offset = log(markers)
    for node in (1, 2):
        logs = folder / f"node-{node}" / "__cluster_metadata-0"
        with (logs / f"{0:020d}.log").open("ab") as file:
            file.write(appended)
            if node == 2:
                file.write(_damaged(end_offset, markers))
    logs = folder / "node-1/__cluster_metadata-0"
    checkpoint(logs, end_offset - 1, markers, "checkpoint")
    checkpoint(logs, end_offset, markers, "cut checkpoint")
    cut = logs / f"{end_offset:020d}-{EPOCH:010d}.checkpoint"
    cut.write_bytes(cut.read_bytes()[:-90])
    _plant_side_files(folder, markers)
    return markers


def _damaged(offset: int, markers: Markers) -> bytes:
    """A batch whose checksum does not hold, and a torn one."""
    batches = [
        write_batch(offset + n, EPOCH, [raw(offset + n, config("cookie", markers.hide(f"damage {n}")))])
        for n in (0, 1)
    ]
    return batches[0][:-3] + b"xyz" + batches[1][:-3]


def _plant_side_files(folder: Path, markers: Markers) -> None:
    """What Kafka and the operator do not write: other keys, other lines, broken JSON."""
    for node in (1, 2):
        with (folder / f"node-{node}/meta.properties").open("a") as file:
            file.write(f"ssl.keystore.password={markers.hide(f'meta.properties {node}')}\n")
            file.write(f"{markers.hide(f'line of meta.properties {node}')}\n")
    capture = folder / "node-1/capture.json"
    capture.write_text(_with_field(capture.read_text(), markers.hide("capture.json")))
    state = folder / "node-1/__cluster_metadata-0/quorum-state"
    state.write_text(_with_field(state.read_text(), markers.hide("quorum-state")))
    shutil.copytree(folder / "node-2", folder / "node-3")
    for name in ("capture.json", "__cluster_metadata-0/quorum-state"):
        broken = folder / "node-3" / name
        broken.write_text(_with_field(broken.read_text(), markers.hide(f"broken {name}")).removesuffix("}"))
    for number, output in enumerate(sorted((folder / "quorum").iterdir())):
        text = output.read_text() + f"sasl.jaas.config:  {markers.hide(f'describe output {number}')}\n"
        output.write_text(text)


def _with_field(text: str, marker: str) -> str:
    return text.rstrip().removesuffix("}") + f',"password":"{marker}"}}'
