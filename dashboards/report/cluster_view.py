"""The page's part on one cluster: its sections, every chart followed by its table."""

from __future__ import annotations

from collections.abc import Callable

from dashboards.report.formatting import ago, listed, number, time_of, utc
from dashboards.report.lanes import lanes_of
from dashboards.report.markup import Markup, el
from dashboards.report.sections_growth import growth
from dashboards.report.sections_logs import captures, recovery, snapshots, truncations, unsettled
from dashboards.report.sections_metadata import admin_events, min_isr, missing_records
from dashboards.report.sections_quality import expectations, findings, quarantine, restoration
from dashboards.report.sections_quorum import epochs, voting, watermarks
from dashboards.report.sections_samples import samples
from dashboards.report.state import NEED_WORDS, ClusterState, Need
from dashboards.report.story import story
from dashboards.report.view import Rows, View
from kraft_core.wording import count

Section = Callable[[View], "Markup | None"]


def cluster_view(
    state: ClusterState, rows: Rows, now: int, anchor: str, is_open: bool, lasting: bool = False
) -> Markup:
    """The whole part, collapsed under its headline unless `is_open`."""
    view = View(state, rows, lanes_of(rows), now, anchor, lasting)
    bodies = [(name, title, section(view)) for name, title, section in SECTIONS]
    shown = [(name, title, body) for name, title, body in bodies if body is not None]
    links = [el("li", el("a", title, href=f"#{anchor}-{name}")) for name, title, _ in shown]
    return el(
        "details",
        el("summary", _headline(state)),
        _key_facts(view),
        el("nav", el("ul", links), aria_label=f"Sections of {state.title}"),
        [
            el("section", el("h3", title), body, id=f"{anchor}-{name}")
            for name, title, body in shown
        ],
        class_="cluster",
        id=anchor,
        open=is_open,
    )  # fmt: skip


def _headline(state: ClusterState) -> Markup:
    return el(
        "h2",
        badge(state.need),
        " ",
        el("span", state.title, class_="title"),
        el("code", state.cluster_id) if state.name else None,
        el("small", state.whose) if state.whose else None,
    )


def badge(need: Need) -> Markup:
    """The urgency as a sign and words."""
    sign = ("✓", "▲", "●")[need]
    return el("span", el("span", sign, aria_hidden="true"), f" {NEED_WORDS[need]}",
              class_=f"badge need{int(need)}")  # fmt: skip


def failed_view(name: str, why: str, anchor: str) -> Markup:
    """The part of a cluster that cannot be shown."""
    title = el("h2", badge(Need.ACTION), " ", el("span", name, class_="title"))
    reason = el("li", failed_words(why), class_=f"need{int(Need.ACTION)}")
    facts = el("div", el("ul", reason, class_="why"))
    return el("details", el("summary", title), facts, class_="cluster", id=anchor, open=True)


def failed_words(why: str) -> str:
    """Why a cluster cannot be shown."""
    return f"could not be shown: {why}"


def _key_facts(view: View) -> Markup:
    """The key facts, and the reasons for attention."""
    s = view.state
    captured = time_of(s.last_captured_at)
    last = (
        (utc(s.last_captured_at)[:10], captured)
        if view.lasting
        else (ago(s.last_captured_at, view.now), captured)
    )
    facts = [
        ("Voters", voters(s), _voters_note(s)),
        ("Leader", leader(s), f"{leader_note(s)}; {count(s.epochs, 'epoch')} known"),
        ("Committed up to", number(s.committed_end_offset), f"highest log end {number(s.log_end_offset)}"),
        ("High watermark", watermark(s), watermark_note(s)),
        ("Last capture", *last),
        (
            "Captures",
            number(s.captures),
            f"of {count(s.replicas, 'replica')}{', and followed' if s.is_followed else ''}",
        ),
    ]
    boxes = [
        el("div", el("dt", name), el("dd", el("b", value), el("small", note))) for name, value, note in facts
    ]
    why = [
        el(
            "li",
            el(
                "a", reason.lasting if view.lasting else reason.words, href=f"#{view.anchor}-{reason.section}"
            ),
            class_=f"need{int(reason.need)}",
        )
        for reason in s.reasons
    ]
    return el("div", el("ul", why, class_="why") if why else None, el("dl", boxes, class_="facts"))


def voters(s: ClusterState) -> str:
    """The proven voters, else those that are only reported."""
    return listed(s.voter_ids or s.reported_voters) or "unknown"


def _voters_note(s: ClusterState) -> str:
    if not s.voter_ids:
        return voters_mark(s) or "no voter set in the captures"
    return f"majority {s.majority}; {voters_mark(s)}{reported_voters(s)}"


def voters_mark(s: ClusterState) -> str:
    """What is known of the voters, and in which epoch, where the leader's is a later one."""
    if not s.voter_ids and s.reported_voters:
        return f"reported: {s.reported_by}, not proven"
    earlier = s.voters_epoch is not None and s.leader_epoch is not None and s.voters_epoch < s.leader_epoch
    status = s.voters_status or s.voters_source or ""
    return f"{status} in epoch {number(s.voters_epoch)}" if earlier else status


def reported_voters(s: ClusterState) -> str:
    """The voters that a later epoch is reported to have."""
    if not s.reported_voters or not s.voter_ids:
        return ""
    return f"; {listed(s.reported_voters)} in epoch {number(s.reported_epoch)}, reported: {s.reported_by}"


def leader(s: ClusterState) -> str:
    return "unknown" if s.leader_id is None else f"node {s.leader_id}"


def leader_note(s: ClusterState) -> str:
    """The newest epoch that is known, and whether its leader is only reported."""
    reported = s.leader_id is not None and s.leader_source != "record"
    return f"epoch {number(s.leader_epoch)}{f', reported: {s.leader_source}' if reported else ''}"


def watermark(s: ClusterState) -> str:
    """The bounds that hold at one moment, which watermark_note names."""
    lower = "?" if s.watermark.lower is None else number(s.watermark.lower)
    upper = "?" if s.watermark.upper is None else number(s.watermark.upper)
    return f"{lower} … {upper}"


def watermark_note(s: ClusterState) -> Markup:
    """The moment of the bounds, and the higher lower bound that holds from later on."""
    known = s.watermark
    later = [f"; at least {number(known.later_lower)} ", *_since(known.later_at)]
    return el("span", watermark_moment(s), later if known.later_lower is not None else None)


def watermark_moment(s: ClusterState) -> Markup:
    at = s.watermark.at
    return el("span", "no bound with a known time" if at is None else ["at ", time_of(at)])


def _since(at: int | None) -> list[Markup | str]:
    return ["from ", time_of(at)] if at is not None else ["at an unknown time"]


# Anchor, heading, and the function that makes the section; one without rows is left out.
SECTIONS: tuple[tuple[str, str, Section], ...] = (
    ("story", "What happened", story),
    ("findings", "Findings", findings),
    ("expectations", "Expectations", expectations),
    ("voters", "Voters and leaders", voting),
    ("epochs", "Epochs", epochs),
    ("watermarks", "High watermark and log ends", watermarks),
    ("samples", "Lag and commit rate", samples),
    ("unsettled", "Not committed", unsettled),
    ("truncations", "Truncations", truncations),
    ("recovery", "Recovery", recovery),
    ("restoration", "Restoration", restoration),
    ("missing", "Missing records", missing_records),
    ("isr", "Under min ISR", min_isr),
    ("events", "Administration", admin_events),
    ("captures", "Captures", captures),
    ("snapshots", "Snapshots", snapshots),
    ("growth", "What grows", growth),
    ("quarantine", "Quarantine", quarantine),
)
