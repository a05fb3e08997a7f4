"""Voters and leaders over time, a lane per replica, from rows of one cluster.

A replica is (node id, directory id): a node whose disk was replaced has two lanes. A voter of a set without
directory ids, as static sets are, is the node's only lane. Times in ms since the epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dashboards.report.timescale import TimeScale, time_scale
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.messages.uuid_text import ZERO_UUID

Row = dict[str, Any]
UNKNOWN_DIRECTORY = ZERO_UUID
# Commit statuses of the voter sets that were in force on every replica; None: static or bootstrap.
SETTLED = ("committed", None)
# Source of a band where no set is known to have the voter, but a majority elected it.
ELECTION = "election"


@dataclass(frozen=True, slots=True, order=True)
class LaneReplica:
    """A node and one of its directories."""

    node_id: int
    directory_id: str


@dataclass(frozen=True, slots=True)
class Voting:
    """A replica was a voter, by one or more successive sets. Not exact: at or before."""

    start: int
    end: int
    source: str
    start_exact: bool = True
    end_exact: bool = True


@dataclass(frozen=True, slots=True)
class Doubt:
    """A membership change that is not proven committed, in force only on the replicas that held it."""

    start: int
    end: int
    kind: str
    status: str
    offset: int
    leader_epoch: int
    truncated_by_epoch: int | None


@dataclass(frozen=True, slots=True)
class Led:
    """Epochs that a replica led: one or, with many epochs, those of a bin of time.

    `share`: the part of the time that the replica led; `is_unlawful`: not elected by a majority of voters.
    """

    start: int
    end: int
    first_epoch: int
    last_epoch: int
    epochs: int
    share: float
    is_unlawful: bool


@dataclass(frozen=True, slots=True)
class Reported:
    """A describe output or quorum-state reports a voter (epoch None) or the leader of an epoch: no proof."""

    start: int
    end: int
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """At most `leaderless_ms` of this time had no leader; `before` is the epoch that ended it."""

    start: int
    end: int
    leaderless_ms: int
    longest_ms: int
    before: int
    epochs: int

    @property
    def share(self) -> float:
        return min(1.0, self.leaderless_ms / max(self.end - self.start, 1))


@dataclass(frozen=True, slots=True)
class SetChange:
    """The membership changes of one voter set."""

    at: int
    is_exact: bool
    offset: int
    leader_epoch: int
    status: str | None
    truncated_by_epoch: int | None
    parts: tuple[tuple[str, int, str, str | None], ...]  # kind, voter id, directory id, detail


@dataclass(slots=True)
class Lane:
    """The history of a replica."""

    replica: LaneReplica
    voting: list[Voting] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    led: list[Led] = field(default_factory=list)
    reported: list[Reported] = field(default_factory=list)
    captured: list[int] = field(default_factory=list)

    @property
    def was_voter(self) -> bool:
        """By a set, or because a majority elected it."""
        is_reported = any(r.epoch is None for r in self.reported)
        return bool(self.voting or self.doubts) or is_reported or not all(led.is_unlawful for led in self.led)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The chart: lanes by node, gaps, changes by time, and the time scale of all charts of the cluster.

    not_covered: elections before which the captures do not show for how long there was no leader.
    """

    lanes: tuple[Lane, ...]
    gaps: tuple[Gap, ...]
    changes: tuple[SetChange, ...]
    scale: TimeScale
    end: int
    not_covered: int


def lanes_of(rows: dict[str, list[Row]]) -> Lanes | None:
    """The lanes of a cluster; None if no row has a time. What has no end lasts to the newest capture."""
    sets, changes = rows.get("sets", []), _changes_of(rows)
    captures, leading = rows.get("captures", []), rows.get("leading", [])
    times = [c["captured_at"] for c in captures] + [c.at for c in changes]
    times += [t for row in leading for t in (row["from_ms"], row["until_ms"]) if t is not None]
    reports = [*rows.get("reported_leaders", []), *rows.get("reported_sets", [])]
    times += [t for r in reports for t in (r["observed_from"], r["observed_to"]) if t is not None]
    times += [s[key] for s in sets for key in ("in_force_from", "in_force_to") if s[key] is not None]
    scale = time_scale(times)
    if scale is None:
        return None
    last = max((c["captured_at"] for c in captures), default=scale.end)
    lanes = Roster(sets, captures)
    for row in captures:
        if row["node_id"] != FOLLOWED_NODE_ID:
            lanes.of(row["node_id"], row["directory_id"]).captured.append(row["captured_at"])
    _vote(lanes, sets, scale.start, last)
    _doubt(lanes, sets, rows.get("changes", []), last)
    unlawful = {row["leader_epoch"] for row in rows.get("unlawful_epochs", [])}
    _lead(lanes, leading, sets, last, unlawful)
    for lane in lanes.sorted():
        _vote_as_leader(lane)
    _report(lanes, rows, sets)
    not_covered = sum(counts.get("elections_not_covered", 0) for counts in rows.get("counts", []))
    return Lanes(
        tuple(lanes.sorted()), tuple(_gaps_of(leading)), tuple(changes), scale, scale.end, not_covered
    )


