"""Rows as the lake has them, for pages that need no lake."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dashboards.report.queries import few
from dashboards.report.samples import binned
from dashboards.report.state import ClusterState, fleet
from kraft_core.messages.uuid_text import ZERO_UUID

Row = dict[str, Any]
SECOND = 1000
# 2026-11-21 09:00:00Z
BEGAN = 1_795_251_600_000
NOW = BEGAN + 3_600 * SECOND
DIRECTORIES = {1: "dlQnpRFNQLyzxMXecUSy_g", 2: "JJnBYSCjLKkJ5gRPQ1FZ7g", 3: "kf8ghIj_xoS34ea-4yIRQg",
               4: "SOrsTZWA5cqGYWsEVOGWQA"}  # fmt: skip


def at(seconds: float) -> int:
    return BEGAN + round(seconds * SECOND)


def voter_set(offset: int, epoch: int, ids: tuple[int, ...], status: str | None, **more: Any) -> Row:
    row = {
        "offset": offset,
        "leader_epoch": epoch,
        "source": "record" if offset >= 0 else "bootstrap",
        "voters": [{"voter_id": i, "directory_id": DIRECTORIES[i]} for i in ids],
        "majority": len(ids) // 2 + 1,
        "commit_status": status,
        "evidence": "snapshot 321/e1",
        "in_force_from_offset": offset,
        "in_force_from": None,
        "in_force_to": None,
        "in_force_from_exact": True,
        "in_force_to_exact": None,
        "truncated_by_epoch": None,
        "observed_from": None,
        "observed_to": None,
    }
    return row | more


def change(offset: int, epoch: int, kind: str, node: int, status: str, when: int, **more: Any) -> Row:
    row = {
        "offset": offset,
        "leader_epoch": epoch,
        "kind": kind,
        "voter_id": node,
        "directory_id": DIRECTORIES[node],
        "detail": None,
        "changed_at": when,
        "changed_exact": True,
        "commit_status": status,
    }
    return row | more


def epoch(number: int, leader: int | None, elected_at: int | None, leaderless_ms: int | None = None) -> Row:
    return {
        "leader_epoch": number,
        "leader_id": leader,
        "start_offset": number * 100,
        "start_offset_exact": True,
        "elected_at": elected_at,
        "voter_ids": [1, 2, 3],
        "granting_voters": [1, 2],
        "leaderless_ms": leaderless_ms,
        "leader_source": None if leader is None else "record",
        "known_from": elected_at,
        "known_to": None,
        "observed_from": None,
        "observed_to": None,
    }


def reported_set(epoch_: int, ids: tuple[int, ...], since: int, to: int) -> Row:
    """A voter set that only describe outputs report."""
    return voter_set(-1, epoch_, ids, "undecided", source="describe", observed_from=since, observed_to=to,
                     in_force_from_offset=None,
                     evidence="reported by leader 3; not proven", in_force_from=to,
                     in_force_from_exact=False)  # fmt: skip


def reported_epoch(number: int, leader: int, since: int, to: int) -> Row:
    """An epoch whose leader only describe outputs report."""
    return epoch(number, leader, None) | {
        "start_offset": None, "start_offset_exact": False, "voter_ids": None, "granting_voters": None,
        "leader_source": "describe", "known_from": to, "observed_from": since, "observed_to": to,
    }  # fmt: skip


def proof(when: int, lower: int | None = None, upper: int | None = None, believed: int | None = None) -> Row:
    return {
        "as_of": when,
        "evidence": "snapshot" if lower is not None else "log_ends",
        "source": f"proof of {when}",
        "lower_bound": lower,
        "upper_bound": upper,
        "believed_bound": believed,
    }


def capture(node: int, when: int, end: int, **more: Any) -> Row:
    row = {
        "capture_id": f"{node}-{when}",
        "node_id": node,
        "directory_id": DIRECTORIES[node],
        "captured_at": when,
        "log_start_offset": 0,
        "log_end_offset": end,
        "last_leader_epoch": 3,
        "kraft_version": 1,
        "size_bytes": 12_345,
        "snapshots": [{"end_offset": 321, "leader_epoch": 1, "content_digest": "d1"}],
    }
    return row | more


def story(text: str = "a majority stored it") -> dict[str, list[Row]]:
    """A cluster with something of everything, before it is cut to what is told; `text` is every free text.

    Nodes 1 to 3 vote; adding node 4 at 355/e1 is truncated by epoch 3 while there is no leader for 16 s.
    """
    return {
        "sets": [
            voter_set(-1, 0, (1,), None, in_force_to=at(0), evidence=text),
            voter_set(2, 1, (1, 2, 3), "committed", in_force_from=at(0), evidence=text),
            voter_set(355, 1, (1, 2, 3, 4), "truncated", in_force_from=at(32), in_force_to=at(47),
                      truncated_by_epoch=3, evidence=text),
        ],
        "changes": [
            *(change(2, 1, "bootstrapped", node, "committed", at(0)) for node in (1, 2, 3)),
            change(355, 1, "added", 4, "truncated", at(32), detail=text),
        ],
        "epochs": [epoch(1, 1, at(0)), epoch(3, 2, at(47), 16_000)],
        "proofs": [proof(at(1), lower=3), proof(at(20), lower=321), proof(at(39), upper=352),
                   proof(at(48), lower=353), proof(at(90), upper=507) | {"source": text}],
        "captures": [
            *(capture(node, at(39), end) for node, end in ((1, 369), (2, 352), (3, 352), (4, 369))),
            *(capture(node, at(90), 507, directory_id=DIRECTORIES[node]) for node in (1, 2, 3, 4)),
        ],
        "log_ranges": [
            {"leader_epoch": 1, "first_offset": 0, "end_offset": 352, "commit_status": "committed",
             "evidence": text, "as_of": at(39), "truncated_by_epoch": None},
            {"leader_epoch": 1, "first_offset": 352, "end_offset": 369, "commit_status": "truncated",
             "evidence": text, "as_of": at(48), "truncated_by_epoch": 3},
        ],
        "truncations": [
            {"node_id": 1, "directory_id": DIRECTORIES[1], "first_offset": 352, "end_offset": 369,
             "truncated_by_epoch": 3, "leader_epochs": [1], "voter_set_offsets": [355],
             "lost_voter_changes": text,
             "held_at": at(39), "lost_at": at(90), "held_capture_id": "x", "lost_capture_id": "y"},
        ],
        "snapshots": [
            {"end_offset": 321, "leader_epoch": 1, "content_digest": "d1", "kind": "snapshot",
             "complete": True, "header_at": at(20), "size_bytes": 6345},
            {"end_offset": 0, "leader_epoch": 0, "content_digest": "d0", "kind": "bootstrap",
             "complete": True, "header_at": at(0), "size_bytes": 411},
        ],
        "quarantine": [
            {"capture_id": f"1-{at(39)}", "file": text, "position": 512, "size_bytes": 61,
             "reason": "bad_crc", "lost_from_offset": 12, "lost_to_offset": None},
        ],
        "findings": [finding("error", "open", text), finding("warning", "resolved", text)],
        "recovery": [
            {"as_of": at(90), "as_of_source": "newest timestamp in the log",
             "is_safe": True, "why": text, "highest_epoch": 3, "others": [],
             "best": [candidate(1, text), candidate(2, text)]},
        ],
        "expectations": [
            {"suite": "batches", "expectation": "offsets_are_gapless", "sentence": text, "severity": "error",
             "success": False, "observed": 3.0, "allowed": 0.0, "failing_rows": [text], "run_id": "r1",
             "loaded_at": at(100)},
        ],
    }  # fmt: skip


def finding(severity: str, state: str, text: str) -> Row:
    return {
        "finding_id": f"{severity}{state}",
        "rule": 23,
        "name": text,
        "severity": severity,
        "state": state,
        "first_seen_at": at(39),
        "last_seen_at": at(90),
        "first_offset": 352,
        "end_offset": 369,
        "leader_epochs": [1, 3],
        "replicas": [f"1@{DIRECTORIES[1]}", text],
        "capture_ids": ["x"],
        "sentence": text,
        "evidence": text,
        "source": text,
        "reason": text,
    }


def candidate(node: int, text: str) -> Row:
    return {
        "node_id": node,
        "directory_id": DIRECTORIES[node],
        "capture_id": "x",
        "captured_at": at(90),
        "last_leader_epoch": 3,
        "log_end_offset": 507,
        "is_observer": False,
        "led_last_epoch": node == 2,
        "voters_in_force": text,
        "voters_offset": 2,
        "voters_status": "committed",
        "loses": text,
    }


def sample_rows(when: int, high_watermark: int | None, lags: dict[int, int | None]) -> list[Row]:
    """A sample of leader 1 and others, as samples.binned takes it; lags by node, observers above 3."""
    nodes = {1: 0, **lags}
    status: Row = {"at": when, "kind": "status", "node_id": 1, "directory_id": DIRECTORIES[1],
                   "status": "Leader", "high_watermark": high_watermark, "lag_records": None}  # fmt: skip
    return [
        status,
        *(
            status | {
                "kind": "replication", "node_id": node, "lag_records": lag, "high_watermark": None,
                "directory_id": DIRECTORIES.get(node, ZERO_UUID) if node <= 3 else ZERO_UUID,
                "status": "Leader" if node == 1 else "Follower" if node <= 3 else "Observer",
            }
            for node, lag in nodes.items()
        ),
    ]  # fmt: skip


def samples_told() -> dict[str, list[Row]]:
    """Samples every minute as the page gets them: node 3 is behind for a while, and so is observer 9."""
    rows = [
        row
        for n in range(30)
        for row in sample_rows(at(60 * n), 130 * n, {2: n % 2, 3: 40 if 9 < n < 14 else 0, 9: n})
    ]
    return binned(pa.Table.from_pylist(rows))


def few_of(rows: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Rows of tables as the page gets them."""
    return few(rows)


