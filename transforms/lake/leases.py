"""What the logs of a lake's tables say of its leases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow.dataset as ds

from transforms.lake.arrow_rows import Row
from transforms.lake.commits import GIVEN_BACK, LEASE, WRITERS
from transforms.lake.delta_rs import dataset
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import exists, listed_once, read_table, table_folder
from transforms.lake.tables import RUNS, TABLES, Table


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The last lease of a lake as a version of `runs` has it.

    number: 0 if there was none. given_back: whether its run ended in order, so that none of its writes can be
    under way. unfinished: the rows of runs that have not ended.
    """

    version: int
    number: int
    given_back: bool
    unfinished: list[Row]


def lease_state(lake: Location) -> LeaseState:
    """The last lease of a lake whose table `runs` exists."""
    with read_table(lake, RUNS) as held:
        number = held.transaction_version(LEASE) or 0
        given_back = number == (held.transaction_version(GIVEN_BACK) or 0)
        is_unfinished = ds.field("finished_at").is_null()
        rows, version = dataset(table_folder(lake, RUNS), held, is_unfinished), held.version()
    unfinished = rows.to_table(filter=is_unfinished)
    return LeaseState(version, number, given_back, unfinished.to_pylist())


def greatest_lease(lake: Location, of_others: int | None = None) -> int:
    """The greatest number of a lease in the logs of a lake's tables. of_others: but `runs`, if it is known.

    It is that of `runs`, unless that table or the others were restored from a copy of another time.
    """

    def number(table: Table) -> int:
        if not exists(lake, table):
            return 0
        with read_table(lake, table) as held:
            return held.transaction_version(LEASE) or 0

    if of_others is not None:
        return max(of_others, number(RUNS))
    with listed_once(lake), ThreadPoolExecutor(WRITERS) as threads:
        return max(threads.map(number, TABLES))
