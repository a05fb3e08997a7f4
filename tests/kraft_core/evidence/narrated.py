"""Facts written by hand: a small cluster, for tests that read like the story they check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import (
    Capture,
    CapturedControlRecord,
    ClusterFacts,
    EpochRange,
    FeatureLevel,
    SnapshotFacts,
    copied_between,
)
from kraft_core.evidence.rows import ClusterEvidence
from kraft_core.format.capture import CapturedAtSource
from kraft_core.messages.uuid_text import ZERO_UUID


def directory(replica: str) -> tuple[int, str]:
    """A replica by name: "2" is node 2 and its directory, "2b" another directory, "2?" an unknown one."""
    node = int(replica.rstrip("abc?"))
    return node, ZERO_UUID if replica.endswith("?") else f"{replica:D>22}"


def voters(names: str) -> list[dict[str, Any]]:
    """A VotersRecord's voters: "1 2 3"."""
    return [
        {
            "voterId": directory(name)[0],
            "voterDirectoryId": directory(name)[1],
            "endpoints": [{"name": "CONTROLLER", "host": f"host{name}", "port": 9093}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
        for name in names.split()
    ]


@dataclass
class Story:
    """A cluster's life: the records that its leaders wrote and the captures taken of it."""

    control_records: list[CapturedControlRecord] = field(default_factory=list)
    captures: list[Capture] = field(default_factory=list)
    snapshots: list[SnapshotFacts] = field(default_factory=list)
    feature_levels: list[FeatureLevel] = field(default_factory=list)
    first_batches: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    first_data: dict[int, tuple[int, int]] = field(default_factory=dict)

    def leader(
        self, epoch: int, at: int, node: int, ids: str, granted: str | None = None, sets: str = ""
    ) -> Story:
        """LEADER_CHANGE at an offset, 10 ms an offset; `sets`: with KRAFT_VERSION 1 and KRAFT_VOTERS."""
        end = at + (3 if sets else 1)
        self.first_batches[epoch] = (at, end, 10 * at)
        value = {
            "leaderId": node,
            "voters": [{"voterId": int(i)} for i in ids.split()],
            "grantingVoters": [{"voterId": int(i)} for i in (granted or ids).split()],
        }
        self.control_records.append(
            CapturedControlRecord(at, epoch, at, end, epoch, 10 * at, "LeaderChange", value)
        )
        if sets:
            version = {"kRaftVersion": 1}
            self.control_records.append(
                CapturedControlRecord(at + 1, epoch, at, end, epoch, 10 * at, "KRaftVersion", version)
            )
            self.voters(epoch, at + 2, sets, batch=(at, end), crc=epoch)
        return self

    def data(self, epoch: int, at: int) -> Story:
        """The first batch of data of an epoch: one record."""
        self.first_data[epoch] = (at + 1, 10 * at)
        return self

    def voters(
        self, epoch: int, at: int, names: str, batch: tuple[int, int] | None = None, crc: int | None = None
    ) -> Story:
        """A VotersRecord, alone in its batch unless that is given."""
        base, end = batch or (at, at + 1)
        crc = 1000 * epoch + at if crc is None else crc
        value = {"voters": voters(names)}
        self.control_records.append(
            CapturedControlRecord(at, epoch, base, end, crc, 10 * at, "KRaftVoters", value)
        )
        return self

    def upgrade(self, epoch: int, at: int, names: str) -> Story:
        """kraft.version 0 -> 1: KRAFT_VERSION and KRAFT_VOTERS in one batch."""
        batch = (at, at + 2)
        self.control_records.append(
            CapturedControlRecord(at, epoch, *batch, 1, 10 * at, "KRaftVersion", {"kRaftVersion": 1})
        )
        return self.voters(epoch, at + 1, names, batch, crc=1)

    def metadata_version(self, epoch: int, at: int, level: int) -> Story:
        self.feature_levels.append(FeatureLevel(at, epoch, level))
        return self

    def capture(
        self,
        replica: str,
        at: int,
        log: str,
        in_epoch: int | None = None,
        end: int | None = None,
        digests: str = "",
        stated: bool = True,
        **more: Any,
    ) -> Story:
        """A capture at a time (ms) of a log like "1:0-100 3:100-120"; `in_epoch` of its quorum-state.

        stated: by capture.json, else the time is that of a file.
        """
        epoch_ranges = tuple(self._run(text, digests) for text in log.split())
        node, directory_id = directory(replica)
        source: CapturedAtSource = "capture.json" if stated else "file_time"
        captured_from, captured_until, time_source = copied_between(at, source, epoch_ranges, ())
        self.captures.append(
            Capture(
                capture_id=f"{replica} {at} {log} {in_epoch} {digests}",
                node_id=node,
                directory_id=directory_id,
                captured_at=at,
                log_start_offset=epoch_ranges[0].first_offset if epoch_ranges else end,
                log_end_offset=end
                if end is not None
                else (epoch_ranges[-1].end_offset if epoch_ranges else 0),
                epoch_ranges=epoch_ranges,
                quorum_state_epoch=in_epoch,
                captured_from=captured_from,
                captured_until=captured_until,
                time_source=time_source,
                captured_at_source=source,
                **more,
            )
        )
        return self

    def _run(self, text: str, digests: str) -> EpochRange:
        epoch, first, end = map(int, text.replace(":", "-").split("-"))
        known = self.first_batches.get(epoch)
        begins = known is not None and known[0] == first
        data = self.first_data.get(epoch) if begins else None
        has_data = data is not None and data[0] <= end
        return EpochRange(
            epoch,
            first,
            end,
            f"{epoch}:{first}-{end}{digests}",
            10 * first,
            10 * (end - 1),
            known[1] if begins and known else None,
            data[0] if data and has_data else None,
            data[1] if data and has_data else None,
        )

    def snapshot(
        self, end: int, epoch: int, holders: str, at: int = 0, sets: str | None = None, **more: Any
    ) -> Story:
        """A checkpoint (end offset, epoch), written at a time (ms) by replicas that hold it."""
        values = {
            "content_digest": f"{end}-{epoch}-{sets}",
            "complete": True,
            "unfinished": False,
            "header_timestamp": at,
            "last_contained_log_timestamp": at,
            "kraft_version": None if sets is None else 1,
            "voters": None if sets is None else voters(sets),
            "metadata_version": None,
            "batch_end": None,
            "held_by": tuple(directory(name) for name in holders.split()),
            "first_captured_at": at,
        }
        self.snapshots.append(SnapshotFacts(end_offset=end, leader_epoch=epoch, **(values | more)))
        return self

    def facts(self) -> ClusterFacts:
        return ClusterFacts(
            "story",
            tuple(self.captures),
            tuple(self.control_records),
            tuple(self.snapshots),
            tuple(self.feature_levels),
        )

    def evidence(self) -> ClusterEvidence:
        return derive(self.facts())

    def ranges(self) -> list[str]:
        """The log_ranges as "epoch: first-end status"."""
        return [
            f"{r.leader_epoch}: {r.first_offset}-{r.end_offset} {r.commit_status}"
            + (f" by {r.truncated_by_epoch}" if r.truncated_by_epoch is not None else "")
            for r in self.evidence().log_ranges
        ]

    def sets(self) -> list[str]:
        """The voter sets as "source offset/epoch: ids status"."""
        return [
            f"{s.source} {s.offset}/{s.leader_epoch}: {' '.join(map(str, s.voter_ids))} {s.commit_status}"
            for s in self.evidence().voter_sets
        ]

    def bounds(self) -> tuple[int | None, int | None]:
        """The highest lower bound and the upper bound of the last moment."""
        rows = self.evidence().high_watermarks
        lower = [row.lower_bound for row in rows if row.lower_bound is not None]
        upper = [(row.as_of, row.upper_bound) for row in rows if row.upper_bound is not None]
        return max(lower, default=None), max(upper)[1] if upper else None
