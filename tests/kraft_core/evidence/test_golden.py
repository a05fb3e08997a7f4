"""What must come out of the captures by real Kafka: every voter set, every bound of the high watermark.

Each scenario was driven so that the truth is known: its timeline records what was committed and what was
lost, its describe outputs what the leader took for the high watermark.
"""

from __future__ import annotations

import gzip
import json
import re

import pytest

from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.evidence.rows import ClusterEvidence
from tests.kraft_core.evidence.golden import GOLDEN, MOMENTS, cluster, moment

# offset/epoch: voter ids, status. C committed, U uncommitted, T truncated, ? undecided, - none (static).
UNCOMMITTED = "2/1:1 C, 25/1:1,2 C, 28/1:1,2,3 C"
STALE_SPLIT = "2/1:1,2,3 C, 148/3:1,2,3,4 C, 150/3:1,2,3,4,5 "
STATIC_UPGRADE = "0/6:1,2,3 -, 659/10:1,2,3 C, 766/12:1,2,3,4 C, 782/12:1,2,4 C"
OLD_MV = "0/3:1,2,3 -, 620/9:1,2,3 C, 715/14:1,2,3,4 C, 732/14:1,2,4 C"
VOTER_SETS = {
    "uncommitted-truncation/before": f"{UNCOMMITTED}, 355/1:1,2,3,4 U",
    "uncommitted-truncation/after": UNCOMMITTED,
    "uncommitted-removal/before": f"{UNCOMMITTED}, 790/6:2,3 U",
    "uncommitted-removal/after": UNCOMMITTED,
    "uncommitted-then-committed/before": f"{UNCOMMITTED}, 1249/10:1,2,3,4 U",
    "uncommitted-then-committed/after": f"{UNCOMMITTED}, 1249/10:1,2,3,4 C",
    "uncommitted": f"{UNCOMMITTED}, 355/1:1,2,3,4 T, 790/6:2,3 T, 1249/10:1,2,3,4 C",
    "disk-failure/before-wipe": "2/1:1,2,3 C",
    "disk-failure/reformatted-not-added": "2/1:1,2,3 C",
    "disk-failure": "2/1:1,2,3 C, 96/1:1,3 C, 108/1:1,2,3 C",
    "all of disk-failure": "2/1:1,2,3 C, 96/1:1,3 C, 108/1:1,2,3 C",
    "dynamic-membership": "2/1:1 C, 61/1:1,2 C, 72/1:1,2,3 C, 1878/3:1,2 C, 1885/3:1,2,3 C, 1894/3:1,3 C, "
    "1979/4:1,2,3 C, 1999/4:1,2,3 C, 2022/6:1,2,3 C",
    "election-storm": "2/1:1,2,3 C",
    "v4.4.0-mini": "2/1:1 C, 25/1:1,2 C",
    "static-upgrade/at-3.9.2": "0/6:1,2,3 -",
    "static-upgrade/at-4.3.1-static": "0/6:1,2,3 -",
    "static-upgrade": STATIC_UPGRADE,
    "all of static-upgrade": STATIC_UPGRADE,
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-3.9.2": "0/3:1,2,3 -",
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-4.3.1-static": "0/3:1,2,3 -",
    "old-mv-3.3-IV0-fatal-on-4.3.1": OLD_MV,
    "all of old-mv": OLD_MV,
    "stale-split/before": "2/1:1,2,3 C",
    "stale-split/two-of-five": f"{STALE_SPLIT}?",
    "stale-split/changed": f"{STALE_SPLIT}C",
    "stale-split/after": f"{STALE_SPLIT}C",
    "stale-split/three-of-five": f"{STALE_SPLIT}C",
    "stale-split/healed": f"{STALE_SPLIT}C",
    "stale-split/final": f"{STALE_SPLIT}C",
    "all of stale-split": f"{STALE_SPLIT}C",
}
# Highest lower bound, end of what is committed (the majority rule included), upper bound at the capture.
WATERMARKS: dict[str, tuple[int, int, int | None]] = {
    "uncommitted-truncation/before": (326, 352, 352),
    "uncommitted-truncation/after": (353, 507, 507),
    "uncommitted-removal/before": (527, 786, 786),
    "uncommitted-removal/after": (927, 937, 937),
    "uncommitted-then-committed/before": (958, 1243, 1243),
    "uncommitted-then-committed/after": (958, 1288, 1288),
    "uncommitted": (958, 1288, 1288),
    "disk-failure/before-wipe": (3, 54, 54),
    "disk-failure/reformatted-not-added": (3, 3, None),
    "disk-failure": (97, 140, 140),
    "all of disk-failure": (97, 140, 140),
    "dynamic-membership": (3692, 3697, 3697),
    "election-storm": (45, 48, 48),
    "v4.4.0-mini": (370, 383, 383),
    "static-upgrade/at-3.9.2": (356, 528, 528),
    "static-upgrade/at-4.3.1-static": (530, 530, None),
    "static-upgrade": (767, 934, 934),
    "all of static-upgrade": (767, 934, 934),
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-3.9.2": (343, 458, 458),
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-4.3.1-static": (210, 461, None),  # leader 3 counts
    "old-mv-3.3-IV0-fatal-on-4.3.1": (720, 873, 873),
    "all of old-mv": (720, 873, 873),
    "stale-split/before": (3, 3, None),
    "stale-split/changed": (149, 161, 161),
    "stale-split/after": (149, 171, 171),
    "stale-split/two-of-five": (149, 149, None),
    "stale-split/three-of-five": (5007, 5311, 5311),
    "stale-split/healed": (5007, 5368, 5368),
    "stale-split/final": (5007, 5453, 5453),
    "all of stale-split": (5007, 5453, 5453),
}
LETTER = {"committed": "C", "uncommitted": "U", "truncated": "T", "undecided": "?", None: "-"}


