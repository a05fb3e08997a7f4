"""What happened to a cluster, in sentences: elections, membership changes, truncations, errors, brokers.

Every sentence says no more than its row, and links to the row, which has its evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from dashboards.report.aggregates import Row
from dashboards.report.formatting import clock, day, duration, listed, number, replica, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.view import View
from kraft_core.wording import count

# The newest events that the page shows; those of brokers only if others leave room.
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


@dataclass(frozen=True, slots=True)
class Instant:
    """A time within a sentence, in ms since the epoch: without its date under that date."""

    ms: int


Words = list[str | Instant]


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """A sentence or two; `at` in ms since the epoch, `evidence` is the anchor of the row that shows it.

    broker: whose event it is, None for one of the quorum; done: what that broker did, successively.
    """

    at: int
    offset: int
    words: Words
    evidence: str
    broker: str | None = None
    is_exact: bool = True
    done: tuple[str, ...] = ()


def story(view: View) -> Markup | None:
    """The newest events, in the order in which they happened; None if the captures date none."""
    events = sorted(_events(view), key=lambda e: (e.at, e.offset))
    if not events:
        return None
    told = _newest(events)
    days = [
        el("li", el("h4", date), el("ol", [_sentence(event, view.anchor) for event in of_day]))
        for date, of_day in groupby(_joined(told), key=lambda e: day(e.at))
    ]
    earlier = None
    if left_out := len(events) - len(told):
        words = f"{count(left_out, 'other event')}, earlier or of brokers, in the sections below."
        earlier = el("p", words, class_="more")
    return el("div", el("ol", days, class_="story"), earlier)


def _sentence(event: StoryEvent, anchor: str) -> Markup:
    """The event as an item of its day."""
    date = day(event.at)
    words = [
        word if isinstance(word, str) else clock(word.ms) if day(word.ms) == date else time_of(word.ms)
        for word in event.words
    ]
    return el("li", words, " ", el("a", "Evidence", href=f"#{anchor}-{event.evidence}"))


def _newest(events: Sequence[StoryEvent]) -> list[StoryEvent]:
    """The newest events of the quorum, filled up with the newest of brokers, in the order of `events`."""
    important = [n for n, event in enumerate(events) if event.broker is None][-MOST_EVENTS:]
    others = [n for n, event in enumerate(events) if event.broker is not None]
    room = MOST_EVENTS - len(important)
    return [events[n] for n in sorted([*important, *(others[-room:] if room else ())])]


def _events(view: View) -> Iterator[StoryEvent]:
    yield from _elections(view)
    yield from _membership_changes(view)
    yield from _truncations(view.of("truncations"))
    yield from _errors(view.of("findings"))
    yield from _brokers(view.of("admin_events"))


def _elections(view: View) -> Iterator[StoryEvent]:
    """Leaders by LEADER_CHANGE; what is only reported is not an event."""
    unlawful = {row["leader_epoch"] for row in view.of("unlawful_epochs")}
    for epoch in sorted(view.of("epochs"), key=lambda e: e["leader_epoch"]):
        if epoch["leader_id"] is None or epoch["elected_at"] is None:
            continue
        words: Words = ["At ", Instant(epoch["elected_at"]), f" node {epoch['leader_id']} became leader of "]
        words += [f"epoch {number(epoch['leader_epoch'])}{_granted(epoch)}."]
        if epoch["leader_epoch"] in unlawful:
            words += [" No majority of the voters in force elected it."]
        words += _gap_before(epoch)
        start = epoch["start_offset"]
        offset = -1 if start is None else start
        yield StoryEvent(epoch["elected_at"], offset, words, f"epoch-{epoch['leader_epoch']}")


def _gap_before(epoch: Row) -> Words:
    """For how long there was no leader: since the last record below the epoch, where its time is known.

    Who appended that record is not said: the epoch before may have been truncated as a whole.
    """
    gap = epoch["leaderless_ms"]
    if not gap:
        return []
    last = "the last record before this epoch was appended at "
    return [
        f" Before that there was no leader for at most {duration(gap)}: {last}",
        Instant(epoch["elected_at"] - gap),
        ".",
    ]


def _granted(epoch: Row) -> str:
    voters, granting = epoch["voter_ids"] or (), epoch["granting_voters"] or ()
    if not granting:
        return ""
    if list(voters) == list(granting) and len(voters) == 1:
        elected = "itself" if voters[0] == epoch["leader_id"] else f"node {voters[0]}"
        return f", elected by {elected}, the only voter"
    of = f"{'voter' if len(voters) == 1 else 'voters'} {listed(voters)}"
    return f", elected by {_nodes(granting)} of {of}" if voters else ""


def _nodes(ids: Iterable[int]) -> str:
    named = list(ids)
    return f"{'node' if len(named) == 1 else 'nodes'} {listed(named)}"


def _membership_changes(view: View) -> Iterator[StoryEvent]:
    """A set's changes as one event, with what became of it."""
    replaced = {(s["offset"], s["leader_epoch"]): s["truncated_by_epoch"] for s in view.of("sets")}
    for change in view.lanes.changes if view.lanes else ():
        changed = [_changed(kind, voter, detail) for kind, voter, _, detail in change.parts]
        if all(kind == "bootstrapped" for kind, *_ in change.parts):
            first = _nodes(voter for _, voter, *_ in change.parts)
            changed = [f"the first voter set was written: {first}"]
        outcome = OUTCOMES.get(change.status or "", "")
        if change.status == "truncated":
            by = replaced.get((change.offset, change.leader_epoch))
            outcome = "The change was lost" + ("." if by is None else f": epoch {by} truncated it.")
        words = [*_when(change.at, change.is_exact), f" {listed(changed)} (offset "]
        words += [f"{number(change.offset)} of epoch {number(change.leader_epoch)}). {outcome}"]
        evidence = f"voters-{change.offset}-{change.leader_epoch}"
        yield StoryEvent(change.at, change.offset, words, evidence)


