"""The captures that tell a life, of those that a lake holds: they tell the same as all of them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace
from datetime import timedelta
from random import Random

import pyarrow as pa
import pytest

from kraft_core.evidence.life_lines import BatchPlace, FoundBatches, LoggedCapture, LoggedCheckpoint
from kraft_core.evidence.lives import ClusterLife, lives_of
from kraft_core.messages.uuid_text import ZERO_UUID
from transforms.ingest.held_captures import CAPTURED, held_captures
from transforms.lake.arrow_rows import Row, moment, to_arrow
from transforms.lake.tables import CAPTURES

ROUNDS = 60
SCHEMA = pa.schema([CAPTURES.arrow_schema.field(name) for name in CAPTURED])
RANGES = CAPTURES.arrow_schema.field("epoch_ranges").type.value_type
SNAPSHOT = CAPTURES.arrow_schema.field("snapshots").type.value_type
# Logs of one id whose batches differ; a range of one ends at an offset that leaves this rest.
VARIANTS = 3


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_lives_are_those_told_by_each_capture(seed: int) -> None:
    drawn = Random(seed)
    rows = [_row(drawn, number) for number in range(drawn.randint(1, 40))]
    complete = {_checkpoint(nth) for nth in range(4) if drawn.random() < 0.7}
    new = [
        replace(_plain(_row(drawn, 100 + n), complete), known_life=None) for n in range(drawn.randint(0, 2))
    ]
    few = [each for rows_of in _by_life(rows) for each in held_captures(_table(rows_of), complete)]
    assert {name for each in few for name in (each.capture_id, *each.copies)} == {
        r["capture_id"] for r in rows
    }
    assert all(name > each.capture_id for each in few for name in each.copies)
    assert _told([*few, *new]) == _told([*(_plain(row, complete) for row in rows), *new])


def test_a_log_that_grew_is_told_by_its_first_and_last_state() -> None:
    """The last range of each night ends higher, with a newer batch; the others are copies."""
    rows = [_state(nth, node_id=1, ends=[6, 9 + nth], variant=0, later_ms=nth) for nth in range(50)]
    first, last = held_captures(_table(rows), set())
    assert (first.ranges[-1].end_offset, last.ranges[-1].end_offset) == (9, 58)
    assert (first.capture_id, len(first.copies)) == (rows[0]["capture_id"], 48)
    assert last.copies == ()


def test_the_longest_and_the_newest_state_are_kept_where_they_are_two() -> None:
    states = [(9, 1), (20, 2), (15, 0), (12, 5), (10, 3)]
    rows = [
        _state(nth, node_id=1, ends=[end], variant=0, later_ms=later)
        for nth, (end, later) in enumerate(states)
    ]
    found = held_captures(_table(rows), set())
    assert [each.ranges[-1].end_offset for each in found] == [9, 20, 12]
    assert [len(each.copies) for each in found] == [2, 0, 0]


def test_logs_of_other_batches_or_directories_are_kept() -> None:
    rows = [_state(nth, node_id=1, ends=[6, 9], variant=0) for nth in range(3)]
    rows[1]["epoch_ranges"][0]["first_batch_crc"] += 1
    rows[2]["epoch_ranges"][0]["first_appended_at"] = moment(1)
    rows += [_state(3, node_id=2, ends=[6, 9], variant=0), _state(4, node_id=1, ends=[6], variant=0)]
    rows += [_state(5, node_id=1, ends=[5, 9], variant=0)]
    assert [each.copies for each in held_captures(_table(rows), set())] == [()] * 6


def test_captures_without_any_range_are_copies_of_none() -> None:
    """Nothing shows whose they are where the directory is not known, and what is new is not joined either."""
    rows = [_state(nth, node_id=1, ends=[], variant=0, checkpoints=[1]) for nth in range(3)]
    assert [each.copies for each in held_captures(_table(rows), set())] == [(), (), ()]


def test_a_grown_log_has_the_checkpoints_of_all_its_states() -> None:
    rows = [_state(nth, node_id=1, ends=[9 + nth], variant=0, checkpoints=[nth % 4]) for nth in range(8)]
    complete = {_checkpoint(0), _checkpoint(2), _checkpoint(3)}
    assert {each.checkpoints for each in held_captures(_table(rows), complete)} == {frozenset(complete)}


def test_without_rows_there_is_none() -> None:
    assert held_captures(_table([]), set()) == []


# --- drawn rows ---


def _row(drawn: Random, number: int) -> Row:
    """A state of one of a few logs: its last range ends anywhere, its first segments may be gone."""
    variant = drawn.randrange(VARIANTS) if drawn.random() < 0.3 else 0
    ends = [6, 12, 18][: drawn.randint(0, 3)]
    if ends:
        ends[-1] -= VARIANTS * drawn.randint(0, 1)
    row = _state(
        number,
        node_id=drawn.randint(1, 2),
        ends=[end + variant for end in ends],
        variant=variant,
        later_ms=drawn.choice([0, 0, 5, 90_000]),
        checkpoints=drawn.sample(range(4), drawn.choice([0, 1, 1, 2])),
    )
    gone = drawn.choice([0, 0, 1])
    row["epoch_ranges"] = row["epoch_ranges"][gone:]
    row["directory_id"] = drawn.choice([row["directory_id"], ZERO_UUID])
    row["cluster_id"] = drawn.choice(["id", "id", "id/life"])
    return row


def _state(
    number: int,
    *,
    node_id: int,
    ends: Iterable[int],
    variant: int,
    later_ms: int = 0,
    checkpoints: Iterable[int] = (),
) -> Row:
    """A capture whose ranges, of epochs from 1 on, end there. later_ms: of its last batch."""
    ranges, first = [], 0
    for epoch, end in enumerate(ends, 1):
        at = 1_000 * first + variant * 200_000
        range_ = {field.name: None for field in RANGES} | {
            "leader_epoch": epoch,
            "first_offset": first,
            "end_offset": end,
            "digest": f"{end}-{variant}",
            "first_appended_at": moment(at),
            "last_appended_at": moment(at + 100),
            "first_batch_crc": 1_000 * variant + first,
        }
        ranges.append(range_)
        first = end - variant
    if ranges:
        ranges[-1]["last_appended_at"] += timedelta(milliseconds=later_ms)
    return {
        "cluster_id": "id",
        "capture_id": f"{number * 7919 % 1009:04}-{number}",
        "node_id": node_id,
        "directory_id": f"directory-{node_id}",
        "epoch_ranges": ranges,
        "snapshots": [{f.name: None for f in SNAPSHOT} | _checkpoint(nth)._asdict() for nth in checkpoints],
        "life": None,
    }


def _checkpoint(nth: int) -> LoggedCheckpoint:
    return LoggedCheckpoint(5 + 4 * nth, 1 + nth // 2, f"digest-{nth}")


def _table(rows: Iterable[Row]) -> pa.Table:
    return to_arrow(rows, SCHEMA)


def _by_life(rows: Iterable[Row]) -> list[list[Row]]:
    every = list(rows)
    return [[row for row in every if row["cluster_id"] == name] for name in ("id", "id/life")]


# --- the plain way: each row by itself ---


def _plain(row: Row, complete: Set[LoggedCheckpoint]) -> LoggedCapture:
    (capture,) = held_captures(_table([row]), complete)
    return capture


def _told(captures: list[LoggedCapture]) -> tuple[list[ClusterLife], list[list[BatchPlace]]]:
    """The lives, and the batches that were read to tell them: those at even offsets are found."""
    asked: list[list[BatchPlace]] = []

    def read(places: Set[BatchPlace]) -> FoundBatches:
        asked.append(sorted(places))
        return {place: frozenset({place.base_offset}) for place in places if place.base_offset % 2 == 0}

    return lives_of(captures, read), asked
