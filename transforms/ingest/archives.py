"""Archives of captured directories, unpacked to scratch.

An archive is not trusted: nothing is written outside its folder, links and devices are skipped, and unpacking
stops if an archive expands out of proportion. One that ends early, or lacks members, is damaged: none of it
is read.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tarfile import HeaderError, ReadError
from typing import IO, Protocol, Self

SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
# A metadata log compresses to a tenth or so: what expands by more than this is not a capture, or an attack.
MOST_GROWTH = 200
FREE_BYTES = 64 * 1024 * 1024  # may always be written, however small the archive
MOST_MEMBERS = 100_000
# What tar holds of a member beside its content: long names, times.
MOST_HEADER_BYTES = 64 * 1024
HEADER_TYPES = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
# A member of a zip: where the lengths of name and extra field lie, and what may follow it. Then the records
# at the end (PKWARE's APPNOTE, 4.3.7 to 4.3.16).
ZIP_LENGTHS_AT, ZIP_DESCRIPTOR_BYTES = 26, 24
ZIP_END = struct.Struct("<4s4H2LH")
ZIP64_PLACE = struct.Struct("<4sLQL")
ZIP64_END = struct.Struct("<4sQ2H2L4Q")
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, struct.error),
    *(EOFError, RuntimeError, ValueError, OverflowError, IndexError),
)
CHUNK = 1024 * 1024
NO_FILE = "not a regular file"
# How often the end may be read by an archive that does end there.
MOST_READS_BEYOND = 16


class ArchiveError(Exception):
    """An archive that is damaged, or is not an archive of captures; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """What an archive holds, but for directories. modified_at: seconds since the epoch.

    open: None where it is not a regular file.
    """

    name: str
    modified_at: float
    open: Callable[[], IO[bytes] | None] | None


def is_archive(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path) -> list[tuple[str, str]]:
    """Unpack the regular files of an archive into a folder, with their times.

    Returns the members that were skipped: name and reason. Raises ArchiveError: then none of it should be
    read.
    """
    left_out = []
    is_empty = True
    budget = Budget(archive.stat().st_size)
    try:
        for member in members(archive, budget):
            is_empty = False
            reason = _unpacked(member, folder, budget)
            if reason is not None:
                left_out.append((member.name, reason))
    except DAMAGED as error:
        raise ArchiveError(f"damaged, or not an archive: {error}") from error
    except FileExistsError as error:
        raise ArchiveError(f"contains two files with the same name: {error.filename}") from error
    except OSError as error:
        raise ArchiveError(f"could not be unpacked: {error.strerror or error}") from error
    if is_empty:
        raise ArchiveError("holds no file")  # and so does a file of zeros, to tar
    return left_out


def _unpacked(member: ArchiveMember, folder: Path, budget: Budget) -> str | None:
    """Unpack a member. Returns why not, where it is skipped."""
    target = target_of(folder, member.name)
    if target is None:
        return "its path leads out of the folder"
    if is_archive(member.name):
        return "archives inside archives are not opened: unpack it yourself"
    target.parent.mkdir(parents=True, exist_ok=True)
    source = member.open() if member.open else None
    if source is None:
        return NO_FILE
    with source, target.open("xb") as file:
        while chunk := source.read(CHUNK):
            budget.wrote(len(chunk))
            file.write(chunk)
    os.utime(target, (member.modified_at, member.modified_at))
    return None


class Budget:
    """The bytes and members that an archive may still unpack to."""

    def __init__(self, archive_bytes: int) -> None:
        self._bytes = self._unread = FREE_BYTES + MOST_GROWTH * archive_bytes
        self._members = MOST_MEMBERS

    def member(self, count: int = 1) -> None:
        self._members -= count
        if self._members < 0:
            raise ArchiveError(f"contains more than {MOST_MEMBERS:,} files")

    def wrote(self, size: int) -> None:
        """Bytes of a file. A hole of a sparse member is written, but not read."""
        self._bytes -= size
        self._check()

    def read(self, size: int) -> None:
        """Bytes of the unpacked archive, whatever they are for."""
        self._unread -= size
        self._check()

    def _check(self) -> None:
        if min(self._bytes, self._unread) < 0:
            raise ArchiveError(f"grows to more than {MOST_GROWTH} times its size: unpack it yourself")


def target_of(folder: Path, name: str) -> Path | None:
    """The path of a member; None for a name that leads out of the folder."""
    parts = Path(name.replace("\\", "/")).parts
    if not parts or "\0" in name or ".." in parts or Path(name).is_absolute():
        return None
    return folder.joinpath(*parts)


def members(archive: Path, budget: Budget) -> Iterator[ArchiveMember]:
    """The members of an archive but directories, in its order."""
    return (
        zip_members(archive, budget)
        if archive.name.lower().endswith(".zip")
        else tar_members(archive, budget)
    )


# --- tar ---


