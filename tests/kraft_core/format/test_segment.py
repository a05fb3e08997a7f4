import hashlib

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kraft_core.format.batch import BatchHeader
from kraft_core.format.segment import Damage, OrderFault, order_faults, scan
from tests.kraft_core.batches import log_of, no_op_batch, raw, write_batch

BATCHES = [no_op_batch(offset, epoch=2, records=5, codec=offset % 3) for offset in range(100, 200, 5)]
LOG = log_of(*BATCHES)
STARTS = [sum(map(len, BATCHES[:index])) for index in range(len(BATCHES) + 1)]


def damages(log: bytes, **options) -> list[tuple[int, int, str]]:
    return [
        (item.position, item.size_bytes, item.reason)
        for item in scan(log, **options)
        if isinstance(item, Damage)
    ]


def good(log: bytes) -> set[tuple[int, int]]:
    """(position, CRC) of the batches found; checks on the way that the items cover the log."""
    items = list(scan(log, next_offset=100))
    at = 0
    for item in items:
        assert item.position == at
        at = item.end
        if isinstance(item, Damage):
            assert item.sha256 == hashlib.sha256(log[item.position : item.end]).hexdigest()
    assert at == len(log)
    return {(item.position, item.crc) for item in items if isinstance(item, BatchHeader)}


INTACT = sorted(good(LOG))


def test_an_intact_log():
    assert [position for position, _ in INTACT] == STARTS[:-1]
    assert not list(order_faults(scan(LOG, next_offset=100), 100))


@given(at=st.integers(0, len(LOG) - 1), new=st.binary(min_size=1, max_size=200))
@settings(max_examples=400)
@example(at=STARTS[3] + 11, new=b"\x00")
@example(at=STARTS[3] + 8, new=b"\x7f")
@example(at=0, new=bytes(200))
def test_overwritten_bytes_cost_only_the_batches_they_touch(at, new):
    log = LOG[:at] + new + LOG[at + len(new) :]
    untouched = [
        (position, crc)
        for (position, crc), end in zip(INTACT, STARTS[1:], strict=True)
        if end <= at or position >= at + len(new) or log[position:end] == LOG[position:end]
    ]
    assert good(log).issuperset(untouched)


@given(at=st.integers(0, len(LOG)), lost=st.integers(0, 400), new=st.binary(max_size=200))
@settings(max_examples=400)
def test_lost_and_inserted_bytes_cost_only_the_batches_they_touch(at, lost, new):
    log = LOG[:at] + new + LOG[at + lost :]
    shift = len(new) - lost
    found = good(log)
    # What follows may begin with the very bytes that were lost: then another batch is the broken one.
    ends = dict(zip(INTACT, STARTS[1:], strict=True))
    assume(not any(batch in found for batch in INTACT if batch[0] < at < ends[batch]))
    for (position, crc), end in zip(INTACT, STARTS[1:], strict=True):
        if end <= at:
            assert (position, crc) in found
        elif position >= at + lost:
            assert (position + shift, crc) in found


@given(st.binary(max_size=2000))
def test_any_bytes_are_scanned(log):
    good(log)


@given(cut=st.integers(0, len(LOG) - 1))
@example(cut=STARTS[7] + 1)
def test_a_log_that_ends_inside_a_batch_is_torn(cut):
    whole = max(start for start in STARTS if start <= cut)
    expected = [] if cut == whole else [(whole, cut - whole, "torn_tail")]
    assert damages(LOG[:cut], next_offset=100) == expected
    assert damages(LOG[:cut]) == expected


def test_a_batch_whose_end_was_never_written():
    torn = LOG[: STARTS[7] + 70] + bytes(5000)
    size = STARTS[8] - STARTS[7]
    assert damages(torn) == [(STARTS[7], size, "bad_crc"), (STARTS[8], len(torn) - STARTS[8], "zero_tail")]


