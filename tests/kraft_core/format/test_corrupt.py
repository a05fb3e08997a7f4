"""Every broken file of the golden captures, and what must come of it."""

from pathlib import Path
from typing import NamedTuple

import pytest

from kraft_core.format.batch import BatchHeader
from kraft_core.format.log_files import parse_segment_name
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_log
from kraft_core.format.segment import Damage, order_faults, scan
from kraft_core.format.snapshot import read_snapshot

CORRUPT = Path(__file__).parents[2] / "golden" / "corrupt"
SEGMENT = "00000000000000000408.log"
CHECKPOINT = "00000000000000000321-0000000001.checkpoint"


class Outcome(NamedTuple):
    """What a file gives.

    quarantined: (position, size in bytes, reason). order: (position, kind). incomplete: of a checkpoint.
    """

    batches: int
    records: int
    quarantined: tuple[tuple[int, int, str], ...] = ()
    order: tuple[tuple[int, str], ...] = ()
    incomplete: str | None = None


# The good segment has 74 batches with 99 records (offsets 408 to 506), the good checkpoint 3 with 78.
# The batch at 1648 holds 11 records, the last one, at 8204, one.
OUTCOMES = {
    "good": Outcome(74, 99),
    "torn-last-batch": Outcome(73, 98, ((8204, 56, "torn_tail"),)),
    "torn-in-batch-header": Outcome(73, 98, ((8204, 40, "torn_tail"),)),
    "torn-in-length-field": Outcome(73, 98, ((8204, 9, "torn_tail"),)),
    "crc-flip-middle": Outcome(73, 88, ((1648, 599, "bad_crc"),)),
    "crc-flip-last": Outcome(73, 98, ((8204, 72, "bad_crc"),)),
    "crc-field-flip": Outcome(73, 88, ((1648, 599, "bad_crc"),)),
    "garbage-tail": Outcome(74, 99, ((8276, 137, "garbage_tail"),)),
    "garbage-tail-text": Outcome(74, 99, ((8276, 207, "garbage_tail"),)),
    "empty-segment": Outcome(0, 0),
    "zero-tail": Outcome(74, 99, ((8276, 4096, "zero_tail"),)),
    "all-zero": Outcome(0, 0, ((0, 4096, "zero_tail"),)),
    "wrong-magic": Outcome(73, 88, ((1648, 599, "bad_magic"),)),
    "magic-1": Outcome(73, 88, ((1648, 599, "bad_magic"),)),
    "length-huge": Outcome(73, 88, ((1648, 599, "bad_length"),)),
    "length-negative": Outcome(73, 88, ((1648, 599, "bad_length"),)),
    "length-too-small": Outcome(73, 88, ((1648, 599, "bad_length"),)),
    "missing-batch": Outcome(73, 88, order=((1648, "gap"),)),
    "swapped-batches": Outcome(74, 99, order=((1648, "gap"), (1720, "overlap"), (2319, "gap"))),
    "duplicate-batch": Outcome(75, 110, order=((2247, "duplicate"),)),
    "epoch-regression": Outcome(74, 99, order=((1648, "epoch_regression"),)),
    "record-count-too-big": Outcome(74, 99, ((1648, 599, "wrong_record_count"),)),
    "unknown-record-type": Outcome(76, 100, ((8343, 7, "unknown_type"),)),
    "unknown-record-version": Outcome(76, 100, ((8343, 8, "unknown_version"),)),
    "unknown-frame-version": Outcome(76, 100, ((8343, 8, "unknown_frame"),)),
    "unknown-control-type": Outcome(76, 100, ((8347, 2, "unknown_control_type"),)),
    "truncated-record-payload": Outcome(76, 100, ((8343, 6, "malformed_value"),)),
    "trailing-garbage-in-payload": Outcome(76, 100, ((8343, 6, "trailing_bytes"),)),
    "unknown-tagged-field": Outcome(76, 101),
    "null-value-record": Outcome(76, 100, ((8343, 0, "empty_value"),)),
    "checkpoint-no-footer": Outcome(2, 77, incomplete="no footer at the end"),
    "checkpoint-torn": Outcome(
        1, 3, ((269, 5971, "torn_tail"),), incomplete="no footer at the end, torn_tail at 269"
    ),
    "checkpoint-no-header": Outcome(
        2, 75, order=((0, "gap"),), incomplete="no header at the start, gap at 0"
    ),
    "checkpoint-crc-flip": Outcome(2, 4, ((269, 6001, "bad_crc"),), incomplete="bad_crc at 269"),
    "checkpoint-empty": Outcome(0, 0, incomplete="no header at the start, no footer at the end"),
    "checkpoint-part": Outcome(
        1, 3, ((269, 5971, "torn_tail"),), incomplete="no footer at the end, torn_tail at 269"
    ),
}  # fmt: skip


