"""A source of shell and diff: a lake's histories of one cluster, read by delta-rs, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.runtime.lake_clusters import one_cluster
from jobs.runtime.outcome import Failure
from jobs.time_travel.lake_quorum import epochs, voter_sets
from jobs.time_travel.leader_answers import newest_answer
from jobs.time_travel.source import Epoch, SourcedVoterSet
from kraft_core.image import tree
from kraft_core.image.change import Change, Key
from kraft_core.image.differences import Difference, differences
from kraft_core.image.events import CHECKPOINT, Event, path_under
from kraft_core.image.from_rows import change_of, things_of
from kraft_core.image.image import Image
from kraft_core.image.missing_records import MissingRecords
from kraft_core.image.replay_path import COMMITTED, PathCheckpoint, ReplayRange, Step
from kraft_core.image.replica import OutOfReachError, lost_between
from kraft_core.image.tables import Tables
from kraft_core.image.topics import Topic
from kraft_core.kafka_tools.quorum import LeaderAnswer
from transforms.histories.clocks import Clock, clocks
from transforms.histories.missing import Lacking, lacking_by_cluster
from transforms.histories.replay_steps import known_paths
from transforms.lake.arrow_rows import milliseconds, python_values
from transforms.lake.delta_rs import columns_with, exists, newest_version, opened, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    FINDINGS,
    HISTORIES,
    METADATA_TRANSACTIONS,
    PARTITIONS,
    RECORDS,
    REFUSED_RECORDS,
    TOPICS,
    VERSION,
    ZK_MIGRATION_STATES,
    Table,
)
from transforms.quality.derived_counts import why_not_evaluated

Row = dict[str, Any]
OF_VERSIONS = {"cluster_id", *(column.name for column in VERSION)}
_ALL = ds.scalar(True)
# Rule 3.
LOGS_MATCH = 3
KINDS = {ZK_MIGRATION_STATES.name: "zk_migration"}
# The histories behind each directory of the tree.
HISTORIES_BY_DIRECTORY: Mapping[str, tuple[str, ...]] = {
    "acls": ("acls",),
    "clientQuotas": ("client_quotas",),
    "cluster": ("brokers", "controllers"),
    "configs": ("configs",),
    "delegationToken": ("delegation_tokens",),
    "features": ("features", "zk_migration_states"),
    "producerIds": ("producer_ids",),
    "provenance": (),
    "scram": ("scram_users",),
    "topics": ("topics", "partitions"),
}


def open_cluster(lake: Location, wanted: str | None) -> LakeSource:
    """The cluster of that id or name, or the lake's only one. Raises Failure."""
    cluster_id = one_cluster(lake, wanted)
    steps = known_paths(lake, [cluster_id]).get(cluster_id, [])
    if not steps:
        raise Failure(f"{lake} has no histories of cluster {cluster_id}; run kraftlake derive --lake {lake}")
    return LakeSource(lake, cluster_id, steps)


