"""Evidence taken away piece by piece, with every statement made: what is SAFE loses nothing by it."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from kraft_core.image.differences import differences
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import Restoration
from tests.kraft_core.restore.planned import all_stated, copied, planned

LOG = "__cluster_metadata-0"
RUNS = 4
MOMENTS = (
    ("uncommitted-truncation/before", "uncommitted-truncation/after"),
    ("stale-split/two-of-five", "stale-split/three-of-five"),
    ("stale-split/changed", "stale-split/after"),
)


def _stated(captures: Path) -> RestoreRequest:
    return all_stated(captures, listener="CONTROLLER")


def _take_away(source: random.Random, captures: Path) -> None:
    """A directory, a file, or the end of a file."""
    nodes = sorted(captures.glob("*/node-*"))
    chosen = source.choice(nodes)
    way = source.choice(("node", "file", "end"))
    if way == "node" and len(nodes) > 1:
        shutil.rmtree(chosen)
        return
    files = sorted(path for path in (chosen / LOG).iterdir() if path.is_file())
    if not files:
        return
    file = source.choice(files)
    if way == "end":
        content = file.read_bytes()
        file.write_bytes(content[: source.randrange(len(content) + 1)])
    else:
        file.unlink()


def _check(plan: Restoration, whole: Restoration, captures: Path, seed: str) -> None:
    """SAFE only with all that the whole evidence proved, or of the one history that a majority holds.

    No capture is left then of the other, which a stale voter set let a minority write.
    """
    if plan.verdict != "SAFE":
        return
    assert plan.made is not None
    if whole.made is None:
        left = {int(path.name.removeprefix("node-")) for path in captures.glob("*/node-*")}
        assert left >= {2, 4, 5}, seed
        assert (plan.made.source_epoch, plan.made.source_end) == (5, 5311), seed
        return
    assert whole.verdict == "SAFE", seed
    assert plan.made.source_end >= whole.made.restored_end, seed
    assert not list(differences(plan.made.image, whole.made.image)), seed


def _both(moments: tuple[str, ...], captures: Path) -> Path:
    for moment in moments:
        copied(moment, captures / moment.replace("/", "-"))
    return captures


@pytest.mark.parametrize("runs", [RUNS, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("moments", MOMENTS, ids=lambda moments: moments[1])
def test_less_evidence_never_makes_safe(tmp_path: Path, moments: tuple[str, ...], runs: int) -> None:
    first = time.time_ns() % 1_000_000_000
    untouched = _both(moments, tmp_path / "untouched")
    whole = planned(untouched, _stated(untouched))
    for seed in range(first, first + runs):
        captures = _both(moments, tmp_path / str(seed))
        source = random.Random(seed)
        for nth in range(4):
            _take_away(source, captures)
            plan = planned(captures, _stated(captures)) if any(captures.glob("*/node-*")) else None
            if plan is not None:
                _check(plan, whole, captures, f"seed {seed}, step {nth}")
        shutil.rmtree(captures)
