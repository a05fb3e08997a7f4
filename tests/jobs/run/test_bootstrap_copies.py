"""Copies of one capture that differ in bootstrap.checkpoint, which is no part of its identity."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.known_copies import KnownCopies
from jobs.captures.new_captures import new_captures
from jobs.captures.planning import Selection, plan
from tests.jobs.lakes import content, opened, run

NAME = "bootstrap.checkpoint"
# How the second copy differs from the first: it has another one, a damaged one, an empty one, or none.
OTHERS = ("other", "damaged", "empty", "none")
# Cluster id: which copies the first run is given, and the second.
ORDERS = {"both": ("12", ""), "sound first": ("1", "2"), "sound last": ("2", "1")}


def copied(golden: Path, folder: Path, cluster: str, copy: str, kind: str) -> None:
    node = folder / cluster / copy
    shutil.copytree(golden / "election-storm/node-1", node)
    meta = node / "meta.properties"
    lines = meta.read_text().splitlines()
    own = [f"cluster.id={cluster}" if line.startswith("cluster.id=") else line for line in lines]
    meta.write_text("\n".join(own))
    if copy == "2":
        bootstrap = node / NAME
        sound = bootstrap.read_bytes()
        found = {
            "other": (golden / "dynamic-membership/node-1" / NAME).read_bytes(),
            "damaged": sound[:-9] + b"?" + sound[-8:],
            "empty": b"",
        }
        bootstrap.unlink()
        if kind in found:
            assert found[kind] != sound
            bootstrap.write_bytes(found[kind])


@pytest.fixture(scope="module")
def lake(golden: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert spark is not None
    folder = tmp_path_factory.mktemp("bootstrap")
    for kind in OTHERS:
        for order, given in ORDERS.items():
            for at, copies in zip(("early", "late"), given, strict=True):
                for copy in copies:
                    copied(golden, folder / at, f"{kind}, {order}", copy, kind)
    for at in ("early", "late"):
        run(folder / "lake", folder / at)
    planned = plan(Selection((folder / "early", folder / "late")))
    assert len({copy.capture_id for copy in planned.captures}) == len(OTHERS) * len(ORDERS)
    assert new_captures(folder / "lake", planned, KnownCopies()).unread == ()
    return folder / "lake"


@pytest.mark.parametrize("kind", OTHERS)
def test_any_order_gives_the_same_tables(spark: Any, lake: Path, kind: str) -> None:
    tables = [content(opened(spark, lake), f"{kind}, {order}") for order in ORDERS]
    # Beside the checkpoint at 0 in the log directory.
    assert len(tables[0]["snapshots"]) - 1 == (1 if kind == "none" else 2)
    assert tables[0] == tables[1] == tables[2]
