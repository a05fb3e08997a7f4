"""Files that change at every stage of a run: what was read is what was planned, or is not stored."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.captures.planning import Selection, plan
from jobs.runtime.outcome import ExitCode
from kraft_core.format.batch import BatchHeader
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import scan
from tests.jobs.lakes import content, opened, report, run
from tests.kraft_core.batches import no_op_batch
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import BATCHES, CAPTURES, QUARANTINE, RECORDS, SEGMENTS

SCENARIO = "uncommitted-truncation/after"
CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
# The stages that a run announces once it has planned, and whether it has read all by then.
STAGES = {"session": False, "scan": False, "write records": False, "commit": True}


def active(node: Path) -> Path:
    return max((node / LOG_DIR_NAME).glob("*.log"))


def batches(path: Path) -> list[BatchHeader]:
    with mapped(path) as buf:
        return [item for item in scan(buf) if isinstance(item, BatchHeader)]


def truncate(node: Path) -> None:
    """At the end of a batch, as a follower does."""
    headers = batches(active(node))
    os.truncate(active(node), headers[len(headers) // 2].position)


def append(node: Path) -> None:
    last = batches(active(node))[-1]
    with active(node).open("ab") as file:
        file.write(no_op_batch(last.last_offset + 1, epoch=last.leader_epoch + 1))


def replace(node: Path) -> None:
    """By a shorter log that was written elsewhere."""
    other = node / "other"
    shutil.copy(active(node), other)
    os.truncate(other, batches(other)[-3].position)
    other.rename(active(node))


def rewrite(node: Path) -> None:
    """In place, without a change of size."""
    with active(node).open("r+b") as file:
        file.seek(batches(active(node))[-2].position + 70)
        file.write(b"\x00\xff\x00\xff")


ACTIONS: dict[str, Callable[[Path], None]] = {
    "node-1": truncate,
    "node-2": append,
    "node-3": replace,
    "node-4": rewrite,
}


class ActingStream(io.StringIO):
    """Does something when a run announces a stage for the first time."""

    def __init__(self, act: Callable[[str], None]) -> None:
        super().__init__()
        self._act = act
        self._seen: set[str] = set()

    def write(self, text: str) -> int:
        stage = text.split(":")[0].strip()
        if stage in STAGES and stage not in self._seen:
            self._seen.add(stage)
            self._act(stage)
        return super().write(text)


def run_while(act: Callable[[str], None], lake: Path, *captures: Path) -> tuple[int, str]:
    """The exit code and the error output of a run."""
    stream = ActingStream(act)
    with contextlib.redirect_stderr(stream):
        code = run(lake, *captures, flags=("--fail-on", "never"))
    return code, stream.getvalue()


def cluster_of(stage: str) -> str:
    return f"cluster-of-{stage.replace(' ', '-')}"


def tree_of(golden: Path, tmp_path: Path, *stages: str) -> Path:
    """A cluster of four nodes for each stage."""
    for stage in stages:
        for node in (golden / SCENARIO).iterdir():
            copied = Path(shutil.copytree(node, tmp_path / "tree" / cluster_of(stage) / node.name))
            meta = copied / "meta.properties"
            meta.write_text(meta.read_text().replace(CLUSTER, cluster_of(stage)))
    return tmp_path / "tree"


@pytest.mark.long
def test_files_that_change_at_every_stage(
    spark: Any, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lake is as if each state had been captured by itself: those that were read whole, no others."""
    tree = tree_of(golden, tmp_path, *STAGES)
    states = tmp_path / "states"
    shutil.copytree(tree, states / "before")

    def change(stage: str) -> None:
        for node, action in ACTIONS.items():
            action(tree / cluster_of(stage) / node)

    code, said = run_while(change, tmp_path / "lake", tree)
    assert code == ExitCode.FINE, said
    changed = {line.rpartition("changed while it was read: ")[2] for line in said.splitlines()}
    for stage, is_read in STAGES.items():
        for node in ACTIONS:
            is_kept = is_read or node == "node-2"  # what was planned is still there, or has been read
            assert (str(tree / cluster_of(stage) / node) in changed) == (not is_kept)
            if not is_kept:
                shutil.rmtree(states / "before" / cluster_of(stage) / node)
    shutil.copytree(tree, states / "after")
    lake = opened(spark, tmp_path / "lake")
    run(tmp_path / "lake", tree, flags=("--fail-on", "never"))
    capsys.readouterr()
    run(tmp_path / "lake", tree, flags=("--fail-on", "never"))
    said_last = report(capsys.readouterr().out)
    assert said_last["captures_read"] == 0  # damage that sizes and edges identify is known
    run(tmp_path / "at once", states, flags=("--fail-on", "never"))
    at_once = opened(spark, tmp_path / "at once")
    for stage in STAGES:
        assert content(lake, cluster_of(stage)) == content(at_once, cluster_of(stage)), stage


