"""Which clusters need action, and why, from the fleet's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from dashboards.report.formatting import DAY, HOUR, ago, duration, listed, size, utc
from kraft_core.evidence.watermark_at import WatermarkAt
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.restore.rehearsal import Rehearsal
from kraft_core.wording import count

Row = dict[str, Any]
# A nightly capture is overdue after this.
STALE_MS = 26 * HOUR
# How long an error that newer captures no longer show is reported.
REMEMBERED_MS = 7 * DAY


class Need(IntEnum):
    """How urgent a cluster is; the higher, the more."""

    NONE = 0
    LOOK = 1
    ACTION = 2


# Clusters that cannot be shown, and why.
NONE_FAILED: Mapping[str, str] = MappingProxyType({})
NEED_WORDS = {Need.NONE: "Healthy", Need.LOOK: "Worth a look", Need.ACTION: "Needs action"}


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for attention; `section` of the cluster's part has the details.

    is_overdue: the newest capture is old; the fleet's table has its age in a column of its own.
    lasting: the words of a page that may be read much later, with times where `words` has ages.
    """

    need: Need
    words: str
    section: str
    lasting: str
    is_overdue: bool = False


@dataclass(frozen=True, slots=True)
class LastChange:
    """The newest membership change."""

    kind: str
    voter_id: int
    changed_at: int | None
    changed_exact: bool | None
    commit_status: str | None


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A row of the fleet. Times in ms since the epoch.

    voters_epoch: the newest epoch of the captures that show voter_ids in force; leader_epoch may be a later
    one, which is only reported. reported_voters: of an epoch above voters_epoch, or of any where no voter_ids
    are known; () if none are. rehearsal: the newest of a restoration. captures and replicas: without what was
    followed.
    """

    cluster_id: str
    name: str | None
    environment: str | None
    owner: str | None
    life: str | None
    captures: int
    replicas: int
    last_captured_at: int
    log_end_offset: int | None
    voter_ids: tuple[int, ...]
    voters_status: str | None
    voters_source: str | None
    majority: int | None
    voters_epoch: int | None
    reported_voters: tuple[int, ...]
    reported_epoch: int | None
    reported_by: str | None
    epochs: int
    leader_epoch: int | None
    leader_id: int | None
    leader_source: str | None
    watermark: WatermarkAt
    committed_end_offset: int | None
    errors: int
    warnings: int
    change: LastChange | None
    reasons: tuple[Reason, ...]
    rehearsal: Rehearsal | None = None
    is_followed: bool = False

    @property
    def need(self) -> Need:
        return max((r.need for r in self.reasons), default=Need.NONE)

    @property
    def title(self) -> str:
        return self.name or self.cluster_id

    @property
    def whose(self) -> str:
        """Environment and owner, if known, and which life it is of a cluster id with several."""
        return " · ".join(filter(None, (self.environment, self.owner, self.life)))


def fleet(answers: Mapping[str, Sequence[Row]], now: int) -> list[ClusterState]:
    """The clusters, most urgent first. `now` in ms."""
    rows = {kind: {row["cluster_id"]: row for row in found} for kind, found in answers.items()}
    states = [
        _cluster_state(cluster, {kind: found.get(cluster, {}) for kind, found in rows.items()}, now)
        for cluster in rows["captures"]
    ]
    return sorted(states, key=_urgency)


def _urgency(state: ClusterState) -> tuple[Any, ...]:
    """The order of the fleet."""
    return (-state.need, -state.errors, -state.warnings, -state.last_captured_at, state.title)


def _cluster_state(cluster: str, rows: Mapping[str, Row], now: int) -> ClusterState:
    captures, epochs, voters, change = rows["captures"], rows["epochs"], rows["voters"], rows["changes"]
    findings, expectations = rows["findings"], rows["expectations"]
    shown = [rows.get("logged", {}).get("leader_epoch"), voters.get("leader_epoch")]
    voters_epoch = max((epoch for epoch in shown if epoch is not None), default=None)
    reported = rows.get("reported", {})
    if (
        voters.get("voter_ids")
        and voters_epoch is not None
        and reported.get("leader_epoch", -1) <= voters_epoch
    ):
        reported = {}
    return ClusterState(
        cluster_id=cluster,
        name=rows["names"].get("name"),
        environment=rows["names"].get("environment"),
        owner=rows["names"].get("owner"),
        life=rows.get("lives", {}).get("words"),
        captures=captures["captures"],
        replicas=captures["replicas"],
        last_captured_at=captures["last_captured_at"],
        log_end_offset=captures["log_end_offset"],
        voter_ids=tuple(voters.get("voter_ids") or ()),
        voters_status=voters.get("commit_status"),
        voters_source=voters.get("source"),
        majority=voters.get("majority"),
        voters_epoch=voters_epoch,
        reported_voters=tuple(reported.get("voter_ids") or ()),
        reported_epoch=reported.get("leader_epoch"),
        reported_by=reported.get("source"),
        epochs=epochs.get("epochs", 0),
        leader_epoch=epochs.get("leader_epoch"),
        leader_id=epochs.get("leader_id"),
        leader_source=epochs.get("leader_source"),
        watermark=_watermark(rows["watermarks"]),
        committed_end_offset=rows["committed"].get("committed_end_offset"),
        errors=findings.get("errors", 0) + expectations.get("errors", 0),
        warnings=findings.get("warnings", 0) + expectations.get("warnings", 0),
        change=_last_change(change) if change else None,
        reasons=tuple(reasons(rows, now)),
        rehearsal=rows.get("rehearsals", {}).get("rehearsal"),
        is_followed=captures.get("least_node_id") == FOLLOWED_NODE_ID,
    )


def _watermark(row: Row) -> WatermarkAt:
    names = ("at", "lower", "upper", "later_lower", "later_at")
    return WatermarkAt(*(row.get(name) for name in names))


def _last_change(row: Row) -> LastChange:
    return LastChange(
        row["kind"], row["voter_id"], row["changed_at"], row["changed_exact"], row["commit_status"]
    )


def reasons(rows: Mapping[str, Row], now: int) -> list[Reason]:
    """The reasons for attention, most urgent first."""
    found: list[Reason] = []

    def add(need: Need, words: str, section: str) -> None:
        found.append(Reason(need, words, section, words))

    def dated(need: Need, before: str, at: int, after: str, section: str, is_overdue: bool = False) -> None:
        age, lasting = (f"{before} {when}{after}" for when in (ago(at, now), utc(at)))
        found.append(Reason(need, age, section, lasting, is_overdue))

    findings, expectations, lost = rows["findings"], rows["expectations"], rows["quarantine"]
    voters, thin = rows["voters"], rows.get("under_min_isr", {})
    if failure := rows["failures"].get("failure"):
        words = "could not be derived from the newest captures; the rest of this report is older"
        add(Need.ACTION, f"{words}: {failure}", "captures")
    if rows["failures"].get("is_ingested"):
        words = (
            "what was ingested last is not derived yet (kraftlake derive); the rest of this report is older"
        )
        add(Need.ACTION, words, "captures")
    if errors := findings.get("errors"):
        add(Need.ACTION, count(errors, "open error"), "findings")
    if failed := expectations.get("errors"):
        add(Need.ACTION, count(failed, "expectation failed", "expectations failed"), "expectations")
    rehearsal: Rehearsal | None = rows.get("rehearsals", {}).get("rehearsal")
    if rehearsal is not None and not rehearsal.is_restorable:
        words = "not restorable from the captures rehearsed"
        dated(Need.ACTION, words, rehearsal.rehearsed_at, "", "restoration")
    if ranges := lost.get("ranges"):
        add(Need.ACTION, f"{count(ranges, 'unreadable byte range')}, "
            f"{size(lost['size_bytes'])} that no copy supplied", "quarantine")  # fmt: skip
    if partitions := thin.get("partitions"):
        add(Need.LOOK, f"{count(partitions, 'partition')} under min ISR", "isr")
    if voters.get("commit_status") in ("uncommitted", "undecided"):
        ids = listed(voters["voter_ids"])
        add(Need.LOOK, f"the newest voter set {{{ids}}} is {voters['commit_status']}", "voters")
    if warnings := findings.get("warnings"):
        add(Need.LOOK, count(warnings, "open warning"), "findings")
    last = rows["captures"]["last_captured_at"]
    is_overdue = now - last > STALE_MS
    # An overdue capture is one reason, not also the expectation that it is fresh.
    if doubted := expectations.get("warnings", 0) - (expectations.get("stale", 0) if is_overdue else 0):
        add(Need.LOOK, count(doubted, "expectation not met", "expectations not met"), "expectations")
    past = rows["resolved"]
    if past and now - past["last_seen_at"] <= REMEMBERED_MS:
        words = f"{count(past['errors'], 'error')} that newer captures no longer show, last seen"
        dated(Need.LOOK, words, past["last_seen_at"], "", "findings")
    overdue = f", overdue after {duration(STALE_MS)}"
    # Its schedule may have stopped.
    if rehearsal is not None and now - rehearsal.rehearsed_at > STALE_MS:
        dated(Need.LOOK, "restoration last rehearsed", rehearsal.rehearsed_at, overdue, "restoration")
    if is_overdue:
        dated(Need.LOOK, "last captured", last, overdue, "captures", is_overdue=True)
    return found
