"""Histories of all kinds but partitions: the core's History over the records of a lake.

They have many rules but few records compared with partitions, on which they do not depend. The core replays
some 20,000 a second and holds a cluster's metadata, not its log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.image.change import RefusedRecord
from kraft_core.image.from_columns import MESSAGES, StoredRecord
from kraft_core.image.from_rows import change_of
from kraft_core.image.history import SNAPSHOT, History, Version, rows
from kraft_core.image.image import Image
from kraft_core.image.replay_path import COMMITTED, ReplayRange
from kraft_core.image.tables import ZK_MIGRATION
from transforms.histories.missing import with_missing
from transforms.histories.partition_events import CHANGE, REGISTRATION
from transforms.histories.refused_records import AddRefused, sure
from transforms.histories.replay_plan import MARKERS, ReplayPlan, lowest_start
from transforms.histories.replay_records import (
    END,
    WAS_READ,
    Held,
    checkpoint_columns,
    checkpoint_records,
    counted,
    ended_from,
    history_rows,
    in_memory,
    in_order,
    log_records,
    opened,
)
from transforms.lake.arrow_rows import milliseconds, to_arrow
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    CLIENT_QUOTAS,
    HISTORIES,
    PARTITIONS,
    RECORDS,
    SNAPSHOT_RECORDS,
    ZK_MIGRATION_STATES,
    Table,
)

Row = dict[str, Any]
OTHERS = tuple(table for table in HISTORIES if table is not PARTITIONS)
KIND_OF = {table: table.name for table in OTHERS} | {ZK_MIGRATION_STATES: ZK_MIGRATION}
# ELRs are of partitions; here only whether the topic is known counts.
TYPES = tuple(sorted(MESSAGES.keys() - {REGISTRATION, CHANGE}))
OF_LOG = WAS_READ & ds.field("type").isin([*TYPES, *MARKERS])
OF_CHECKPOINTS = WAS_READ & ds.field("type").isin(TYPES)
TIMES = ("valid_from_at", "valid_to_at", "earliest_from_at", "earliest_to_at", "appended_at")


def count_others(lake: Location, plans: Sequence[ReplayPlan]) -> Counter[str]:
    """How many records and versions of these kinds the replay of each cluster reads."""
    wanted = {table: ended_from(lowest_start(plans)) for table in OTHERS}
    wanted[RECORDS] = OF_LOG & (ds.field("offset") >= lowest_start(plans))
    digests = [c.content_digest for plan in plans for c in plan.checkpoints]
    if digests:
        wanted[SNAPSHOT_RECORDS] = OF_CHECKPOINTS & ds.field("content_digest").isin(digests)
    return counted(opened(lake, *wanted), wanted, [plan.cluster_id for plan in plans])


def other_versions(
    lake: Location, plans: Sequence[ReplayPlan], lowest: int, refused: AddRefused
) -> Iterator[tuple[str, Table, pa.Table]]:
    """By cluster and history, where it changes, the rows that end at an offset or later, or not at all.

    lowest: that offset, at most the least start of the plans. refused: takes what Kafka refuses to replay.
    """
    held = opened(lake, RECORDS, SNAPSHOT_RECORDS, *OTHERS)
    by_cluster = {plan.cluster_id: plan for plan in plans}
    before = {table: history_rows(held, table, list(by_cluster), lowest) for table in OTHERS}
    ranges = {plan.cluster_id: plan.ranges for plan in plans}
    checkpoints = checkpoints_held(held, plans)
    for cluster, pieces in groupby(log_records(held, ranges, TYPES, OF_LOG), itemgetter(0)):
        plan = by_cluster[cluster]
        replay = OtherKinds(plan, checkpoints.get(cluster, held))
        for table in OTHERS:
            if len(before[table][cluster]):
                replay.resume(table, before[table][cluster])
        for _, records in pieces:
            replay.apply(records)
        made_of = list(replay.finish())
        refused(cluster, replay.refused)
        for table, made in made_of:
            rows = before[table].pop(cluster)
            if not made and not len(rows):
                continue
            ended = rows.filter(pc.less(rows["valid_to_offset"], plan.start))
            joined = with_missing(pa.concat_tables([ended, *made]), plan.missing, plan.missing_at)
            after = in_order(table, joined.select(rows.column_names))
            if not after.equals(rows):
                yield cluster, table, after


def checkpoints_held(held: Held, plans: Sequence[ReplayPlan]) -> dict[str, Held]:
    """Checkpoints of several clusters, which are small, by cluster; those of one alone are read in pieces."""
    digests = [c.content_digest for plan in plans for c in plan.checkpoints]
    if len(plans) == 1 or not digests:
        return {}
    where = OF_CHECKPOINTS & ds.field("content_digest").isin(digests)
    wanted = {SNAPSHOT_RECORDS: (checkpoint_columns(TYPES), where)}
    return in_memory(held, wanted, [plan.cluster_id for plan in plans])


class OtherKinds:
    """The replay of one cluster: owns a history, and as Arrow tables the versions that ended in it.

    refused: the records that Kafka refuses to replay.
    """

    def __init__(self, plan: ReplayPlan, held: Held) -> None:
        self._plan = plan
        self._held = held
        self._to_load = sorted(plan.checkpoints, key=attrgetter("first_offset"), reverse=True)
        self._ranges = [step for step in plan.steps if isinstance(step, ReplayRange)]
        self._history = History()
        self.refused: list[RefusedRecord] = []
        self._made: dict[Table, list[pa.Table]] = {table: [] for table in OTHERS}

    def resume(self, table: Table, rows: pa.Table) -> None:
        """Of rows of a history add the versions that are current where the replay starts."""
        start = self._plan.start
        goes_on = pc.fill_null(pc.greater_equal(rows["valid_to_offset"], start), True)
        current = rows.filter(pc.and_(pc.less(rows["valid_from_offset"], start), goes_on))
        for row in current.to_pylist():
            self._history.resume(version_of(table, row))

    def apply(self, records: Sequence[StoredRecord]) -> None:
        """The next records of the log; those at one offset come together."""
        for offset, at_offset in groupby(records, attrgetter("offset")):
            self._load_below(offset)
            self._history.reach(self._plan.floor_at(offset))
            self._history.apply(*at_offset)
        self._keep_refused()
        for table, kind in KIND_OF.items():
            self._keep(table, self._history.take_ended(kind))

    def finish(self) -> Iterator[tuple[Table, list[pa.Table]]]:
        """By history the rows that end where the replay starts or later, or not at all."""
        self._load_below(END)
        self._history.end()
        self._keep_refused()
        for table, kind in KIND_OF.items():
            self._keep(table, [*self._history.take_ended(kind), *self._history.current(kind)])
            yield table, self._made.pop(table)

    def _keep_refused(self) -> None:
        """Of a log that lacks its beginning most records may be refused: few are kept."""
        self.refused = sure([*self.refused, *self._history.take_refused()], self._plan.unsure)

    def _load_below(self, offset: int) -> None:
        while self._to_load and self._to_load[-1].first_offset < offset:
            checkpoint = self._to_load.pop()
            records = checkpoint_records(self._held, self._plan.cluster_id, checkpoint, TYPES, OF_CHECKPOINTS)
            at = -1 if checkpoint.timestamp is None else checkpoint.timestamp
            self._history.reach(self._plan.floor_at(checkpoint.first_offset))
            image = Image.of_snapshot(records, checkpoint.end_offset, checkpoint.leader_epoch, at)
            self._history.load(image, self._plan.gaps.get(checkpoint.first_offset))

    def _keep(self, table: Table, versions: Sequence[Version]) -> None:
        made = [self._lake_row(table, row) for row in rows(versions)]
        if made:
            self._made[table].append(to_arrow(made, table.arrow_schema))

    def _lake_row(self, table: Table, row: Row) -> Row:
        """A row of the core as the table has it."""
        end, known = row["valid_to_offset"], row["known_from_offset"] is not None
        more = {
            "cluster_id": self._plan.cluster_id,
            "commit_status": COMMITTED if known else self._status_at(row["valid_from_offset"]),
            "end_commit_status": end and (COMMITTED if row["ended_by"] == SNAPSHOT else self._status_at(end)),
        }
        if table is CLIENT_QUOTAS:
            more["entity_name"] = entity_name(row["entity"])
        return row | {name: microseconds(row[name]) for name in TIMES} | more

    def _status_at(self, offset: int) -> str | None:
        """The commit status of a record on the path."""
        place = bisect_right(self._ranges, offset, key=attrgetter("first_offset")) - 1
        inside = place >= 0 and offset < self._ranges[place].end_offset
        return self._ranges[place].commit_status if inside else None


def version_of(table: Table, row: Row) -> Version:
    """A version of a row of its history, as it was before anything ended it."""
    change = change_of(KIND_OF[table], row)
    at = {name: -1 if row[name] is None else milliseconds(row[name]) or 0 for name in TIMES}
    return Version(
        kind=change.kind,
        key=change.key,
        value=change.value,
        valid_from_offset=row["valid_from_offset"],
        valid_from_at=at["valid_from_at"],
        record_offset=row["record_offset"],
        record_type=row["record_type"],
        record_leader_epoch=row["record_leader_epoch"],
        appended_at=at["appended_at"],
        known_from_offset=row["known_from_offset"],
        earliest_from_offset=row["earliest_from_offset"],
        earliest_from_at=at["earliest_from_at"],
    )


def microseconds(ms: int | None) -> int | None:
    """A time of the core, as Arrow takes it."""
    return None if ms is None or ms < 0 else 1000 * ms


def entity_name(parts: Sequence[Row]) -> str:
    """A quota's entity in words: client-id=c1,user=<default>."""
    named = ((part["entity_type"], part["entity_name"]) for part in parts)
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in named)
