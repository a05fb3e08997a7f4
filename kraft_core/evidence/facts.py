"""The facts of one cluster: the content of its captures, as far as conclusions need it.

A capture is one copy of one replica's metadata log directory. Batches come as epoch ranges: by Raft's
log matching (KIP-595) an offset and an epoch identify one batch with one history, so the bounds of a range
represent its batches. Times are ms since the epoch. Of two offsets first_ is inclusive,
end_ exclusive. A directory id is Kafka's text of the uuid; the zero uuid means an unknown directory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kraft_core.format.capture import FOLLOWED_NODE_ID, STATED_SOURCES, CapturedAtSource
from kraft_core.raft.voters import ReplicaKey

ControlType = Literal["LeaderChange", "KRaftVersion", "KRaftVoters"]
TimeSource = Literal["flag", "capture.json", "newest timestamp in the log"]
# Clocks of nodes and of who copies them differ by no more, as is assumed (ms).
CLOCK_SKEW_MS = 60_000


@dataclass(frozen=True, slots=True)
class EpochRange:
    """A maximal range of offsets of one epoch in one captured log, without a gap.

    digest: of its batches' (base_offset, leader_epoch, crc, size_bytes); equal batches give equal digests.
    first_appended_at, last_appended_at: of its first and last batch, by the leader's clock. first_batch_end:
    of the epoch; None unless the range begins with the LEADER_CHANGE batch. first_data_end,
    first_data_appended_at: of the epoch's first batch that is not a control batch; None if the range has
    none, or does not begin with the LEADER_CHANGE batch.
    """

    leader_epoch: int
    first_offset: int
    end_offset: int
    digest: str | int
    first_appended_at: int
    last_appended_at: int
    first_batch_end: int | None = None
    first_data_end: int | None = None
    first_data_appended_at: int | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """A captured controller directory.

    captured_at: when it was copied by the best source there is: for lists, it proves nothing.
    captured_from, captured_until: when it was copied at the earliest and at the latest (inclusive), None
    where nothing bounds it; time_source says by what. See copied_between. captured_at_source: where
    captured_at is from, also if that time is wrong.
    log_start_offset: where the first segment begins, None without any. log_end_offset: the log's end or,
    where that is larger, the end of the newest complete checkpoint; None where the directory has neither.
    epoch_ranges: rising by offset.
    quorum_state_*, voted_*, current_voters: the file quorum-state, None if unreadable.
    leader_epoch_checkpoint: (epoch, start offset) entries of that file, None if unreadable.
    consistent: nothing shows that quorum-state is older than the log, neither this capture nor, after
    conclude(), the logs of others.
    led_epoch: after conclude(), the newest epoch that its node had led before, by the quorum-states of
    others; None for none above its own epoch.
    wrote_end: likewise, by the logs of others, where what it had written before ends, as the leader of the
    epoch that its quorum-state is in; None for none above its own segments.
    tail_damaged: bytes other than an incomplete last batch follow the last batch that could be read, so the
    log may have gone on; ends_inside_batch: such a batch does, as where the copy was cut off.
    readable: the log's directory and each of its files was listed, opened and read to its end, unchanged.
    What follows from the others, and is asked for dozens of times:
    replica: whose directory it is.
    older_log: what says, in words, that the copied log is older than other captured files; None for nothing.
    known_end: where the replica's log ended when it was copied. None if that is not known: if files could not
    be read, if the log continues unreadably or may have been cut off, or with older_log.
    in_epoch: the epoch the replica was in when its log was copied, None if its files do not show it: a
    quorum-state older than the log's last batch was copied before the log.
    """

    capture_id: str
    node_id: int
    directory_id: str
    captured_at: int
    log_start_offset: int | None
    log_end_offset: int | None
    epoch_ranges: tuple[EpochRange, ...]
    quorum_state_epoch: int | None = None
    quorum_state_leader_id: int | None = None
    voted_id: int | None = None
    voted_directory_id: str | None = None
    current_voters: tuple[int, ...] | None = None
    leader_epoch_checkpoint: tuple[tuple[int, int], ...] | None = None
    consistent: bool = True
    tail_damaged: bool = False
    ends_inside_batch: bool = False
    readable: bool = True
    captured_from: int | None = None
    captured_until: int | None = None
    time_source: TimeSource = "newest timestamp in the log"
    captured_at_source: CapturedAtSource = "file_time"
    led_epoch: int | None = None
    wrote_end: int | None = None
    replica: ReplicaKey = field(init=False, repr=False, compare=False)
    older_log: str | None = field(init=False, repr=False, compare=False)
    known_end: int | None = field(init=False, repr=False, compare=False)
    in_epoch: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        note = object.__setattr__
        note(self, "replica", ReplicaKey.of(self.node_id, self.directory_id))
        note(self, "older_log", older := self._said_to_be_older())
        is_cut = self.tail_damaged or self.ends_inside_batch or not self.readable or older is not None
        note(self, "known_end", None if is_cut else self.log_end_offset)
        epoch = self.quorum_state_epoch
        shows_epoch = self.consistent and epoch is not None and epoch >= self.last_epoch
        note(self, "in_epoch", epoch if shows_epoch else None)

    @property
    def is_followed(self) -> bool:
        """Whether it is not a replica's log, but what leaders sent as committed."""
        return self.node_id == FOLLOWED_NODE_ID

    @property
    def has_wrong_time(self) -> bool:
        """Whether the time that is stated cannot be true: what it holds was written later."""
        return self.captured_at_source in STATED_SOURCES and self.captured_until is None

    @property
    def last_epoch(self) -> int:
        """Of its last batch; -1 without any."""
        return self.epoch_ranges[-1].leader_epoch if self.epoch_ranges else -1

    @property
    def is_contiguous(self) -> bool:
        """Whether its batches follow each other, from the offset that the first segment is named after."""
        return self.whole_ranges == len(self.epoch_ranges)

    @property
    def whole_ranges(self) -> int:
        """How many of its ranges do so."""
        reached = self.log_start_offset
        for nth, held in enumerate(self.epoch_ranges):
            if reached is not None and (held.first_offset > reached or (nth and held.first_offset < reached)):
                return nth
            reached = held.end_offset
        return len(self.epoch_ranges)

    @property
    def segments_end(self) -> int:
        """Up to where its segments hold the log."""
        return self.epoch_ranges[-1].end_offset if self.epoch_ranges else self.log_start_offset or 0

    def _said_to_be_older(self) -> str | None:
        """As older_log.

        A log always has a segment, and no checkpoint above its end: one fetched from the leader replaces the
        log, which then begins there (KIP-630). An entry of leader-epoch-checkpoint is written at the end of
        the log or below, and removed when the log is truncated to or below it. A new leader writes
        LEADER_CHANGE as soon as its quorum-state says so; a checkpoint may have taken its place. A follower's
        quorum-state may be in an epoch of which the log has no batch yet; that of a node which led an epoch,
        by what others had heard before, never goes back below that epoch. In an epoch that it leads, a node
        truncates nothing.
        """
        if self.log_start_offset is None and self.log_end_offset is not None:
            return f"no segment of it was captured, and a checkpoint ends at {self.log_end_offset}"
        if self.segments_end < (self.log_end_offset or 0):
            return f"a checkpoint or a later segment reaches {self.log_end_offset}"
        newest = max(self.leader_epoch_checkpoint or (), default=None, key=lambda entry: (entry[1], entry[0]))
        if newest is not None and newest[1] > (self.log_end_offset or 0):
            return f"leader-epoch-checkpoint has epoch {newest[0]} from {newest[1]}"
        epoch = self.quorum_state_epoch
        led = epoch is not None and epoch > self.last_epoch and self.quorum_state_leader_id == self.node_id
        if led and (self.epoch_ranges or not self.log_end_offset):
            return f"quorum-state says that it led epoch {epoch}"
        if self.led_epoch is not None and epoch is not None and max(epoch, self.last_epoch) < self.led_epoch:
            return f"another node's quorum-state, captured before, says that it led epoch {self.led_epoch}"
        if self.segments_end < (self.wrote_end or 0):
            return f"another log contains what it wrote in epoch {epoch} before, up to {self.wrote_end}"
        return None


