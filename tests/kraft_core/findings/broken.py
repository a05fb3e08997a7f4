"""Captures to break: copies of golden ones whose bytes are edited by the project's own writers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.format.batch import BatchHeader, RawRecord, iter_records, write_batch
from kraft_core.format.codec import read_control_value, write_control_value, write_metadata_value
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.segment import Damage, scan
from kraft_core.messages.control import KRAFT_VOTERS, LEADER_CHANGE
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.evidence.golden import GOLDEN
from tests.kraft_core.findings.collect_rule_facts import collect_rule_facts

NO_OP = write_metadata_value(by_api_key[20], 0, {})
Edit = Callable[[BatchHeader, bytes], bytes]
Facts = tuple[Conclusions, RuleFacts]


def facts_of(folders: Iterable[Path], observations: tuple[Observation, ...] = ()) -> Facts:
    """What the evidence and the rules read of one cluster's directories."""
    directories = find_controller_dirs(sorted(folders)).directories
    (cluster,) = collect(directories)
    known, facts = conclude(cluster), collect_rule_facts(directories)[cluster.cluster_id]
    refusals = tuple(
        replace(
            each, commit_status=known.commit.of_batch(each.leader_epoch, each.offset, each.offset + 1).status
        )
        for each in facts.replay_refusals
    )
    return known, replace(facts, observations=observations, replay_refusals=refusals)


@cache
def golden_facts(*moments: str) -> Facts:
    """Of the captures of some moments of one cluster."""
    return facts_of(folder for moment in moments for folder in (GOLDEN / moment).glob("node-*"))


class Captures:
    """Copies of the captures of some moments of one cluster."""

    def __init__(self, folder: Path, *moments: str) -> None:
        self.folder = folder
        for moment in moments:
            for source in sorted((GOLDEN / moment).glob("node-*")):
                shutil.copytree(source, folder / moment / source.name)

    def facts(self, observations: tuple[Observation, ...] = ()) -> Facts:
        return facts_of([self.folder], observations)

    def nodes(self, moment: str) -> list[Node]:
        return [Node(path) for path in sorted((self.folder / moment).glob("node-*"))]

    def node(self, moment: str, number: int) -> Node:
        return Node(self.folder / moment / f"node-{number}")


class Node:
    """One captured controller directory, to be edited in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log_dir = path / LOG_DIR_NAME

    def copy_as(self, directory_id: str) -> None:
        """The same files once more, under another directory id."""
        copy = self.path.with_name(f"{self.path.name}-{directory_id}")
        shutil.copytree(self.path, copy)
        properties = copy / "meta.properties"
        lines = [line for line in properties.read_text().splitlines() if not line.startswith("directory.id")]
        properties.write_text("\n".join([*lines, f"directory.id={directory_id}"]) + "\n")

    @property
    def segments(self) -> list[Path]:
        return sorted(self.log_dir.glob("*.log"))

    def checkpoint(self, end_offset: int) -> Path:
        (path,) = self.log_dir.glob(f"{end_offset:020}-*.checkpoint")
        return path

    def edit_log(self, edit: Edit) -> None:
        """Every batch as `edit` gives it back; b"" takes it away."""
        for path in self.segments:
            path.write_bytes(edited(path.read_bytes(), edit))

    def edit_batch(self, offset: int, edit: Edit) -> None:
        """The batch at an offset."""
        done: list[int] = []

        def at_offset(header: BatchHeader, batch: bytes) -> bytes:
            if header.base_offset <= offset < header.next_offset:
                done.append(offset)
                return edit(header, batch)
            return batch

        self.edit_log(at_offset)
        assert done == [offset]

    def truncate(self, end_offset: int) -> None:
        self.edit_log(lambda header, batch: batch if header.next_offset <= end_offset else b"")
        for path in self.segments:
            if int(path.stem) > end_offset:
                path.unlink()

    def append(self, *batches: bytes) -> None:
        path = self.segments[-1]
        path.write_bytes(path.read_bytes() + b"".join(batches))

    def set_quorum_state(self, **fields: Any) -> None:
        path = self.log_dir / "quorum-state"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    def set_epochs(self, *entries: tuple[int, int]) -> None:
        lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
        (self.log_dir / "leader-epoch-checkpoint").write_text("\n".join(lines) + "\n")


def edited(buf: bytes, edit: Edit) -> bytes:
    parts: list[bytes] = []
    for item in scan(buf):
        whole = buf[item.position : item.end]
        parts.append(whole if isinstance(item, Damage) else edit(item, whole))
    return b"".join(parts)


def batches_of(path: Path) -> Iterator[tuple[BatchHeader, bytes]]:
    buf = path.read_bytes()
    for item in scan(buf):
        if isinstance(item, BatchHeader):
            yield item, buf[item.position : item.end]


def with_epoch(epoch: int) -> Edit:
    """The leader epoch is outside the CRC: no sum to mend."""
    return lambda _, batch: batch[:12] + epoch.to_bytes(4, "big") + batch[16:]


def with_control(control_type: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Edit:
    """Control batches whose records of a type are changed, with a CRC that fits; others stay."""

    def edit(header: BatchHeader, batch: bytes) -> bytes:
        if not header.is_control:
            return batch
        at_start = header._replace(position=0)
        records = [_changed(record, control_type, change) for record in iter_records(batch, at_start)]
        return write_batch(header.base_offset, header.leader_epoch, records, is_control=True)

    return edit


def _changed(
    record: RawRecord, control_type: int, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> RawRecord:
    key = record.key or b""
    if int.from_bytes(key[2:4], "big") != control_type:
        return record
    value = read_control_value(control_type, record.value or b"").value
    return record._replace(value=write_control_value(control_type, change(value)))


def without(*ids: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A VotersRecord without some of its voters."""
    return lambda value: value | {"voters": [v for v in value["voters"] if v["voterId"] not in ids]}


def control_batch(offset: int, epoch: int, timestamp: int, control_type: int, value: dict[str, Any]) -> bytes:
    key = (0).to_bytes(2, "big") + control_type.to_bytes(2, "big")
    record = RawRecord(offset, timestamp, key, write_control_value(control_type, value))
    return write_batch(offset, epoch, [record], is_control=True)


def leader_change(offset: int, epoch: int, timestamp: int, leader: int, ids: tuple[int, ...]) -> bytes:
    voters = [{"voterId": i} for i in ids]
    value = {"version": 0, "leaderId": leader, "voters": voters, "grantingVoters": voters}
    return control_batch(offset, epoch, timestamp, LEADER_CHANGE, value)


def voters_of(node: Node, offset: int) -> dict[str, Any]:
    """The VotersRecord at an offset of a log."""
    for path in node.segments:
        for header, batch in batches_of(path):
            if header.base_offset <= offset < header.next_offset:
                for record in iter_records(batch, header._replace(position=0)):
                    if record.offset == offset:
                        return read_control_value(KRAFT_VOTERS, record.value or b"").value
    raise AssertionError(f"no record at {offset}")


def voters_batch(header: BatchHeader, value: dict[str, Any]) -> bytes:
    """A VotersRecord in the place of a batch of one record."""
    assert header.record_count == 1
    return control_batch(header.base_offset, header.leader_epoch, header.max_timestamp, KRAFT_VOTERS, value)


def no_op_batch(header: BatchHeader, later_by: int = 0) -> bytes:
    """NoOpRecords in the place of a batch, at its times."""
    records = [
        RawRecord(offset, header.max_timestamp + later_by, None, NO_OP)
        for offset in range(header.base_offset, header.next_offset)
    ]
    return write_batch(header.base_offset, header.leader_epoch, records)