def facts_of(name: str) -> ClusterFacts:
    """A moment's captures, or with "all of" (or without a moment of that name) all of the cluster."""
    if name in MOMENTS:
        return moment(name)
    return cluster(name.removeprefix("all of "))


@pytest.mark.parametrize("name", VOTER_SETS)
def test_voter_sets(name: str) -> None:
    rows = [row for row in derive(facts_of(name)).voter_sets if row.source != "bootstrap"]
    stated = [
        f"{row.offset}/{row.leader_epoch}:{','.join(map(str, row.voter_ids))} {LETTER[row.commit_status]}"
        for row in rows
    ]
    assert ", ".join(stated) == VOTER_SETS[name]
    assert all(row.evidence for row in rows)
    assert all((row.as_of is None) == (row.commit_status is None) for row in rows)


@pytest.mark.parametrize("name", WATERMARKS)
def test_watermarks(name: str) -> None:
    evidence = derive(facts_of(name))
    lower = [row.lower_bound for row in evidence.high_watermarks if row.lower_bound is not None]
    upper = [(row.as_of, row.upper_bound) for row in evidence.high_watermarks if row.upper_bound is not None]
    committed = [row.end_offset for row in evidence.log_ranges if row.commit_status == "committed"]
    assert (max(lower), max(committed), max(upper)[1] if upper else None) == WATERMARKS[name]


# Type, offset, epoch, and the leader's or the voters' ids.
Statement = tuple[str, int, int, tuple[int, ...]]


def stated_by_summary(scenario: str, label: str) -> set[Statement]:
    """The control records that kafka-dump-log printed of the segments of one moment."""
    stated: set[Statement] = set()
    for node, summary in json.loads((GOLDEN / scenario / "summary.json").read_text()).items():
        if not re.fullmatch(rf"{re.escape(label + '-' if label else '')}node-\d+", node):
            continue
        for record in summary["controlRecords"]:
            place = (record["offset"], record["epoch"])
            if record["file"].endswith(".log") and record["type"] == "LeaderChange":
                stated.add(("L", *place, (record["leader"],)))
            elif record["file"].endswith(".log") and record["type"] == "KRaftVoters":
                stated.add(("V", *place, tuple(sorted(int(v.split("@")[0]) for v in record["voters"]))))
    return stated


