"""A lake of captures before and after a restore of a real quorum: what the restore changed is dated to it."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.jobs.lakes import run
from tests.long.live_cluster import LiveCluster
from tests.long.restoring import restored, started_anew, three_controllers
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import BATCHES, EPOCHS, VOTER_SETS
from transforms.lake.tables.histories import HISTORIES

LATE_S = 5


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with three_controllers(tmp_path / "live", 29980) as live:
        yield live


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_the_restores_changes_are_dated_to_the_restore(cluster: LiveCluster, tmp_path: Path) -> None:
    live = cluster
    live.tool("topics", "--create", "--topic", "orders", "--replication-factor", "2", by=11)
    for node in list(live.running):
        live.kill(node)
    old = live.capture("stopped", 1, 2, 3)
    time.sleep(LATE_S)
    port = live.ports[1]
    words = ("--voters", f"21@127.0.0.1:{port}", "--controllers-stopped", "--brokers-stopped")
    plan = restored(old, tmp_path, *words)
    made_at, lost_at = _moment(plan["inputs"]["made_at"]), _moment(plan["restored"]["restored_time"])
    assert made_at - lost_at >= timedelta(seconds=LATE_S)
    end, epoch = (plan["restored"]["written"][name] for name in ("end_offset", "leader_epoch"))

    started_anew(live, tmp_path / "new", 21, port)
    new = live.capture("restored", 21)
    lake, page = tmp_path / "lake", tmp_path / "page.html"
    assert run(lake, old, new, flags=("--report", str(page))) == 0

    # The log before the restore, the checkpoint, and the log of the new quorum are one line.
    batches = rows_with(lake, BATCHES)
    assert all((row["appended_at"] <= lost_at) == (row["last_offset"] < end) for row in batches)
    before, after = rows_with(lake, VOTER_SETS)[-2:]
    assert (before["voter_ids"], after["voter_ids"]) == ([1, 2, 3], [21])
    assert (before["in_force_to"], before["in_force_to_exact"]) == (made_at, False)
    assert (after["in_force_from"], after["in_force_from_exact"]) == (made_at, False)
    epochs = {row["leader_epoch"]: row for row in rows_with(lake, EPOCHS)}
    assert epochs[epoch]["known_from"] == made_at
    changed = 0
    for table in HISTORIES:
        for row in rows_with(lake, table):
            if row["valid_from_offset"] == end - 1:
                changed += 1
                assert (row["earliest_from_at"], row["valid_from_at"]) == (lost_at, made_at), table.name
            if row["valid_to_offset"] == end - 1:
                assert (row["earliest_to_at"], row["valid_to_at"]) == (lost_at, made_at), table.name
    assert changed > 2
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.read_text())))
    assert f"At or before {made_at:%H:%M:%S}Z node 1 was removed from the voters" in text
    for broker in live.brokers:
        assert f"At or before {made_at:%H:%M:%S}Z broker {broker} was fenced" in text
    assert f"At or before {lost_at:%H:%M:%S}Z" not in text