class Roster:
    """Lanes by replica. A voter without a directory id has the node's directory, if only one is known."""

    def __init__(self, sets: Iterable[Row], captures: Iterable[Row]) -> None:
        self._lanes: dict[LaneReplica, Lane] = {}
        self._directories: dict[int, list[str]] = {}
        named = [(v["voter_id"], v["directory_id"]) for s in sets for v in s["voters"] or ()]
        named += [(c["node_id"], c["directory_id"]) for c in captures]
        for node, directory in named:
            known = self._directories.setdefault(node, [])
            if directory != UNKNOWN_DIRECTORY and directory not in known:
                known.append(directory)

    def of(self, node: int, directory: str) -> Lane:
        known = self._directories.get(node, [])
        if directory == UNKNOWN_DIRECTORY and len(known) == 1:
            directory = known[0]
        replica = LaneReplica(node, directory)
        return self._lanes.setdefault(replica, Lane(replica))

    def sorted(self) -> list[Lane]:
        """By node; the directories of a node in the order in which they became voters."""
        return sorted(
            self._lanes.values(),
            key=lambda lane: (
                lane.replica.node_id,
                not lane.was_voter,
                min((v.start for v in lane.voting), default=0),
                lane.replica,
            ),
        )


def _changes_of(rows: dict[str, list[Row]]) -> list[SetChange]:
    """Membership changes by voter set, oldest first."""
    replaced = {(s["offset"], s["leader_epoch"]): s["truncated_by_epoch"] for s in rows.get("sets", [])}
    by_set: dict[tuple[int, int], list[Row]] = {}
    for row in rows.get("changes", []):
        by_set.setdefault((row["offset"], row["leader_epoch"]), []).append(row)
    return [
        SetChange(
            at=parts[0]["changed_at"],
            is_exact=parts[0]["changed_exact"] is not False,
            offset=offset,
            leader_epoch=epoch,
            status=parts[0]["commit_status"],
            truncated_by_epoch=replaced.get((offset, epoch)),
            parts=tuple(
                (p["kind"], p["voter_id"], p["directory_id"], p["detail"])
                for p in sorted(parts, key=lambda p: (p["voter_id"], p["kind"]))
            ),
        )
        for (offset, epoch), parts in sorted(by_set.items())
        if parts[0]["changed_at"] is not None
    ]


def _vote(lanes: Roster, sets: Sequence[Row], first: int, last: int) -> None:
    """Add a voter's bands by the settled sets, between the first time known and the last one.

    Successive sets with the voter make one band.
    """
    for row in sorted(sets, key=lambda s: (s["offset"], s["leader_epoch"])):
        if row["commit_status"] not in SETTLED:
            continue
        since = row["in_force_from"]
        start = first if since is None else since
        end = max(start, last) if row["in_force_to"] is None else row["in_force_to"]
        exact = (
            since is not None and row["in_force_from_exact"] is not False,
            row["in_force_to_exact"] is not False,
        )
        for voter in row["voters"] or ():
            voting = lanes.of(voter["voter_id"], voter["directory_id"]).voting
            if voting and voting[-1].end >= start:
                band = voting[-1]
                end_exact = exact[1] if end >= band.end else band.end_exact
                voting[-1] = Voting(band.start, max(end, band.end), band.source, band.start_exact, end_exact)
            elif end > start or row["in_force_to"] is None:
                voting.append(Voting(start, end, row["source"], *exact))


def _doubt(lanes: Roster, sets: Iterable[Row], changes: Iterable[Row], end: int) -> None:
    """Add the changes of sets that are not committed, for as long as they were in force in some log."""
    by_set = {(s["offset"], s["leader_epoch"]): s for s in sets if s["commit_status"] not in SETTLED}
    for change in changes:
        row = by_set.get((change["offset"], change["leader_epoch"]))
        if row is None or row["in_force_from"] is None:
            continue
        until = end if row["in_force_to"] is None else row["in_force_to"]
        lanes.of(change["voter_id"], change["directory_id"]).doubts.append(
            Doubt(
                row["in_force_from"],
                max(until, row["in_force_from"]),
                change["kind"],
                row["commit_status"],
                row["offset"],
                row["leader_epoch"],
                row["truncated_by_epoch"],
            )
        )