def stated_by_stale_split(label: str) -> set[Statement]:
    """The same of stale-split, which has a summary of its own kind."""
    stated: set[Statement] = set()
    for dump in json.loads((GOLDEN / "stale-split/expected.json").read_text())["dumps"][label].values():
        stated |= {("V", offset, epoch, tuple(ids)) for offset, epoch, ids in dump["voters"]}
        stated |= {("L", offset, epoch, (leader,)) for offset, epoch, leader, _, _ in dump["leaders"]}
    return stated


@pytest.mark.parametrize("name", [name for name in MOMENTS if name != "stale-split/changed"])
def test_every_voters_record_and_leader_change_is_found(name: str) -> None:
    scenario, _, label = name.partition("/")
    stated = stated_by_stale_split(label) if scenario == "stale-split" else stated_by_summary(scenario, label)
    evidence = derive(moment(name))
    found: set[Statement] = {
        ("V", s.offset, s.leader_epoch, s.voter_ids) for s in evidence.voter_sets if s.source == "record"
    }
    for epoch in evidence.epochs:
        if epoch.start_offset_exact and epoch.start_offset is not None and epoch.leader_id is not None:
            found.add(("L", epoch.start_offset, epoch.leader_epoch, (epoch.leader_id,)))
    assert found == stated


DESCRIBED = re.compile(r"HighWatermark:\s+(-?\d+)")


def described(scenario: str) -> list[tuple[int, int]]:
    """(ms, high watermark) of a scenario's describe --status outputs, named by when they were asked for."""
    found: list[tuple[int, int]] = []
    for path in sorted((GOLDEN / scenario / "quorum").glob("*-status-*.txt*")):
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
        match = DESCRIBED.search(text)
        if match and int(match[1]) >= 0:
            found.append((int(path.name.split("-")[0]), int(match[1])))
    return found


@pytest.mark.parametrize("name", [name for name in MOMENTS if not name.startswith("stale-split")])
def test_no_describe_output_contradicts_a_bound(name: str) -> None:
    """A bound speaks of one moment; an output was asked for at its name's time and answered within 10 s."""
    rows = derive(moment(name)).high_watermarks
    observations = described(name.split("/")[0])
    assert observations
    for asked_at, high_watermark in observations:
        below = [r for r in rows if r.lower_bound is not None and r.as_of <= asked_at]
        above = [r for r in rows if r.upper_bound is not None and r.as_of >= asked_at + 10_000]
        assert all(row.lower_bound <= high_watermark for row in below if row.lower_bound is not None)
        assert all(high_watermark <= row.upper_bound for row in above if row.upper_bound is not None)


def ranges(evidence: ClusterEvidence) -> list[str]:
    return [
        f"{r.leader_epoch}: {r.first_offset}-{r.end_offset} {r.commit_status}"
        + (f" by {r.truncated_by_epoch}" if r.truncated_by_epoch is not None else "")
        for r in evidence.log_ranges
    ]


def test_log_ranges_of_a_lost_change() -> None:
    assert ranges(derive(moment("uncommitted-truncation/before"))) == [
        "1: 0-352 committed",
        "1: 352-369 uncommitted",
    ]
    assert ranges(derive(cluster("uncommitted"))) == [
        "1: 0-352 committed",
        "1: 352-369 truncated by 3",
        "3: 352-525 committed",
        "4: 525-526 committed",
        "6: 526-786 committed",
        "6: 786-803 truncated by 7",
        "7: 786-956 committed",
        "8: 956-957 committed",
        "10: 957-1288 committed",
    ]


def test_log_ranges_of_the_split() -> None:
    """What two of five acknowledged was never committed by the log's set, and is reported as truncated."""
    assert ranges(derive(moment("stale-split/two-of-five"))) == [
        "1: 0-129 committed",
        "3: 129-149 committed",
        "3: 149-5006 undecided",
        "4: 5006-5230 undecided",
    ]
    assert ranges(derive(cluster("stale-split"))) == [
        "1: 0-129 committed",
        "1: 129-1741 truncated by 3",
        "3: 129-5006 committed",
        "4: 5006-5230 truncated by 5",
        "5: 5006-5453 committed",
    ]


