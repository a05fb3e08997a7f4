"""Whether findings make a job fail: an error that was reported before must not page forever.

Read from the tables by delta-rs, without Spark, so that a run without new captures can decide it, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Row = dict[str, Any]
FailOn = Literal["new", "open", "never"]
OPEN, RESOLVED, ERROR = "open", "resolved", "error"


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """--fail-on."""
    parser.add_argument(
        "--fail-on",
        choices=("new", "open", "never"),
        default="new",
        help="which error findings make the exit code 1: new ones that no run has reported yet, even if they "
        "are resolved by now (the default), all open ones, or none",
    )


@dataclass(frozen=True, slots=True)
class ErrorCheck:
    """fails: whether the job does. reported: errors reported for the first time, as (cluster, finding)."""

    fails: bool
    reported: tuple[tuple[str, str], ...]


def verdict(lake: Path, clusters: Collection[str], fail_on: FailOn) -> ErrorCheck:
    """Whether the clusters' errors, without acknowledged ones, fail the job; `never` reports nothing."""
    if fail_on == "never":
        return ErrorCheck(False, ())
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import FINDINGS

    wanted = {"cluster_id": clusters, "state": [OPEN, RESOLVED], "severity": [ERROR]}
    rows = rows_with(lake, FINDINGS, ["cluster_id", "finding_id", "state"], **wanted)
    found = {(r["cluster_id"], r["finding_id"]) for r in rows}
    new = found - known(lake) if found else found
    is_open = any(r["state"] == OPEN for r in rows)
    return ErrorCheck(is_open if fail_on == "open" else bool(new), tuple(sorted(new)))


def known(lake: Path) -> set[tuple[str, str]]:
    """The findings that runs have reported."""
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import RUNS

    rows = rows_with(lake, RUNS, ["reported_findings"])
    return {(f["cluster_id"], f["finding_id"]) for row in rows for f in row["reported_findings"] or ()}
