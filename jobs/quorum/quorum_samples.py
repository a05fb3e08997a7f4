"""The metrics of each cluster's quorum, from the newest capture of each replica and the derived tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jobs.quorum.sample import Sample
from kraft_core.evidence.watermark_at import newest_watermark
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.plan.standings import FETCH_TIMEOUT_MS
from transforms.lake.delta_rs import greatest, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import CAPTURES, EPOCHS, HIGH_WATERMARKS, LOG_RANGES, VOTER_SETS, Table

Row = dict[str, Any]
READ: dict[Table, tuple[str, ...]] = {
    CAPTURES: (
        "node_id",
        "directory_id",
        "captured_at",
        "last_captured_at",
        "log_end_offset",
        "last_leader_epoch",
        "quorum_state",
        "epoch_ranges",
    ),
    VOTER_SETS: (
        "offset",
        "leader_epoch",
        "voters",
        "commit_status",
        "in_force_from_offset",
        "in_force_to_offset",
        "source",
    ),
    EPOCHS: ("leader_epoch", "leader_id", "leaderless_ms", "leader_source"),
    HIGH_WATERMARKS: ("as_of", "lower_bound", "upper_bound"),
    LOG_RANGES: ("leader_epoch", "end_offset", "commit_status"),
}
REPLICA = ("cluster_id", "node_id", "directory_id")


@dataclass(frozen=True, slots=True)
class ClusterRows:
    """The rows of one cluster by table."""

    cluster_id: str
    rows: dict[str, list[Row]]

    def of(self, table: Table) -> list[Row]:
        return self.rows.get(table.name, [])

    @property
    def labels(self) -> dict[str, str]:
        return {"cluster_id": self.cluster_id}

    @property
    def newest(self) -> list[Row]:
        """The newest capture of each replica; what was followed is none."""
        found: dict[tuple[int, str], Row] = {}
        replicas = (row for row in self.of(CAPTURES) if row["node_id"] != FOLLOWED_NODE_ID)
        for row in sorted(replicas, key=lambda row: row["captured_at"]):
            found[row["node_id"], row["directory_id"]] = row
        return list(found.values())


def cluster_samples(lake: Location) -> Iterator[Sample]:
    """The samples of every cluster."""
    rows: defaultdict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    # Of captures, whose number grows every night, those of the times of the newest ones.
    newest = {time for _, time in greatest(lake, CAPTURES, REPLICA, "captured_at").values()}
    for table, columns in READ.items():
        wanted = {"captured_at": newest} if table is CAPTURES else {}
        for row in rows_with(lake, table, ["cluster_id", *columns], **wanted):
            rows[row["cluster_id"]][table.name].append(row)
    for cluster_id in sorted(rows):
        cluster = ClusterRows(cluster_id, rows[cluster_id])
        yield from _of_replicas(cluster)
        yield from _of_voters(cluster)
        yield from log_samples(cluster)


def _of_replicas(cluster: ClusterRows) -> Iterator[Sample]:
    newest = cluster.newest
    longest = max(newest, key=_log_order, default=None)
    for row in newest:
        labels = {**cluster.labels, "node_id": str(row["node_id"]), "directory_id": row["directory_id"]}
        yield Sample("kraftlake_captured_timestamp_seconds", row["last_captured_at"].timestamp(), labels)
        state = row["quorum_state"]
        if state is not None:
            yield Sample("kraftlake_current_epoch", state["leader_epoch"], labels)
            yield from _of_vote(state, labels)
            yield Sample("kraftlake_current_state", 1, {**labels, "state": _state(cluster, row)})
        if row["log_end_offset"] is not None and longest is not None:
            yield Sample("kraftlake_log_end_offset", row["log_end_offset"], labels)
            behind, lag = lag_records(row, longest), lag_ms(row, longest)
            if behind is not None:
                yield Sample("kraftlake_lag_records", behind, labels)
            if lag is not None:
                yield Sample("kraftlake_lag_seconds", lag / 1000, labels)
        if row["last_leader_epoch"] is not None:
            yield Sample("kraftlake_log_end_epoch", row["last_leader_epoch"], labels)


def _of_vote(state: Row, labels: dict[str, str]) -> Iterator[Sample]:
    voted = state["voted_id"]
    yield Sample("kraftlake_current_vote", -1 if voted is None else voted, labels)
    directory = state["voted_directory_id"]
    if directory is not None:
        yield Sample("kraftlake_current_vote_directory_id", 1, {**labels, "voted_directory_id": directory})


def _log_order(row: Row) -> tuple[int, int]:
    return row["last_leader_epoch"] or -1, row["log_end_offset"] or -1


def lag_records(row: Row, longest: Row) -> int | None:
    """None where it is not known: of a log without a known end, or of an older epoch and not shorter."""
    if row["log_end_offset"] is None or longest["log_end_offset"] is None:
        return None
    behind = longest["log_end_offset"] - row["log_end_offset"]
    if behind <= 0 and (row["last_leader_epoch"] or 0) < (longest["last_leader_epoch"] or 0):
        return None
    return max(0, behind)


def lag_ms(row: Row, longest: Row) -> float | None:
    """Lag in ms by append times (leader's clock), up to the replica's own capture; 0 with the whole log.

    None where it is not known: how many records it lags, or when the last one was appended.
    """
    behind = lag_records(row, longest)
    if not behind:
        return behind
    if not row["epoch_ranges"] or not longest["epoch_ranges"]:
        return None
    until = min(longest["epoch_ranges"][-1]["last_appended_at"], row["captured_at"])
    return max(0.0, (until - row["epoch_ranges"][-1]["last_appended_at"]).total_seconds() * 1000)


def _state(cluster: ClusterRows, row: Row) -> str:
    """The raft state by quorum-state; without a leader it is voted if there is a vote, else unattached."""
    state = row["quorum_state"]
    leader_id = state["leader_id"]
    if leader_id == row["node_id"]:
        return "leader"
    if leader_id is None or leader_id < 0:
        voted = state["voted_id"]
        return "unattached" if voted is None or voted < 0 else "voted"
    return "follower" if _is_voter(_newest_set(cluster), row) else "observer"


def _newest_set(cluster: ClusterRows) -> Row | None:
    """The newest set in force: neither replaced nor truncated, nor only reported."""
    lasting = [
        row
        for row in cluster.of(VOTER_SETS)
        if row["in_force_from_offset"] is not None
        and row["in_force_to_offset"] is None
        and row["commit_status"] != "truncated"
    ]
    return max(lasting, key=lambda row: (row["leader_epoch"], row["offset"]), default=None)


def _is_voter(voters: Row | None, row: Row) -> bool:
    entries: Iterable[Row] = voters["voters"] if voters else ()
    known = (ZERO_UUID, row["directory_id"])
    return any(v["voter_id"] == row["node_id"] and v["directory_id"] in known for v in entries)


def _of_voters(cluster: ClusterRows) -> Iterator[Sample]:
    voters, newest = _newest_set(cluster), cluster.newest
    if voters is None:
        return
    longest = max(newest, key=_log_order, default=None)
    captured = [row for row in newest if _is_voter(voters, row)]
    lags = [lag_ms(row, longest) for row in captured] if longest is not None else []
    offline = sum(lag is not None and lag > FETCH_TIMEOUT_MS for lag in lags)
    count = len(voters["voters"])
    epochs = [voters["leader_epoch"], *(row["leader_epoch"] for row in cluster.of(LOG_RANGES))]
    yield Sample("kraftlake_voters_epoch", max(epochs), cluster.labels)
    yield Sample("kraftlake_number_of_voters", count, cluster.labels)
    yield Sample("kraftlake_number_of_observers", len(newest) - len(captured), cluster.labels)
    if offline or None not in lags:  # 0 only if every lag is known
        yield Sample("kraftlake_number_of_offline_voters", offline, cluster.labels)
    ids = {row["node_id"] for row in captured}
    uncaptured = sum(voter["voter_id"] not in ids for voter in voters["voters"])
    yield Sample("kraftlake_number_of_uncaptured_voters", uncaptured, cluster.labels)
    for row in newest:
        labels = {**cluster.labels, "node_id": str(row["node_id"]), "directory_id": row["directory_id"]}
        yield Sample("kraftlake_is_observer", 0 if _is_voter(voters, row) else 1, labels)
    status = voters["commit_status"]
    if status in (None, "committed", "uncommitted"):  # undecided: neither is proven
        yield Sample("kraftlake_uncommitted_voter_change", int(status == "uncommitted"), cluster.labels)


def log_samples(cluster: ClusterRows) -> Iterator[Sample]:
    """Of the newest epoch, and of what is committed."""
    last = max(cluster.of(EPOCHS), key=lambda row: row["leader_epoch"], default=None)
    if last is not None:
        leader = -1 if last["leader_id"] is None else last["leader_id"]
        yield Sample("kraftlake_current_leader", leader, cluster.labels)
        yield Sample("kraftlake_current_leader_epoch", last["leader_epoch"], cluster.labels)
        yield Sample(
            "kraftlake_current_leader_is_proven", int(last["leader_source"] == "record"), cluster.labels
        )
        if last["leaderless_ms"] is not None:
            seconds = last["leaderless_ms"] / 1000
            yield Sample("kraftlake_election_leaderless_seconds", seconds, cluster.labels)
    yield from _of_high_watermark(cluster)
    committed = [r["end_offset"] for r in cluster.of(LOG_RANGES) if r["commit_status"] == "committed"]
    if committed:
        yield Sample("kraftlake_committed_end_offset", max(committed), cluster.labels)


def _of_high_watermark(cluster: ClusterRows) -> Iterator[Sample]:
    """The bounds at one moment, and the moment."""
    known = newest_watermark(cluster.of(HIGH_WATERMARKS))
    if known.at is None:
        return
    for bound, value in (("at_least", known.lower), ("at_most", known.upper)):
        if value is not None:
            yield Sample("kraftlake_high_watermark", value, {**cluster.labels, "bound": bound})
    yield Sample("kraftlake_high_watermark_timestamp_seconds", known.at.timestamp(), cluster.labels)
