"""Progress lines on a terminal and elsewhere, and the count of running tasks."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from threading import Semaphore
from typing import Any

import pyarrow as pa
import pytest

from jobs.runtime import progress
from jobs.runtime.progress import Counted, Progress, completion, tasks_of


class Asked:
    """How far a piece of work is: always as far. wait: until it was asked for, and what it said was drawn."""

    def __init__(self, done: int, whole: int) -> None:
        self._answer = done, whole
        self._times = Semaphore(0)

    def __call__(self) -> tuple[int, int]:
        self._times.release()
        return self._answer

    def wait(self) -> None:
        for _ in range(2):  # the second time, the answer to the first has been drawn
            assert self._times.acquire(timeout=60)


def seconds_hidden(printed: str) -> str:
    return re.sub(r"\d+ s\b", "N s", printed)


@pytest.mark.parametrize(
    ("done", "whole", "text"),
    [
        (0, 0, ", 30 s"),
        (0, 40, ", 0 % (0 of 40 tasks), 30 s"),
        (10, 40, ", 25 % (10 of 40 tasks), 30 s, about 90 s left"),
        (40, 40, ", 100 % (40 of 40 tasks), 30 s"),
    ],
)
def test_completion(done: int, whole: int, text: str) -> None:
    assert completion(done, whole, 30) == text


def test_a_stage_that_counts_nothing_shows_its_time() -> None:
    assert [completion(0, 0, seconds) for seconds in (1.4, 2.2)] == ["", ", 2 s"]


def test_a_stage_may_count_its_own_units(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    work = Asked(500, 2_000)
    with Progress().stage("compare", "1 replay", work, "records"):
        work.wait()
    assert "\r\033[Kcompare: 1 replay, 25 % (500 of 2,000 records), N s" in seconds_hidden(
        capsys.readouterr().err
    )


def test_work_before_the_first_stage_is_shown_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.01)
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        work = Asked(1, 2)
        with Progress().shown("captures", work, "directories"):
            if is_terminal:
                work.wait()
        printed = seconds_hidden(capsys.readouterr().err)
        assert ("captures, 50 % (1 of 2 directories), N s" in printed) == is_terminal
        assert printed.endswith("\r\033[K" if is_terminal else "")
        assert is_terminal or printed == ""


def test_a_terminal_is_redrawn_and_other_places_get_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.01)
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        job, work = Progress(), Asked(1, 2)
        job.watch(work)
        with job.stage("scan", "3 files"):
            if is_terminal:
                work.wait()
        job.done()
        printed = seconds_hidden(capsys.readouterr().err)
        if is_terminal:
            assert "\r\033[Kscan: 3 files, 50 % (1 of 2 tasks), N s, about N s left" in printed
            assert printed.endswith("\r\033[K")
        else:
            assert printed == "scan: 3 files\n"


def test_a_long_stage_is_heard_of_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in cron or the log of a CI; also of work that is not announced."""
    assert progress.REPEAT_SECONDS == 30
    monkeypatch.setattr(progress, "REPEAT_SECONDS", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    job, work = Progress(), Asked(1, 2)
    with job.stage("scan", "3 files", work):
        work.wait()
    first, second, *_ = seconds_hidden(capsys.readouterr().err).splitlines()
    assert (first, second) == ("scan: 3 files", "scan: 3 files, 50 % (1 of 2 tasks), N s, about N s left")
    work = Asked(1, 2)
    with job.shown("captures", work, "directories"):
        work.wait()
    first, *_ = seconds_hidden(capsys.readouterr().err).splitlines()
    assert first == "captures, 50 % (1 of 2 directories), N s, about N s left"


def test_items_are_counted_as_they_are_done() -> None:
    counted = Counted()
    assert [counted() for _ in counted.each(range(2), 2)] == [(0, 2), (1, 2)]
    assert counted() == (2, 2)


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.6)
        yield batch


def test_tasks_of_a_running_job_are_counted(spark: Any) -> None:
    """Completed tasks are counted while others run; nothing is counted when nothing runs."""
    count = tasks_of(spark)
    assert count() == (0, 0)
    seen: list[tuple[int, int]] = []
    job = Progress()
    job.watch(lambda: seen.append(count()) or (0, 0))
    job._terminal = True
    with job.stage("sleep"):
        spark.range(0, 6, 1, 6).mapInArrow(slowly, "id BIGINT").collect()
    assert {whole for _, whole in seen} >= {6}
    assert 0 < max(done for done, _ in seen) <= 6
