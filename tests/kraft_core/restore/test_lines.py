"""Several histories: one is restored only if it is named, what is given up is named, too."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.side_file_texts import quorum_state_text
from kraft_core.image.change import Change
from kraft_core.image.image import Image
from kraft_core.image.tables import PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.messages.control import LEADER_CHANGE
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.restore.checkpoint import UnwritableError
from kraft_core.restore.choice import COMMITTED_RECORDS, OTHER_LINE, OTHER_TAILS, UNSEEN_RECORDS
from kraft_core.restore.directories import write_restoration
from kraft_core.restore.ends_alike import check_line
from kraft_core.restore.horizon import EPOCH_MARGIN, OFFSET_MARGIN
from kraft_core.restore.later import SETTINGS_RETURN, TOPICS_RETURN, TOPICS_UNKNOWN
from kraft_core.restore.replay import Beginning, Cut, ReplayedLog, replayed
from kraft_core.restore.restoration import BROKERS_DELETE, CapturedLog, Restored
from kraft_core.restore.unled import unled
from tests.kraft_core.restore.planned import VOTER, all_stated, copied, golden, losses, planned


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """The stale voter set: nodes 1 and 3 of one history, 2, 4 and 5 of the other (docs/stale-split.md)."""
    for moment in ("stale-split/two-of-five", "stale-split/three-of-five"):
        copied(moment, tmp_path / moment)
    return tmp_path


def _lines(split: Path) -> list[tuple[int, int]]:
    """As the refusal lists them, the best claim first."""
    listed = planned(split, all_stated(split)).refusals[-1].partition("(--line): ")[2]
    ends = [word.partition(" ")[0] for word in listed.replace("), ", ")|").split("|")]
    return [(int(epoch), int(end)) for epoch, _, end in (each.partition("@") for each in ends)]


def test_a_history_must_be_named(split: Path) -> None:
    plan = planned(split, all_stated(split))
    assert (plan.verdict, plan.made) == ("REFUSED", None)
    assert plan.refusals[-1].startswith("Choose the history to restore by the end of its log (--line): 5@")
    assert len(_lines(split)) == 2


@pytest.mark.parametrize("nth", [0, 1])
def test_the_named_one_is_restored_above_both(split: Path, nth: int) -> None:
    lines = _lines(split)
    plan = planned(split, all_stated(split, line=lines[nth]))
    assert (plan.verdict, plan.refusals) == ("LOSES", ())
    assert OTHER_LINE in losses(plan)
    assert "Rule 4 is broken" in next(loss.sentence for loss in plan.losses if loss.name == OTHER_LINE)
    made = plan.made
    assert made is not None
    assert (made.source_epoch, made.source_end) == lines[nth]
    assert made.horizon.new_epoch >= max(lines)[0] + EPOCH_MARGIN
    assert made.horizon.new_end == max(end for _, end in lines) + OFFSET_MARGIN


def test_running_brokers_may_know_the_other_one(split: Path) -> None:
    asked = replace(all_stated(split, line=_lines(split)[0]), brokers_stopped=False)
    assert planned(split, asked).refusals == (BROKERS_DELETE,)


def test_a_line_that_nobody_captured_is_refused(split: Path) -> None:
    refusal = planned(split, all_stated(split, line=(5, 77))).refusals[-1]
    assert refusal.startswith("No captured log of this history ends at 5@77; there are ")


def test_a_line_does_not_lift_what_is_no_contradiction(split: Path) -> None:
    """Damage is refused all the same, and a voter that was not captured and may come back."""
    asked = all_stated(split, line=_lines(split)[0])
    log = split / "stale-split/three-of-five/node-2/__cluster_metadata-0"
    segment = min(log.glob("*.log"))
    content = segment.read_bytes()
    segment.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
    assert "damaged" in " ".join(planned(split, asked).refusals)
    segment.write_bytes(content)
    shutil.rmtree(split / "stale-split/three-of-five/node-4")
    assert planned(split, all_stated(split, line=asked.line)).verdict == "LOSES"
    assert "(--gone 4)" in " ".join(planned(split, asked).refusals)


def test_two_histories_that_end_alike_cannot_be_told_apart() -> None:
    """Nothing is guessed where the named end is that of two logs with different metadata."""
    made = golden("uncommitted-truncation/after").made
    assert made is not None
    log = replayed(made.directory)
    other = replace(log, image=log.image.copy())
    other.image.tables.put(Change(TOPICS, ("t",), None))
    one = CapturedLog(made.source, made.directory, log)
    check_line(one, [one, replace(one, log=other)], (3, 507))
    other.image.tables.put(Change(TOPICS, ("t",), Topic("t", "orders")))
    with pytest.raises(UnwritableError, match="logs of two histories end at 3@507"):
        check_line(one, [one, replace(one, log=other)], (3, 507))
    with pytest.raises(UnwritableError, match="end at 3@507 with other topics"):
        check_line(one, [one, replace(one, log=other)], None)


def test_two_lives_one_of_which_is_named(tmp_path: Path) -> None:
    """A cluster id that two quorums had: the other's offsets and epochs count, its topics are given up."""
    copied("uncommitted-truncation/after", tmp_path / "one")
    copied("disk-failure/before-wipe", tmp_path / "other")
    stated = (tmp_path / "one/node-1/meta.properties").read_text()
    cluster = next(line for line in stated.splitlines() if line.startswith("cluster.id="))
    for meta in tmp_path.glob("other/*/meta.properties"):
        lines = meta.read_text().splitlines()
        meta.write_text("\n".join(cluster if line.startswith("cluster.id=") else line for line in lines))
    refused = planned(tmp_path, all_stated(tmp_path))
    assert refused.made is None
    assert "3@507 (node 1, 2, 3, 4)" in refused.refusals[-1]
    plan = planned(tmp_path, all_stated(tmp_path, line=(3, 507)))
    assert (plan.verdict, plan.refusals) == ("LOSES", ())
    assert OTHER_LINE in losses(plan)
    assert plan.made is not None
    assert plan.made.source_end == 507


