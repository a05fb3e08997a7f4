"""A run with nothing new: over without Spark, and only its own row is written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.format.capture import EDGE_BYTES
from tests.jobs.captured_logs import captured
from tests.jobs.lakes import report, run, versions
from tests.kraft_core.batches import no_op_batch
from tests.long.processes import tables
from transforms.lake.delta_rs import newest_version, rows_with
from transforms.lake.spark_rows import to_rows
from transforms.lake.tables import CAPTURES, QUARANTINE, RUNS
from transforms.lake.tables.declaration import CHECKPOINT_EVERY

# A process in which no JVM can be started.
COMMAND = """
import sys
from pyspark import java_gateway
from jobs.cli import main
del java_gateway.launch_gateway
sys.exit(main(sys.argv[1:]))
"""


def test_it_starts_no_spark_and_notes_itself(
    lake: Any, golden_captures: list[Path], golden: Path, tmp_path: Path
) -> None:
    """In a process that could not start one; the directories come in another order, and one twice."""
    before = versions(lake)
    shutil.copytree(golden / "dynamic-membership/node-2", tmp_path / "elsewhere")
    captures = [*golden_captures[::-1], tmp_path]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "run", "--lake", str(lake.path), "--captures", *map(str, captures)],
        capture_output=True,
        text=True,
        check=True,
    )
    said = report(done.stdout)
    assert (said["captures"], said["captures_read"], said["touched_clusters"]) == (56, 0, 0)
    assert versions(lake) == before
    noted = rows_with(lake.path, RUNS, run_id=[said["run_id"]])
    assert [(r["job"], r["exit_code"], dict(r["counts"])["captures"]) for r in noted] == [("run", 0, 56)]


def second_run(lake: Path, captures: Path) -> dict[str, Any]:
    """What a run reports that could not start Spark."""
    command = ["run", "--lake", str(lake), "--captures", str(captures)]
    done = subprocess.run([sys.executable, "-c", COMMAND, *command], capture_output=True, text=True)
    assert done.stderr == ""
    return report(done.stdout)


def test_what_was_ingested_is_derived_by_the_next_run(
    spark: Any, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It knows all captures, but of the second one nothing is derived; another ingest has nothing to do."""
    assert spark is not None
    nodes = [golden / "v4.4.0-mini" / name for name in ("node-1", "node-2")]
    whole, lake = tmp_path / "whole", tmp_path / "lake"
    run(whole, *nodes)
    run(lake, nodes[0])
    capsys.readouterr()
    for verb, is_over in (
        ("ingest", False),
        ("ingest", True),
        ("run", False),
        ("run", True),
        ("ingest", True),
    ):
        run(lake, *nodes, verb=verb)
        assert ("nothing new" in capsys.readouterr().out) == is_over
    assert tables(lake) == tables(whole)


# A process in which no table can be opened, either.
BLIND = COMMAND.replace("sys.exit", "import deltalake\ndel deltalake.DeltaTable.__init__\nsys.exit")


@pytest.mark.long
def test_the_memo_of_the_last_run_answers(lake: Any, golden_captures: list[Path], tmp_path: Path) -> None:
    """By the listing of the lake alone, as long as nothing but `runs` has another commit or file."""
    copy = shutil.copytree(lake.path, tmp_path / "lake")
    command = ["run", "--lake", str(copy), "--captures", *map(str, golden_captures), "--fail-on", "never"]

    def ended(code: str) -> int:
        return subprocess.run([sys.executable, "-c", code, *command], capture_output=True).returncode

    ended(COMMAND)
    last = newest_version(copy, RUNS)
    # delta-rs writes the checkpoint, and joins files.
    until_checkpoint = (CHECKPOINT_EVERY - 2 - last) % CHECKPOINT_EVERY
    seen = min(until_checkpoint, 2)
    for _ in range(until_checkpoint - seen):
        assert main(command) == 0
    assert [ended(BLIND) for _ in range(seen + 2)] == [0] * seen + [70, 70]
    (log,) = (copy / "captures/_delta_log").glob("*0.json")
    log.write_bytes(log.read_bytes())
    assert (ended(BLIND), ended(COMMAND), ended(BLIND)) == (70, 0, 0)


def damaged(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


@pytest.mark.usefixtures("spark")
def test_damaged_files_are_not_read_again(tmp_path: Path) -> None:
    """A live copy ends in a torn batch as a rule; others are out of order, or have a bad byte at an edge."""
    lake, captures = tmp_path / "lake", tmp_path / "captures"
    batches = [no_op_batch(n, records=1) for n in range(4000)]
    whole = b"".join(batches)
    assert len(whole) > 4 * EDGE_BYTES
    captured(captures, "torn", whole[:-5])
    captured(captures, "disordered", b"".join([*batches[:9], batches[3], *batches[9:]]))
    captured(captures, "bad head", b"".join([damaged(batches[0]), *batches[1:]]))
    run(lake, captures)
    rows = len(rows_with(lake, QUARANTINE))
    for _ in range(2):  # the second time by the memo of the first
        said = second_run(lake, captures)
        assert (said["captures_read"], said["quarantined"]) == (0, rows)
    assert rows == 2  # of the torn and the bad one

    # What a good copy with the same edges would mend is read again.
    captured(captures, "bad middle", b"".join([*batches[:2000], damaged(batches[2000]), *batches[2001:]]))
    run(lake, captures)
    run(lake, captures)
    reads = [dict(row["counts"])["captures_read"] for row in rows_with(lake, RUNS)]
    assert sorted(reads) == [0, 0, 1, 1, 3]


def test_rows_without_a_session_are_those_of_spark(lake: Any) -> None:
    clusters = {r["cluster_id"] for r in to_rows(lake.read(CAPTURES).select("cluster_id"))}
    chosen = sorted(clusters)[:2]
    alone = rows_with(lake.path, CAPTURES, cluster_id=chosen)
    by_spark = to_rows(lake.read(CAPTURES).where(f"cluster_id IN {tuple(chosen)}"))
    assert len(alone) > 2
    assert sorted(alone, key=lambda r: r["capture_id"]) == sorted(by_spark, key=lambda r: r["capture_id"])
    assert rows_with(lake.path, CAPTURES, cluster_id=["no such cluster"]) == []