def _changed(kind: str, voter: int, detail: str | None) -> str:
    if kind == "updated":
        return f"voter {voter} was updated" + (f", {detail.replace(' -> ', ' → ')}" if detail else "")
    return f"node {voter} was {kind} {'from' if kind == 'removed' else 'to'} the voters"


def _truncations(rows: Iterable[Row]) -> Iterator[StoryEvent]:
    for n, row in enumerate(rows):
        if row["lost_at"] is None:
            continue
        who = replica(row["node_id"], row["directory_id"])
        lost = count(row["end_offset"] - row["first_offset"], "offset")
        words: Words = ["Between ", Instant(row["held_at"]), " and ", Instant(row["lost_at"])]
        words += [f" {who} truncated its log to offset {number(row['first_offset'])} and lost {lost}"]
        if epochs := row["leader_epochs"]:
            words += [f" of {'epoch' if len(epochs) == 1 else 'epochs'} {listed(epochs)}"]
        yield StoryEvent(row["lost_at"], row["first_offset"], [*words, "."], f"truncation-{n}")


def _errors(findings: Iterable[Row]) -> Iterator[StoryEvent]:
    """The first open errors, when captures first showed them."""
    errors = [f for f in findings if f["severity"] == "error" and f["state"] == "open" and f["first_seen_at"]]
    for finding in errors[:MOST_ERRORS]:
        words: Words = ["A capture of ", Instant(finding["first_seen_at"]), f" shows: {finding['sentence']}"]
        yield StoryEvent(finding["first_seen_at"], -1, words, finding["finding_id"])


def _brokers(events: Iterable[Row]) -> Iterator[StoryEvent]:
    """Committed events of brokers; successive ones of a kind, of one broker, are one."""
    for event in events:
        done = BROKER_OPERATIONS.get(event["operation"])
        if done and event["commit_status"] == "committed" and event["changed_at"] is not None:
            words = [*_when(event["changed_at"], event["is_exact"]), f" broker {event['subject']} {done}"]
            one = (done,)
            if event["times"] > 1:
                words += [f"; {number(event['times'])} times since ", Instant(event["since"])]
                one = ()
            yield StoryEvent(
                event["changed_at"],
                event["offset"],
                [*words, "."],
                f"event-{event['offset']}",
                str(event["subject"]),
                bool(event["is_exact"]),
                one,
            )


def _joined(events: Iterable[StoryEvent]) -> Iterator[StoryEvent]:
    """What one broker did with nothing else between, and on one day, as one sentence."""
    first: StoryEvent | None = None
    for event in events:
        if first is not None and _continues(first, event):
            first = _with(first, event)
            continue
        if first is not None:
            yield first
        first = event
    if first is not None:
        yield first


def _continues(first: StoryEvent, event: StoryEvent) -> bool:
    same = first.broker is not None and first.broker == event.broker and day(first.at) == day(event.at)
    return same and bool(first.done and event.done) and first.is_exact and event.is_exact


def _with(first: StoryEvent, event: StoryEvent) -> StoryEvent:
    done = (*first.done, event.done[0])
    words: Words = ["From ", Instant(first.at), " to ", Instant(event.at)]
    if first.at // 1000 == event.at // 1000:
        words = _when(event.at, is_exact=True)
    words += [f" broker {first.broker} {', then '.join(done)}."]
    return replace(first, words=words, done=done)


def _when(at: int, is_exact: bool) -> Words:
    return ["At " if is_exact else "At or before ", Instant(at)]