def test_what_was_committed_and_is_given_up_is_named(tmp_path: Path) -> None:
    """Of one history an older end is chosen: nodes 2 and 3 prove what node 1 lacks."""
    copied("uncommitted-truncation/before", tmp_path / "before", 1)
    copied("uncommitted-truncation/after", tmp_path / "after", 2, 3)
    plan = planned(tmp_path, all_stated(tmp_path, line=(1, 369)))
    assert plan.verdict == "LOSES"
    named = [UNSEEN_RECORDS, OTHER_TAILS, COMMITTED_RECORDS, OTHER_LINE, TOPICS_UNKNOWN, SETTINGS_RETURN]
    assert losses(plan) == named
    assert "352 to 506 of epoch 3 (committed)" in plan.losses[2].sentence
    assert planned(tmp_path, all_stated(tmp_path, line=(3, 507))).verdict == "SAFE"


def _led(made: Restored, log_dir: Path) -> None:
    """The first segment of the restored quorum: its leader's election, and a record; and its quorum-state."""
    end, epoch, time = made.horizon.new_end, made.horizon.new_epoch + 1, made.restored_time
    voters = [{"voterId": voter.id} for voter in made.voters]
    elected = {"version": 0, "leaderId": voters[0]["voterId"], "voters": voters, "grantingVoters": voters}
    key = (0).to_bytes(2, "big") + LEADER_CHANGE.to_bytes(2, "big")
    change = RawRecord(end, time, key, write_control_value(LEADER_CHANGE, elected))
    message = next(each for each in METADATA_RECORDS if each.type_name == "NO_OP_RECORD")
    idle = RawRecord(end + 1, time, None, write_metadata_value(message, 0, {}))
    batches = [write_batch(end, epoch, [change], is_control=True), write_batch(end + 1, epoch, [idle])]
    (log_dir / f"{end:020}.log").write_bytes(b"".join(batches))
    ids = None if made.kraft_version else tuple(voter.id for voter in made.voters)
    (log_dir / "quorum-state").write_text(quorum_state_text(made.voters[0].id, epoch, -1, None, ids))


@pytest.mark.parametrize("old", [(1, 2, 3), (1, 2), (2,)])
def test_an_old_quorum_that_went_on_beside_a_restored_one(tmp_path: Path, old: tuple[int, ...]) -> None:
    """What it committed is below the restored log's first offset, and not in it: nothing contradicts, yet."""
    before = copied("uncommitted-truncation/before", tmp_path / "before")
    restored = planned(before, all_stated(before))
    assert restored.made is not None
    captures = copied("uncommitted-truncation/after", tmp_path / "captures", *old)
    (home,) = write_restoration(restored.made, restored.cluster_id, b"", captures / "new")
    _led(restored.made, home / "__cluster_metadata-0")
    asked = all_stated(captures)
    refused = planned(captures, asked)
    assert refused.verdict == "REFUSED"
    assert "that no captured log reaches" in refused.refusals[0]
    end = restored.made.horizon.new_end + 2
    assert (
        f"{restored.made.horizon.new_epoch + 1}@{end} (node {VOTER.id}), 3@507 (node" in refused.refusals[1]
    )
    for line in ((restored.made.horizon.new_epoch + 1, end), (3, 507)):
        plan = planned(captures, replace(asked, line=line))
        assert plan.refusals == ()
        assert OTHER_LINE in losses(plan)
    alone = planned(captures / "new", asked)
    assert (alone.verdict, alone.refusals) == ("SAFE", ())


STATIC = "static-upgrade/at-3.9.2"