def told(text: str = "a majority stored it") -> dict[str, list[Row]]:
    """The story as the page gets it."""
    return few(story(text)) | {
        "under_min_isr": [{"at": at(10), "partitions": 2, "most": 2},
                          {"at": at(50), "partitions": 0, "most": 0}],
        "under_min_isr_spans": [
            {"topic_name": text, "partitions": [0, 1], "from_at": at(10), "to_at": at(50), "under_ms": 40_000,
             "isr": [1], "min_isr": 2, "commit_status": "committed", "from_exact": True, "to_exact": True},
        ],
        "admin_events": [
            {"offset": 400, "changed_at": at(60), "operation": "create topic",
             "resource_type": "topic", "subject": text, "before": None, "after": text,
             "commit_status": "committed", "times": 3, "since": at(55), "is_exact": True},
        ],
        "under_min_isr_totals": [{"spans": 1}],
        "log_growth": [
            {"type": "PARTITION_CHANGE_RECORD", "topic_name": text, "cause": "leader change", "records": 900,
             "size_bytes": 44_990, "log_bytes": 233_000, "days": 2},
            {"type": "NO_OP_RECORD", "topic_name": None, "cause": "idle leader", "records": 376,
             "size_bytes": 26_047, "log_bytes": 233_000, "days": 2},
        ],
        "log_space": [
            {"node_id": 1, "directory_id": DIRECTORIES[1], "captured_at": at(60), "log_bytes": 233_000,
             "snapshots": 1, "snapshot_bytes": 6345, "new_bytes": 375, "new_ms": 7708,
             "snapshot_is_late": True, "deletion_is_late": True},
        ],
    }  # fmt: skip


