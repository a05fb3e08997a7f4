"""Archives of captured directories, unpacked to scratch.

An archive is not trusted: nothing is written outside its folder, links and devices are skipped, and unpacking
stops where an archive expands out of all proportion.
"""

from __future__ import annotations

import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
# A metadata log compresses to a tenth or so: what expands by more than this is no capture, or an attack.
MOST_GROWTH = 200
FREE_BYTES = 64 * 1024 * 1024  # may always be written, however small the archive
MOST_MEMBERS = 1_000_000
CHUNK = 1024 * 1024


class ArchiveError(Exception):
    """An archive that is damaged, or is no archive of captures; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file in an archive. modified_at: seconds since the epoch. open: None where it is no regular file."""

    name: str
    modified_at: float
    open: Callable[[], IO[bytes] | None] | None


def is_archive(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path) -> list[str]:
    """Unpack the regular files of an archive into a folder, with their times.

    Returns the names of members that were skipped. Raises ArchiveError: then none of it should be read.
    """
    left_out = []
    budget = Budget(archive.stat().st_size)
    try:
        for member in members(archive):
            budget.member()
            target = target_of(folder, member.name)
            if target is None:
                left_out.append(member.name)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            source = member.open() if member.open else None
            if source is None:
                left_out.append(member.name)
                continue
            with source, target.open("xb") as file:
                while chunk := source.read(CHUNK):
                    budget.wrote(len(chunk))
                    file.write(chunk)
            os.utime(target, (member.modified_at, member.modified_at))
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise ArchiveError(f"damaged, or no archive: {error}") from error
    except FileExistsError as error:
        raise ArchiveError(f"holds two files of one name: {error.filename}") from error
    except OSError as error:
        raise ArchiveError(f"could not be unpacked: {error.strerror or error}") from error
    return left_out


class Budget:
    """The bytes and members that an archive may still unpack to."""

    def __init__(self, archive_bytes: int) -> None:
        self._bytes = FREE_BYTES + MOST_GROWTH * archive_bytes
        self._members = MOST_MEMBERS

    def member(self) -> None:
        self._members -= 1
        if self._members < 0:
            raise ArchiveError(f"holds more than {MOST_MEMBERS:,} files")

    def wrote(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            raise ArchiveError(f"grows to more than {MOST_GROWTH} times its size: unpack it yourself")


def target_of(folder: Path, name: str) -> Path | None:
    """The path of a member; None for a name that leads out of the folder."""
    parts = Path(name.replace("\\", "/")).parts
    if not parts or "\0" in name or ".." in parts or Path(name).is_absolute():
        return None
    return folder.joinpath(*parts)


def members(archive: Path) -> Iterator[ArchiveMember]:
    """The members of an archive but directories, in its order."""
    return zip_members(archive) if archive.name.lower().endswith(".zip") else tar_members(archive)


def tar_members(archive: Path) -> Iterator[ArchiveMember]:
    with tarfile.open(archive, "r|*") as tar:
        for info in tar:
            if not info.isdir():
                yield ArchiveMember(
                    info.name, info.mtime, (lambda i=info: tar.extractfile(i)) if info.isreg() else None
                )


def zip_members(archive: Path) -> Iterator[ArchiveMember]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            if not info.is_dir():
                # The upper half is the Unix mode: the content of a link would be its target.
                regular = info.external_attr >> 28 in (0, 0o10)
                opening = (lambda i=info: packed.open(i)) if regular else None
                yield ArchiveMember(info.filename, zip_time(info), opening)


def zip_time(info: zipfile.ZipInfo) -> float:
    """A member's time: the extended timestamp (header id 0x5455) if there is one, else its date, as UTC."""
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 0x5455 and size >= 5 and extra[4] & 1:
            return float(struct.unpack_from("<i", extra, 5)[0])
        extra = extra[4 + size :]
    return datetime(*info.date_time, tzinfo=UTC).timestamp()
