"""The facts that the rules read, from controller directories: every batch and every record is read once.

The lake finds the same facts by queries; tests compare the two.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from kraft_core.findings.facts import (
    BatchConflict,
    BatchCopy,
    Holder,
    LogOrderFault,
    ReplayRefusal,
    RuleFacts,
    SnapshotDeviation,
    UnreadableBytes,
)
from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.findings.snapshot_replays import Part, digest_of
from kraft_core.format.batch import BatchHeader
from kraft_core.format.capture import Identity, capture_id, file_identity, identity
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch, read_log
from kraft_core.format.segment import Damage, OrderCheck, scan
from kraft_core.format.snapshot import read_snapshot
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import deviations

REFUSAL = ("offset", "leader_epoch", "type", "cause", "subject", "reason", "by_controllers_only")
ONTO_NOTHING: dict[str, Any] = {
    "commit_status": "undecided",
    "base_end_offset": 0,
    "base_content_digest": "",
}
_Content = tuple[int, int, int]  # end offset, crc, size in bytes


def collect_rule_facts(directories: Iterable[ControllerDir]) -> dict[str, RuleFacts]:
    """The facts of each cluster, by cluster id; no observations, which are in no directory.

    Damage is reported for every capture, also where another copy supplies the bytes. OSError when a file
    cannot be read.
    """
    of_cluster: defaultdict[str, _RuleFacts] = defaultdict(_RuleFacts)
    for directory in directories:
        who = identity(directory)
        if who is not None:
            of_cluster[who.cluster_id].add(who, directory)
    return {cluster_id: of_cluster[cluster_id].facts() for cluster_id in sorted(of_cluster)}


@dataclass(slots=True)
class _RuleFacts:
    """The facts of one cluster, gathered directory by directory.

    batches: by (epoch, base offset) the different contents and who held each.
    """

    batches: defaultdict[tuple[int, int], dict[_Content, set[Holder]]] = field(
        default_factory=lambda: defaultdict[tuple[int, int], dict[_Content, set[Holder]]](dict)
    )
    order_faults: list[LogOrderFault] = field(default_factory=list[LogOrderFault])
    unreadable: list[UnreadableBytes] = field(default_factory=list[UnreadableBytes])
    deviations: set[SnapshotDeviation] = field(default_factory=set[SnapshotDeviation])
    refusals: set[ReplayRefusal] = field(default_factory=set[ReplayRefusal])

    def facts(self) -> RuleFacts:
        return RuleFacts(
            tuple(
                BatchConflict(
                    epoch,
                    base,
                    tuple(BatchCopy(*what, tuple(sorted(who))) for what, who in sorted(copies.items())),
                )
                for (epoch, base), copies in sorted(self.batches.items())
                if len(copies) > 1
            ),
            tuple(sorted(self.order_faults)),
            tuple(sorted(self.unreadable, key=lambda lost: (lost.capture_id, lost.file, lost.position))),
            tuple(sorted(self.deviations)),
            replay_refusals=tuple(sorted(self.refusals)),
        )

    def add(self, who: Identity, directory: ControllerDir) -> None:
        files = [*directory.segments, *directory.checkpoints]
        name = capture_id(who, directory, [file_identity(f.path, f.size_bytes) for f in files])
        self._scan_log(name, (who.node_id, who.directory_id), directory)
        for checkpoint in directory.checkpoints:
            with mapped(checkpoint.path) as buf:
                self.unreadable += [
                    UnreadableBytes(
                        name,
                        directory.relative(checkpoint.path),
                        d.position,
                        d.size_bytes,
                        d.reason,
                        None,
                        None,
                    )
                    for d in read_snapshot(buf).damage
                ]
        self.deviations |= set(_deviations(directory))
        self.refusals |= set(_refusals(directory))

    def _scan_log(self, name: str, who: Holder, directory: ControllerDir) -> None:
        start = directory.segments[0].base_offset if directory.segments else 0
        check, goes_on = OrderCheck(start), (start, -1)
        for segment in directory.segments:
            file, next_offset = directory.relative(segment.path), segment.base_offset
            open_damage: list[Damage] = []
            with mapped(segment.path) as buf:
                for item in scan(buf, end=segment.size_bytes, next_offset=segment.base_offset):
                    for fault in check.faults(item):
                        assert isinstance(item, BatchHeader)
                        place = (item.base_offset, item.leader_epoch)
                        if fault.kind == "epoch_regression" and place == goes_on:
                            continue  # reported for the first batch
                        self.order_faults.append(
                            LogOrderFault(
                                name, item.base_offset, item.leader_epoch, fault.kind, fault.expected
                            )
                        )
                    if isinstance(item, Damage):
                        open_damage.append(item)
                        continue
                    self._lost(name, file, open_damage, next_offset, item.base_offset)
                    open_damage, next_offset = [], item.next_offset
                    goes_on = (item.next_offset, item.leader_epoch)
                    copies = self.batches[item.leader_epoch, item.base_offset]
                    copies.setdefault((item.next_offset, item.crc, item.size_bytes), set()).add(who)
                    self._undecoded(name, file, read_batch(buf, item))
            self._lost(name, file, open_damage, next_offset, None)

    def _lost(self, name: str, file: str, damages: list[Damage], first: int, end: int | None) -> None:
        self.unreadable += [
            UnreadableBytes(name, file, d.position, d.size_bytes, d.reason, first, end) for d in damages
        ]

    def _undecoded(self, name: str, file: str, records: Iterator[Record]) -> None:
        for record in records:
            damage = record.damage
            if damage is not None:
                first, end = record.lost_offsets or (None, None)
                self.unreadable.append(
                    UnreadableBytes(name, file, damage.position, damage.size_bytes, damage.reason, first, end)
                )


def _deviations(directory: ControllerDir) -> Iterator[SnapshotDeviation]:
    """Of each whole checkpoint, against the replay of the log from 0 or from the first checkpoint on.

    Above a hole, or a record that cannot be read, no checkpoint is compared; nor one whose last record is of
    another epoch than the log's, which says nothing of what lies below that record.
    """
    pending = deque(sorted((c for c in directory.checkpoints if c.id and c.id.end_offset > 0), key=_end))
    expected = directory.segments[0].base_offset if directory.segments else 0
    replayed: Image | None = Image() if expected == 0 else None
    last_epoch: int | None = None
    for record in chain(_records(directory), (None,)):
        while pending and _end(pending[0]) <= expected:
            checkpoint = pending.popleft()
            image, digest = _image(checkpoint)
            if image is None or checkpoint.id is None or _end(checkpoint) < expected:
                continue
            if last_epoch not in (None, checkpoint.id.leader_epoch):
                continue
            if replayed is None:
                replayed = image
            else:
                end, epoch, _ = checkpoint.id
                yield from unlawful_deviations(deviations(replayed, image), end, epoch, digest)
        if record is None or record.value is None or record.offset != expected:
            return
        if replayed is not None:
            replayed.apply(record)
        expected, last_epoch = expected + 1, record.leader_epoch


def _refusals(directory: ControllerDir) -> Iterator[ReplayRefusal]:
    """What a replay of the log from 0 refuses, up to a hole or a record that cannot be read."""
    image, log = Image(), list[Part]()
    for expected, record in enumerate(_records(directory)):
        if record.value is None or record.offset != expected:
            return
        if log and log[-1].leader_epoch == record.leader_epoch:
            log[-1] = replace(log[-1], end_offset=expected + 1)
        else:
            log.append(Part(record.leader_epoch, expected, expected + 1))
        image.apply(record)
        for refused in (*image.refusals, *image.controller_refusals):
            if refused.cause is not None and refused.offset == expected:
                named = {name: getattr(refused, name) for name in REFUSAL}
                yield ReplayRefusal(**named, **ONTO_NOTHING, log_digest=digest_of(tuple(log)))


def _records(directory: ControllerDir) -> Iterator[Record]:
    for segment in directory.segments:
        with mapped(segment.path) as buf:
            yield from (
                item for item in read_log(buf, next_offset=segment.base_offset) if isinstance(item, Record)
            )


def _image(checkpoint: CheckpointFile) -> tuple[Image | None, str]:
    """A whole checkpoint's image and digest."""
    assert checkpoint.id is not None
    with mapped(checkpoint.path) as buf:
        snapshot = read_snapshot(buf)
        digest = hashlib.sha256(buf).hexdigest()
        if not snapshot.complete:
            return None, digest
        records = [item for item in read_log(buf, next_offset=0) if isinstance(item, Record)]
    at = snapshot.last_contained_log_timestamp
    end, epoch, _ = checkpoint.id
    return Image.of_snapshot(records, end, epoch, -1 if at is None else at), digest


def _end(checkpoint: CheckpointFile) -> int:
    return checkpoint.id.end_offset if checkpoint.id else 0
