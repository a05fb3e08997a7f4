"""The quorum that split: docs/stale-split.md, command by command, and what the tables say then."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.describe_files import find_describe_files
from jobs.cli import main
from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.format.controller_dir import find_controller_dirs
from tests.jobs.lakes import report
from tests.kraft_core.findings.collect_rule_facts import collect_rule_facts
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import FINDINGS, RECOVERIES
from transforms.quality.findings import finding_rows

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[2]
SCENARIO = CHECKOUT / "tests/golden/stale-split"
# The nights of the page: what they read, and how the run ends.
EXIT_CODES = [0, 1, 0]


def commands() -> list[tuple[str, str]]:
    """The commands of the page, each with its output there."""
    text = (CHECKOUT / "docs/stale-split.md").read_text()
    return re.findall(r"```console\n\$ (.*?)\n(.*?)```", text, flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """The commands of the page as they were run: their lake, exit codes and output."""

    lake: Path
    codes: list[int]
    printed: list[str]


@pytest.fixture(scope="module")
def page(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Page:
    assert spark
    lake = tmp_path_factory.mktemp("stale") / ".stale"
    made = Page(lake, [], [])
    with chdir(CHECKOUT):
        for command, _ in commands():
            words = [str(lake) if word == ".stale" else word for word in shlex.split(command)]
            with redirect_stdout(StringIO()) as out:
                made.codes.append(main(words[1:]))
            made.printed.append(out.getvalue())
    return made


@pytest.fixture
def nights(page: Page) -> Path:
    """The lake of the page."""
    return page.lake


def test_the_page_is_what_the_commands_print(page: Page) -> None:
    for (command, expected), printed in zip(commands(), page.printed, strict=True):
        lines = printed.splitlines(keepends=True)
        assert "".join(line for line in lines if not line.startswith('{"run_id"')) == expected, command
    runs = ["run" in command.split()[1:2] for command, _ in commands()]
    assert [code for code, is_run in zip(page.codes, runs, strict=True) if is_run] == EXIT_CODES


def test_the_lake_says_what_the_pure_core_says(nights: Path) -> None:
    """The findings, rule 22 left out, which needs the records of the whole log."""
    directories = find_controller_dirs([SCENARIO]).directories
    (facts,) = collect(directories)
    described = find_describe_files([SCENARIO]).files
    beside = collect_rule_facts(directories)[facts.cluster_id]
    seen = type(beside)(
        batch_conflicts=beside.batch_conflicts,
        unreadable=beside.unreadable,
        observations=tuple(o for file in described for o in file.observations),
    )
    expected = finding_rows(judge(conclude(facts), seen), [])
    found = rows_with(nights, FINDINGS)
    assert {(f["rule"], f["severity"]) for f in found} >= {(6, "error"), (8, "error"), (23, "error")}
    own = {"cluster_id": facts.cluster_id}
    assert by_id(found) == by_id(own | row for row in expected)
    blamed = {replica for f in found if f["severity"] == "error" for replica in f["replicas"]}
    assert {replica.split("@")[0] for replica in blamed} == {"1", "3"}


def by_id(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Findings by their ids, whether they come from a table (lists) or from the core (tuples)."""
    return {
        row["finding_id"]: {name: list(v) if isinstance(v, tuple) else v for name, v in row.items()}
        for row in rows
    }


def test_recovery_of_the_healed_quorum(nights: Path) -> None:
    (advice,) = rows_with(nights, RECOVERIES)
    assert advice["is_safe"]
    assert {c["node_id"] for c in advice["best"]} <= {3, 4, 5}


def test_judged_again_it_pages_nobody(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was reported once, and acknowledged findings, fail nothing; the data are as expected."""
    chosen = rows_with(nights, FINDINGS, severity=["error"])[0]["finding_id"]
    assert main(["findings", "ack", chosen, "--reason", "seen", "--lake", str(nights)]) == 0
    before = rows_with(nights, FINDINGS)
    capsys.readouterr()
    assert main(["validate", "--lake", str(nights), "--now", "2026-11-21T11:00:00Z"]) == 0
    said = report(capsys.readouterr().out)
    assert (said["new_findings"], said["failed_clusters"]) == (0, 0)
    assert by_id(rows_with(nights, FINDINGS)) == by_id(before)