class LakeSource:
    """A cluster's metadata by all its captures, without truncated records. steps: the replay path."""

    def __init__(self, lake: Location, cluster_id: str, steps: list[Step]) -> None:
        self.notes: list[str] = []
        self._lake = lake
        self._id = cluster_id
        self.steps = steps

    @property
    def cluster_id(self) -> str:
        """Kafka's own, without what tells its lives apart."""
        return self._id.partition("/")[0]

    @property
    def last_offset(self) -> int:
        return self.steps[-1].end_offset - 1

    @property
    def oldest_known(self) -> tuple[int, int | None]:
        step = self.steps[0]
        if isinstance(step, PathCheckpoint):
            return step.first_offset, step.timestamp
        return step.first_offset, self.append_before(step.first_offset + 1)

    def image_at(self, offset: int | None = None) -> Image:
        wanted = self.last_offset if offset is None else offset
        step = self.step_at(wanted)
        image = self.part_at(wanted, dict.fromkeys(HISTORIES, _ALL))
        image.offset, image.leader_epoch = wanted, -1 if step is None else step.leader_epoch
        image.timestamp = self.append_before(wanted + 1) or -1
        for each in self._lacking.unsure:
            if each.concerns(wanted):
                self._note(self._sentence(each))
        refused = self._refused_before(wanted + 1, self._loaded_at(wanted))
        for words in (*self._not_evaluated, *self._contested_before(wanted + 1), *refused):
            self._note(words)
        for transaction in rows_with(self._lake, METADATA_TRANSACTIONS, cluster_id=[self._id]):
            if transaction["begun_offset"] <= wanted < (transaction["ended_offset"] or wanted + 1):
                image.leave_open()
        return image

    @property
    def gaps(self) -> list[str]:
        """What the whole history lacks, in words."""
        lacking, end = [self._sentence(each) for each in self._lacking.unsure], self.last_offset + 1
        return [*self._not_evaluated, *lacking, *self._contested_before(end), *self._refused_before(end)]

    @cached_property
    def _not_evaluated(self) -> list[str]:
        """That histories are not those of all captures: new ones may also end what was the log before."""
        words = why_not_evaluated(self._lake, self._id)
        return [] if words is None else [words]

    def _contested_before(self, end_offset: int) -> list[str]:
        """Epochs with different batches at an offset below this one, of which all are replayed, in words."""
        columns = ["first_offset", "leader_epochs"]
        rows = rows_with(self._lake, FINDINGS, columns, cluster_id=[self._id], rule=[LOGS_MATCH])
        found = sorted((row["first_offset"] or 0, *row["leader_epochs"]) for row in rows)
        return [
            f"captures contradict each other about epoch {epoch}, from offset {first} on"
            for first, epoch in found
            if first < end_offset
        ]

    def _loaded_at(self, offset: int) -> int:
        """Where the checkpoint took effect that the state after an offset was replayed from; -1: none."""
        loaded = (step.first_offset for step in self.steps if isinstance(step, PathCheckpoint))
        return max((first for first in loaded if first <= offset), default=-1)

    def _refused_before(self, end_offset: int, loaded: int = -1) -> list[str]:
        """The first record below an offset that Kafka refuses to replay, in words, if there is one.

        loaded: where a checkpoint states what the records up to there changed; its own count.
        """
        columns = ["offset", "type", "reason", "base_end_offset"]
        rows = rows_with(self._lake, REFUSED_RECORDS, columns, cluster_id=[self._id])
        counting = (
            tuple(row[name] for name in columns)
            for row in rows
            if loaded < row["offset"] < end_offset or loaded == row["offset"] < row["base_end_offset"]
        )
        first = min(counting, default=None)
        if first is None:
            return []
        at, type_, reason, base = first
        where = "of the checkpoint at" if at < base else "at offset"
        return [f"{type_} {where} {at} cannot be replayed: {reason}"]

    def _sentence(self, each: MissingRecords) -> str:
        return each.sentence if each in self._lacking.missing else each.newer_sentence

    def part_at(self, offset: int, wanted: Mapping[Table, ds.Expression]) -> Image:
        """The things of some histories, those that meet a condition, at an offset (inclusive).

        A history is read when it is first asked for, as it is now.
        """
        held = {
            KINDS.get(table.name, table.name): (table, newest_version(self._lake, table))
            for table in wanted
            if exists(self._lake, table)
        }

        def read(kind: str) -> Iterable[tuple[Key, Any]]:
            if kind not in held:
                return ()
            table, version = held[kind]
            names = [name for name in table.names if name not in OF_VERSIONS]
            where = valid_at(offset) & wanted[table]
            stored = opened(self._lake, table, version, where & (ds.field("cluster_id") == self._id))
            found = columns_with(stored, names, where, cluster_id=[self._id])
            return things_of(kind, {name: python_values(found[name], tuple) for name in names})

        return Image(Tables(read))

    def differences(self, before: Image, after: Image) -> Iterator[Difference]:
        """By the versions that are valid at one of the two offsets alone."""
        then, now = valid_at(before.offset), valid_at(after.offset)
        gone = self.part_at(before.offset, dict.fromkeys(HISTORIES, ~now))
        return differences(gone, self.part_at(after.offset, dict.fromkeys(HISTORIES, ~then)))

    def changes_from(self, image: Image, first: int, last: int) -> Iterator[list[Change]]:
        """What each batch between two offsets (both inclusive) changes in the image before them."""
        del image  # the histories say what becomes of each thing, whatever it was
        found: list[tuple[int, int, Change]] = []
        for table in HISTORIES:
            kind = KINDS.get(table.name, table.name)
            start, end = ds.field("valid_from_offset"), ds.field("valid_to_offset")
            within = ((start >= first) & (start <= last)) | ((end >= first) & (end <= last))
            for row in rows_with(self._lake, table, None, within, cluster_id=[self._id]):
                change = change_of(kind, row)
                if first <= row["valid_from_offset"] <= last:
                    found.append((row["valid_from_offset"], 1, change))
                if row["valid_to_offset"] is not None and first <= row["valid_to_offset"] <= last:
                    # Before what takes its place there, if anything does.
                    found.append((row["valid_to_offset"], 0, replace(change, value=None)))
        found.sort(key=lambda each: each[:2])
        for _, batch in groupby(found, key=lambda each: self._clock.batch_of(each[0])):
            yield [change for _, _, change in batch]

    def records_of(self, kinds: Collection[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], int]]:
        """(type, version) and offset of the records of some types and versions on the replay path."""
        ranges = [step for step in self.steps if isinstance(step, ReplayRange)]
        names = ["offset", "leader_epoch", "type", "version"]
        for row in rows_with(
            self._lake, RECORDS, names, cluster_id=[self._id], type=sorted({type_ for type_, _ in kinds})
        ):
            kind, offset, epoch = (row["type"], row["version"]), row["offset"], row["leader_epoch"]
            if kind in kinds and any(
                r.leader_epoch == epoch and r.first_offset <= offset < r.end_offset for r in ranges
            ):
                yield kind, offset

    def step_at(self, offset: int) -> Step | None:
        """The step that holds the offset; None before a log that begins at 0. Raises OutOfReachError."""
        if offset > self.last_offset:
            raise OutOfReachError(
                f"offset {offset} is beyond the end of the log; its last offset is {self.last_offset}"
            )
        if offset < 0 and self.steps[0].first_offset == 0:
            return None
        for step in self.steps:
            if step.first_offset <= offset < step.end_offset:
                return step
        below = max((s.end_offset - 1 for s in self.steps if s.end_offset <= offset), default=None)
        above = min(s.first_offset for s in self.steps if s.first_offset > offset)
        known = f"after offset {above}" if below is None else f"after offset {below} and after offset {above}"
        raise OutOfReachError(
            f"undecided: no capture shows offset {offset} of the newest log; the nearest known state "
            f"is the one {known}"
        )

    def commit_status(self, offset: int) -> str | None:
        step = self.step_at(offset)
        # What a checkpoint covers was committed when it was written.
        return step.commit_status if isinstance(step, ReplayRange) else COMMITTED

    def known_from(self, offset: int) -> int:
        missing = self._lacking.missing
        return max((each.end_offset for each in missing if each.concerns(offset)), default=0)

    def offset_at(self, time: int) -> int:
        offset = self._clock.offset_at(time)
        if offset is None:
            if self.steps[0].first_offset > 0:
                raise OutOfReachError(
                    "undecided: that time is before the oldest known state, which is the one after offset "
                    f"{self.steps[0].first_offset}"
                )
            return -1
        following = min((s.first_offset for s in self.steps if s.end_offset > offset + 1), default=0)
        if following > offset + 1:
            raise lost_between(offset, following)
        return offset

    def append_before(self, offset: int) -> int | None:
        return self._clock.time_before(offset)

    @cached_property
    def _clock(self) -> Clock:
        return clocks(self._lake, {self._id: self.steps})[self._id]

    @cached_property
    def _lacking(self) -> Lacking:
        return lacking_by_cluster(self._lake, {self._id: self.steps})[self._id]

    def events(self, patterns: Sequence[tree.Path], last_offset: int) -> Iterator[Event]:
        """As for a replica; timestamps are the effective ones."""
        asked = {name for pattern in patterns for name in histories_under(pattern)}
        wanted = {table: _ALL for table in HISTORIES if table.name in asked}
        if PARTITIONS in wanted:
            wanted[PARTITIONS] = ds.field("topic_id").isin(
                pa.array(self._topics_under(patterns), pa.string())
            )
        found = [
            event
            for table, condition in wanted.items()
            for event in self._events_of(table, patterns, last_offset, condition)
        ]
        return iter(sorted(found, key=lambda event: event.offset))

    def _topics_under(self, patterns: Sequence[tree.Path]) -> list[str]:
        """The ids of the topics whose partitions can have a path that matches one of the patterns."""
        rows = rows_with(self._lake, TOPICS, ["topic_id", "topic_name"], cluster_id=[self._id])
        topics = [Topic(row["topic_id"], row["topic_name"]) for row in rows]
        return sorted({t.topic_id for t in topics if path_under(patterns, TOPICS.name, t) is not None})

    def events_of(self, wanted: Mapping[Table, ds.Expression]) -> list[Event]:
        """Every event of some histories, of the things that meet a condition, in the order of the log.

        With the batches that made them visible, which those of `events` lack.
        """
        found = [
            replace(event, batch_base_offset=self._clock.batch_of(event.offset))
            for table, condition in wanted.items()
            for event in self._events_of(table, [("image",)], self.last_offset, condition)
        ]
        return sorted(found, key=lambda event: event.offset)

    def _events_of(
        self,
        table: Table,
        patterns: Sequence[tree.Path],
        last_offset: int,
        condition: ds.Expression = _ALL,
    ) -> Iterator[Event]:
        key = [name for name in table.key if name != "valid_from_offset"]
        began = ds.field("valid_from_offset") <= last_offset
        rows = rows_with(self._lake, table, None, began & condition, cluster_id=[self._id])
        rows.sort(key=lambda row: (*(row[name] for name in key), row["valid_from_offset"]))
        for _, of_thing in groupby(rows, key=lambda row: [row[name] for name in key]):
            yield from self._events_of_thing(
                KINDS.get(table.name, table.name), list(of_thing), patterns, last_offset
            )

    def _events_of_thing(
        self, kind: str, rows: list[Row], patterns: Sequence[tree.Path], last_offset: int
    ) -> Iterator[Event]:
        before, until = None, None
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            value = change_of(kind, row).value
            path = path_under(patterns, kind, value)
            start, end = row["valid_from_offset"], row["valid_to_offset"]
            if path is not None:
                known = before if until == start else None
                shown_by = CHECKPOINT if row["valid_from_exact"] is False else row["record_type"]
                yield self._event(shown_by, start, row["valid_from_at"], path, kind, known, value)
                goes_on = following is not None and following["valid_from_offset"] == end
                if end is not None and end <= last_offset and not goes_on:
                    shown_by = CHECKPOINT if row["valid_to_exact"] is False else row["ended_by"]
                    yield self._event(shown_by, end, row["valid_to_at"], path, kind, value, None)
            before, until = value, end

    def _event(
        self, record_type: str, offset: int, at: Any, path: tree.Path, kind: str, before: Any, after: Any
    ) -> Event:
        step = self.step_at(offset)
        epoch = -1 if step is None else step.leader_epoch
        return Event(offset, epoch, milliseconds(at) or -1, record_type, path, kind, before, after)

    def voter_sets(self) -> list[SourcedVoterSet]:
        return voter_sets(self._lake, self._id)

    def epochs(self) -> list[Epoch]:
        return epochs(self._lake, self._id)

    def leader_answer(
        self,
        leader_epoch: int,
        high_watermark: int | None = None,
        voter_ids: Collection[int] | None = None,
    ) -> LeaderAnswer | None:
        return newest_answer(self._lake, self._id, leader_epoch, high_watermark, voter_ids)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def valid_at(offset: int) -> ds.Expression:
    """Selects the versions that are valid at an offset (inclusive)."""
    end = ds.field("valid_to_offset")
    return (ds.field("valid_from_offset") <= offset) & (end.is_null() | (end > offset))


def histories_under(pattern: tree.Path) -> Iterable[str]:
    """The names of the histories that a path needs; all of them for a path above their directories."""
    if len(pattern) > 1 and pattern[0] == "image" and pattern[1] in HISTORIES_BY_DIRECTORY:
        return HISTORIES_BY_DIRECTORY[pattern[1]]
    return [table.name for table in HISTORIES]