class _StrictHeader(tarfile.TarInfo):
    """A header of tar, where tarfile itself takes a damaged one for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile)
        except HeaderError as error:
            # The only one that is not damage: a block of zeros.
            if type(error).__name__ == "EOFHeaderError":
                raise
            raise ReadError(f"{error} at byte {tarfile.offset}") from None

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type in HEADER_TYPES and not 0 <= header.size <= MOST_HEADER_BYTES:
            raise ReadError(f"a header of {header.size} bytes")
        return header


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of an archive, counted: what is skipped takes time, too."""

    def __init__(self, packed: Readable, budget: Budget) -> None:
        self._packed = packed
        self._budget = budget
        self._beyond = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._packed.read(size)
        self._budget.read(len(data))
        if not data and size:
            # A member of 2^63 bytes would be skipped piece by piece.
            self._beyond += 1
            if self._beyond > MOST_READS_BEYOND:
                raise EOFError("it ends inside a member")
        return data


def tar_members(archive: Path, budget: Budget) -> Iterator[ArchiveMember]:
    with archive.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    # tarfile's own reader of gzip does not compare checksums.
    with gzip.open(archive) if is_gzip else archive.open("rb") as packed:
        stream = _Unpacked(packed, budget)
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_StrictHeader) as tar:
            while info := tar.next():
                budget.member()
                tar.members.clear()  # pyright: ignore[reportAttributeAccessIssue]  # it would keep them all
                if not info.isdir():
                    opening = (lambda i=info: tar.extractfile(i)) if info.isreg() else None
                    yield ArchiveMember(info.name, info.mtime, opening)
            while chunk := tar.fileobj.read(CHUNK):
                if chunk.strip(b"\0"):
                    raise ReadError("data follows after its end")


# --- zip ---


def zip_members(archive: Path, budget: Budget) -> Iterator[ArchiveMember]:
    stated = _stated_members(archive, budget)
    with zipfile.ZipFile(archive) as packed:
        listed = packed.infolist()
        if len(listed) != stated:
            raise zipfile.BadZipFile(f"{stated} members expected, {len(listed)} found")
        _must_be_all(archive, listed, packed.start_dir)
        for info in listed:
            # Python unpacks the others without a limit of memory.
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile(f"compression method {info.compress_type} is not supported")
            if info.is_dir():
                _must_be_folder(packed, info)
            else:
                _must_hold_its_bytes(info)
                # The upper half is the Unix mode: the content of a link would be its target.
                regular = info.external_attr >> 28 in (0, 0o10)
                opening = (lambda i=info: packed.open(i)) if regular else None
                yield ArchiveMember(info.filename, zip_time(info), opening)


def _must_be_folder(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
    """Raises BadZipFile for a file whose name was damaged into that of a folder."""
    with packed.open(info) as source:  # compares the name with that before the content
        if info.file_size or source.read(1):
            raise zipfile.BadZipFile(f"{info.orig_filename!r} is a folder but has content")


def _must_hold_its_bytes(info: zipfile.ZipInfo) -> None:
    """Raises BadZipFile where less is packed than a member has: the checksum of nothing is zero."""
    packed, size = info.compress_size, info.file_size
    if (size and not packed) or (info.compress_type == zipfile.ZIP_STORED and packed != size):
        raise zipfile.BadZipFile(f"{info.filename!r} has {packed} bytes, of which {size} are to be unpacked")


def _must_be_all(archive: Path, listed: list[zipfile.ZipInfo], end: int) -> None:
    """Raises BadZipFile where bytes of no member lie before the directory: it does not list them all."""
    reached = 0
    with archive.open("rb") as file:
        for info in sorted(listed, key=lambda info: info.header_offset):
            if not 0 <= info.header_offset - reached <= ZIP_DESCRIPTOR_BYTES:
                break
            file.seek(info.header_offset + ZIP_LENGTHS_AT)
            name, extra = struct.unpack("<2H", file.read(4))
            reached = info.header_offset + ZIP_LENGTHS_AT + 4 + name + extra + info.compress_size
    if not 0 <= end - reached <= ZIP_DESCRIPTOR_BYTES:
        raise zipfile.BadZipFile(f"no member, or two, at byte {reached}")


def _stated_members(archive: Path, budget: Budget) -> int:
    """How many members a zip states at its end, before its directory is held in memory as objects."""
    with archive.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - ZIP_END.size - ZIP64_PLACE.size - 0xFFFF))
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) < at + ZIP_END.size:
            raise zipfile.BadZipFile("its end record is missing")
        *_, stated, directory_bytes, _, _ = ZIP_END.unpack_from(tail, at)
        if stated == 0xFFFF and at >= ZIP64_PLACE.size:
            signature, _, place, _ = ZIP64_PLACE.unpack_from(tail, at - ZIP64_PLACE.size)
            if signature == b"PK\6\7":
                file.seek(place)
                *_, stated, directory_bytes, _ = ZIP64_END.unpack(file.read(ZIP64_END.size))
        budget.member(stated)
        # The number may lie: each entry of the directory begins with these bytes.
        file.seek(max(0, size - len(tail) + at - ZIP64_PLACE.size - ZIP64_END.size - directory_bytes))
        before = b""
        listed = 0
        while chunk := file.read(CHUNK):
            listed += (before + chunk).count(b"PK\1\2")
            before = chunk[-3:]
        Budget(size).member(listed)
    return stated


def zip_time(info: zipfile.ZipInfo) -> float:
    """A member's time: the extended timestamp (header id 0x5455) if there is one, else its date, as UTC."""
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 0x5455 and size >= 5 and extra[4] & 1:
            return float(struct.unpack_from("<i", extra, 5)[0])
        extra = extra[4 + size :]
    return datetime(*info.date_time, tzinfo=UTC).timestamp()