def test_what_the_stale_leader_believed_is_told_apart() -> None:
    believed = [
        r for r in derive(moment("stale-split/two-of-five")).high_watermarks if r.believed_bound is not None
    ]
    assert [(r.evidence, r.leader_epoch, r.believed_bound) for r in believed] == [
        ("first_data_batch", 4, 5007)
    ]
    assert all(r.lower_bound is None and r.upper_bound is None for r in believed)


def test_replica_ranges_join_the_captures_of_a_replica() -> None:
    rows = [r for r in derive(cluster("uncommitted")).replica_ranges if r.node_id == 1 and r.leader_epoch < 4]
    before, after = (
        moment(f"uncommitted-truncation/{m}").captures[0].captured_at for m in ("before", "after")
    )
    last = moment("uncommitted-then-committed/after").captures[0].captured_at
    assert [(r.leader_epoch, r.first_offset, r.end_offset) for r in rows] == [(1, 0, 369), (3, 352, 525)]
    assert [(r.first_captured_at, r.last_captured_at) for r in rows] == [(before, last), (after, last)]


def test_epochs_and_elections() -> None:
    rows = derive(moment("dynamic-membership")).epochs
    assert [(r.leader_epoch, r.leader_id, r.start_offset, r.start_offset_exact) for r in rows] == [
        (1, 1, 0, True),
        (3, 2, 1005, True),
        (4, 3, 1895, True),
        (6, 2, 2013, True),
        (7, 3, 2943, True),
        (9, 3, 2944, True),
    ]
    assert rows[2].voter_ids == (1, 3)
    assert rows[0].leaderless_ms is None
    assert all(row.leaderless_ms is not None and 0 < row.leaderless_ms < 60_000 for row in rows[1:])


def test_epochs_below_the_log_start_are_known_from_the_checkpoint_file() -> None:
    """Node 4's log begins at 356 in epoch 8, where its fetched snapshot ends."""
    (node,) = [c for c in moment("static-upgrade").captures if c.node_id == 4]
    facts = ClusterFacts("c", (node,))
    rows = {r.leader_epoch: (r.start_offset, r.start_offset_exact) for r in derive(facts).epochs}
    assert rows == {8: (356, False), 10: (529, False), 11: (675, False), 12: (700, False)}


def test_voter_changes() -> None:
    rows = derive(cluster("uncommitted")).voter_changes
    assert [(r.offset, r.kind, r.voter_id, r.commit_status) for r in rows] == [
        (2, "bootstrapped", 1, "committed"),
        (25, "added", 2, "committed"),
        (28, "added", 3, "committed"),
        (355, "added", 4, "truncated"),
        (790, "removed", 1, "truncated"),
        (1249, "added", 4, "committed"),
    ]
    rows = derive(moment("dynamic-membership")).voter_changes
    assert [(r.offset, r.voter_id, r.detail) for r in rows if r.kind == "updated"] == [
        (1999, 1, "endpoints CONTROLLER://127.0.0.1:29001 -> CONTROLLER://127.0.0.1:29051"),
        (2022, 3, "endpoints CONTROLLER://127.0.0.1:29003 -> CONTROLLER://127.0.0.1:29063"),
    ]


def test_in_force() -> None:
    rows = {(r.offset, r.source): r for r in derive(cluster("uncommitted")).voter_sets}
    spans = {key: (row.in_force_from_offset, row.in_force_to_offset) for key, row in rows.items()}
    assert spans == {
        (-1, "bootstrap"): (-1, 2),
        (2, "record"): (2, 25),
        (25, "record"): (25, 28),
        (28, "record"): (28, 1249),
        (355, "record"): (355, 369),
        (790, "record"): (790, 803),
        (1249, "record"): (1249, None),
    }
    lost = rows[355, "record"]
    (e3,) = [e for e in derive(cluster("uncommitted")).epochs if e.leader_epoch == 3]
    assert (lost.in_force_from, lost.in_force_to) == (lost.appended_at, e3.elected_at)
    assert rows[28, "record"].in_force_to == rows[1249, "record"].appended_at
