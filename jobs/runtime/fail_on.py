"""Whether open findings and unmet expectations make a job fail.

Read from the tables by delta-rs, without Spark, so that a run without new captures can decide it, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from transforms.lake.storage.location import Location

Row = dict[str, Any]
FailOn = Literal["new", "open", "never"]
OPEN, RESOLVED, ERROR = "open", "resolved", "error"


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """--fail-on."""
    parser.add_argument(
        "--fail-on",
        choices=("new", "open", "never"),
        default="new",
        help="what makes the exit code 1: new (the default): error findings that no run has reported yet, "
        "even if they are resolved by now, and expectations of severity error that fail in this "
        "validation; open: all open error findings and unmet expectations, whether this run validates "
        "or not; never: neither",
    )


@dataclass(frozen=True, slots=True)
class ErrorCheck:
    """fails: whether the job does. reported: findings reported for the first time, as (cluster, finding)."""

    fails: bool
    reported: tuple[tuple[str, str], ...]


def verdict(lake: Location, clusters: Collection[str], fail_on: FailOn) -> ErrorCheck:
    """Whether the clusters' errors, without acknowledged ones, fail the job; `never` reports nothing.

    Unmet expectations count for `open` only: a job that validates counts what it finds unmet itself.
    """
    if fail_on == "never":
        return ErrorCheck(False, ())
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import FINDINGS

    wanted = {"cluster_id": clusters, "state": [OPEN, RESOLVED], "severity": [ERROR]}
    rows = rows_with(lake, FINDINGS, ["cluster_id", "finding_id", "state"], **wanted)
    found = {(r["cluster_id"], r["finding_id"]) for r in rows}
    new = found - known(lake) if found else found
    if fail_on == "new":
        return ErrorCheck(bool(new), tuple(sorted(new)))
    is_open = any(r["state"] == OPEN for r in rows)
    return ErrorCheck(is_open or bool(unmet(lake, clusters)), tuple(sorted(new)))


def unmet(lake: Location, clusters: Collection[str]) -> list[Row]:
    """The expectations of severity error that the clusters, or the lake as a whole, did not meet last."""
    from transforms.quality.expectation_history import open_failures
    from transforms.quality.expectation_suites import WHOLE_LAKE

    failed = open_failures(lake, cluster_id=[*clusters, WHOLE_LAKE])
    return [row for row in failed if row["severity"] == ERROR]


def known(lake: Location) -> set[tuple[str, str]]:
    """The findings that runs have reported."""
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import RUNS

    rows = rows_with(lake, RUNS, ["reported_findings"])
    return {(f["cluster_id"], f["finding_id"]) for row in rows for f in row["reported_findings"] or ()}
