"""What threads write ahead of a large file is what kafka_dump writes record by record."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.columnar import lines_ahead
from kraft_core.columnar.kafka_text import CompiledDump
from kraft_core.columnar.line_task import LineTask
from kraft_core.columnar.lines_ahead import LinesAhead
from kraft_core.format.kafka_dump import DumpOptions
from kraft_core.format.mapped_file import mapped
from kraft_core.messages.control import LEADER_CHANGE
from tests.kraft_core.batches import control_batch, no_op_batch
from tests.kraft_core.columnar.test_kafka_text import (
    GOLDEN,
    HIDDEN,
    LOG,
    SHOWN,
    compared,
    compared_file,
    damaged,
    drawn_log,
    thorough,
)


@contextmanager
def stretches(size: int, text_bytes: int = 1 << 20) -> Generator[list[bool]]:
    """Stretches of so many bytes by two threads. Whether each that is asked for is used."""
    used: list[bool] = []
    take = LinesAhead.take

    def noted(ahead: LinesAhead, position: int, last_offset: int) -> object:
        written = take(ahead, position, last_offset)
        used.append(written is not None)
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_ahead, "MIN_BYTES", 0)
        patch.setattr(lines_ahead, "STRETCH_BYTES", size)
        patch.setattr(lines_ahead, "_TEXT_BYTES", text_bytes)
        patch.setattr(lines_ahead, "_threads", lambda: 2)
        patch.setattr(LinesAhead, "take", noted)
        yield used


@pytest.mark.parametrize("size", [1, 3000, pytest.param(1 << 16, marks=pytest.mark.long)])
def test_golden_files(size: int) -> None:
    paths = [path for end in ("log", "checkpoint") for path in sorted(GOLDEN.rglob(f"*.{end}"))]
    with stretches(size) as used:
        for path in paths[:: 1 if size > 1 else 5]:
            compared_file(path, HIDDEN)
    assert sum(used) > 100 if size < 1 << 16 else any(used)


def test_a_usual_log_is_written_ahead_but_for_its_first_stretch() -> None:
    """Which Kafka calls non-consecutive, as the log does not begin at 0."""
    with stretches(10_000) as used:
        compared_file(LOG, HIDDEN)
    assert sum(used) >= LOG.stat().st_size // 12_000 - 1


@pytest.mark.parametrize("text_bytes", [4096, 20_000])
def test_a_stretch_of_more_text_than_its_memory(text_bytes: int) -> None:
    with stretches(10_000, text_bytes) as used:
        compared_file(LOG, SHOWN)
    assert any(used)


@given(data=st.data())
@settings(thorough, max_examples=100)
def test_logs_torn_and_flipped(data: st.DataObject) -> None:
    log = drawn_log(data)
    limit = data.draw(st.none() | st.integers(0, len(log)))
    options = DumpOptions() if limit is None else DumpOptions(max_bytes=limit)
    size, text_bytes = (
        data.draw(st.sampled_from([1, 80, 300, 2000])),
        data.draw(st.sampled_from([2048, 1 << 16])),
    )
    with stretches(size, text_bytes):
        compared(log, options)
        compared(damaged(log, data), options)


def test_offsets_that_jump_between_stretches() -> None:
    log = b"".join(no_op_batch(offset) for offset in (0, 1, 2, 9, 10, 11, 12, 5, 6, 7, 8, 9, 10))
    for size in (1, 100, 200, 400):
        with stretches(size) as used:
            assert compared(log).jumps == {2: 9, 12: 5}
            assert any(used)


def test_what_follows_a_batch_for_kafka_dump_is_written_ahead() -> None:
    """Control batches, two at once and one at the end, and a batch with a wrong CRC."""
    damage = bytearray(no_op_batch(40))
    damage[20] ^= 1
    elected = {"version": 0, "leaderId": 1, "voters": [], "grantingVoters": []}
    control = {n: control_batch(n, 1, LEADER_CHANGE, elected) for n in (0, 20, 21, 59)}
    log = b"".join(control.get(n) or (bytes(damage) if n == 40 else no_op_batch(n)) for n in range(60))
    for size, text_bytes in ((500, 1 << 16), (1 << 20, 1 << 16), (1 << 20, 2048)):
        with stretches(size, text_bytes) as used:
            dump = compared(log, SHOWN)
        assert dump.invalid == 1
        if text_bytes > 2048:
            assert dump.left == 5
            assert all(used)


def test_no_thread_reads_a_closed_file(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(no_op_batch(offset) for offset in range(5000)))
    before = threading.active_count()
    with stretches(1000), mapped(path) as buf:
        pieces = CompiledDump(HIDDEN).pieces(buf, path.name)
        for _ in range(5):
            next(pieces)
        assert threading.active_count() > before
        with pytest.raises(BufferError):
            buf.close()
        pieces.close()
        assert threading.active_count() == before


def test_an_error_in_a_thread_ends_the_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(no_op_batch(offset) for offset in range(500)))

    def fail(*_: object) -> None:
        raise MemoryError(threading.get_ident())

    monkeypatch.setattr(LineTask, "write_all", fail)
    before = threading.active_count()
    with stretches(1000), mapped(path) as buf, pytest.raises(MemoryError) as raised:
        list(CompiledDump(HIDDEN).pieces(buf, path.name))
    assert raised.value.args != (threading.get_ident(),)
    assert threading.active_count() == before


def test_a_small_file_needs_no_threads() -> None:
    before = threading.active_count()
    with mapped(LOG) as buf:
        pieces = CompiledDump(HIDDEN).pieces(buf, LOG.name)
        next(pieces)
        next(pieces)
        assert threading.active_count() == before
        pieces.close()
