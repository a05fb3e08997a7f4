"""Plans by captures and by their lake agree where files of a directory cannot be read, or are not valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.releases import LATEST
from kraft_core.plan.actions import Lose
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from kraft_core.plan.plan import plan
from kraft_core.plan.upgrade import plan_upgrade, release_upgrade
from tests.jobs.lakes import run
from tests.jobs.plan_metadata import both_metadata
from tests.jobs.run.test_any_order import copied_quorum

LEADER, FOLLOWER = 2, 1


def unreadable(file: Path) -> None:
    """What is no regular file cannot be read, also by root."""
    file.unlink()
    file.mkdir()


def invalid(file: Path) -> None:
    file.write_text("junk")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def incomplete(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-70])


# Cluster id: the node, its file, what happens to that, and the verdicts on the loss of voter 3, on upgrading
# the release, and on restarting the broker.
CASES: dict[str, tuple[int, str, Callable[[Path], None], tuple[str, str, str]]] = {
    "whole": (LEADER, "quorum-state", lambda _: None, ("safe", "refused", "risky")),
    "topic-id": (LEADER, "partition.metadata", unreadable, ("not_known", "refused", "not_known")),
    "other-topic-id": (LEADER, "partition.metadata", invalid, ("safe", "refused", "risky")),
    "of-formatting": (FOLLOWER, "../bootstrap.checkpoint", unreadable, ("not_known", "refused", "risky")),
    "not-of-formatting": (FOLLOWER, "../bootstrap.checkpoint", invalid, ("not_known", "refused", "risky")),
    "empty-of-formatting": (FOLLOWER, "../bootstrap.checkpoint", empty, ("not_known", "refused", "risky")),
    "epochs": (LEADER, "leader-epoch-checkpoint", invalid, ("not_known", "refused", "not_known")),
    "state": (LEADER, "quorum-state", unreadable, ("not_known", "refused", "not_known")),
    "checkpoint": (
        LEADER,
        "00000000000000000325-0000000001.checkpoint",
        incomplete,
        ("not_known", "refused", "not_known"),
    ),
}


@pytest.fixture(scope="module")
def captures(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unread")
    for cluster, (node, file, change, _) in CASES.items():
        copy = copied_quorum(golden / "uncommitted-truncation/after", folder / cluster)
        change(copy / f"node-{node}" / LOG_DIR_NAME / file)
    return folder


@pytest.fixture(scope="module")
def read(spark: Any, captures: Path) -> Path:
    assert spark is not None  # the session that the run finds open
    assert run(captures / "lake", *(captures / cluster for cluster in CASES)) == 1  # rule 0
    return captures / "lake"


@pytest.mark.parametrize("cluster", CASES)
def test_plans_agree(captures: Path, read: Path, cluster: str) -> None:
    """What no plan needs takes away no answer; a voter whose files cannot be read is not counted."""
    for metadata in both_metadata(read, [captures / cluster], cluster):
        verdicts = (
            plan(metadata.quorum, Lose((3,))).judged.verdict.name,
            plan_upgrade(metadata, release_upgrade(LATEST)).verdict,
            plan_broker(metadata, BrokerChange(11, is_removal=False)).verdict,
        )
        assert verdicts == CASES[cluster][-1]