def _lead(
    lanes: Roster, leading: Iterable[Row], sets: Sequence[Row], end: int, unlawful: Collection[int]
) -> None:
    """Add the leaders' bars, to the directory that the set in force has for the leader's id."""
    for row in sorted(leading, key=lambda r: (r["from_ms"], r["first_epoch"])):
        until = end if row["until_ms"] is None else max(row["until_ms"], row["from_ms"])
        length = max(until - row["from_ms"], 1)
        share = 1.0 if row["epochs"] == 1 else min(1.0, (row["led_ms"] or 0) / length)
        is_unlawful = any(row["first_epoch"] <= e <= row["last_epoch"] for e in unlawful)
        lanes.of(row["leader_id"], _directory_at(sets, row["leader_id"], row["from_ms"])).led.append(
            Led(
                row["from_ms"],
                until,
                row["first_epoch"],
                row["last_epoch"],
                row["epochs"],
                share,
                is_unlawful,
            )
        )


def _vote_as_leader(lane: Lane) -> None:
    """A leader was a voter when it was elected, also where no set that is known has it then.

    A band that begins at or before a time begins by the election. One that begins at an exact time follows
    a set that no capture shows: the epoch gets a band of its own.
    """
    if not lane.voting:
        return
    for led in sorted(lane.led, key=lambda led: led.start):
        if led.is_unlawful or any(band.start <= led.start <= band.end for band in lane.voting):
            continue
        following = min((v for v in lane.voting if v.start > led.start), key=lambda v: v.start, default=None)
        if following is not None and not following.start_exact:
            lane.voting[lane.voting.index(following)] = replace(following, start=led.start)
        else:
            end = led.end if following is None else min(led.end, following.start)
            lane.voting.append(Voting(led.start, end, ELECTION, False, False))
    lane.voting.sort(key=lambda band: (band.start, band.end))


def _report(lanes: Roster, rows: dict[str, list[Row]], sets: Sequence[Row]) -> None:
    """Add what is only reported: voters, and leaders in their directory by the set in force."""
    for row in rows.get("reported_sets", []):
        if row["observed_from"] is not None and row["observed_to"] is not None:
            for voter in row["voters"] or ():
                lane = lanes.of(voter["voter_id"], voter["directory_id"])
                lane.reported.append(Reported(row["observed_from"], row["observed_to"]))
    for row in rows.get("reported_leaders", []):
        lane = lanes.of(row["leader_id"], _directory_at(sets, row["leader_id"], row["from_ms"]))
        lane.reported.append(Reported(row["from_ms"], row["until_ms"], row["leader_epoch"]))


def _directory_at(sets: Sequence[Row], node: int, at: int) -> str:
    """The directory of a node by the newest settled set at that time, else by the next one."""
    named: list[tuple[int, str]] = []
    for row in sorted(sets, key=lambda s: (s["offset"], s["leader_epoch"])):
        if row["commit_status"] in SETTLED:
            named += [
                (row["in_force_from"] or 0, v["directory_id"])
                for v in row["voters"] or ()
                if v["voter_id"] == node and v["directory_id"] != UNKNOWN_DIRECTORY
            ]
    before = [directory for start, directory in named if start <= at]
    if before:
        return before[-1]
    return named[0][1] if named else UNKNOWN_DIRECTORY


def _gaps_of(leading: Iterable[Row]) -> list[Gap]:
    """The leaderless time before each epoch; of binned epochs, within the time that they span."""
    bins: dict[int, list[Row]] = {}
    for row in leading:
        if row["leaderless_ms"]:
            bins.setdefault(row["bin"], []).append(row)
    found: list[Gap] = []
    for rows in bins.values():
        first = min(rows, key=lambda r: r["from_ms"])
        epochs = sum(r["covered"] for r in rows)
        total = sum(r["leaderless_ms"] for r in rows)
        longest = max(r["longest_leaderless_ms"] for r in rows)
        start = first["from_ms"] - (total if epochs == 1 else min(longest, total))
        end = first["from_ms"] if epochs == 1 else max(r["until_ms"] or r["from_ms"] for r in rows)
        found.append(Gap(start, end, total, longest, first["first_epoch"], epochs))
    return sorted(found, key=lambda gap: gap.start)
