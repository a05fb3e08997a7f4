"""Copies of captures of which a lake has everything: a run with little new need not look them up in all rows.

A lake's memo keeps them from one run to the next (transforms.lake.storage.memo).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

from jobs.captures.planning import ReadPlan
from kraft_core.format.capture import FOLLOWED_NODE_ID
from transforms.ingest.capture_rows import captured_at_columns, fault_rows
from transforms.ingest.captured_files import CaptureCopy, checkpoint_edges
from transforms.lake.commits import own_version
from transforms.lake.delta_rs import exists, newest_version
from transforms.lake.seen import SeenLake
from transforms.lake.storage.location import Location
from transforms.lake.storage.memo import KNOWING
from transforms.lake.tables import Table

# Delta versions of the tables KNOWING; None of one that does not exist.
_Versions = Mapping[Table, int | None]


class KnownCopies:
    """What the tables KNOWING, as they are, tell of copies: of which they have all, and of which nothing.

    Once another process may have changed one of these tables, nothing is known.
    """

    def __init__(self, digests: Iterable[bytes] = (), versions: _Versions | None = None) -> None:
        """digests: of copies (`digest_of`). versions: of the tables by which they are known."""
        self._digests = set(digests)
        self._versions = versions
        self._absent: set[str] = set()
        # With the copies, so that no other object gets the id of one.
        self._made: dict[int, tuple[CaptureCopy, bytes]] = {}

    @classmethod
    def of(cls, seen: SeenLake) -> KnownCopies:
        """Those that the memo of a lake names."""
        listed = {table: seen.listed.of(table) for table in KNOWING}
        versions = {
            t: found.versions[-1] if found and found.versions else None for t, found in listed.items()
        }
        return cls(seen.memo.known_copies(seen.listed), versions)

    def unknown(
        self, lake: Location, copies: Mapping[str, list[CaptureCopy]]
    ) -> dict[str, list[CaptureCopy]]:
        """By capture id the copies of the captures of which one is not known."""
        versions = _versions(lake)
        if versions != self._versions:
            self._digests.clear()
            self._absent.clear()
            self._versions = versions
        return {
            capture_id: some
            for capture_id, some in copies.items()
            if not all(self.digest(copy) in self._digests for copy in some)
        }

    def absent(self) -> Set[str]:
        """The ids of captures that the tables, as they were when `unknown` was called, do not have."""
        return self._absent

    def add(self, lake: Location, copies: Iterable[CaptureCopy], absent: Iterable[str]) -> None:
        """Copies are known by the tables, and captures are absent from them, if these are as they were when
        `unknown` was called.

        Not those of a followed log, of which the lake does not keep every capture.
        """
        if _versions(lake) == self._versions:
            found = (copy for copy in copies if copy.who.node_id != FOLLOWED_NODE_ID)
            self._digests.update(map(self.digest, found))
            self._absent.update(absent)

    @contextmanager
    def kept(self, lake: Location) -> Iterator[None]:
        """The block, under the lease, only adds to what the tables hold; others may change them meanwhile."""
        before = _versions(lake)
        yield
        self._absent.clear()
        if before == self._versions:
            own = {table: own_version(lake, table, version) for table, version in before.items()}
            if own == _versions(lake):
                self._versions = own

    def among(self, lake: Location, plan: ReadPlan) -> list[bytes]:
        """The digests of the known copies of a plan."""
        if _versions(lake) != self._versions:
            return []
        return [digest for copy in plan.captures if (digest := self.digest(copy)) in self._digests]

    def digest(self, copy: CaptureCopy) -> bytes:
        """`digest_of`, made once."""
        if id(copy) not in self._made:
            self._made[id(copy)] = copy, digest_of(copy)
        return self._made[id(copy)][1]


def digest_of(copy: CaptureCopy) -> bytes:
    """16 bytes that tell copies apart, as far as they are compared with a lake, wherever they lie."""
    directory = copy.directory
    compared = (
        copy.capture_id,
        copy.who.cluster_id,
        copy.life,
        sorted(captured_at_columns(copy).items()),
        [sorted(fault.items()) for fault in fault_rows(directory)],
        [(fault.file, fault.reason) for fault in directory.unreadable],
        [(file.base_offset, file.size_bytes, directory.relative(file.path)) for file in directory.segments],
        [(file.name, file.size_bytes) for file in copy.files],
        copy.bootstrap and checkpoint_edges(copy.bootstrap),
    )
    return hashlib.blake2b(repr(compared).encode(errors="surrogateescape"), digest_size=16).digest()


def copies_by_id(captures: Iterable[CaptureCopy]) -> dict[str, list[CaptureCopy]]:
    """The copies of each capture, in their order."""
    found: dict[str, list[CaptureCopy]] = {}
    for copy in captures:
        found.setdefault(copy.capture_id, []).append(copy)
    return found


def _versions(lake: Location) -> _Versions:
    return {table: newest_version(lake, table) if exists(lake, table) else None for table in KNOWING}