def states(*clusters: str, now: int = NOW, **rows: Row) -> list[ClusterState]:
    """The fleet of so many equal clusters; `rows` (kind to values) are those of the first."""
    answers: dict[str, list[Row]] = {
        "captures": [
            {"cluster_id": c, "captures": 8, "replicas": 4, "last_captured_at": at(90), "log_end_offset": 507}
            for c in clusters
        ],
        "voters": [
            {"cluster_id": c, "offset": 2, "leader_epoch": 1, "source": "record", "voter_ids": [1, 2, 3],
             "majority": 2, "commit_status": "committed"}
            for c in clusters
        ],
        "epochs": [
            {"cluster_id": c, "epochs": 2, "leader_epoch": 3, "leader_id": 2, "elected_at": at(47)}
            for c in clusters
        ],
        "changes": [
            {"cluster_id": c, "kind": "added", "voter_id": 4, "changed_at": at(32),
             "changed_exact": True, "commit_status": "truncated"}
            for c in clusters
        ],
        "watermarks": [{"cluster_id": c, "at": at(90), "lower": 353, "upper": 507} for c in clusters],
        "committed": [{"cluster_id": c, "committed_end_offset": 507} for c in clusters],
        "quarantine": [],
        "findings": [],
        "resolved": [],
        "expectations": [],
        "names": [],
        "failures": [],
    }  # fmt: skip
    for kind, row in rows.items():
        answers[kind] = [r for r in answers.get(kind, []) if r["cluster_id"] != clusters[0]]
        answers[kind].append({"cluster_id": clusters[0], **row})
    return fleet(answers, now)
