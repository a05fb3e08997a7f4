"""What a run sees of a lake before it reads any table, and what it records for the next run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from transforms.lake.schema import outdated_tables
from transforms.lake.storage.listing import LakeListing, lake_listing
from transforms.lake.storage.location import Location
from transforms.lake.storage.memo import Answer, Memo, read_memo, write_memo
from transforms.lake.storage.table_folders import as_listed
from transforms.lake.table_damage import damaged_tables
from transforms.lake.tables import Table


@dataclass(frozen=True, slots=True)
class SeenLake:
    """A lake as it is listed, and its memo. damage: of the tables that the memo does not know as they are."""

    listed: LakeListing
    memo: Memo
    damage: Mapping[Table, Sequence[str]] = field(default_factory=dict)

    @property
    def lake(self) -> Location:
        return self.listed.lake

    def answer(self, question: str) -> Answer | None:
        """What an earlier run found out about the lake just as it is."""
        return self.memo.answer(question, self.listed)

    def greatest_lease(self) -> int | None:
        """As Memo has it."""
        return self.memo.greatest_lease(self.listed)

    def outdated(self) -> list[Table]:
        """The tables that lack a column of this version. Raises NoLakeError."""
        return outdated_tables(self.lake, self.memo.unknown(self.listed))


def seen_lake(lake: Location, memo: Memo | None = None) -> SeenLake:
    """Look at a lake. memo: if it is known. Raises OSError."""
    listed = lake_listing(lake)
    held = read_memo(lake) if memo is None else memo
    with as_listed(listed):
        return SeenLake(listed, held, damaged_tables(lake, False, listed, held.unknown(listed)))


def unseen(lake: Location) -> SeenLake:
    """A lake of which nothing has been seen yet."""
    return SeenLake(LakeListing(lake, {}), Memo())


def note(
    before: SeenLake,
    question: str,
    answer: Callable[[SeenLake], Answer | None],
    lease: int | None = None,
    copies: Callable[[], Iterable[bytes]] = tuple,
) -> None:
    """Note for the next run which tables are sound, and the answer to a question, unless it is None.

    before: the lake as this run saw it first. lease: the number of its own, if it had one. copies: digests of
    the copies of captures that are known when the question is answered. Nothing is noted where the lake
    changes meanwhile. Raises NoLakeError and OSError.
    """
    now = seen_lake(before.lake, before.memo)
    with as_listed(now.listed):
        if now.damage or now.outdated():
            return
        found, known = answer(now), copies()
    if lake_listing(before.lake).files == now.listed.files:
        write_memo(before.lake, now.memo.extended(now.listed, question, found, lease, known))