def _static_behind(folder: Path) -> Path:
    """Node 3 of a static quorum, as of offset 426; the others went on to 527 and 529."""
    captures = copied(STATIC, folder, 3)
    log_dir = captures / "node-3/__cluster_metadata-0"
    (log_dir / "00000000000000000426.log").unlink()
    for named_after_an_end in log_dir.glob("*.snapshot"):
        named_after_an_end.unlink()
    return captures


@pytest.mark.parametrize(("old", "version"), [((1, 2, 3), None), ((1, 2), 1), ((2,), None)])
def test_a_static_quorum_that_went_on_beside_a_restored_one(
    tmp_path: Path, old: tuple[int, ...], version: int | None
) -> None:
    """No log names static voters, and the restored log lies less than the margin above where they ended."""
    behind = _static_behind(tmp_path / "behind")
    restored = planned(behind, all_stated(behind, kraft_version=version))
    assert restored.made is not None
    assert restored.made.source_end == 426
    captures = copied(STATIC, tmp_path / "captures", *old)
    (home,) = write_restoration(restored.made, restored.cluster_id, b"", captures / "new")
    _led(restored.made, home / "__cluster_metadata-0")
    refused = planned(captures, all_stated(captures))
    assert refused.verdict == "REFUSED"
    assert "that no captured log reaches" in refused.refusals[0]
    assert "8@527 (node 2)" in refused.refusals[-1]
    alone = planned(captures / "new", all_stated(captures, listener="CONTROLLER"))
    assert (alone.verdict, alone.refusals) == ("SAFE", ())


def _log(epoch: int, end: int, begins: tuple[int, int] | None = None) -> ReplayedLog:
    beginning = None if begins is None else Beginning(begins[1], begins[0], None)
    return ReplayedLog(Image(), end_offset=end, leader_epoch=epoch, beginning=beginning)


def test_a_checkpoint_of_the_same_quorum_is_no_other_history() -> None:
    """Epochs tell: restorations jump; what lies between is captured, or nothing contradicts."""
    late = _log(6, 900, begins=(5, 700))
    for beside in (_log(4, 300), _log(5, 800), _log(6, 900), _log(1, 0)):
        assert list(unled([("1", late), ("2", beside)])) == []
    restored = _log(1_000_009, 10_000_600, begins=(1_000_008, 10_000_426))
    for beside in (_log(8, 426), _log(9, 5_000), _log(40, 10_000_500), _log(40, 20_000_000)):
        (refused,) = unled([("1", restored), ("2", beside)])
        assert "begins with a checkpoint at 1000008@10000426" in refused
    assert (
        list(unled([("1", restored), ("2", _log(1_000_010, 10_000_700, begins=(1_000_009, 10_000_650)))]))
        == []
    )


def test_an_earlier_moment_is_undone_by_the_end_of_the_old_log(tmp_path: Path) -> None:
    """Beside captures of the new quorum the old log is named: its metadata is written above both."""
    captures = copied("uncommitted-truncation/after", tmp_path / "captures")
    earlier = planned(captures, all_stated(captures, at=Cut(251)))
    assert earlier.made is not None
    write_restoration(earlier.made, earlier.cluster_id, b"", captures / "new")
    plan = planned(captures, all_stated(captures, line=(3, 507)))
    assert (plan.verdict, plan.refusals) == ("LOSES", ())
    assert [*losses(plan)[1:4]] == [COMMITTED_RECORDS, OTHER_LINE, TOPICS_RETURN]
    assert plan.made is not None
    assert (plan.made.source_epoch, plan.made.source_end) == (3, 507)
    first, again = earlier.made.horizon, plan.made.horizon
    assert again.new_end == first.new_end + OFFSET_MARGIN
    assert again.new_epoch == first.new_epoch + EPOCH_MARGIN
    assert again.new_producer_id > first.new_producer_id
    for key, partition in earlier.made.image.tables.items(PARTITIONS):
        later = plan.made.image.tables.get(PARTITIONS, key)
        assert later is not None
        assert later.leader_epoch > partition.leader_epoch
        assert later.partition_epoch > partition.partition_epoch


def test_what_the_new_quorum_began_with_is_compared_too(tmp_path: Path) -> None:
    """It went on, so that its log has a tail: yet all that it holds otherwise than the old log is named."""
    before = copied("uncommitted-truncation/before", tmp_path / "before")
    restored = planned(before, all_stated(before))
    assert restored.made is not None
    captures = copied("uncommitted-truncation/after", tmp_path / "captures")
    (home,) = write_restoration(restored.made, restored.cluster_id, b"", captures / "new")
    asked = all_stated(captures, line=(3, 507))
    began = planned(captures, asked).made
    _led(restored.made, home / LOG_DIR_NAME)
    plan = planned(captures, asked)
    assert OTHER_TAILS in losses(plan)
    assert began is not None
    assert plan.made is not None
    assert began.later
    assert plan.made.later == began.later
    assert plan.made.stray == began.stray
