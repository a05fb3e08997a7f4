"""kraftlake dump --format jsonl and text: one line a record on stdout, one line a fault on stderr."""

from __future__ import annotations

import argparse
import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.runtime.long_lists import limit_of, say_more
from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_line, warn_line
from kraft_core.format.codec import to_json
from kraft_core.format.log_dirs import BOOTSTRAP_NAME, UnreadPath, refuse_old
from kraft_core.format.log_files import find_log_files, parse_segment_name
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch
from kraft_core.format.secrets import redact
from kraft_core.format.segment import Damage, OrderCheck, OrderFault, scan
from kraft_core.format.snapshot import parse_name, read_snapshot


@dataclass
class _Tally:
    """The counts that decide the exit code, and of records."""

    records: int = 0
    batches: int = 0
    empty_logs: int = 0
    errors: int = 0


@dataclass(frozen=True)
class _Fault:
    """A fault of a file, one line on stderr.

    kind: damage (bytes that are not a batch), quarantined (a record or a batch's records), order (a batch out
    of order), incomplete (a checkpoint that is not a complete snapshot), refused (a path that was not read).
    """

    kind: str
    file: str
    detail: dict[str, Any]
    severity: str = "error"


def dump_records(paths: list[Path], args: argparse.Namespace) -> ExitCode:
    """Dump every file and every folder's files; returns the exit code.

    Beyond the limit, files are read for their faults and for the number of records.
    """
    tally = _Tally()
    most = limit_of(args)
    write_record = _write_text if args.format == "text" else _write_json
    for path in paths:
        for item in _dump_path(path, tally, args.max_bytes):
            if isinstance(item, _Fault):
                tally.errors += item.severity == "error"
                _report(item, args.format)
                continue
            tally.records += 1
            if not most or tally.records <= most:
                write_record(*item, args)
    sys.stdout.flush()
    say_more(tally.records - most if most else 0, "records")
    return _exit_code(tally)


def _exit_code(tally: _Tally) -> ExitCode:
    if tally.batches == 0 and tally.empty_logs == 0:
        return ExitCode.NOTHING_READABLE
    return ExitCode.FOUND if tally.errors else ExitCode.FINE


def _dump_path(path: Path, tally: _Tally, limit: int | None) -> Iterator[tuple[str, Record] | _Fault]:
    found = list(find_log_files(path)) if path.is_dir() else [refuse_old(path.parent) or path]
    if not found:
        yield _Fault("refused", str(path), {"reason": "no segment or checkpoint found"})
    last_segments = {
        p.parent: p for p in found if isinstance(p, Path) and parse_segment_name(p.name) is not None
    }
    for item in found:
        if isinstance(item, UnreadPath):
            yield _Fault("refused", str(item.path), {"reason": item.reason})
            continue
        try:
            yield from _dump_file(item, last_segments.get(item.parent) == item, tally, limit)
        except OSError as error:
            yield _Fault("refused", str(item), {"reason": error.strerror or str(error)})


def _dump_file(
    path: Path, is_last: bool, tally: _Tally, limit: int | None
) -> Iterator[tuple[str, Record] | _Fault]:
    """The records and faults of a file. is_last: whether it is the newest given segment of its log.

    limit: how many of its bytes are read; the batch that it cuts is not a fault.
    """
    file = str(path)
    if not path.is_file():
        yield _Fault("refused", file, {"reason": "not a regular file"})
        return
    snapshot_id = parse_name(path.name)
    is_snapshot = snapshot_id is not None or path.name == BOOTSTRAP_NAME
    next_offset = 0 if is_snapshot else parse_segment_name(path.name)
    unfinished = snapshot_id is not None and snapshot_id.suffix == ".part"
    order = OrderCheck(next_offset)
    with mapped(path) as buf:
        tally.empty_logs += len(buf) == 0 and not is_snapshot
        cut = limit is not None and limit < len(buf)
        for item in scan(buf, end=limit, next_offset=next_offset):
            if cut and isinstance(item, Damage) and item.end == limit:
                break
            yield from (_order_fault(file, fault) for fault in order.faults(item))
            if isinstance(item, Damage):
                expected = item.reason == "torn_tail" and (is_last or unfinished)
                yield _Fault("damage", file, asdict(item), "warning" if expected else "error")
                continue
            tally.batches += 1
            for record in read_batch(buf, item):
                if not record.is_rest_of_batch:
                    yield file, record
                if record.damage is not None:
                    yield _Fault("quarantined", file, {**asdict(record.damage), "detail": record.detail})
        incomplete = read_snapshot(buf).incomplete if is_snapshot and not cut else ""
    if incomplete:
        yield _Fault("incomplete", file, {"reason": incomplete}, "warning" if unfinished else "error")


def _order_fault(file: str, fault: OrderFault) -> _Fault:
    detail = {
        "position": fault.position,
        "fault": fault.kind,
        "expected": fault.expected,
        "found": fault.found,
    }
    return _Fault("order", file, detail)


def _write_json(file: str, record: Record, args: argparse.Namespace) -> None:
    payload, redacted = _payload(record, args)
    line = {
        "file": file,
        "position": record.batch.position,
        "offset": record.offset,
        "leader_epoch": record.leader_epoch,
        "timestamp": record.timestamp,
        "is_control": record.batch.is_control,
        "type": record.type,
        "version": record.version,
        "payload": payload,
        "redacted": redacted,
        "unread": _unread(record, args.raw_unknown),
    }
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")


def _write_text(file: str, record: Record, args: argparse.Namespace) -> None:
    payload, redacted = _payload(record, args)
    unread = _unread(record, args.raw_unknown)
    words = [
        # A file's name may not be valid text, or not fit the terminal's encoding.
        f"{file.encode('ascii', 'backslashreplace').decode()}:{record.offset}",
        f"epoch {record.leader_epoch}",
        _iso(record.timestamp),
        record.type if record.version is None else f"{record.type} v{record.version}",
        json.dumps(payload if unread is None else unread),
        *(["(secrets redacted)"] if redacted else []),
    ]
    print_line(" ".join(words))


def _payload(record: Record, args: argparse.Namespace) -> tuple[dict[str, Any] | None, bool]:
    """The record's fields as kafka-dump-log prints them, and whether a secret was redacted."""
    if record.message is None or record.value is None:
        return None, False
    value, redacted = record.value, False
    if not args.show_secrets:
        value, redacted = redact(record.message, value, args.settings.shown_configs)
    version = 0 if record.version is None else record.version
    return to_json(record.message, version, value), redacted


def _unread(record: Record, raw: bool) -> dict[str, Any] | None:
    if record.reason is None:
        return None
    unread: dict[str, Any] = {
        "reason": record.reason,
        "detail": record.detail,
        "api_key": record.api_key,
        "size_bytes": len(record.unread),
        "sha256": record.digest,
    }
    return {**unread, "value": b64encode(record.unread).decode()} if raw else unread


def _iso(ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    except (ValueError, OverflowError, OSError):
        return f"{ms}ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _report(fault: _Fault, format_: str | None) -> None:
    if format_ != "text":
        line = json.dumps(
            {"kind": fault.kind, "severity": fault.severity, "file": fault.file, **fault.detail}
        )
    else:
        words = ", ".join(
            f"{name} {value}" for name, value in fault.detail.items() if value not in ("", None)
        )
        line = f"{fault.severity}: {fault.file}: {fault.kind}: {words}"
    warn_line(line)
