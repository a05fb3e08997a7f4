"""One cluster's part of the page: sections from its rows, every picture followed by its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboards.report.bounds import bounds_of
from dashboards.report.draw_bounds import draw_bounds
from dashboards.report.draw_isr import draw_isr
from dashboards.report.draw_lanes import VERBS, draw_lanes
from dashboards.report.lanes import Lanes, lanes_of
from dashboards.report.markup import Markup, el
from dashboards.report.state import NEED_WORDS, ClusterState
from dashboards.report.tables import Col, newest, status_badge, table
from dashboards.report.words import ago, count, duration, listed, number, short, size, time_of

Row = dict[str, Any]
Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class View:
    """What sections are made from. `now` in ms since the epoch; `anchor` begins the ids of the sections."""

    state: ClusterState
    rows: Rows
    lanes: Lanes | None
    now: int
    anchor: str

    def of(self, kind: str) -> list[Row]:
        return self.rows.get(kind, [])

    def count(self, kind: str) -> int:
        """How many rows of the kind the lake has; `of` has the newest of them."""
        return self.rows["counts"][0][kind]


Section = Callable[[View], "Markup | None"]


def cluster_view(state: ClusterState, rows: Rows, now: int, anchor: str, is_open: bool) -> Markup:
    """The whole part, folded under its headline."""
    view = View(state, rows, lanes_of(rows), now, anchor)
    bodies = [(name, title, section(view)) for name, title, section in SECTIONS]
    shown = [(name, title, body) for name, title, body in bodies if body is not None]
    links = [el("li", el("a", title, href=f"#{anchor}-{name}")) for name, title, _ in shown]
    return el(
        "details",
        el("summary", headline(state)),
        key_facts(view),
        el("nav", el("ul", links), aria_label=f"Sections of {state.title}"),
        [
            el("section", el("h3", title, id=f"{anchor}-{name}-h"), body,
               id=f"{anchor}-{name}", aria_labelledby=f"{anchor}-{name}-h")
            for name, title, body in shown
        ],
        class_="cluster",
        id=anchor,
        open=is_open,
    )  # fmt: skip


def headline(state: ClusterState) -> Markup:
    return el(
        "h2",
        badge(state),
        " ",
        el("span", state.title, class_="title"),
        el("code", state.cluster_id) if state.name else None,
    )


def badge(state: ClusterState) -> Markup:
    """The need for a person as a sign and words."""
    sign = ("✓", "▲", "●")[state.need]
    return el("span", el("span", sign, aria_hidden="true"), f" {NEED_WORDS[state.need]}",
              class_=f"badge need{int(state.need)}")  # fmt: skip


def key_facts(view: View) -> Markup:
    """What one wants to know first, and what is not as it should be."""
    s = view.state
    facts = [
        ("Voters", voters(s), voters_note(s)),
        ("Leader", leader(s), f"epoch {number(s.leader_epoch)}, the last of {count(s.epochs, 'epoch')}"),
        ("Committed up to", number(s.committed_end_offset), f"newest log end {number(s.log_end_offset)}"),
        ("High watermark", watermark(s), "as far as the captures prove it"),
        ("Last capture", ago(s.last_captured_at, view.now), time_of(s.last_captured_at)),
        ("Captures", number(s.captures), f"of {count(s.replicas, 'replica')}"),
    ]
    boxes = [
        el("div", el("dt", name), el("dd", el("b", value), el("small", note))) for name, value, note in facts
    ]
    why = [
        el(
            "li",
            el("a", reason.words, href=f"#{view.anchor}-{reason.section}"),
            class_=f"need{int(reason.need)}",
        )
        for reason in s.reasons
    ]
    return el("div", el("ul", why, class_="why") if why else None, el("dl", boxes, class_="facts"))


def voters(s: ClusterState) -> str:
    return listed(s.voter_ids) if s.voter_ids else "unknown"


def voters_note(s: ClusterState) -> str:
    if not s.voter_ids:
        return "no voter set in sight"
    return f"{s.majority} make a majority; {s.voters_status or s.voters_source}"


def leader(s: ClusterState) -> str:
    return "unknown" if s.leader_id is None else f"node {s.leader_id}"


def watermark(s: ClusterState) -> str:
    lower = "?" if s.lower_bound is None else number(s.lower_bound)
    upper = "?" if s.upper_bound is None else number(s.upper_bound)
    return f"{lower} … {upper}"


# --- sections --------------------------------------------------------------------------------------


def findings(view: View) -> Markup | None:
    rows = view.of("findings")
    if not rows:
        return el("p", "No rule of KRaft is broken, as far as the captures show.", class_="fine")
    items = [el("li", finding(row), class_=f"{row['severity']} {row['state']}") for row in rows]
    more = newest(len(rows), view.count("findings"), "findings")
    return el("div", el("ol", items, class_="findings"), el("p", more, class_="more") if more else None)


def finding(row: Row) -> list[Markup]:
    """A finding: the sentence, where, and its evidence to unfold."""
    where = []
    if row["first_offset"] is not None:
        end = row["end_offset"]
        last = f" to {number(end - 1)}" if end is not None and end - 1 > row["first_offset"] else ""
        where.append(f"offset {number(row['first_offset'])}{last}")
    if row["leader_epochs"]:
        where.append(
            f"{'epoch' if len(row['leader_epochs']) == 1 else 'epochs'} {listed(row['leader_epochs'])}"
        )
    if row["replicas"]:
        where.append(f"on {listed(replica_words(r) for r in row['replicas'])}")
    sign = "●" if row["severity"] == "error" else "▲"
    return [
        el("p", el("span", el("span", sign, aria_hidden="true"), f" {row['severity']}", class_="badge"), " ",
           el("b", row["sentence"])),
        el("p", f"Rule {row['rule']}, {row['name']} · {row['state']} · ", " · ".join(where), " · seen ",
           time_of(row["first_seen_at"]), " to ", time_of(row["last_seen_at"]), class_="where"),
        el("details", el("summary", "Evidence"), el("p", row["evidence"]),
           el("p", "Source of the rule: ", row["source"]),
           el("p", "Finding ", el("code", row["finding_id"]))),
    ]  # fmt: skip


def replica_words(replica: str) -> str:
    """1@uuid as node 1 (uuid's beginning)."""
    node, _, directory = replica.partition("@")
    return f"node {node} ({short(directory)})" if directory else f"node {node}"


def expectations(view: View) -> Markup | None:
    rows = view.of("expectations")
    if not rows:
        return None
    failed = sorted((r for r in rows if not r["success"]), key=lambda r: (r["severity"], r["suite"]))
    met = f"{count(len(rows) - len(failed), 'expectation')} met"
    if not failed:
        return el("p", f"{met}, none failed.", class_="fine")
    columns = [
        Col("Severity"),
        Col("Table"),
        Col("Expected", long=True),
        Col("Observed", True),
        Col("Allowed", True),
    ]
    told = [
        (r["severity"], r["suite"], examples(r), measured(r["observed"]), measured(r["allowed"]))
        for r in failed
    ]
    return el("div", el("p", f"{met}, {len(failed)} not."), table("Expectations not met", columns, told))


def examples(row: Row) -> Markup:
    """What is expected, with failing rows to unfold."""
    words = el("span", row["sentence"] or row["expectation"])
    if not row["failing_rows"]:
        return words
    return el(
        "details", el("summary", words), el("ul", [el("li", el("code", r)) for r in row["failing_rows"]])
    )


def measured(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def recovery(view: View) -> Markup | None:
    """From which replica to go on, if it had to be."""
    rows = view.of("recovery")
    if not rows or not (rows[0]["best"] or rows[0]["others"]):
        return None
    advice = rows[0]
    best, others = advice["best"] or [], advice["others"] or []
    whom = listed(f"node {c['node_id']} ({short(c['directory_id'])})" for c in best)
    words = (
        f"Safe: {whom}"
        if advice["is_safe"]
        else f"Not safe. The best claim has {whom}"
        if best
        else "Not safe"
    )
    kind = "safe" if advice["is_safe"] else "unsafe"
    told = [
        (
            "best" if candidate in best else "other",
            f"node {candidate['node_id']}{', observer' if candidate['is_observer'] else ''}",
            el("code", short(candidate["directory_id"]), title=candidate["directory_id"]),
            number(candidate["last_leader_epoch"]),
            number(candidate["log_end_offset"]),
            in_force(candidate),
            candidate["loses"] or "nothing known",
        )
        for candidate in [*best, *others]
    ]
    columns = [Col("Claim"), Col("Replica"), Col("Directory"), Col("Last epoch", True), Col("Log end", True),
               Col("Voters it puts in force"), Col("Loses", long=True)]  # fmt: skip
    return el(
        "div",
        el("p", el("b", f"{words}."), f" {advice['why']}", class_=f"advice {kind}"),
        el("p", "As of ", time_of(advice["as_of"]),
           f"; the highest epoch seen is {number(advice['highest_epoch'])}.", class_="more"),
        table("Replicas by their claim", columns, told),
    )  # fmt: skip


def in_force(candidate: Row) -> list[object]:
    """The voter set that a replica's log puts in force."""
    if candidate["voters_in_force"] is None:
        return ["none in sight"]
    words: list[object] = [candidate["voters_in_force"]]
    if candidate["voters_status"] not in ("committed", None):
        words += [" ", status_badge(candidate["voters_status"])]
    return words


def voting(view: View) -> Markup | None:
    if view.lanes is None:
        return None
    status = {(s["offset"], s["leader_epoch"]): s for s in view.of("sets")}
    rows = []
    for change in sorted(view.of("changes"), key=lambda c: (-c["offset"], -c["leader_epoch"], c["voter_id"])):
        of_set = status.get((change["offset"], change["leader_epoch"]), {})
        rows.append(
            (
                time_of(change["changed_at"]),
                place(change["offset"], change["leader_epoch"]),
                f"{VERBS[change['kind']]} node {change['voter_id']}",
                el("code", short(change["directory_id"]), title=change["directory_id"]),
                voter_ids(of_set),
                status_badge(change["commit_status"], of_set.get("truncated_by_epoch")),
                of_set.get("evidence"),
            )
        )
    columns = [Col("When"), Col("Offset / epoch", True), Col("Change"), Col("Directory"),
               Col("Voters then"), Col("Status"), Col("Proven by", long=True)]  # fmt: skip
    first = None if rows else el("p", "No voter set is in the captured logs.", class_="more")
    return el("div", draw_lanes(view.lanes), table("Membership changes", columns, rows) if rows else first)


def voter_ids(row: Row) -> str:
    return f"{{{', '.join(str(v['voter_id']) for v in row.get('voters') or ())}}}" if row else ""


def place(offset: int, epoch: int) -> str:
    return f"{number(offset)} / e{epoch}"


def epochs(view: View) -> Markup | None:
    rows = view.of("epochs")
    if not rows:
        return None
    led = [
        (
            "unknown" if r["leader_id"] is None else f"node {r['leader_id']}",
            number(r["epochs"]),
            time_of(r["last_elected_at"]),
            span_words(r["leaderless_ms"]),
            span_words(r["longest_leaderless_ms"]),
        )
        for r in view.of("leaders")
    ]
    by_leader = table(
        "Leaders",
        [Col("Leader"), Col("Epochs", True), Col("Last elected"), Col("Leaderless before, in all", True),
         Col("longest", True)],
        led,
    )  # fmt: skip
    told = [
        (
            number(r["leader_epoch"]),
            "not in sight" if r["leader_id"] is None else f"node {r['leader_id']}",
            time_of(r["elected_at"]),
            f"{'' if r['start_offset_exact'] else '≤ '}{number(r['start_offset'])}",
            listed(r["granting_voters"] or ()) or "–",
            listed(r["voters"] or ()) or "–",
            span_words(r["leaderless_ms"]),
        )
        for r in rows
    ]
    by_epoch = table(
        "Epochs",
        [Col("Epoch", True), Col("Leader"), Col("Elected"), Col("Start offset", True), Col("Granted by"),
         Col("of voters"), Col("No leader before, at most", True)],
        told,
        newest(len(rows), view.count("epochs"), "epochs"),
    )  # fmt: skip
    return el("div", by_leader, by_epoch)


def span_words(ms: int | None) -> str:
    return "–" if ms is None else duration(ms)


def watermarks(view: View) -> Markup | None:
    if view.lanes is None:
        return None
    bounds = bounds_of(view.rows, view.lanes.scale.start, view.lanes.scale.end)
    if bounds is None:
        return None
    rows = [
        (
            time_of(p.at),
            "at least" if p.is_lower else "at most",
            number(p.bound),
            "from then on" if p.is_lower else "up to then",
            p.source,
        )
        for p in reversed(bounds.proofs)
    ]
    columns = [Col("When"), Col("Bound"), Col("Offset", True), Col("Holds"), Col("Proven by", long=True)]
    shown = rows[:NEWEST_PROOFS]
    more = newest(len(shown), len(rows), "proofs that say more than the others")
    return el("div", draw_bounds(bounds, view.lanes.scale), table("Bounds", columns, shown, more))


NEWEST_PROOFS = 60


def unsettled(view: View) -> Markup | None:
    """Stretches of the log that are not committed."""
    rows = view.of("unsettled")
    if not rows:
        return None
    told = [
        (
            f"{number(r['first_offset'])} – {number(r['end_offset'] - 1)}",
            f"e{r['leader_epoch']}",
            number(r["end_offset"] - r["first_offset"]),
            status_badge(r["commit_status"], r["truncated_by_epoch"]),
            time_of(r["as_of"]),
            r["evidence"],
        )
        for r in rows
    ]
    columns = [Col("Offsets", True), Col("Epoch"), Col("Records", True), Col("Status"), Col("As of"),
               Col("Proven by", long=True)]  # fmt: skip
    more = newest(len(rows), view.count("unsettled"), "stretches")
    return table("Stretches of the log that are not committed", columns, told, more)


def truncations(view: View) -> Markup | None:
    """What replicas held and then held no more."""
    rows = view.of("truncations")
    if not rows:
        return None
    told = [
        (
            f"node {r['node_id']} ({short(r['directory_id'])})",
            f"{number(r['truncated_to'])} – {number(r['end_offset'] - 1)}",
            listed(r["leader_epochs"] or ()) or "–",
            number(r["by_epoch"]),
            r["lost_voter_changes"] or "none",
            time_of(r["held_at"]),
            time_of(r["lost_at"]),
        )
        for r in rows
    ]
    columns = [Col("Replica"), Col("Offsets lost", True), Col("of epochs"), Col("by epoch", True),
               Col("Membership changes lost", long=True), Col("Still held"), Col("Gone")]  # fmt: skip
    more = newest(len(rows), view.count("truncations"), "truncations")
    return table("Truncations that captures show", columns, told, more)


def min_isr(view: View) -> Markup | None:
    rows = view.of("thin_partitions")
    if not rows:
        return None
    scale = view.lanes.scale if view.lanes else None
    picture = draw_isr(view.of("under_min_isr"), scale, view.now)
    told = [
        (
            f"{r['topic_name']}-{r['partition_id']}",
            time_of(r["from_at"]),
            "still" if r["to_at"] is None else time_of(r["to_at"]),
            span_words(r["under_ms"]),
            listed(r["isr"] or ()) or "none",
            number(r["min_isr"]),
            status_badge(r["commit_status"]),
        )
        for r in rows
    ]
    columns = [Col("Partition"), Col("From"), Col("To"), Col("For", True), Col("ISR"),
               Col("min.insync.replicas", True), Col("Status")]  # fmt: skip
    more = newest(len(rows), rows[0]["stretches"], "stretches")
    return el("div", picture, table("Partitions under min ISR", columns, told, more))


def admin_events(view: View) -> Markup | None:
    rows = view.of("admin_events")
    if not rows:
        return None
    told = [
        (
            time_of(r["changed_at"]),
            place(r["offset"], r["leader_epoch"]),
            r["operation"],
            f"{r['resource_type']} {r['resource'] or ''}",
            r["detail"],
            status_badge(r["commit_status"]),
        )
        for r in rows
    ]
    columns = [Col("When"), Col("Offset / epoch", True), Col("Operation"), Col("Resource"), Col("Detail"),
               Col("Status")]  # fmt: skip
    return table("What administrators did", columns, told, newest(len(rows), rows[0]["events"], "events"))


def captures(view: View) -> Markup | None:
    """The newest capture of each replica."""
    last: dict[tuple[int, str], Row] = {}
    for row in view.of("captures"):
        key = (row["node_id"], row["directory_id"])
        if key not in last or row["captured_at"] > last[key]["captured_at"]:
            last[key] = row
    told = [
        (
            f"node {node}",
            el("code", directory),
            number(row["captures"]),
            time_of(row["captured_at"]),
            f"{number(row['log_start_offset'])} – {number(row['log_end_offset'])}",
            number(row["last_leader_epoch"]),
            number(row["kraft_version"]),
            size(row["size_bytes"]),
        )
        for (node, directory), row in sorted(last.items())
    ]
    columns = [Col("Node"), Col("Directory"), Col("Captures", True), Col("Newest"), Col("Log", True),
               Col("Last epoch", True), Col("kraft.version", True), Col("Size", True)]  # fmt: skip
    return table("Newest capture of each replica", columns, told)


def snapshots(view: View) -> Markup | None:
    rows = view.of("snapshots")
    if not rows:
        return None
    told = [
        (
            place(r["end_offset"], r["leader_epoch"]),
            time_of(r["written_at"]),
            listed(r["node_ids"]) or "–",
            number(r["copies"]),
            "complete" if r["complete"] else "incomplete",
            size(r["size_bytes"]),
        )
        for r in rows
    ]
    columns = [Col("End / epoch", True), Col("First written"), Col("Nodes"), Col("Different files", True),
               Col("State"), Col("Size", True)]  # fmt: skip
    return table("Snapshots", columns, told)


def quarantine(view: View) -> Markup | None:
    rows = view.of("quarantine")
    if not rows:
        return None
    told = [
        (
            f"node {r['node_id']}" if r["node_id"] is not None else "–",
            time_of(r["captured_at"]),
            el("code", r["file"]),
            number(r["position"]),
            size(r["size_bytes"]),
            r["reason"].replace("_", " "),
            lost_offsets(r),
        )
        for r in rows
    ]
    columns = [Col("Node"), Col("Captured"), Col("File"), Col("At byte", True), Col("Size", True),
               Col("Reason"), Col("Offsets lost", True)]  # fmt: skip
    more = newest(len(rows), view.count("quarantine"), "stretches")
    return table("Bytes that no copy supplied", columns, told, more)


def lost_offsets(row: Row) -> str:
    if row["lost_from_offset"] is None:
        return "–"
    end = "the end" if row["lost_to_offset"] is None else number(row["lost_to_offset"])
    return f"{number(row['lost_from_offset'])} to {end}"


# Name in links, heading, and what makes it; a section that has nothing to tell is left out.
SECTIONS: tuple[tuple[str, str, Section], ...] = (
    ("findings", "Findings", findings),
    ("expectations", "Expectations", expectations),
    ("voters", "Voters and leaders", voting),
    ("epochs", "Epochs", epochs),
    ("watermarks", "High watermark and log ends", watermarks),
    ("unsettled", "Not committed", unsettled),
    ("truncations", "Truncations", truncations),
    ("recovery", "Recovery", recovery),
    ("isr", "Under min ISR", min_isr),
    ("events", "Administration", admin_events),
    ("captures", "Captures", captures),
    ("snapshots", "Snapshots", snapshots),
    ("quarantine", "Quarantine", quarantine),
)
