"""All files of a lake at one moment, by one walk or one listing of a store."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from transforms.lake.storage.files import FoundFile, every_file
from transforms.lake.storage.location import Location
from transforms.lake.tables import Table

LOG = "_delta_log"


def commit_name(version: int) -> str:
    """The name of a commit's file in a log."""
    return f"{version:020d}.json"


def is_commit_name(name: str) -> bool:
    """Whether a name in a log is that of a commit's file."""
    return name.endswith(".json") and name[:-5].isdecimal()


@dataclass(frozen=True, slots=True)
class FolderListing:
    """What is below a table's folder, by its path there."""

    folder: Location
    files: Mapping[str, FoundFile]

    @property
    def has_data(self) -> bool:
        """Whether there is a data file, of whatever version."""
        return any("/" not in name and name.endswith(".parquet") for name in self.files)

    @property
    def log(self) -> list[str]:
        """The names in the Delta log."""
        return [name.removeprefix(f"{LOG}/") for name in self.files if name.startswith(f"{LOG}/")]

    @property
    def versions(self) -> list[int]:
        """The versions of which there is a commit, rising."""
        return sorted(int(name[:-5]) for name in self.log if is_commit_name(name))

    def size_of(self, name: str) -> int:
        """A file's bytes. Raises FileNotFoundError."""
        if name not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.folder / name))
        return self.files[name].size_bytes


@dataclass(frozen=True, slots=True)
class LakeListing:
    """All files of a lake by their path there."""

    lake: Location
    files: Mapping[str, FoundFile]
    _by_folder: dict[str, dict[str, FoundFile]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for path, file in self.files.items():
            folder, slash, name = path.partition("/")
            if slash:
                self._by_folder.setdefault(folder, {})[name] = file

    def fingerprint(self, table: Table) -> str:
        """A digest of what a table is: another one where any file came, went, or is written again.

        Data files are never written again, so that of them names and sizes suffice.
        """
        held = self._by_folder.get(table.name, {})
        lines = [
            f"{name}\0{file.size_bytes}\0{file.written if name.startswith(LOG) else ''}"
            for name, file in sorted(held.items())
        ]
        is_file = table.name in self.files
        return hashlib.sha256(
            "\n".join([str(is_file), *lines]).encode("utf-8", "surrogateescape")
        ).hexdigest()

    def of(self, table: Table) -> FolderListing | None:
        """A table's files; None where it has none. Raises NotADirectoryError."""
        if table.name in self.files:
            path = str(self.lake / table.name)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        held = self._by_folder.get(table.name)
        return None if held is None else FolderListing(self.lake / table.name, held)


def with_files(listed: LakeListing, more: Mapping[str, FoundFile]) -> LakeListing:
    """The listing with files that came since."""
    return LakeListing(listed.lake, {**listed.files, **more})


def lake_listing(lake: Location) -> LakeListing:
    """Raises OSError, also where a folder may not be read."""
    return LakeListing(lake, every_file(lake))
