"""Compare decoded captured files with kafka-dump-log's output for the same files.

python -m tests.golden_compare DIRECTORY: every dump below it, laid out as tests/golden is, plain or gzipped:
SCENARIO/dump/[LABEL-]node-N/FILE.txt beside SCENARIO/[LABEL/]node-N/[__cluster_metadata-0/]FILE, or
FILE.dump.txt beside FILE. Prints counts and all differences; exit code 1 if there is one, or no dump.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kraft_core.format.batch import BatchHeader
from kraft_core.format.codec import to_json
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.log_files import parse_segment_name
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch
from kraft_core.format.segment import Damage, scan

_DUMP_NAME = re.compile(r"(?P<file>.+?)(?P<skipped>\.skip-record-metadata)?(?:\.dump)?\.txt(?:\.gz)?")
_NODE_NAME = re.compile(r"(?:(?P<label>.+)-)?(?P<node>node-\d+)(?:-by-.+)?")
_PAIR = re.compile(r"(\w+): (\S+)")
_RECORD = re.compile(
    r"\| offset: (?P<offset>-?\d+) \w+: (?P<timestamp>-?\d+) "
    r"keySize: (?P<key>-?\d+) valueSize: (?P<value>-?\d+) sequence: -?\d+ "
    r"headerKeys: \[(?P<headers>.*?)\] (?P<rest>.*)"
)
_CONTROL = re.compile(r"(?P<type>\w+):? (?P<json>\{.*\})")
_CONTROL_TYPE = re.compile(r"controlType: \w+\((?P<type>-?\d+)\)")


@dataclass
class DumpedRecord:
    """A record as kafka-dump-log prints it; None for what it does not print. payload: JSON as pairs."""

    envelope: tuple[int, int, int, int] | None  # offset, timestamp, key size, value size
    type: str | None = None
    version: int | None = None
    payload: Any = None
    api_key: int | None = None
    unread: bool = False


@dataclass
class DumpedBatch:
    fields: dict[str, str]
    records: list[DumpedRecord] = field(default_factory=list)

    @property
    def position(self) -> int:
        return int(self.fields["position"])

    @property
    def is_good(self) -> bool:
        """Kafka's tool calls a batch valid whatever its magic, and reads an older magic by chance."""
        return self.fields["isvalid"] == "true" and self.fields["magic"] == "2"


@dataclass
class Dump:
    """stopped: the tool gave up before the end of the file. unread: it did not read the file at all."""

    batches: list[DumpedBatch] = field(default_factory=list)
    skips_metadata: bool = False
    stopped: bool = False
    unread: bool = False


@dataclass
class Comparison:
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def compare_tree(root: Path) -> Comparison:
    """Every dump below a folder with its file."""
    result = Comparison()
    for dump_path, source, skipped in _dumps(root):
        if source is None:
            result.differences.append(f"{dump_path}: its file is not there")
        else:
            result.counts["dumps"] += 1
            dump = _parse(dump_path, skips_metadata=skipped)
            result.counts["dumps of files that the tool passes over"] += dump.unread
            if not dump.unread:
                _compare_file(source, dump, result)
    return result


def golden_dumps(root: Path) -> Iterator[tuple[Path, str, bool]]:
    """Every file below a folder that has a dump, the dump's text, and whether it skips records' metadata."""
    for dump_path, source, skipped in _dumps(root):
        if source is not None:
            yield source, _text(dump_path), skipped


def _dumps(root: Path) -> Iterator[tuple[Path, Path | None, bool]]:
    for dump_path in sorted(p for pattern in ("*.txt", "*.txt.gz") for p in root.rglob(pattern)):
        match = _DUMP_NAME.fullmatch(dump_path.name)
        if match is not None and (dump_path.parent.parent.name == "dump" or ".dump.txt" in dump_path.name):
            yield dump_path, _source(dump_path, match["file"]), match["skipped"] is not None


