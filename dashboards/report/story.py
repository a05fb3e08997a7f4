"""What happened to a cluster, in sentences: elections, membership changes, truncations, errors, brokers.

Every sentence says no more than its row, and links to the section that shows the row with its evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dashboards.report.aggregates import Row
from dashboards.report.formatting import duration, listed, number, replica, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.view import View
from kraft_core.wording import count

# The newest events that the page tells.
MOST_EVENTS = 12
MOST_ERRORS = 3
# What became of a membership change, by its commit status.
OUTCOMES = {
    "committed": "The change was committed.",
    "uncommitted": "The change is not committed.",
    "undecided": "The captures do not prove whether the change was committed.",
}
BROKER_OPERATIONS = {
    "register broker": "registered",
    "unregister broker": "was unregistered",
    "fence broker": "was fenced",
    "unfence broker": "was unfenced",
    "controlled shutdown": "began a controlled shutdown",
}
Words = list[Markup | str]


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """A sentence or two; `at` in ms since the epoch, `section` is the anchor of the evidence."""

    at: int
    offset: int
    words: Words
    section: str


def story(view: View) -> Markup | None:
    """The newest events, in the order in which they happened; None if the captures date none."""
    events = sorted(_events(view), key=lambda e: (e.at, e.offset))
    if not events:
        return None
    shown = [
        el("li", event.words, " ", el("a", "Evidence", href=f"#{view.anchor}-{event.section}"))
        for event in events[-MOST_EVENTS:]
    ]
    earlier = el("p", "Earlier events are in the sections below.", class_="more")
    return el("div", el("ol", shown, class_="story"), earlier if len(events) > MOST_EVENTS else None)


def _events(view: View) -> Iterator[StoryEvent]:
    yield from _elections(view)
    yield from _membership_changes(view)
    yield from _truncations(view.of("truncations"))
    yield from _errors(view.of("findings"))
    yield from _brokers(view.of("admin_events"))


def _elections(view: View) -> Iterator[StoryEvent]:
    """Leaders by LEADER_CHANGE; what is only reported is no event."""
    unlawful = {row["leader_epoch"] for row in view.of("unlawful_epochs")}
    for epoch in sorted(view.of("epochs"), key=lambda e: e["leader_epoch"]):
        if epoch["leader_id"] is not None and epoch["elected_at"] is not None:
            words = _gap_before(epoch)
            words += [time_of(epoch["elected_at"]), f" node {epoch['leader_id']} became leader of epoch "]
            words += [f"{number(epoch['leader_epoch'])}{_granted(epoch)}."]
            if epoch["leader_epoch"] in unlawful:
                words += [" No majority of the voters elected it."]
            start = epoch["start_offset"]
            yield StoryEvent(epoch["elected_at"], -1 if start is None else start, words, "epochs")


def _gap_before(epoch: Row) -> Words:
    """The beginning of an election's sentence: the last record below the epoch, where its time is known.

    Who appended it is not said: the epoch before may have been truncated as a whole.
    """
    gap = epoch["leaderless_ms"]
    if not gap:
        return ["At "]
    last = f"The last record that epoch {number(epoch['leader_epoch'])} kept was appended at "
    return [last, time_of(epoch["elected_at"] - gap), f"; {duration(gap)} later, at "]


def _granted(epoch: Row) -> str:
    voters, granting = epoch["voters"] or (), epoch["granting_voters"] or ()
    if not granting:
        return ""
    return f", elected by {_nodes(granting)} of voters {listed(voters)}" if voters else ""


def _nodes(ids: Iterable[int]) -> str:
    named = list(ids)
    return f"{'node' if len(named) == 1 else 'nodes'} {listed(named)}"


def _membership_changes(view: View) -> Iterator[StoryEvent]:
    """A set's changes as one event, with what became of it."""
    replaced = {(s["offset"], s["leader_epoch"]): s["truncated_by_epoch"] for s in view.of("sets")}
    for change in view.lanes.changes if view.lanes else ():
        changed = [_changed(kind, voter, detail) for kind, voter, _, detail in change.parts]
        if all(kind == "bootstrapped" for kind, *_ in change.parts):
            changed = [f"the first voter set was {listed(voter for _, voter, *_ in change.parts)}"]
        outcome = OUTCOMES.get(change.status or "", "")
        if change.status == "truncated":
            by = replaced.get((change.offset, change.leader_epoch))
            outcome = "The change was truncated" + ("." if by is None else f": epoch {by} replaced it.")
        words = [*_when(change.at, change.is_exact), f" {listed(changed)}, at offset "]
        words += [f"{number(change.offset)} of epoch {number(change.leader_epoch)}. {outcome}"]
        yield StoryEvent(change.at, change.offset, words, "voters")


def _changed(kind: str, voter: int, detail: str | None) -> str:
    if kind == "updated":
        return f"voter {voter} was updated" + (f" ({detail})" if detail else "")
    return f"node {voter} was {kind} {'from' if kind == 'removed' else 'to'} the voters"


def _truncations(rows: Iterable[Row]) -> Iterator[StoryEvent]:
    for row in rows:
        who = replica(row["node_id"], row["directory_id"])
        lost = count(row["end_offset"] - row["truncated_to"], "offset")
        words: Words = ["Between ", time_of(row["held_at"]), " and ", time_of(row["lost_at"])]
        words += [f" {who} truncated its log to offset {number(row['truncated_to'])} and lost {lost}"]
        if epochs := row["leader_epochs"]:
            words += [f" of {'epoch' if len(epochs) == 1 else 'epochs'} {listed(epochs)}"]
        if row["lost_at"] is not None:
            yield StoryEvent(row["lost_at"], row["truncated_to"], [*words, "."], "truncations")


def _errors(findings: Iterable[Row]) -> Iterator[StoryEvent]:
    """The first open errors, when captures first showed them."""
    errors = [f for f in findings if f["severity"] == "error" and f["state"] == "open" and f["first_seen_at"]]
    for finding in errors[:MOST_ERRORS]:
        words: Words = ["A capture of ", time_of(finding["first_seen_at"]), f" shows: {finding['sentence']}"]
        yield StoryEvent(finding["first_seen_at"], -1, words, "findings")


def _brokers(events: Iterable[Row]) -> Iterator[StoryEvent]:
    """Committed events of brokers; successive ones of a kind, of one broker, are one."""
    for event in events:
        done = BROKER_OPERATIONS.get(event["operation"])
        if done and event["commit_status"] == "committed" and event["changed_at"] is not None:
            words = [*_when(event["changed_at"], event["is_exact"]), f" broker {event['resource']} {done}"]
            if event["times"] > 1:
                words += [f"; {number(event['times'])} times since ", time_of(event["since"])]
            yield StoryEvent(event["changed_at"], event["offset"], [*words, "."], "events")


def _when(at: int, is_exact: bool) -> Words:
    return ["At " if is_exact else "At or before ", time_of(at)]
