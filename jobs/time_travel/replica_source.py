"""A source of shell and diff: one captured replica, by a controller directory, a segment or a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.runtime.outcome import ExitCode, Failure
from jobs.time_travel.source import Epoch, SourcedVoterSet
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.image import tree
from kraft_core.image.differences import Difference, differences
from kraft_core.image.events import Event, events
from kraft_core.image.image import Image
from kraft_core.image.replica import CapturedReplica
from kraft_core.messages.control import CONTROL_RECORDS, KRAFT_VOTERS, LEADER_CHANGE
from kraft_core.raft.voters import VoterSet

_VOTERS = CONTROL_RECORDS[KRAFT_VOTERS].type_name
_LEADER_CHANGE = CONTROL_RECORDS[LEADER_CHANGE].type_name
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class ReplicaSource:
    """One captured replica as a source."""

    replica: CapturedReplica

    @property
    def notes(self) -> list[str]:
        return self.replica.notes

    @property
    def cluster_id(self) -> str | None:
        return self.replica.cluster_id

    @property
    def last_offset(self) -> int:
        return self.replica.last_offset

    @property
    def oldest_known(self) -> tuple[int, int | None]:
        return self.replica.oldest_known

    def image_at(self, offset: int | None = None) -> Image:
        return self.replica.image_at(offset)

    def differences(self, before: Image, after: Image) -> Iterator[Difference]:
        return differences(before, after)

    def commit_status(self, offset: int) -> None:
        del offset

    def known_from(self, offset: int) -> int:
        return self.replica.known_from(offset)

    def offset_at(self, time: int) -> int:
        return self.replica.offset_at(time)

    def append_before(self, offset: int) -> int | None:
        return self.replica.append_before(offset)

    def events(self, patterns: Sequence[tree.Path], last_offset: int) -> Iterator[Event]:
        return events(self.replica, patterns, last_offset)

    def voter_sets(self) -> list[SourcedVoterSet]:
        return _voter_sets(self.replica)

    def epochs(self) -> list[Epoch]:
        return _epochs(self.replica)

    def leader_answer(
        self,
        leader_epoch: int,
        high_watermark: int | None = None,
        voter_ids: Collection[int] | None = None,
    ) -> None:
        del leader_epoch, high_watermark, voter_ids


def open_replica(path: Path, allowed: Set[str] = NONE_ALLOWED) -> CapturedReplica:
    """The replica at a path. Raises Failure if there is none, more than one, or nothing readable.

    allowed: configs to show although Kafka does not define them.
    """
    try:
        replica = CapturedReplica.of_file(path, allowed) if path.is_file() else _of_tree(path, allowed)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from None
    if replica.is_empty:
        why = "; ".join(replica.notes[:_MAX_LISTED]) or "neither a batch nor a checkpoint"
        raise Failure(f"nothing readable in {path}: {why}", ExitCode.NOTHING_READABLE)
    return replica


def _of_tree(path: Path, allowed: Set[str]) -> CapturedReplica:
    if not path.exists():
        raise Failure(f"no such file or directory: {path}")
    found = find_controller_dirs([path])
    if not found.directories:
        skipped = (*found.refused, *found.without_log)[:_MAX_LISTED]
        why = "; ".join(map(str, skipped))
        raise Failure(
            f"no controller directory in {path}" + (f": {why}" if why else ""), ExitCode.NOTHING_READABLE
        )
    directory, *others = found.directories
    if others:
        names = [str(each.path) for each in found.directories]
        listed = ", ".join(names[:_MAX_LISTED]) + (", ..." if len(names) > _MAX_LISTED else "")
        raise Failure(f"{len(names)} controller directories in {path}; choose one: {listed}")
    return CapturedReplica.of_directory(directory, allowed)


def _voter_sets(replica: CapturedReplica) -> list[SourcedVoterSet]:
    """Every voter set in the log and its checkpoints by offset, whether committed or not."""
    records = [record for record in replica.control_records() if record.value is not None]
    sets = [
        SourcedVoterSet(record.offset, record.leader_epoch, record.timestamp, "record", voters, voters.ids)
        for record in records
        if record.type == _VOTERS and record.value is not None
        for voters in [VoterSet.from_record(record.value)]
    ]
    known = sorted(sets, key=lambda one: one.offset)
    for one in _of_checkpoints(replica):
        before = [earlier for earlier in known if earlier.offset <= one.offset]
        if not before or before[-1].voters != one.voters:
            known = sorted([*known, one], key=lambda each: each.offset)
    first = known[0].offset if known else replica.last_offset + 1
    return [*_static(replica, first), *known]


def _of_checkpoints(replica: CapturedReplica) -> Iterator[SourcedVoterSet]:
    for snapshot_id, record in replica.checkpoint_controls():
        if record.type == _VOTERS and record.value is not None:
            voters = VoterSet.from_record(record.value)
            source = "snapshot" if snapshot_id.end_offset else "bootstrap"
            yield SourcedVoterSet(
                snapshot_id.end_offset - 1, snapshot_id.leader_epoch, None, source, voters, voters.ids
            )


def _static(replica: CapturedReplica, first: int) -> Iterator[SourcedVoterSet]:
    """The sets of a static quorum, below the first set of the log; none above records that are missing.

    The first leader of a dynamic quorum writes its LEADER_CHANGE and the voters in one batch.
    """
    ids: tuple[int, ...] = ()
    lacks = replica.known_from(first - 1)
    for record in replica.control_records():
        if record.batch.last_offset >= first or (lacks and replica.known_from(record.offset)):
            return
        if record.type == _LEADER_CHANGE and record.value is not None and _ids(record.value["voters"]) != ids:
            ids = _ids(record.value["voters"])
            yield SourcedVoterSet(record.offset, record.leader_epoch, record.timestamp, "static", None, ids)


def _epochs(replica: CapturedReplica) -> list[Epoch]:
    """The epochs whose LEADER_CHANGE is still in the log."""
    found: list[Epoch] = []
    for record in replica.control_records():
        if record.type == _LEADER_CHANGE and record.value is not None:
            before = replica.append_before(record.offset)
            waited = None if before is None else record.timestamp - before
            found.append(
                Epoch(
                    leader_epoch=record.leader_epoch,
                    start_offset=record.offset,
                    leader_id=record.value["leaderId"],
                    timestamp=record.timestamp,
                    voters=_ids(record.value["voters"]),
                    granting_voters=_ids(record.value["grantingVoters"]),
                    leaderless_ms=waited if waited is not None and waited >= 0 else None,
                )
            )
    return found


def _ids(voters: list[dict[str, Any]]) -> tuple[int, ...]:
    return tuple(voter["voterId"] for voter in voters)
