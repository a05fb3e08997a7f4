"""Which configs are secrets, as compiled code knows it: verdicts of secrets.is_secret_config in a table.

A config is the bytes of its name and value on the wire, which follow one another; its name alone stands for
all values of only digits, which carry no credentials. Compiled code enters those that it does not find
(config_values.py), Python judges them, and the batch is written again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Set

from kraft_core.columnar.lines_abi import OPEN, VERDICTS
from kraft_core.format.kafka_json import unsigned_varint
from kraft_core.format.secrets import is_secret_config, is_secret_name
from kraft_core.format.varint import Buffer

# An entry has an address, a size (0: the entry is free) and a verdict, at these byte offsets.
ENTRIES = 4096  # a power of two
ENTRY_BYTES = 24
SIZE, VERDICT = 8, 16
UNJUDGED, SHOWN, HIDDEN, ODD = range(4)
MOST_CONFIG_BYTES = 512
# So many are entered, at most, until Python empties the table.
MOST_ENTRIES = ENTRIES // 2


class ConfigVerdicts:
    """The table and its verdicts. allowed: as in secrets.is_secret_config."""

    def __init__(self, allowed: Set[str]) -> None:
        self._allowed = allowed
        self._table = (ctypes.c_int64 * (ENTRIES * ENTRY_BYTES // 8))()
        self._open = (ctypes.c_int64 * MOST_ENTRIES)()
        self._held: list[ctypes.Array[ctypes.c_char]] = []

    @property
    def addresses(self) -> dict[int, int]:
        """The words of the task."""
        return {VERDICTS: ctypes.addressof(self._table), OPEN: ctypes.addressof(self._open)}

    def empty(self) -> None:
        """Forget every config."""
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._held.clear()

    def judge(self, count: int, content: Buffer, address: int) -> None:
        """Judge the open entries; content: the file, whose first byte is at the address."""
        begin = ctypes.addressof(self._table)
        for entry in self._open[:count]:
            word = (entry - begin) // 8
            start = self._table[word] - address
            config = bytes(content[start : start + self._table[word + SIZE // 8]])
            # A copy, as the file will be closed.
            copy = ctypes.create_string_buffer(config, len(config))
            self._held.append(copy)
            self._table[word] = ctypes.addressof(copy)
            self._table[word + VERDICT // 8] = self._verdict(config)

    def _verdict(self, config: bytes) -> int:
        size, at = unsigned_varint(config, 0)
        after_name = at + size - 1
        try:
            name = config[at:after_name].decode()
            if after_name == len(config):
                is_secret = is_secret_name(name, self._allowed)
            else:
                _, value_at = unsigned_varint(config, after_name)
                is_secret = is_secret_config(name, config[value_at:].decode(), self._allowed)
        except UnicodeDecodeError:
            return ODD
        return HIDDEN if is_secret else SHOWN