def test_a_capture_that_goes_on_changing_is_left(spark: Any, golden: Path, tmp_path: Path) -> None:
    """Nothing of it is stored; the others are, and the next run has it."""
    tree = tree_of(golden, tmp_path, "scan")
    node = tree / cluster_of("scan") / "node-1"

    class Changing(ActingStream):
        def write(self, text: str) -> int:
            if text.startswith("write records"):
                os.truncate(active(node), batches(active(node))[-1].position)
            return super().write(text)

    with contextlib.redirect_stderr(Changing(lambda _: None)) as stream:
        assert run(tmp_path / "lake", tree, flags=("--fail-on", "never")) == ExitCode.FINE
    assert f"left out: {node}: changed during each of 3 attempts to read it; left for the next run" in (
        stream.getvalue()
    )
    known = {(r["cluster_id"], r["node_id"]) for r in rows_with(tmp_path / "lake", CAPTURES)}
    assert known == {(cluster_of("scan"), node) for node in (2, 3, 4)}
    for table in (BATCHES, SEGMENTS):
        assert not any(
            r["node_id"] == 1 for r in rows_with(tmp_path / "lake", table, cluster_id=[cluster_of("scan")])
        )
    run(tmp_path / "lake", tree)
    run(tmp_path / "at once", tree)
    found, expected = (content(opened(spark, tmp_path / n), cluster_of("scan")) for n in ("lake", "at once"))
    assert found == expected


@contextlib.contextmanager
def hammered(path: Path) -> Iterator[None]:
    """A log that is cut to pieces and written again all the time, until the block ends."""
    whole = path.read_bytes()
    ends = [b.position for b in batches(path)]
    over = threading.Event()

    def hammer() -> None:
        with path.open("r+b", buffering=0) as file:
            for n in iter(range(1 << 62)):
                file.truncate(ends[n * 7919 % len(ends)])
                if over.wait(0.003):
                    break
                os.pwrite(file.fileno(), whole, 0)
                if over.wait(0.003):
                    break
            os.pwrite(file.fileno(), whole, 0)

    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_log_that_changes_all_the_time(golden: Path, tmp_path: Path) -> None:
    """Also while a worker has it mapped, which then dies."""
    tree = Path(shutil.copytree(golden / SCENARIO, tmp_path / "tree"))
    segment = active(tree / "node-3")
    template = segment.read_bytes()
    last = batches(segment)[-1]
    added = (no_op_batch(last.last_offset + 1 + n, epoch=last.leader_epoch) for n in range(20_000))
    segment.write_bytes(template + b"".join(added))
    with hammered(segment):
        assert run(tmp_path / "lake", tree, flags=("--fail-on", "never")) == ExitCode.FINE
    for row in rows_with(tmp_path / "lake", SEGMENTS):
        assert row["bytes_read"] == row["size_bytes"] or row["node_id"] == 3
    run(tmp_path / "lake", tree)
    run(tmp_path / "at once", tree)
    (copy,) = (c for c in plan(Selection((tree,))).captures if c.who.node_id == 3)
    rows = [
        row
        for lake in ("lake", "at once")
        for row in rows_with(tmp_path / lake, CAPTURES, capture_id=[copy.capture_id])
    ]
    assert rows[0]["log_end_offset"] == rows[1]["log_end_offset"] == last.last_offset + 20_001
    assert rows[0]["epoch_ranges"] == rows[1]["epoch_ranges"]
    held = [len(rows_with(tmp_path / lake, RECORDS, ["offset"])) for lake in ("lake", "at once")]
    assert held[0] == held[1]


@pytest.mark.long
def test_a_lake_that_knows_less_than_was_captured(spark: Any, golden: Path, tmp_path: Path) -> None:
    """As an earlier version left it: part of a log under the whole log's capture_id. A run heals it."""
    tree = Path(shutil.copytree(golden / SCENARIO, tmp_path / "tree"))
    whole = {c.who.node_id: c.capture_id for c in plan(Selection((tree,))).captures}
    cut = Path(shutil.copytree(tree, tmp_path / "cut"))
    truncate(cut / "node-1")
    run(tmp_path / "lake", cut)
    lake = opened(spark, tmp_path / "lake")
    (size,) = (active(tree / "node-1").stat().st_size,)
    captures, segments = (
        [r | {"capture_id": whole[r["node_id"]]} for r in rows_with(lake.path, table)]
        for table in (CAPTURES, SEGMENTS)
    )
    for row in segments:
        if row["node_id"] == 1 and row["base_offset"] == int(active(tree / "node-1").stem):
            row |= {"size_bytes": size, "epoch_ranges": None}
    for table, rows in ((CAPTURES, captures), (SEGMENTS, segments)):
        DeltaTable(lake.path / table.name).delete()
        lake.put(table, rows, by="capture_id")
    run(lake.path, tree)
    run(tmp_path / "at once", tree)
    assert content(lake, CLUSTER) == content(opened(spark, tmp_path / "at once"), CLUSTER)
    assert rows_with(lake.path, QUARANTINE) == []
