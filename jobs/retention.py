"""Retention: old captures expire; the lake is then as if they had never been loaded.

A batch, record or checkpoint is deleted when no remaining capture holds it, and the tables are derived again.
The newest capture of a replica stays, however old it is, and so does what was followed: it is one log, of
which each capture has a stretch. The same holds for copies of brokers' log directories.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from jobs.job import Job
from jobs.maintenance.removal import remove_expired
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.wording import count
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import BROKER_DIRECTORIES, CAPTURES, EXPIRED_CAPTURES, LOADED
from transforms.quality.derived_counts import begin_change

NAMES = [c.name for c in EXPIRED_CAPTURES.columns if c not in LOADED]


def expire(job: Job, before: datetime) -> tuple[int, list[str]]:
    """Remove the captures made before a time. Returns how many, and their clusters.

    They are recorded as expired first, so that no run loads them again, and the next completes a killed
    expiry.
    What is derived of the clusters is another step.
    """
    lake = job.lake
    held = rows_with(lake.path, CAPTURES, NAMES)
    of_brokers = broker_copies(lake.path)
    known = {row["capture_id"] for row in rows_with(lake.path, EXPIRED_CAPTURES, ["capture_id"])}
    gone = [row for row in (*held, *of_brokers) if row["capture_id"] in known]
    old = (*expired(held, before), *expired(of_brokers, before))
    gone += [row for row in old if row["capture_id"] not in known]
    clusters = sorted({row["cluster_id"] for row in gone})
    if clusters:
        words = f"{count(len(gone), 'capture')} of {count(len(clusters), 'cluster')}"
        with job.progress.stage("expire", words):
            begin_change(lake.writer, clusters, job.record.columns)
            stamped = [row | job.record.columns for row in gone]
            lake.put(EXPIRED_CAPTURES, stamped, by="capture_id")
            remove_expired(lake, clusters)
    return len(gone), clusters


def broker_copies(lake: Location) -> list[Row]:
    """The copies of brokers' log directories, as rows of expired_captures."""
    rows = rows_with(lake, BROKER_DIRECTORIES, [name for name in NAMES if name != "node_id"] + ["broker_id"])
    return [{name: row["broker_id" if name == "node_id" else name] for name in NAMES} for row in rows]


def expired(captures: Iterable[Row], before: datetime) -> list[Row]:
    """The rows of captures made before a time, without the newest of each replica and what was followed."""
    ordered = sorted(captures, key=lambda c: (c["captured_at"], c["capture_id"]))
    newest = {(c["cluster_id"], c["node_id"], c["directory_id"]): c["capture_id"] for c in ordered}
    staying = set(newest.values())
    staying |= {c["capture_id"] for c in ordered if c["node_id"] == FOLLOWED_NODE_ID}
    return [c for c in ordered if c["captured_at"] < before and c["capture_id"] not in staying]
