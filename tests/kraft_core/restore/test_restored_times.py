"""When captures of a restored quorum say that its edits took effect: never before the restore was planned."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.epochs import epochs
from kraft_core.evidence.set_history import set_nodes
from kraft_core.evidence.voter_sets import voter_sets
from kraft_core.format.controller_dir import find_controller_dirs, read_controller_dir
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.snapshot import read_snapshot
from kraft_core.image.history import History, ReplayGap
from kraft_core.image.tables import BROKERS, PARTITIONS
from kraft_core.restore.directories import write_restoration
from kraft_core.restore.replay import Cut, replayed
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import Restored
from tests.kraft_core.evidence.golden import GOLDEN
from tests.kraft_core.restore.planned import MADE_AT, STOPPED, golden

WHOLE = "uncommitted-truncation/after"


def _made(asked: RestoreRequest = STOPPED) -> Restored:
    made = golden(WHOLE, asked).made
    assert made is not None
    return made


def _header_time(made: Restored) -> int | None:
    return read_snapshot(made.checkpoint).last_contained_log_timestamp


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The old quorum's captures, and the directory that a restore of them wrote."""
    folder = tmp_path_factory.mktemp("restored")
    shutil.copytree(GOLDEN / WHOLE, folder / "old")
    plan = golden(WHOLE)
    assert plan.made is not None
    write_restoration(plan.made, plan.cluster_id, b"", folder / "new")
    return folder


def test_the_checkpoint_has_the_time_of_the_plan() -> None:
    """In its batches, and as that of the last record that it contains, whatever moment is restored."""
    for asked in (STOPPED, replace(STOPPED, at=Cut(251), brokers_stopped=True)):
        made = _made(asked)
        assert made.restored_time < MADE_AT
        header = read_snapshot(made.checkpoint).header
        assert header is not None
        assert (_header_time(made), header.timestamp) == (MADE_AT, MADE_AT)


def test_a_clock_that_is_behind_the_old_leaders_does_not_date_it_before_their_records() -> None:
    newest = _made().restored_time
    made = _made(replace(STOPPED, made_at=newest - 60_000))
    assert _header_time(made) == newest
    # An older moment was restored after the newest record, too.
    earlier = replace(STOPPED, made_at=newest - 60_000, at=Cut(251), brokers_stopped=True)
    assert _header_time(_made(earlier)) == newest


def test_voters_and_epoch_are_dated_to_the_restore(captures: Path) -> None:
    (life,) = collect_lives(find_controller_dirs([captures]).directories)
    known = conclude(life.facts)
    *_, old, new = voter_sets(known, set_nodes(known))
    assert (old.voter_ids, new.voter_ids) == ((1, 2, 3), (90,))
    assert (old.in_force_to, old.in_force_to_exact) == (MADE_AT, False)
    assert (new.in_force_from, new.in_force_from_exact) == (MADE_AT, False)
    *_, last, restored = epochs(known)
    assert (last.leader_epoch, restored.leader_epoch) == (3, 1_000_003)
    assert restored.known_from == MADE_AT
    assert last.known_to is not None
    assert last.known_to < MADE_AT
    bound = max(known.lower_bounds, key=lambda each: each.bound)
    assert (bound.bound, bound.as_of) == (10_000_507, MADE_AT)


def test_the_metadata_that_the_restore_changed_ends_between_the_old_log_and_the_restore(
    captures: Path,
) -> None:
    old = replayed(read_controller_dir(captures / "old/node-1" / LOG_DIR_NAME))
    new = replayed(read_controller_dir(captures / "new/node-90" / LOG_DIR_NAME)).image
    history = History()
    history.load(old.image)
    history.load(new, ReplayGap(old.end_offset, old.image.timestamp))
    unfenced, fenced = history.versions(BROKERS)
    assert (unfenced.value.fenced, fenced.value.fenced) == (False, True)
    bounds = (old.image.timestamp, MADE_AT)
    assert (unfenced.earliest_to_at, unfenced.valid_to_at) == bounds
    assert (fenced.earliest_from_at, fenced.valid_from_at) == bounds
    led = [version for version in history.versions(PARTITIONS) if version.value.leader == -1]
    assert led
    assert {(each.earliest_from_at, each.valid_from_at) for each in led} == {bounds}
