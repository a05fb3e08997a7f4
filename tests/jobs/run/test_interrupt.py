"""Ctrl-C during a run of Spark, once and again and again: no traceback, 130, and the lake is as before."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs.runtime.interrupt import interrupt_once, starting_spark
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, RUNS

CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize("stage", ["session", "scan"])
def test_ctrl_c_twice_during_a_run(tmp_path: Path, golden: Path, stage: str) -> None:
    """As a terminal sends it: to the command, to Spark's JVM and to its Python workers."""
    words = ["run", "--captures", str(golden / "v4.4.0-mini"), "--lake", str(tmp_path / "lake")]
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs.cli", *words],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    said: list[str] = []
    while not said or not said[-1].startswith(stage):
        said.append(process.stderr.readline())
        assert said[-1], "".join(said)
    time.sleep(0.5)
    for _ in range(3):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    # To the end of both: the JVM, which writes there, ends too.
    out, err = process.communicate(timeout=60)
    err = "".join(said) + err
    assert process.returncode == 130, err
    assert "Traceback" not in err, err
    assert err.count("kraftlake run: interrupted\n") == 1
    report = json.loads(out.splitlines()[-1])
    assert (report["job"], report["exit_code"]) == ("run", 130)
    assert rows_with(tmp_path / "lake", CAPTURES) == []
    ended = {row["run_id"]: row["exit_code"] for row in rows_with(tmp_path / "lake", RUNS)}
    assert ended == ({} if stage == "session" else {report["run_id"]: 130})


@pytest.fixture
def ctrl_c_once() -> Iterator[None]:
    """As the command has it: the first Ctrl-C counts."""
    before = signal.getsignal(signal.SIGINT)
    interrupt_once()
    yield
    interrupt_once()  # forgets it
    signal.signal(signal.SIGINT, before)


class Eager:
    """Of a library that is imported while Spark starts: C code asks it for an attribute."""

    def __getattr__(self, name: str) -> None:
        signal.raise_signal(signal.SIGINT)


def take_ctrl_c() -> None:
    """As C code takes any error for a no."""
    with contextlib.suppress(BaseException):
        Eager().attribute  # noqa: B018


def start_spark(what_starts: Callable[[], object]) -> None:
    with starting_spark():
        what_starts()


@pytest.mark.usefixtures("ctrl_c_once")
def test_ctrl_c_that_a_library_takes_while_spark_starts() -> None:
    with pytest.raises(KeyboardInterrupt):
        start_spark(take_ctrl_c)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.usefixtures("ctrl_c_once")
def test_ctrl_c_that_a_library_takes_before_spark_starts() -> None:
    take_ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        start_spark(lambda: pytest.fail("Spark was started"))


@pytest.mark.usefixtures("ctrl_c_once")
def test_a_start_of_spark_without_ctrl_c() -> None:
    """Spark takes SIGINT for itself; the first Ctrl-C counts afterwards."""
    start_spark(lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
