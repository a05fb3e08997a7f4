"""Copies of simulated directories on disk, with metadata in them whose truth is known.

The simulation's data batches hold nothing. Here each record sets a config that is named after its offset and
has its epoch as value; the first of an early batch sets metadata.version, without which nothing is restored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.record import read_log
from kraft_core.format.segment import Damage, scan
from kraft_core.image.configs import Config
from kraft_core.image.image import Image
from kraft_core.image.tables import CONFIGS
from kraft_core.messages.control import SNAPSHOT_FOOTER
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.raft.batches import Batch
from kraft_core.simulation.directories import LOG_DIR, write_directory
from tests.soundness.captures import Copy
from tests.soundness.execution import BEGAN_AT, Execution
from tests.soundness.missing import Missing

_BY_TYPE = {message.type_name: message for message in METADATA_RECORDS}
_BROKER = 4
_EARLY = 9  # first offsets below it are of early batches
_VERSION = {"name": "metadata.version", "featureLevel": 30}


def write_copies(execution: Execution, copies: tuple[Copy, ...], folder: Path) -> None:
    """Each copy as folder/copy-N."""
    appended = {place: at - BEGAN_AT for place, at in execution.appended_at.items()}
    snapshotted = {place: at - BEGAN_AT for place, at in execution.snapshotted_at.items()}
    for nth, copy in enumerate(copies):
        home = folder / f"copy-{nth}"
        replica = execution.moments[copy.log_at][copy.slot]
        write_directory(replica, appended, snapshotted, home)
        log_dir = home / LOG_DIR
        _take_side_files(execution, copy, log_dir, home)
        for segment in log_dir.glob("*.log"):
            segment.write_bytes(_with_content(segment.read_bytes()))
        for checkpoint in log_dir.glob("*.checkpoint"):
            end = int(checkpoint.name.partition("-")[0])
            checkpoint.write_bytes(_with_state(checkpoint.read_bytes(), _state(execution, end)))
        _take_away(home, copy.missing)
        if copy.stated is not None:
            at = datetime.fromtimestamp(copy.stated / 1000, UTC).isoformat()
            (home / "capture.json").write_text(json.dumps({"captured_at": at}))


def lacked(execution: Execution, image: Image, by: int) -> list[tuple[str, str]]:
    """The configs (name, value) that were committed by a time (ms) and that an image does not hold."""
    committed = (kept for batch in execution.committed_by(by) for kept in configs(batch).items())
    held: Mapping[str, str] = {c.name: c.value for c in _configs(image)}
    return [(name, value) for name, value in committed if held.get(name) != value]


def _configs(image: Image) -> Iterator[Config]:
    return (config for _, config in image.tables.items(CONFIGS))


def configs(batch: Batch) -> dict[str, str]:
    """What a data batch sets."""
    if batch.control_records:
        return {}
    first = batch.base_offset + (batch.base_offset < _EARLY)
    return {f"at-{offset}": str(batch.leader_epoch) for offset in range(first, batch.end_offset)}


def _config_value(name: str, value: str) -> bytes:
    fields = {"resourceType": _BROKER, "resourceName": "", "name": name, "value": value}
    return write_metadata_value(_BY_TYPE["CONFIG_RECORD"], 0, fields)


def _version_value() -> bytes:
    return write_metadata_value(_BY_TYPE["FEATURE_LEVEL_RECORD"], 0, _VERSION)


def _with_content(segment: bytes) -> bytes:
    parts: list[bytes] = []
    for header in scan(segment):
        assert not isinstance(header, Damage)
        if header.is_control:
            parts.append(segment[header.position : header.end])
            continue
        records = [
            RawRecord(
                offset,
                header.max_timestamp,
                None,
                _version_value()
                if offset == header.base_offset < _EARLY
                else _config_value(f"at-{offset}", str(header.leader_epoch)),
            )
            for offset in range(header.base_offset, header.next_offset)
        ]
        parts.append(write_batch(header.base_offset, header.leader_epoch, records))
    return b"".join(parts)


def _state(execution: Execution, end: int) -> list[bytes]:
    """What was committed below an offset, as the records of a checkpoint."""
    below = [execution.batches[place] for place in sorted(execution.committed_at) if place[0] < end]
    data = [batch for batch in below if not batch.control_records]
    values = [_version_value()] if any(batch.base_offset < _EARLY for batch in data) else []
    return [*values, *(_config_value(*kept) for batch in data for kept in configs(batch).items())]


def _with_state(checkpoint: bytes, values: list[bytes]) -> bytes:
    """The checkpoint with data between its first batch and its footer."""
    first, footer = (header for header in scan(checkpoint) if not isinstance(header, Damage))
    if not values:
        return checkpoint
    at, epoch, time = first.next_offset, first.leader_epoch, first.max_timestamp
    data = [RawRecord(at + nth, time, None, value) for nth, value in enumerate(values)]
    key = (0).to_bytes(2, "big") + SNAPSHOT_FOOTER.to_bytes(2, "big")
    last = RawRecord(at + len(data), time, key, write_control_value(SNAPSHOT_FOOTER, {"version": 0}))
    parts = [checkpoint[first.position : first.end], write_batch(at, epoch, data)]
    parts.append(write_batch(last.offset, footer.leader_epoch, [last], is_control=True))
    made = b"".join(parts)
    assert not any(isinstance(item, Damage) for item in read_log(made, next_offset=0))
    return made


def _take_side_files(execution: Execution, copy: Copy, log_dir: Path, home: Path) -> None:
    """quorum-state and leader-epoch-checkpoint are of another moment."""
    if copy.files_at == copy.log_at:
        return
    times = {place: at - BEGAN_AT for place, at in execution.appended_at.items()}
    snapshots = {place: at - BEGAN_AT for place, at in execution.snapshotted_at.items()}
    beside = home / "beside"
    write_directory(execution.moments[copy.files_at][copy.slot], times, snapshots, beside)
    for name in ("quorum-state", "leader-epoch-checkpoint"):
        (beside / LOG_DIR / name).rename(log_dir / name)
    for path in sorted(beside.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    beside.rmdir()


def _take_away(home: Path, missing: Missing) -> None:
    """What the copy lacks."""
    log_dir = home / LOG_DIR
    names = {"quorum-state": missing.quorum_state, "leader-epoch-checkpoint": missing.leader_epoch_checkpoint}
    gone = [log_dir / name for name, is_missing in names.items() if is_missing]
    gone += log_dir.glob("*.checkpoint") if missing.checkpoints else ()
    for path in gone:
        path.unlink()
    if missing.directory_id:
        meta = home / "meta.properties"
        lines = [line for line in meta.read_text().splitlines() if not line.startswith("directory.id")]
        meta.write_text("\n".join([*lines, ""]))
    first, end = missing.segments
    for segment in log_dir.glob("*.log"):
        if not first <= int(segment.stem) < end:
            continue
        content = bytearray(segment.read_bytes())
        if missing.how == "absent":
            segment.unlink()
        elif len(content) > 65:
            content[65] ^= 0xFF
            segment.write_bytes(content)
