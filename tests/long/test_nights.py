"""A year of nights: neither the number of files nor the time of a run grows without bound.

Time is the processors', which does not hang on what else the machine does.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs.maintenance.compaction import MOST_SMALL_FILES
from jobs.runtime.session import open_session
from kraft_core.columnar.fast import scan_headers
from tests.jobs.lakes import run
from transforms.lake.delta_rs import exists, rows_with
from transforms.lake.tables import CAPTURES, RECORDS, RUNS, TABLES

NIGHTS = int(os.environ.get("KRAFTLAKE_NIGHTS", "365"))
LOG = "__cluster_metadata-0/00000000000000000000.log"


def nightly(source: Path, target: Path) -> Iterator[Path]:
    """A controller's directory as it was copied night after night: of its real log mostly some more."""
    headers = [h for batch in scan_headers(source / LOG) for h in batch.to_pylist() if h["reason"] is None]
    for night in range(NIGHTS):
        last = headers[min(len(headers) - 1, 20 + night * (len(headers) - 21) // NIGHTS)]
        folder = target / f"night-{night:03}"
        (folder / LOG).parent.mkdir(parents=True)
        shutil.copy(source / "meta.properties", folder)
        (folder / LOG).write_bytes((source / LOG).read_bytes()[: last["position"] + last["size_bytes"]])
        (folder / "capture.json").write_text(json.dumps({"captured_at": last["appended_at"].isoformat()}))
        yield folder


def cpu_seconds() -> float:
    """Processor time of this process and of all that it started, those included that have ended."""
    parents, used = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # After the name in parentheses: state, parent, and at 11 to 14 the ticks, those of children last.
            words = (process / "stat").read_text().rpartition(") ")[2].split()
            pid = int(process.name)
            parents[pid], used[pid] = int(words[1]), sum(map(int, words[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def session() -> None:
    """One for a year, in which the JVM has the time to optimise; other tests' is for short jobs."""
    open_session("local[2]")


@pytest.mark.long
@pytest.mark.usefixtures("session")
def test_a_year_of_nights(golden: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    seconds = []
    for night, folder in enumerate(nightly(golden / "stale-split/final/node-1", tmp_path)):
        began, used = time.monotonic(), cpu_seconds()
        assert run(lake, folder, flags=("--fail-on", "never")) == 0
        seconds.append(cpu_seconds() - used)
        took = time.monotonic() - began
        files = {t.name: len(DeltaTable(lake / t.name).file_uris()) for t in TABLES if exists(lake, t)}
        most, of_all = max(files.values()), sum(files.values())
        print(
            f"night {night}: {seconds[-1]:.1f} CPU-s in {took:.1f} s, {of_all} files, most {most}", flush=True
        )
        # A run compacts what was left by the one before; its own row in `runs` comes last.
        assert most <= MOST_SMALL_FILES + 2, files
    held = {(folder / LOG).stat().st_size for folder in tmp_path.glob("night-*")}
    assert len(rows_with(lake, CAPTURES, ["capture_id"])) == len(held) > 0.8 * NIGHTS
    assert len(rows_with(lake, RUNS, ["run_id"])) == NIGHTS
    offsets = [r["offset"] for r in rows_with(lake, RECORDS, ["offset"])]
    assert len(offsets) == len(set(offsets)) == max(offsets) + 1
    early, late = statistics.median(seconds[10:40]), statistics.median(seconds[-30:])
    print(f"a night took {early:.1f} CPU-s, at last {late:.1f}")
    assert late <= 2 * early