def _text(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def _source(dump_path: Path, name: str) -> Path | None:
    """The file that a dump is of."""
    candidates = [dump_path.parent / name]
    if dump_path.parent.parent.name == "dump":
        node = _NODE_NAME.fullmatch(dump_path.parent.name)
        if node is None:
            return None
        directory = dump_path.parent.parent.parent / (node["label"] or "") / node["node"]
        candidates = [directory / LOG_DIR_NAME / name, directory / name]
    return next((path for path in candidates if path.is_file()), None)


def _parse(path: Path, skips_metadata: bool) -> Dump:
    dump = Dump(skips_metadata=skips_metadata)
    # Not splitlines: names in payloads may hold other line separators.
    for line in _text(path).split("\n"):
        if re.match(r"(baseOffset|offset): ", line):
            dump.batches.append(DumpedBatch(dict(_PAIR.findall(line))))
        elif line.startswith("| "):
            dump.batches[-1].records.append(_parse_record(line))
        elif line.startswith("Ignoring unknown file"):
            dump.unread = True
        elif re.match(r"Exception in |Found \d+ invalid bytes", line):
            dump.stopped = True
    return dump


def _parse_record(line: str) -> DumpedRecord:
    match = _RECORD.fullmatch(line)
    envelope = None
    rest = line.removeprefix("| ")
    if match is not None:
        assert not match["headers"], line
        envelope = (int(match["offset"]), int(match["timestamp"]), int(match["key"]), int(match["value"]))
        rest = match["rest"]
    if rest.startswith("payload: Error at"):
        return DumpedRecord(envelope, unread=True)
    if rest.startswith("payload: "):
        (_, type_), (_, version), (_, data) = _pairs(rest.removeprefix("payload: "))
        return DumpedRecord(envelope, type_, version, data)
    if (numbered := _CONTROL_TYPE.fullmatch(rest)) is not None:
        return DumpedRecord(envelope, api_key=int(numbered["type"]), unread="UNKNOWN" in rest)
    control = _CONTROL.fullmatch(rest)
    assert control is not None, line
    return DumpedRecord(envelope, control["type"], None, _pairs(control["json"]))


def _pairs(text: str) -> Any:
    """JSON with the order of its keys."""
    return json.loads(text, object_pairs_hook=lambda pairs: pairs)


def _compare_file(source: Path, dump: Dump, result: Comparison) -> None:
    """Batch by batch, by position; beyond what the tool printed only where it stopped early."""
    with mapped(source) as buf:
        ours = {item.position: item for item in scan(buf, next_offset=parse_segment_name(source.name))}
        for batch in dump.batches:
            mine = ours.pop(batch.position, None)
            records = list(read_batch(buf, mine)) if isinstance(mine, BatchHeader) else []
            may_stop = dump.stopped and batch is dump.batches[-1]
            for what, kafka, value in _batch_differences(batch, mine, records, dump, may_stop, result.counts):
                place = f"{source}: batch at {batch.position}"
                result.differences.append(f"{place}: {what}: kafka-dump-log {kafka!r}, here {value!r}")
    beyond = [item.position for item in ours.values() if isinstance(item, BatchHeader)]
    result.counts["batches beyond where the tool stopped"] += len(beyond)
    if beyond and not dump.stopped:
        result.differences.append(f"{source}: batches that the tool does not know: {beyond}")


def _batch_differences(
    batch: DumpedBatch,
    mine: BatchHeader | Damage | None,
    records: list[Record],
    dump: Dump,
    may_stop: bool,
    counts: Counter[str],
) -> Iterator[tuple[str, object, object]]:
    if not batch.is_good or not isinstance(mine, BatchHeader):
        counts["bad batches"] += 1
        if batch.is_good != isinstance(mine, BatchHeader):
            yield "valid", batch.is_good, mine
        return
    counts["batches"] += 1
    yield from _header_differences(batch.fields, mine)
    if dump.skips_metadata and mine.is_control:
        return  # the tool prints an empty line for each of them
    records = [record for record in records if not record.is_rest_of_batch]
    if len(records) != len(batch.records) and not may_stop:
        yield "records", len(batch.records), len(records)
    for kafka, record in zip(batch.records, records, strict=False):
        for what, theirs, value in _record_differences(kafka, record, counts):
            yield f"offset {record.offset}: {what}", theirs, value


def _header_differences(fields: dict[str, str], header: BatchHeader) -> Iterator[tuple[str, str, str]]:
    horizon = header.delete_horizon_ms
    last_sequence = -1 if header.base_sequence < 0 else header.base_sequence + header.last_offset_delta
    mine = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": str(header.is_transactional).lower(),
        "isControl": str(header.is_control).lower(),
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        header.timestamp_type: header.max_timestamp,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": header.compression,
        "crc": header.crc,
    }
    for name, value in mine.items():
        kafka = fields.get(name, "absent")
        if kafka != str(value):
            yield name, kafka, str(value)


def _record_differences(
    kafka: DumpedRecord, record: Record, counts: Counter[str]
) -> Iterator[tuple[str, object, object]]:
    counts["records"] += 1
    if kafka.envelope is not None:
        counts["envelopes"] += 1
        mine = (record.offset, record.timestamp, record.key_size, record.size_bytes)
        if kafka.envelope != mine:
            yield "offset, timestamp, key size, value size", kafka.envelope, mine
    if kafka.api_key is not None and kafka.api_key != record.api_key:
        yield "control type", kafka.api_key, record.api_key
    if kafka.unread != (record.reason is not None):
        yield "read", not kafka.unread, record.reason
    if kafka.unread or record.message is None or record.value is None or kafka.type is None:
        counts["unread values"] += kafka.unread
        return
    counts["payloads"] += 1
    if kafka.type != record.type:
        yield "type", kafka.type, record.type
    if kafka.version is not None and kafka.version != record.version:
        yield "version", kafka.version, record.version
    payload = _pairs(json.dumps(to_json(record.message, record.version or 0, record.value)))
    if kafka.payload != payload:
        yield "payload", kafka.payload, payload


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python -m tests.golden_compare DIRECTORY", file=sys.stderr)
        return 2
    result = compare_tree(Path(arguments[0]))
    for difference in result.differences:
        print(difference, file=sys.stderr)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(result.counts.items()))
    print(f"{counts or 'no dumps'}; differences {len(result.differences)}")
    return 1 if result.differences or not result.counts["dumps"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
