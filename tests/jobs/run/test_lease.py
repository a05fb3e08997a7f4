"""The lease: one run writes, others wait or are told who does; a killed one does not block for long."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.lease import Lease, begun, is_gone, now, process_name, take_lease
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from transforms.lake.commits import FencedError, TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CLUSTER_NAMES, RUNS

ELSEWHERE = "another-boot pid:[1] 1"


@pytest.fixture
def folder(lake: Any, tmp_path: Path) -> Path:
    """A lake of which there is only `runs`, with one run that has ended."""
    shutil.copytree(lake.path / "runs", tmp_path / "runs")
    return tmp_path


def take(folder: Path, wait_s: float = 0, process: str = ELSEWHERE, seconds: float = 60) -> Lease:
    give_up = time.monotonic() + wait_s
    return take_lease(folder, RunRecord("run", Progress()), process, give_up, lambda _: None, seconds)


def runs(folder: Path) -> dict[str, Any]:
    return {row["run_id"]: row for row in rows_with(folder, RUNS)}


def test_a_second_run_is_told_who_writes(folder: Path) -> None:
    record = RunRecord("run", Progress())
    lease = take_lease(folder, record, ELSEWHERE, 0, lambda _: None)
    with pytest.raises(Failure) as refused:
        take(folder)
    assert refused.value.exit_code == ExitCode.LAKE_BUSY
    said = str(refused.value)
    held = runs(folder)[record.run_id]
    for words in (record.run_id, socket.gethostname(), f"{record.started_at:%H:%M:%S}", "--wait"):
        assert words in said
    assert f"{held['lease']['until']:%H:%M:%S}" in said
    lease.end(0)
    row = runs(folder)[record.run_id]
    assert (row["exit_code"], row["job"]) == (0, "run")
    assert row["finished_at"] is not None
    take(folder).end(0)


def test_a_waiting_run_goes_on_when_the_other_ends(folder: Path) -> None:
    lease = take(folder)
    said: list[str] = []
    threading.Timer(1.5, lease.end, (0,)).start()
    began = time.monotonic()
    take_lease(folder, RunRecord("run", Progress()), ELSEWHERE, began + 30, said.append).end(0)
    assert 1.4 < time.monotonic() - began < 10
    assert len(said) == 1
    assert "until" in said[0]


def test_a_run_that_waited_starts_after_those_that_it_waited_for(folder: Path) -> None:
    """Else what it loads counts as derived by a run before it, and what it finds unmet as overtaken."""
    waiting = RunRecord("ingest", Progress())
    take(folder).end(0)
    take_lease(folder, waiting, ELSEWHERE, time.monotonic(), lambda _: None).end(0)
    starts = {run_id: row["started_at"] for run_id, row in runs(folder).items()}
    assert max(starts, key=lambda run_id: starts[run_id]) == waiting.run_id
    assert waiting.columns["loaded_at"] == starts[waiting.run_id]


def test_of_many_at_once_one_wins(folder: Path) -> None:
    def attempt(_: int) -> Lease | None:
        try:
            return take(folder)
        except Failure:
            return None

    for _ in range(5):
        with ThreadPoolExecutor(8) as threads:
            won = [lease for lease in threads.map(attempt, range(8)) if lease]
        assert len(won) == 1
        won[0].end(0)


def test_a_lease_expires(folder: Path) -> None:
    """A holder of another machine that is heard of no more."""
    until = now() + timedelta(seconds=2)
    dead = begun(RunRecord("run", Progress()), {"host": "h", "process": ELSEWHERE, "until": until})
    TableWriter(folder, None).append(RUNS, [dead])
    with pytest.raises(Failure):
        take(folder)
    take(folder, wait_s=30).end(0)
    assert now() >= until
    assert runs(folder)[dead["run_id"]]["finished_at"] is None


def test_a_killed_holder_of_this_machine_does_not_block(folder: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    name = process_name(sleeper.pid)
    held = begun(
        RunRecord("run", Progress()), {"host": "h", "process": name, "until": now() + timedelta(hours=1)}
    )
    TableWriter(folder, None).append(RUNS, [held])
    with pytest.raises(Failure):
        take(folder)
    sleeper.kill()
    sleeper.wait()
    take(folder).end(0)


def test_only_what_is_known_is_gone() -> None:
    assert not is_gone(process_name(os.getpid()))
    assert not is_gone(ELSEWHERE)
    assert not is_gone("")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_gone(process_name(ended.pid))


def test_a_long_run_renews_its_lease(folder: Path) -> None:
    lease = take(folder, seconds=5)
    for _ in range(7):
        time.sleep(1)
        lease.check()
        # Runs with nothing new go on beside it.
        TableWriter(folder, None).append(RUNS, [RunRecord("run", Progress()).row(0)])
    with pytest.raises(Failure):
        take(folder)
    lease.end(0)


def test_runs_is_restored_from_an_older_copy(folder: Path) -> None:
    """The other tables have greater numbers: they must not refuse every later run."""
    TableWriter(folder, None).create(CLUSTER_NAMES)
    shutil.copytree(folder / "runs", folder / "copy")
    for number in range(3):
        lease = take(folder)
        lease.writer.append(CLUSTER_NAMES, [{"cluster_id": "c", "name": str(number)}])
        lease.end(0)
    older = lease.writer
    shutil.rmtree(folder / "runs")
    shutil.move(folder / "copy", folder / "runs")
    lease = take(folder)
    lease.writer.append(CLUSTER_NAMES, [{"cluster_id": "d", "name": "later"}])
    lease.end(0)
    with pytest.raises(FencedError):
        older.append(CLUSTER_NAMES, [{"cluster_id": "d", "name": "older"}])
    assert len(rows_with(folder, CLUSTER_NAMES)) == 4


def test_a_run_that_lost_its_lease_stops(folder: Path) -> None:
    lease = take(folder, seconds=0.9)
    shutil.move(folder / "runs", folder / "away")
    time.sleep(1)
    with pytest.raises(Failure, match="expired at"):
        lease.check()
    shutil.move(folder / "away", folder / "runs")
    lease.end(None)
