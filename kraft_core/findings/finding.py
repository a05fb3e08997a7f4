"""A violated rule, as it is reported and stored in a table.

A rule yields a Breach for each capture or replica that shows one. Breaches of one rule with one identity are
the same fault; together they make one Finding. Its id depends on neither captures nor times nor words, so a
fault keeps its id while captures come and go.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, label
from kraft_core.findings.capture_order import is_later
from kraft_core.raft.rules import RULES, Rule
from kraft_core.raft.voters import ReplicaKey

Severity = Literal["error", "warning"]
Part = int | str | None


@dataclass(frozen=True, slots=True)
class Breach:
    """One occurrence of a broken rule.

    identity: what names the fault among those of its rule: offsets, epochs, replicas. first_offset inclusive,
    end_offset exclusive. replicas: those whose files show it. captures: that show it. observed_at (ms): when
    describe outputs showed it. supplied_by: the captures that hold what those that show it lost; () while
    any of it is lost. sentence, evidence: text; if breaches of one identity differ, the alphabetically first
    of the most severe is used.
    """

    rule: Rule
    severity: Severity
    identity: tuple[Part, ...]
    sentence: str
    evidence: str
    first_offset: int | None = None
    end_offset: int | None = None
    leader_epochs: tuple[int, ...] = ()
    replicas: tuple[ReplicaKey, ...] = ()
    captures: tuple[Capture, ...] = ()
    observed_at: tuple[int, ...] = ()
    supplied_by: tuple[Capture, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule of one cluster.

    rule, name, source: by raft.rules.RULES; rule 0 is about bytes. severity: error only where KRaft forbids
    it. replicas: "id@directory id". first_seen_at, last_seen_at: ms, of the captures and describe outputs
    that show it. resolution: why the fault is over, None while it is not: each of the replicas has a newer
    capture, read as a whole, that does not show it, or captures supply all that was lost.
    """

    finding_id: str
    cluster_id: str
    rule: int
    name: str
    severity: Severity
    first_offset: int | None
    end_offset: int | None
    leader_epochs: tuple[int, ...]
    replicas: tuple[str, ...]
    capture_ids: tuple[str, ...]
    sentence: str
    evidence: str
    source: str
    first_seen_at: int
    last_seen_at: int
    resolution: str | None = None

    @property
    def resolved(self) -> bool:
        return self.resolution is not None


def of_rule(number: int) -> Rule:
    """The rule of that number."""
    return RULES[number]


def findings_of(known: Conclusions, breaches: Iterable[Breach]) -> list[Finding]:
    """Breaches as findings, by rule and offset, whatever the order of the breaches."""
    grouped: defaultdict[tuple[int, str, tuple[Part, ...]], list[Breach]] = defaultdict(list)
    for breach in breaches:
        grouped[breach.rule.number, breach.rule.name, breach.identity].append(breach)
    # What was supplied is over; of the rest alone the finding speaks while there is any.
    last = [[b for b in same if not b.supplied_by] or same for same in grouped.values()]
    findings = [_finding(known, breaches) for breaches in last]
    return sorted(findings, key=_place)


def _finding(known: Conclusions, breaches: list[Breach]) -> Finding:
    shown = min(breaches, key=lambda b: (b.severity, b.sentence, b.evidence))
    rule = shown.rule
    captures = {capture.capture_id: capture for b in breaches for capture in b.captures}
    replicas = {replica for b in breaches for replica in b.replicas}
    seen = [c.captured_at for c in known.facts.captures if c.capture_id in captures]
    seen += [at for b in breaches for at in b.observed_at]
    ends = [b.end_offset for b in breaches if b.end_offset is not None]
    return Finding(
        finding_id=_finding_id(known.facts.cluster_id, rule, shown.identity),
        cluster_id=known.facts.cluster_id,
        rule=rule.number,
        name=rule.name,
        severity="error" if any(b.severity == "error" for b in breaches) else "warning",
        first_offset=min((b.first_offset for b in breaches if b.first_offset is not None), default=None),
        end_offset=max(ends, default=None),
        leader_epochs=tuple(sorted({epoch for b in breaches for epoch in b.leader_epochs})),
        replicas=tuple(label(key) for key in sorted(replicas)),
        capture_ids=tuple(sorted(captures)),
        sentence=shown.sentence,
        evidence=shown.evidence,
        source=rule.source,
        first_seen_at=min(seen, default=0),
        last_seen_at=max(seen, default=0),
        resolution=_supplied(breaches) or _resolution(known, replicas, captures),
    )


def _finding_id(cluster_id: str, rule: Rule, identity: tuple[Part, ...]) -> str:
    named = json.dumps([cluster_id, rule.number, rule.name, *identity])
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _supplied(breaches: list[Breach]) -> str | None:
    """Which captures supply what was lost, None while any of it is lost."""
    if not all(b.supplied_by for b in breaches):
        return None
    named = {c.capture_id: c for b in breaches for c in b.supplied_by}
    ordered = sorted(named.values(), key=lambda c: (c.captured_at, c.capture_id))
    return f"supplied by the capture of {', '.join(map(_capture_words, ordered))}"


def _resolution(known: Conclusions, replicas: set[ReplicaKey], shown: dict[str, Capture]) -> str | None:
    """Why a fault is over. A capture that could not be read, or whose time is open, ends none."""
    of_each = [known.holdings.captures[key] for key in sorted(replicas) if key in known.holdings.captures]
    newest = [_newest_without(captures, shown) for captures in of_each]
    if not shown or not newest or None in newest:
        return None
    words = ", ".join(_capture_words(c) for c in newest if c is not None)
    return f"not in the newer capture of {words}"


def _newest_without(captures: Sequence[Capture], shown: dict[str, Capture]) -> Capture | None:
    """A replica's newest whole capture that was taken after all that show the fault."""
    showing = [capture for capture in captures if capture.capture_id in shown]
    later = (
        c
        for c in reversed(captures)
        if c.capture_id not in shown and c.known_end is not None and all(is_later(c, s) for s in showing)
    )
    return next(later, None)


def _capture_words(capture: Capture) -> str:
    """Replica and time in UTC, to the second; the id where no time is stated: file times prove nothing."""
    who = label(capture.replica)
    if capture.captured_until is None:
        return f"{who} without a stated time ({capture.capture_id[:12]})"
    return f"{who} of {datetime.fromtimestamp(capture.captured_at // 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.rule, -1 if finding.first_offset is None else finding.first_offset, finding.finding_id