def copied_between(
    captured_at: int, source: str, epoch_ranges: Iterable[EpochRange], header_timestamps: Iterable[int]
) -> tuple[int | None, int | None, TimeSource]:
    """captured_from, captured_until and time_source of a capture.

    A source that says when the directory was copied gives both bounds, unless the copy holds something that
    is newer by more than CLOCK_SKEW_MS: then that time is wrong. Else the newest timestamp inside it is the
    lower bound (by the leader's clock; of a checkpoint's header by its writer's), and there is no upper one:
    the time of reading is not a property of the capture.
    """
    times = [epoch_range.last_appended_at for epoch_range in epoch_ranges]
    times += header_timestamps
    newest = max(times, default=None)
    for stated in STATED_SOURCES:
        if source == stated and (newest is None or newest - captured_at <= CLOCK_SKEW_MS):
            return captured_at, captured_at, stated
    return newest, None, "newest timestamp in the log"


@dataclass(frozen=True, slots=True)
class CapturedControlRecord:
    """A control record of a captured log.

    value: as the codec reads it, None if it cannot be read. appended_at: the record's timestamp.
    """

    offset: int
    leader_epoch: int
    batch_base_offset: int
    batch_end_offset: int
    batch_crc: int
    appended_at: int
    type: ControlType
    value: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """A checkpoint file and who held it.

    end_offset is exclusive; leader_epoch is the epoch of the record below it. unfinished: a `.part` file.
    kraft_version, voters (as VotersRecord.voters), metadata_version: as recorded in it, None if absent.
    batch_end: end of the captured batch of that epoch which holds end_offset - 1, None if none does.
    held_by: (node id, directory id) of the directories that held it. held_in: the captures that did; () if
    unknown: then any capture of these directories may have.
    """

    end_offset: int
    leader_epoch: int
    content_digest: str
    complete: bool
    unfinished: bool
    header_timestamp: int | None
    last_contained_log_timestamp: int | None
    kraft_version: int | None
    voters: list[dict[str, Any]] | None
    metadata_version: int | None
    batch_end: int | None
    held_by: tuple[tuple[int, str], ...]
    first_captured_at: int
    held_in: tuple[str, ...] = ()

    @property
    def is_bootstrap(self) -> bool:
        """Whether it is the 0-0 checkpoint that formatting wrote, before there was any log."""
        return self.end_offset == 0

    @property
    def proves(self) -> bool:
        """Whether it proves that the log below its end was committed when it was written."""
        return self.complete and not self.unfinished and not self.is_bootstrap


