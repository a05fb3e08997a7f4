"""The values of configs in compiled code: those that the table of verdicts (verdicts.py) shows."""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.crc import crc32c
from kraft_core.columnar.kernel_abi import MALFORMED
from kraft_core.columnar.line_values import read_size, write_null, write_text
from kraft_core.columnar.lines_abi import OPEN, OPEN_COUNT, VERDICT_COUNT, VERDICTS
from kraft_core.columnar.memory import get, load_u8, put
from kraft_core.columnar.verdicts import (
    ENTRIES,
    ENTRY_BYTES,
    MOST_CONFIG_BYTES,
    MOST_ENTRIES,
    ODD,
    SHOWN,
    SIZE,
    UNJUDGED,
    VERDICT,
)

_ZERO = 0x30


@compiled
def write_config_value(task: int, name: int, nullable: int, at: int, end: int, out: int) -> tuple[int, int]:
    """The value of the config whose name is at an address, as line_values.write_text; secrets are null."""
    size, value = read_size(nullable, at, end)
    if value < 0:
        return value, out
    if size < 0:
        return value, write_null(out)
    after = value + size
    if after - name > MOST_CONFIG_BYTES:
        return MALFORMED, out
    entry = _entry(task, name, (at if _are_digits(value, after) else after) - name)
    if entry == 0:
        return MALFORMED, out
    verdict = get(entry + VERDICT)
    if verdict == SHOWN:
        return write_text(task, nullable, at, end, out)
    return MALFORMED if verdict == ODD else after, write_null(out)


@inlined
def _are_digits(at: int, end: int) -> bool:
    """Whether there is a text, of nothing but the digits 0 to 9."""
    first = at
    while at < end and 0 <= load_u8(at) - _ZERO <= 9:
        at += 1
    return first < at == end


@compiled
def _entry(task: int, config: int, size: int) -> int:
    """The address of a config's entry, a new and open one if there was none; 0 if there is no room."""
    table = get(task + VERDICTS)
    number = crc32c(config, size) & (ENTRIES - 1)
    while True:
        entry = table + ENTRY_BYTES * number
        held = get(entry + SIZE)
        if held == 0:
            break
        if held == size and _are_equal(get(entry), config, size):
            return entry
        number = (number + 1) & (ENTRIES - 1)
    count = get(task + VERDICT_COUNT)
    if count == MOST_ENTRIES:
        return 0
    put(entry, config)
    put(entry + SIZE, size)
    put(entry + VERDICT, UNJUDGED)
    put(task + VERDICT_COUNT, count + 1)
    put(get(task + OPEN) + 8 * get(task + OPEN_COUNT), entry)
    put(task + OPEN_COUNT, get(task + OPEN_COUNT) + 1)
    return entry


@compiled
def _are_equal(one: int, other: int, size: int) -> bool:
    at = 0
    while at + 8 <= size:
        if get(one + at) != get(other + at):
            return False
        at += 8
    while at < size:
        if load_u8(one + at) != load_u8(other + at):
            return False
        at += 1
    return True
