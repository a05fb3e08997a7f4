"""Finds log directories in a tree of files; names of folders."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOG_DIR_NAME = "__cluster_metadata-0"
BOOTSTRAP_NAME = "bootstrap.checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
# Kafka 2.8's preview wrote another record format into a log of this name.
OLD_LOG_DIR_NAME = "@metadata-0"
# Of the file system, at the root of a disk: root alone may list it, and nobody puts a copy there.
LOST_AND_FOUND = "lost+found"

# LocalLog.parseTopicPartitionName of release 4.3: a suffix needs an id before it.
_RENAMED = re.compile(r"\S+-\S+\.\S+-(delete|stray|future)", re.ASCII)
_NUMBERED = re.compile(r".+-\+?(\d+)", re.ASCII)
_MOST_NUMBER = (1 << 31) - 1
_CACHE_DIR = "remote-log-index-cache"

# Device and inode of a directory, and whether it was found as a log directory.
Seen = set[tuple[int, int, bool]]


@dataclass(frozen=True, slots=True)
class UnreadPath:
    """A path that is not read, or not all of it, and why.

    is_unreadable: whether it exists, but could not be listed, opened or read: what it holds is not known.
    """

    path: Path
    reason: str
    is_unreadable: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def directories_below(root: Path, seen: Seen) -> Iterator[Path | UnreadPath]:
    """Every directory at or below a root in path order, but none below a log directory."""
    pending = [root]
    while pending:
        directory = pending.pop()
        try:
            status = directory.stat()
            is_log = is_log_dir(directory)
            if (status.st_dev, status.st_ino, is_log) in seen:
                continue
            seen.add((status.st_dev, status.st_ino, is_log))
            refusal = refuse_old(directory)
            if refusal is None and not is_log:
                if stat.S_ISDIR(status.st_mode):
                    pending += sorted(_subdirectories(directory), reverse=True)
                else:
                    refusal = UnreadPath(directory, "not a directory")
            yield refusal or directory
        except OSError as error:
            # A log directory that leads nowhere cannot be read: the files beside it say whose it is.
            is_log = directory.name == LOG_DIR_NAME
            is_missed = is_unreadable(error) and directory.name != LOST_AND_FOUND
            yield directory if is_log else UnreadPath(directory, error.strerror or str(error), is_missed)


def is_unreadable(error: BaseException) -> bool:
    """Whether an error, or its cause, says that something exists, but cannot be listed, opened or read.

    A link that leads nowhere, or to itself, holds nothing.
    """
    causes = (error, error.__cause__)
    return any(isinstance(e, OSError) and e.errno not in (errno.ENOENT, errno.ELOOP) for e in causes)


def _subdirectories(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        return [directory / entry.name for entry in entries if _may_be_directory(entry)]


def _may_be_directory(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a directory, or may be one: it is then refused later, with the reason.

    A dangling link is none, except where a log directory should be.
    """
    try:
        return entry.is_dir() or entry.name == LOG_DIR_NAME
    except OSError:
        return True


def refuse_old(directory: Path) -> UnreadPath | None:
    """Refuses the log directory of Kafka 2.8; None for any other."""
    if _name(directory) != OLD_LOG_DIR_NAME:
        return None
    return UnreadPath(directory, "a metadata log of Kafka 2.8, whose format no later Kafka reads")


def is_log_dir(directory: Path) -> bool:
    """By its own name, or that of what it leads to: a link may be either."""
    return directory.name == LOG_DIR_NAME or _name(directory) == LOG_DIR_NAME


def _name(directory: Path) -> str:
    """The name of what a path leads to. Resolving a whole path takes a system call for each of its parts."""
    is_plain = directory.name not in ("", "..") and not directory.is_symlink()
    return directory.name if is_plain else directory.resolve().name


def is_folder_name(name: str) -> bool:
    """Whether a folder of this name lies in the folder to which it is joined: it may come from anyone."""
    is_one_part = name not in ("", "..") and name == Path(name).name
    return is_one_part and "\0" not in name and len(os.fsencode(name)) <= 255


def is_log_folder(name: str) -> bool:
    """Whether Kafka accepts a folder of that name in a log directory; with any other no broker starts."""
    if name == _CACHE_DIR:
        return True
    renamed = _RENAMED.fullmatch(name)
    if renamed is None and name.endswith(("-delete", "-stray", "-future")):
        return False
    # Kafka cuts what it appended at the last dot.
    numbered = _NUMBERED.fullmatch(name.rpartition(".")[0] if renamed else name)
    return numbered is not None and int(numbered[1]) <= _MOST_NUMBER