@pytest.mark.parametrize(
    ("middle", "reason"),
    [
        (bytes(4096), "zero_bytes"),
        (b"\xff" * 300, "bad_magic"),
        (b"short", "bad_length"),
        (no_op_batch(150)[:61], "bad_length"),
    ],
)
def test_bytes_between_batches(middle, reason):
    log = LOG[: STARTS[4]] + middle + LOG[STARTS[4] :]
    assert damages(log) == [(STARTS[4], len(middle), reason)]


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (bytes(4096), "zero_tail"),
        (b"rotated by logrotate " * 10, "garbage_tail"),
        (b"\n", "garbage_tail"),
        (b"\xff" * 100, "garbage_tail"),
        (no_op_batch(200)[:61], "torn_tail"),
        (no_op_batch(200)[:3], "torn_tail"),
        (no_op_batch(260)[:40], "torn_tail"),
        (no_op_batch(20)[:40], "garbage_tail"),
    ],
)
def test_bytes_after_the_last_batch(tail, reason):
    assert damages(LOG + tail) == [(len(LOG), len(tail), reason)]


@pytest.mark.parametrize("zeros", [63, 64, 575, 576, 577, 4671, 4672, (1 << 20) + 9])
def test_a_tail_of_zeros_is_one_only_to_its_last_byte(zeros):
    assert damages(LOG + bytes(zeros)) == [(len(LOG), zeros, "zero_tail")]
    assert damages(LOG + bytes(zeros) + b"\x01") == [(len(LOG), zeros + 1, "garbage_tail")]


def test_each_of_several_bad_batches_is_named():
    log = bytearray(LOG)
    for index in (3, 4, 5, 9):
        log[STARTS[index] + 70] ^= 1
    assert damages(bytes(log)) == [
        (STARTS[index], STARTS[index + 1] - STARTS[index], "bad_crc") for index in (3, 4, 5, 9)
    ]


def test_a_batch_inside_a_value_is_no_batch_of_the_log():
    inner = no_op_batch(110)
    outer = write_batch(110, 2, [raw(110, b"xx" + inner)])
    log = bytearray(log_of(no_op_batch(109, 2), outer, no_op_batch(111, 2)))
    at = len(no_op_batch(109, 2))
    log[at + 17] ^= 1  # the CRC
    assert damages(bytes(log)) == [(at, len(outer), "bad_crc")]


def test_negative_numbers_in_a_header():
    for at in (0, 23):  # base offset, last offset delta
        log = bytearray(LOG)
        log[STARTS[2] + at] |= 0x80
        # The last offset delta is covered by the CRC, but judged first.
        assert damages(bytes(log)) == [(STARTS[2], STARTS[3] - STARTS[2], "bad_offset")]


def test_offsets_beyond_64_bits():
    log = no_op_batch(0) + (b"\x7f" + b"\xff" * 7 + no_op_batch(1)[8:]) + no_op_batch(2)
    assert damages(log) == [(len(no_op_batch(0)), len(no_op_batch(1)), "bad_offset")]


def test_part_of_a_file():
    positions = [item.position for item in scan(LOG, STARTS[2], STARTS[5])]
    assert positions == STARTS[2:5]
    assert damages(LOG, start=STARTS[2] + 1, end=STARTS[4]) == [
        (STARTS[2] + 1, STARTS[3] - STARTS[2] - 1, "bad_magic")
    ]


@pytest.mark.parametrize(
    ("batches", "faults"),
    [
        ([(0, 1), (5, 1), (10, 3)], []),
        ([(5, 1)], [OrderFault(0, "gap", 0, 5)]),
        ([(0, 1), (10, 1)], [OrderFault(1, "gap", 5, 10)]),
        ([(0, 1), (0, 1), (5, 1)], [OrderFault(1, "duplicate", 5, 0)]),
        ([(0, 1), (0, 2)], [OrderFault(1, "overlap", 5, 0)]),
        ([(0, 1), (3, 1)], [OrderFault(1, "overlap", 5, 3)]),
        ([(0, 4), (5, 2), (10, 4)], [OrderFault(1, "epoch_regression", 4, 2)]),
        ([(0, 4), (5, 2), (10, 3)], [OrderFault(i, "epoch_regression", 4, i + 1) for i in (1, 2)]),
    ],
)
def test_the_order_of_batches(batches, faults):
    log = log_of(*(no_op_batch(offset, epoch, records=5) for offset, epoch in batches))
    size = len(no_op_batch(0, 1, records=5))
    found = [
        OrderFault(fault.position // size, fault.kind, fault.expected, fault.found)
        for fault in order_faults(scan(log), 0)
    ]
    assert found == faults


def test_a_gap_that_damage_explains_is_none():
    log = bytearray(LOG)
    log[STARTS[3] + 70] ^= 1
    assert not list(order_faults(scan(bytes(log), next_offset=100), 100))
