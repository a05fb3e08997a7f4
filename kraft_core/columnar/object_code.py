"""Machine code of an object file in this process without LLVM, whose import takes longest at start-up.

Only for ELF files for x86-64 that need nothing from outside, as the compiled writer of lines.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from typing import NamedTuple

from kraft_core.columnar.window import address_of

_HEADER = struct.Struct("<6s10xHH20xQ10xHH2x")
# The magic of 64 bits, little-endian; a relocatable file; x86-64.
_KIND = (b"\x7fELF\x02\x01", 1, 62)
_SECTION = struct.Struct("<4xIQ8xQQIIQ8x")
_CONTENT, _SYMBOLS, _RELOCATIONS = 1, 2, 4
_WRITABLE, _LOADED = 1, 2
_SYMBOL = struct.Struct("<I2xHQ8x")
_RELOCATION = struct.Struct("<QIIq")
# The address of a symbol; its distance from the place where it is written.
_ADDRESS, _DISTANCE = 1, 24
_WORD = struct.Struct("<Q")


class NotLoadable(Exception):
    """An object file that only LLVM can load."""


class _Section(NamedTuple):
    type: int
    flags: int
    begin: int
    size: int
    link: int
    info: int
    alignment: int


class ObjectCode:
    """The code of an object file as LLVM wrote it; the caller has checked that it is not damaged.

    NotLoadable; OSError if no memory may become executable, which LLVM does not notice.
    """

    def __init__(self, content: bytes) -> None:
        *kind, table, size, count = _HEADER.unpack_from(content)
        if (*kind, size) != (*_KIND, _SECTION.size):
            raise NotLoadable("not an object file for x86-64")
        self._content = content
        self._sections: list[_Section] = [
            _Section(*_SECTION.unpack_from(content, table + n * size)) for n in range(count)
        ]
        [symbols] = (section for section in self._sections if section.type == _SYMBOLS)
        self._names = self._sections[symbols.link].begin
        self._symbols: list[tuple[int, int, int]] = list(_SYMBOL.iter_unpack(self._bytes_of(symbols)))
        # Sections lie in memory as in the file. The code is there for as long as this is.
        self._memory = mmap.mmap(-1, len(content), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory.write(content)
        self._begin = address_of(self._memory)
        for section in self._sections:
            if section.type == _RELOCATIONS:
                self._relocate(section)
        mprotect = ctypes.CDLL(None, use_errno=True).mprotect
        memory = ctypes.c_void_p(self._begin), ctypes.c_size_t(len(content))
        if mprotect(*memory, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "mprotect")

    def address(self, name: str) -> int:
        """The address of a function. KeyError if there is none."""
        wanted = name.encode() + b"\0"
        for number, (at, _, _) in enumerate(self._symbols):
            if self._content.startswith(wanted, self._names + at):
                return self._begin + self._position(number)
        raise KeyError(name)

    def _relocate(self, relocations: _Section) -> None:
        """Write the addresses of symbols to the places in a section that need them."""
        target = self._sections[relocations.info].begin
        for offset, kind, number, addend in _RELOCATION.iter_unpack(self._bytes_of(relocations)):
            place = target + offset
            value = self._position(number) + addend
            if kind == _ADDRESS:
                value += self._begin
            elif kind == _DISTANCE:
                value -= place
            else:
                raise NotLoadable(f"relocation {kind}")
            _WORD.pack_into(self._memory, place, value % (1 << 64))

    def _position(self, number: int) -> int:
        """Of a symbol; NotLoadable unless it is in the file, and never written to."""
        _, index, value = self._symbols[number]
        section = self._sections[index] if 0 < index < len(self._sections) else None
        if (
            section is None
            or section.type != _CONTENT
            or section.flags & (_WRITABLE | _LOADED) != _LOADED
            or section.begin % (section.alignment or 1)
        ):
            raise NotLoadable(f"symbol {number}")
        return section.begin + value

    def _bytes_of(self, section: _Section) -> bytes:
        return self._content[section.begin : section.begin + section.size]
