"""Captures broken on purpose, a cluster each, read by one run into one lake: it finds what the core finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraft_core.findings.judge import judge
from tests.jobs.lakes import run
from tests.kraft_core.findings.broken import Captures, batches_of, facts_of
from tests.kraft_core.findings.test_broken_on_purpose import AFTER, TABLE, Row
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import FINDINGS

TOLD = ("rule", "name", "severity", "first_offset", "end_offset", "leader_epochs", "replicas", "sentence")
pytestmark = [pytest.mark.long]


def repeat_a_batch(captures: Captures) -> None:
    path = captures.node(AFTER, 2).segments[0]
    parts = [batch for _, batch in batches_of(path)]
    path.write_bytes(b"".join([*parts[:31], parts[30], *parts[31:]]))


def bring_an_older_batch_again(captures: Captures) -> None:
    path = captures.node(AFTER, 3).segments[0]
    parts = [batch for _, batch in batches_of(path)]
    path.write_bytes(b"".join([*parts[:40], parts[30], *parts[40:]]))


def swap_epochs(captures: Captures) -> None:
    """The last batch of epoch 1 comes after the first of epoch 3."""
    path = captures.node(AFTER, 1).segments[0]
    found = list(batches_of(path))
    nth = next(n for n, (header, _) in enumerate(found) if header.leader_epoch == 3)
    found[nth - 1], found[nth] = found[nth], found[nth - 1]
    path.write_bytes(b"".join(batch for _, batch in found))


def take_a_batch_away(captures: Captures) -> None:
    path = captures.node(AFTER, 2).segments[0]
    parts = [batch for _, batch in batches_of(path)]
    path.write_bytes(b"".join([*parts[:30], *parts[31:]]))


OF_ORDER = [
    Row(0, (AFTER,), damage, (None, ()))
    for damage in (repeat_a_batch, bring_an_older_batch_again, swap_epochs, take_a_batch_away)
]
CASES = [row for row in (*TABLE, *OF_ORDER) if row.observed is None]


@pytest.fixture(scope="module")
def broken(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of all broken captures, a folder a case, and the lake of them."""
    assert spark
    folder = tmp_path_factory.mktemp("broken")
    for number, row in enumerate(CASES):
        captures = Captures(folder / f"{number:02}", *row.moments)
        row.damage(captures)
        for meta in captures.folder.rglob("meta.properties"):
            lines = meta.read_text().splitlines()
            renamed = [f"cluster.id={cluster(number)}" if x.startswith("cluster.id=") else x for x in lines]
            meta.write_text("\n".join(renamed) + "\n")
    assert run(folder / "lake", *(folder / f"{n:02}" for n in range(len(CASES)))) == 1
    return folder, folder / "lake"


def cluster(number: int) -> str:
    return f"broken-{number:02}"


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda n: f"{CASES[n].rule}-{CASES[n].damage.__name__}"
)
def test_the_lake_finds_what_the_core_finds(broken: tuple[Path, Path], number: int) -> None:
    folder, lake = broken
    expected = judge(*facts_of([folder / f"{number:02}"]))
    found = rows_with(lake, FINDINGS, cluster_id=[cluster(number)])
    assert expected
    assert {row["finding_id"]: [plain(row[name]) for name in TOLD] for row in found} == {
        finding.finding_id: [plain(getattr(finding, name)) for name in TOLD] for finding in expected
    }


def plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
