"""Quorums of one cluster id as directories on disk: whatever runs bring them in, the tables are the same."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.simulation.directories import LOG_DIR, START_TIME, batch_bytes, write_directory
from tests.jobs.lakes import content, opened, run
from tests.soundness.captures import Copy, held_by
from tests.soundness.execution import Execution
from tests.soundness.strangers import strangers
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, LIVES, RECOVERIES

CLUSTER_IDS = 24


def write_copy(quorum: Execution, copy: Copy, cluster_id: str, path: Path) -> None:
    """A directory of another cluster id, of which each run of batches that the copy holds is a segment."""
    appended_at = {place: at - START_TIME for place, at in quorum.appended_at.items()}
    snapshotted_at = {place: at - START_TIME for place, at in quorum.snapshotted_at.items()}
    replica = quorum.moments[copy.log_at][copy.slot]
    write_directory(replica, appended_at, snapshotted_at, path)
    log_dir = path / LOG_DIR
    for segment in log_dir.glob("*.log"):
        segment.unlink()
    held = held_by(quorum, copy)
    if held.named_end is not None and not held.batches:
        (log_dir / f"{held.named_end:020}.log").touch()
    end, segment = -1, log_dir
    for batch in held.batches:
        if batch.base_offset != end:
            segment = log_dir / f"{batch.base_offset:020}.log"
        at = quorum.appended_at[batch.base_offset, batch.leader_epoch]
        with segment.open("ab") as file:
            file.write(batch_bytes(batch, at))
        end = batch.end_offset
    missing = copy.missing
    gone = [log_dir / "quorum-state"] if missing.quorum_state else []
    gone += [log_dir / "leader-epoch-checkpoint"] if missing.leader_epoch_checkpoint else []
    gone += log_dir.glob("*.checkpoint") if missing.checkpoints else []
    for file in gone:
        file.unlink()
    meta = (path / "meta.properties").read_text().splitlines()
    kept = [line for line in meta if not line.startswith("directory.id=") or not missing.directory_id]
    ids = [line if not line.startswith("cluster.id=") else f"cluster.id={cluster_id}" for line in kept]
    (path / "meta.properties").write_text("\n".join(ids) + "\n")
    if copy.stated is not None:
        captured_at = datetime.fromtimestamp(copy.stated / 1000, UTC).isoformat()
        (path / "capture.json").write_text(json.dumps({"captured_at": captured_at}))


def written(seed: int, folder: Path) -> Iterator[Path]:
    """The copies of strangers, each in a folder of its own."""
    drawn = strangers(random.Random(seed))
    for number, copy in enumerate(drawn.copies):
        path = folder / f"{number}"
        write_copy(drawn.quorums[copy.life], copy, f"id-{seed}", path)
        yield path


@pytest.mark.long
def test_any_order_and_split_of_runs_ends_in_the_same_tables(spark: Any, tmp_path: Path) -> None:
    seed = time.time_ns() % 1_000_000_000
    source = random.Random(seed)
    captures = [path for n in range(CLUSTER_IDS) for path in written(seed + n, tmp_path / "all" / f"{n}")]
    at_once, split = tmp_path / "at-once", tmp_path / "split"
    run(at_once, tmp_path / "all")
    source.shuffle(captures)
    for part in range(3):
        run(split, *captures[part::3])
    lakes = [opened(spark, lake) for lake in (at_once, split)]
    ids = [sorted({row["cluster_id"] for row in rows_with(lake.path, CAPTURES)}) for lake in lakes]
    assert ids[0] == ids[1], f"seed {seed}"
    assert len(rows_with(at_once, LIVES)) > CLUSTER_IDS
    for cluster in ids[0]:
        one, other = (content(lake, cluster) for lake in lakes)
        different = [name for name in one if one[name] != other[name]]
        assert not different, f"seed {seed}, {cluster}"
    safe = {row["cluster_id"] for row in rows_with(at_once, RECOVERIES) if row["is_safe"]}
    assert safe <= safe_by_directories(tmp_path / "all"), f"seed {seed}"


def safe_by_directories(folder: Path) -> set[str]:
    """The lives that are safe to recover without a lake, whose findings may say more against it."""
    lives = collect_lives(find_controller_dirs([folder]).directories)
    known = [conclude(life.facts) for life in lives]
    return {each.facts.cluster_id for each in known if recovery_advice(each, judge(each)).is_safe}