@dataclass(frozen=True, slots=True, order=True)
class FeatureLevel:
    """A FeatureLevelRecord for metadata.version in a captured log."""

    offset: int
    leader_epoch: int
    level: int


@dataclass(frozen=True, slots=True)
class CapturedElsewhere:
    """A node that another life of the cluster id holds captures of (kraft_core.evidence.lives).

    It may be a voter of this life, on another disk before or after: nothing shows it. cluster_id: of that
    life. directory_id: of the newest of these captures. until: when that was taken (ms), None where one of
    them does not state it.
    """

    cluster_id: str
    node_id: int
    directory_id: str
    until: int | None

    @property
    def replica(self) -> ReplicaKey:
        return ReplicaKey.of(self.node_id, self.directory_id)

    @property
    def words(self) -> str:
        """What it means for a verdict, and what to do."""
        is_followed = self.node_id == FOLLOWED_NODE_ID
        what = "a quorum was followed" if is_followed else f"node {self.node_id} was captured"
        return (
            f"{what} in {self.cluster_id}, another history of the cluster id, after this one began, or at an "
            "unknown time: if that is another cluster, give its captures an id of their own "
            "(--cluster-id PATH=ID)"
        )


@dataclass(frozen=True, slots=True, order=True)
class AnsweredWatermark:
    """The high watermark that a leader answered to kraftlake follow; at: ms, when the answer had come.

    voters: (node id, directory id) of those that it named.
    """

    leader_epoch: int
    leader_id: int
    high_watermark: int
    at: int
    voters: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Everything known of one cluster, or of one life of its id. Order and duplicates carry no meaning.

    contested_epochs: in which captures hold different batches at one offset, as far as batches were compared.
    elsewhere: of each node the newest, and those of directories captured here; () for an id with one life.
    followed: what leaders sent to kraftlake follow, each below the high watermark that came with it: proven
    committed, but stored by no replica. It is apart from captures, of which rules ask what a replica has.
    answered: what leaders answered meanwhile.
    """

    cluster_id: str
    captures: tuple[Capture, ...] = ()
    control_records: tuple[CapturedControlRecord, ...] = ()
    snapshots: tuple[SnapshotFacts, ...] = ()
    feature_levels: tuple[FeatureLevel, ...] = ()
    contested_epochs: tuple[int, ...] = ()
    elsewhere: tuple[CapturedElsewhere, ...] = ()
    followed: tuple[Capture, ...] = ()
    answered: tuple[AnsweredWatermark, ...] = ()

    @property
    def logs(self) -> tuple[Capture, ...]:
        """Everything that holds a part of the log."""
        return (*self.captures, *self.followed)


def label(replica: ReplicaKey) -> str:
    """How evidence names a replica: its id, and its directory id where that is known."""
    return f"{replica.id}@{replica.directory_id}" if replica.directory_id else str(replica.id)


def labels(replicas: Iterable[ReplicaKey]) -> str:
    """Replicas by id, as evidence lists them."""
    return ", ".join(label(key) for key in sorted(replicas))


def distinct(facts: ClusterFacts) -> ClusterFacts:
    """The same facts in one order, each once: conclusions are a function of the set of captures.

    A directory that was captured several times without a change is there at its first and at its last time.
    """
    records = {(r.offset, r.leader_epoch, r.type, r.batch_crc): r for r in facts.control_records}
    snapshots: dict[tuple[int, int, str], SnapshotFacts] = {}
    for snapshot in facts.snapshots:
        key = (snapshot.end_offset, snapshot.leader_epoch, snapshot.content_digest)
        snapshots[key] = _merged(snapshots[key], snapshot) if key in snapshots else snapshot
    return ClusterFacts(
        facts.cluster_id,
        _distinct_captures(facts.captures),
        tuple(records[key] for key in sorted(records)),
        tuple(snapshots[key] for key in sorted(snapshots)),
        tuple(sorted(set(facts.feature_levels))),
        tuple(sorted(set(facts.contested_epochs))),
        facts.elsewhere,
        _distinct_captures(facts.followed),
        tuple(sorted(set(facts.answered))),
    )


def _distinct_captures(captures: Iterable[Capture]) -> tuple[Capture, ...]:
    copies: defaultdict[str, list[Capture]] = defaultdict(list)
    for capture in captures:
        copies[capture.capture_id].append(capture)
    found = [
        capture for same in copies.values() for capture in (_first_and_last(same) if len(same) > 1 else same)
    ]
    return tuple(sorted(found, key=lambda c: (c.captured_at, c.node_id, c.directory_id, c.capture_id)))


def _first_and_last(copies: list[Capture]) -> Iterator[Capture]:
    """Of copies of one capture the first and the last, by a source that says when they were made."""
    first = min(copies, key=_time_rank)
    yield first
    last = max((c for c in copies if c.captured_until is not None), default=first, key=_time_rank)
    if last.captured_at > first.captured_at:
        yield last


def _time_rank(capture: Capture) -> tuple[bool, int]:
    """A time that says when the directory was copied first, then the earliest."""
    return capture.captured_until is None, capture.captured_at


def _merged(one: SnapshotFacts, other: SnapshotFacts) -> SnapshotFacts:
    """One checkpoint that several directories held, some perhaps as an unfinished copy."""
    best = min(one, other, key=lambda s: (s.unfinished, not s.complete))
    ends = [s.batch_end for s in (one, other) if s.batch_end is not None]
    return replace(
        best,
        batch_end=min(ends, default=None),
        held_by=tuple(sorted({*one.held_by, *other.held_by})),
        held_in=tuple(sorted({*one.held_in, *other.held_in})) if one.held_in and other.held_in else (),
        first_captured_at=min(one.first_captured_at, other.first_captured_at),
    )
