"""SAFE only where the captures prove it: evidence is taken away piece by piece, and each refusal is named."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.segment import scan
from kraft_core.image.differences import differences
from kraft_core.restore.choice import AFTER_CAPTURES, OTHER_TAILS, UNSEEN_RECORDS
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import BROKERS_DELETE, Restoration, restoration_of
from tests.kraft_core.evidence.golden import GOLDEN
from tests.kraft_core.restore.planned import STOPPED, all_stated, copied, golden, losses, planned, request

LOG = "__cluster_metadata-0"
# All of voters 1, 2 and 3, and observer 4; the log ends at 507.
WHOLE = "uncommitted-truncation/after"


def _stated(captures: Path) -> RestoreRequest:
    return all_stated(captures, listener="CONTROLLER")


def _refusals(plan: Restoration) -> str:
    assert plan.verdict == "REFUSED"
    assert plan.made is None
    return " ".join(plan.refusals)


def test_all_voters_stopped_is_safe() -> None:
    plan = golden(WHOLE)
    assert (plan.verdict, plan.refusals, plan.losses) == ("SAFE", (), ())
    assert plan.made is not None
    assert (plan.made.source_end, plan.made.source_epoch) == (507, 3)


def test_that_the_controllers_stopped_must_be_stated() -> None:
    assert BROKERS_DELETE in golden(WHOLE, request()).refusals
    plan = golden(WHOLE, request(brokers_stopped=True))
    assert (plan.verdict, losses(plan)) == ("LOSES", [AFTER_CAPTURES])


def test_a_record_newer_than_a_capture_contradicts_the_statement(tmp_path: Path) -> None:
    """Node 1 was captured, and the others went on: {2,3} may have committed what no capture holds."""
    copied("uncommitted-truncation/before", tmp_path / "before", 1)
    copied(WHOLE, tmp_path / "after", 2)
    # Within the clocks' skew of its newest record, and more than that before the others' last.
    stated = {"captured_at": "2026-11-21T09:14:35Z"}
    (tmp_path / "before/node-1/capture.json").write_text(json.dumps(stated))
    assert "stop all brokers" in _refusals(planned(tmp_path, request(gone=frozenset({3}), are_stopped=True)))
    plan = planned(tmp_path, _stated(tmp_path))
    assert (plan.verdict, losses(plan)) == ("LOSES", [AFTER_CAPTURES])
    assert "was captured while a controller still appended" in plan.losses[0].sentence


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_minority_is_never_safe(tmp_path: Path, left: int) -> None:
    captures = copied(WHOLE, tmp_path, left)
    gone = {1, 2, 3} - {left}
    refused = _refusals(planned(captures))
    assert all(f"--gone {node}" in refused for node in gone)
    assert BROKERS_DELETE in planned(captures, request(gone=frozenset(gone), are_stopped=True)).refusals
    plan = planned(captures, _stated(captures))
    assert plan.verdict == "LOSES"
    assert losses(plan) == [UNSEEN_RECORDS]


@pytest.mark.parametrize("stated", [{1}, {2}, {3}, {1, 2}, {2, 3}, {1, 3}])
def test_each_voter_that_may_come_back_must_be_captured_or_stated(tmp_path: Path, stated: set[int]) -> None:
    """From an observer alone: no voter is captured, and one that is not stated to be gone refuses."""
    captures = copied(WHOLE, tmp_path, 4)
    asked = request(gone=frozenset(stated), are_stopped=True, brokers_stopped=True)
    refused = _refusals(planned(captures, asked))
    assert {node for node in (1, 2, 3) if f"(--gone {node})" in refused} == {1, 2, 3} - stated
    assert losses(planned(captures, _stated(captures))) == [UNSEEN_RECORDS]


@pytest.mark.parametrize("faults", [1, pytest.param(5, marks=pytest.mark.long)])
def test_no_damaged_file_makes_less_safe(tmp_path: Path, faults: int) -> None:
    """Each file of each capture removed, shortened or changed: what is still SAFE keeps all metadata.

    faults: how many of these each file has, drawn anew in each run.
    """
    whole = golden(WHOLE).made
    assert whole is not None
    captures = copied(WHOLE, tmp_path / "captures")
    files = [path for path in sorted(captures.rglob("*")) if path.is_file() and ".snapshot" not in path.name]
    assert len(files) > 25
    verdicts: set[str] = set()
    for file in files:
        content = file.read_bytes()
        half, last = len(content) // 2, len(content) - 1
        flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
        for changed in random.sample((None, content[:half], content[:last], flipped, b""), faults):
            if changed is None:
                file.unlink()
            else:
                file.write_bytes(changed)
            plan = planned(captures) if file.name != "meta.properties" or changed else None
            file.write_bytes(content)
            if plan is None:
                continue
            verdicts.add(plan.verdict)
            if plan.verdict == "SAFE":
                assert plan.made is not None
                assert plan.made.source_end == whole.source_end, file
                assert not list(differences(whole.image, plan.made.image)), file
    assert {"SAFE", "REFUSED"} <= verdicts


def test_two_histories_are_refused(tmp_path: Path) -> None:
    """The stale voter set: two leaders of two histories (docs/stale-split.md)."""
    for moment in ("stale-split/two-of-five", "stale-split/three-of-five"):
        copied(moment, tmp_path / moment)
    refused = _refusals(planned(tmp_path, _stated(tmp_path)))
    assert "is broken" in refused or "contradict each other" in refused


def test_two_lives_of_a_cluster_id_are_refused(tmp_path: Path) -> None:
    copied(WHOLE, tmp_path / "one")
    copied("disk-failure/before-wipe", tmp_path / "other")
    stated = (tmp_path / "one/node-1/meta.properties").read_text()
    cluster = next(line for line in stated.splitlines() if line.startswith("cluster.id="))
    for meta in tmp_path.glob("other/*/meta.properties"):
        lines = meta.read_text().splitlines()
        meta.write_text("\n".join(cluster if line.startswith("cluster.id=") else line for line in lines))
    assert "several histories" in _refusals(planned(tmp_path))


def test_a_source_that_lacks_what_was_committed_is_refused(tmp_path: Path) -> None:
    """A newer epoch that has less than was proven committed: one history replaced the other."""
    captures = copied("stale-split/after", tmp_path)
    assert planned(captures).verdict in ("SAFE", "REFUSED")
    copied("stale-split/two-of-five", tmp_path / "more")
    assert planned(captures, _stated(captures)).verdict == "REFUSED"


def test_records_of_other_captures_that_the_source_lacks_are_named(tmp_path: Path) -> None:
    """Observer 4 holds what epoch 3 replaced; of the voters only 2 is left, at the election of epoch 3."""
    copied("uncommitted-truncation/before", tmp_path / "before", 4)
    copied(WHOLE, tmp_path / "after", 2)
    log = tmp_path / "after/node-2" / LOG
    (log / "00000000000000000408.log").unlink()
    segment = log / "00000000000000000000.log"
    content = segment.read_bytes()
    batches = (item for item in scan(content, next_offset=0) if isinstance(item, BatchHeader))
    elected = next(batch for batch in batches if batch.leader_epoch == 3)
    segment.write_bytes(content[: elected.end])
    plan = planned(tmp_path, _stated(tmp_path))
    assert (plan.verdict, losses(plan)) == ("LOSES", [UNSEEN_RECORDS, OTHER_TAILS])
    assert "352 to 368 of epoch 1 (undecided)" in plan.losses[1].sentence


@pytest.mark.parametrize("key", ["cluster.id", "node.id"])
def test_a_directory_that_does_not_say_whose_it_is_refuses(tmp_path: Path, key: str) -> None:
    captures = copied(WHOLE, tmp_path)
    meta = captures / "node-1/meta.properties"
    meta.write_text("\n".join(li for li in meta.read_text().splitlines() if not li.startswith(key)))
    plan = planned(captures)  # the caller names what has no identity; without node 1 two voters are enough
    assert plan.made is None or plan.made.source_end == 507


def test_unread_files_refuse() -> None:
    (cluster,) = collect_lives(find_controller_dirs([GOLDEN / WHOLE]).directories)
    assert "a folder: Permission denied" in _refusals(
        restoration_of(cluster, STOPPED, ["a folder: Permission denied"])
    )


def test_a_log_behind_its_own_files_is_named(tmp_path: Path) -> None:
    """A checkpoint alone, as one copies in a hurry: it is a source, and never safe."""
    captures = copied(WHOLE, tmp_path, 1)
    for segment in (captures / "node-1" / LOG).glob("*.log"):
        segment.unlink()
    plan = planned(captures, _stated(captures))
    if plan.verdict == "REFUSED":
        assert "Rule 46" in " ".join(plan.refusals) or "leader-epoch-checkpoint" in " ".join(plan.refusals)
    else:
        assert plan.verdict == "LOSES"
        assert plan.made is not None
        assert plan.made.source_end == 321


def test_a_gap_refuses(tmp_path: Path) -> None:
    captures = copied(WHOLE, tmp_path, 1)
    (captures / "node-1" / LOG / "00000000000000000321-0000000001.checkpoint").unlink()
    (captures / "node-1" / LOG / "00000000000000000000.log").unlink()
    assert "no checkpoint covers what is below" in _refusals(planned(captures, _stated(captures)))


def test_what_was_never_tried_is_refused() -> None:
    assert "metadata.version 33 is not between" in _refusals(golden("v4.4.0-mini"))
    assert "--listener NAME" in _refusals(golden("born-on-3.4"))
    asked = request(are_stopped=True, lost_brokers=frozenset({999}))
    assert "no broker 999 is registered" in _refusals(golden(WHOLE, asked))


def test_a_capture_time_in_the_past_does_not_hide_a_newer_one(tmp_path: Path) -> None:
    """Captures before the truncation beside newer ones: the source is the newer history."""
    copied("uncommitted-truncation/before", tmp_path / "before")
    copied(WHOLE, tmp_path / "after")
    for path in (tmp_path / "after").glob("*/capture.json"):
        path.write_text(json.dumps({"captured_at": "2020-01-01T00:00:00Z"}))
    plan = planned(tmp_path)
    assert plan.made is None or plan.made.source_end == 507
    shutil.rmtree(tmp_path / "after")
    assert planned(tmp_path, _stated(tmp_path)).verdict in ("SAFE", "LOSES")


@pytest.mark.parametrize("node", [1, 2, 3])
def test_a_quorum_state_older_than_the_log_is_a_loss(tmp_path: Path, node: int) -> None:
    """Copied before the log of the source, or of a voter that is needed beside it: another log shows it."""
    captures = copied(WHOLE, tmp_path, node, 4)
    state = captures / f"node-{node}" / LOG / "quorum-state"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"leaderEpoch": 1}))
    gone = frozenset({1, 2, 3} - {node})
    plan = planned(captures, request(gone=gone, are_stopped=True, brokers_stopped=True))
    assert (plan.verdict, losses(plan)) == ("LOSES", [UNSEEN_RECORDS])
    assert plan.made is not None
    assert plan.made.source_end == 507


@pytest.mark.parametrize("node", [1, 2, 3])
def test_the_log_of_a_voter_that_remains_is_preferred_to_an_equal_one(tmp_path: Path, node: int) -> None:
    """The others are a majority, whatever the one that is gone stored after its capture."""
    captures = copied(WHOLE, tmp_path, 1, 2, 3)
    plan = planned(captures, request(gone=frozenset({node}), are_stopped=True, brokers_stopped=True))
    assert (plan.verdict, losses(plan)) == ("SAFE", [])
    both = planned(captures, request(gone=frozenset({node, 3 if node < 3 else 1}), are_stopped=True))
    assert UNSEEN_RECORDS in losses(both)


def test_nobody_is_told_to_capture_a_voter_whose_disk_is_gone(tmp_path: Path) -> None:
    captures = copied(WHOLE, tmp_path, 1)
    plan = planned(captures, request(gone=frozenset({2, 3}), are_stopped=True, brokers_stopped=True))
    (loss,) = plan.losses
    assert loss.name == UNSEEN_RECORDS
    assert loss.sentence.count(" is gone: what it stored is lost.") == 2
    assert "capture it" not in loss.sentence


def test_the_capture_of_a_voter_whose_disk_is_gone_does_not_count(tmp_path: Path) -> None:
    """A backup of it: what it stored afterwards, and committed with another that is gone, is not known."""
    captures = copied(WHOLE, tmp_path, 1, 2)
    whole = request(gone=frozenset({3}), are_stopped=True, brokers_stopped=True)
    assert planned(captures, whole).verdict == "SAFE"
    for gone in ({2, 3}, {1, 3}, {1, 2, 3}):
        plan = planned(captures, request(gone=frozenset(gone), are_stopped=True, brokers_stopped=True))
        assert (plan.verdict, losses(plan)) == ("LOSES", [UNSEEN_RECORDS])
        assert "omit it from --gone" in plan.losses[0].sentence
        assert plan.made is not None
        assert plan.made.source_end == 507
