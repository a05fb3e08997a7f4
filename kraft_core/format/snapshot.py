"""Checkpoint files: their names, and whether one is a complete snapshot.

Source: Kafka's Snapshots (names) and RecordsSnapshotWriter (a header first, a footer last). The batches of a
checkpoint have their own offsets, from 0; its name states which offsets of the log the snapshot covers.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kraft_core.format.batch import BatchHeader
from kraft_core.format.record import Record, read_batch
from kraft_core.format.segment import Damage, OrderFault, order_faults, scan
from kraft_core.format.varint import Buffer
from kraft_core.messages.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER

# End offset and epoch have fixed widths; the suffix of an unfinished checkpoint is random.
_NAME = re.compile(r"(\d{20})-(\d{10})(?:-[^/]*)?\.checkpoint(\.part|\.deleted)?", re.ASCII)
_MAX_OFFSET = (1 << 63) - 1
_MAX_EPOCH = (1 << 31) - 1


class SnapshotId(NamedTuple):
    """end_offset: the first log offset not covered. suffix: "", ".part" or ".deleted"."""

    end_offset: int
    leader_epoch: int
    suffix: Literal["", ".part", ".deleted"]


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """A checkpoint file without its metadata records.

    header: the SnapshotHeader if it is the file's first record; footer: the SnapshotFooter if it is the last.
    control_records: every control record, including these two. incomplete: what is missing, as text; "" for a
    complete snapshot.
    """

    header: Record | None
    footer: Record | None
    control_records: tuple[Record, ...]
    damage: tuple[Damage, ...]
    order_faults: tuple[OrderFault, ...]
    incomplete: str

    @property
    def complete(self) -> bool:
        """Header first, footer last, every byte between them readable and no batch missing."""
        return not self.incomplete

    @property
    def last_contained_log_timestamp(self) -> int | None:
        """From the header, ms: the time of the newest batch that the snapshot covers."""
        if self.header is None or self.header.value is None:
            return None
        return self.header.value["lastContainedLogTimestamp"]


def parse_name(name: str) -> SnapshotId | None:
    """The id in a checkpoint's file name; None for bootstrap.checkpoint and any other name."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET or int(match[2]) > _MAX_EPOCH:
        return None
    return SnapshotId(int(match[1]), int(match[2]), match[3] or "")  # pyright: ignore[reportArgumentType]


def read_snapshot(buf: Buffer) -> CheckpointContent:
    """Check every batch of a checkpoint, but decode only its control batches.

    For all records see record.read_log.
    """
    items = list(scan(buf, next_offset=0))
    headers = [item for item in items if isinstance(item, BatchHeader)]
    damage = tuple(item for item in items if isinstance(item, Damage))
    control = tuple(record for header in headers if header.is_control for record in read_batch(buf, header))
    faults = tuple(order_faults(items, 0))
    first = control[0] if control and items[0] is control[0].batch else None
    last = control[-1] if control and items[-1] is control[-1].batch else None
    header = first if first and _is(first, SNAPSHOT_HEADER) else None
    footer = last if last and _is(last, SNAPSHOT_FOOTER) else None
    return CheckpointContent(
        header=header,
        footer=footer,
        control_records=control,
        damage=damage,
        order_faults=faults,
        incomplete=_missing(header, footer, damage, faults, control),
    )


def cut_off(snapshot: CheckpointContent, size_bytes: int) -> Damage | None:
    """What a checkpoint of formatting lost without a trace in the bytes that are left, all of which are good.

    Its header or footer is missing, as in a file that is empty or ends where a batch does. Kafka writes both,
    but asks for neither: it takes an empty bootstrap.checkpoint for one without records, and no node starts
    on that (BootstrapDirectory); on an empty 0-0 a new quorum elects no leader. Of a snapshot of the log
    `incomplete` says so. None where bytes or values cannot be read: those are the damage.
    """
    control = snapshot.control_records
    if snapshot.damage or any(record.reason for record in control):
        return None
    if all(any(_is(record, wanted) for record in control) for wanted in (SNAPSHOT_HEADER, SNAPSHOT_FOOTER)):
        return None
    return Damage(size_bytes, 0, "incomplete", hashlib.sha256().hexdigest())


def _is(record: Record, control_type: int) -> bool:
    return record.reason is None and record.api_key == control_type


def _missing(
    header: Record | None,
    footer: Record | None,
    damage: tuple[Damage, ...],
    faults: tuple[OrderFault, ...],
    control: tuple[Record, ...],
) -> str:
    missing = [
        *(["no header at the start"] if header is None else []),
        *(["no footer at the end"] if footer is None else []),
        *(f"{item.reason} at {item.position}" for item in damage),
        *(f"{item.kind} at {item.position}" for item in faults),
        *(f"{item.reason} at {item.position}" for item in control if item.reason),
    ]
    return ", ".join(missing)