def outcome(path: Path) -> Outcome:
    is_snapshot = "checkpoint" in path.name
    next_offset = 0 if is_snapshot else parse_segment_name(path.name)
    with mapped(path) as log:
        headers = list(scan(log, next_offset=next_offset))
        items = list(read_log(log, next_offset=next_offset))
        damage = [item if isinstance(item, Damage) else item.damage for item in items]
        return Outcome(
            batches=sum(isinstance(item, BatchHeader) for item in headers),
            records=sum(isinstance(item, Record) and item.reason is None for item in items),
            quarantined=tuple((d.position, d.size_bytes, d.reason) for d in damage if d is not None),
            order=tuple((fault.position, fault.kind) for fault in order_faults(headers, next_offset)),
            incomplete=read_snapshot(log).incomplete if is_snapshot else None,
        )


def test_every_case_has_an_outcome():
    assert set(OUTCOMES) == {path.name for path in CORRUPT.iterdir() if path.is_dir()}


@pytest.mark.parametrize("case", OUTCOMES)
def test_a_broken_file(case):
    # "good" holds a checkpoint too: the segment is the greater name.
    path = max(path for path in (CORRUPT / case).iterdir() if path.suffix != ".gz")
    assert outcome(path) == OUTCOMES[case]


def test_the_good_checkpoint():
    assert outcome(CORRUPT / "good" / CHECKPOINT) == Outcome(3, 78, incomplete="")


def good_records(case: str) -> dict[int, tuple]:
    with mapped(CORRUPT / case / SEGMENT) as log:
        records = [item for item in read_log(log, next_offset=408) if isinstance(item, Record)]
    return {r.offset: (r.timestamp, r.type, r.version, r.value) for r in records if r.reason is None}


@pytest.mark.parametrize("case", [case for case in OUTCOMES if (CORRUPT / case / SEGMENT).exists()])
def test_what_a_broken_file_yields_equals_the_good_file(case):
    good = good_records("good")
    found = {offset: record for offset, record in good_records(case).items() if offset <= 506}
    assert found.items() <= good.items()
    # Of the broken files some lack everything, the last batch, or the one at 1648.
    lost = {0: set(good), 98: {506}, 88: set(range(428, 439))}
    assert set(good) - set(found) == lost.get(OUTCOMES[case].records, set())


def test_what_keeps_its_envelope():
    with mapped(CORRUPT / "unknown-record-version" / SEGMENT) as log:
        *_, unknown, last = read_log(log, next_offset=408)
        raw = log[8343:8351]
    assert (unknown.offset, unknown.leader_epoch, unknown.type) == (507, 3, "TOPIC_RECORD")
    assert (unknown.version, unknown.api_key, unknown.size_bytes) == (99, 2, 8)
    assert (unknown.value, unknown.message, unknown.unread) == (None, None, raw)
    assert (last.offset, last.type, last.reason) == (508, "NO_OP_RECORD", None)


def test_the_rest_of_a_batch_represents_the_whole_batch():
    with mapped(CORRUPT / "record-count-too-big" / SEGMENT) as log:
        records = [r for r in read_log(log, next_offset=408) if r.batch.position == 1648]
    assert [r.offset for r in records] == [*range(428, 439), 439]
    assert [r.is_rest_of_batch for r in records] == [False] * 11 + [True]
    assert records[-1].position_in_batch == 11
