"""Lives of captured directories that are read without a lake."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from jobs.cli import main
from kraft_core.evidence.collect import collect, collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import derive
from kraft_core.evidence.elsewhere import captured_elsewhere, that_may_be_ours
from kraft_core.evidence.facts import Capture, CapturedElsewhere, EpochRange
from kraft_core.evidence.log_ends import LogEnds
from kraft_core.findings.judge import judge
from kraft_core.findings.observed_quorum import observed_voter_sets
from kraft_core.findings.recovery import recovery_advice
from kraft_core.format.batch import BatchHeader
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.segment import scan
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.evidence.narrated import Story

# Two quorums by real Kafka, the second the older one.
STRANGERS = ("v4.4.0-mini", "election-storm")


@pytest.fixture(scope="module")
def captures(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strangers")
    for name in STRANGERS:
        for found in sorted(golden.glob(f"{name}/node-*")):
            copy = folder / name / found.name
            shutil.copytree(found, copy)
            meta = copy / "meta.properties"
            text = re.sub("(directory|cluster).id=.*", "", meta.read_text())
            meta.write_text(f"{text}\ncluster.id=same\n")
    return folder


def test_strangers_are_two_clusters_the_newest_last(captures: Path) -> None:
    older, newer = collect_lives(find_controller_dirs([captures]).directories)
    assert {older.kafka_cluster_id, newer.kafka_cluster_id} == {"same"}
    assert [sorted({c.node_id for c in each.facts.captures}) for each in (older, newer)] == [
        [1, 2, 3],
        [1, 2],
    ]
    assert all(each.facts.cluster_id.startswith("same/") for each in (older, newer))
    assert [len(each.directories) for each in (older, newer)] == [3, 2]
    alone = [collect_lives(find_controller_dirs([captures / name]).directories) for name in STRANGERS]
    for (apart,), together in zip(alone, (newer, older), strict=True):
        assert apart.facts.cluster_id == "same"
        assert apart.facts.captures == together.facts.captures
        assert apart.facts.control_records == together.facts.control_records
        assert apart.facts.snapshots == together.facts.snapshots


def test_plan_answers_for_the_newest_and_says_so(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older, newer = (c.facts.cluster_id for c in collect_lives(find_controller_dirs([captures]).directories))
    main(["plan", "lose", "1", "--captures", str(captures)])
    out, err = capsys.readouterr()
    assert newer in out
    assert older not in out
    assert f"cluster id same has 2 histories: this answer is about {newer}, which is the newest" in err
    main(["plan", "lose", "1", "--captures", str(captures), "--cluster", older])
    assert older in capsys.readouterr().out


# --- what other lives say against a verdict

HEALTHY, OLDER = "disk-failure/before-wipe", "uncommitted-removal/before"
ID = "cdUcB7OYQSW2BEWmIRzmkg"
# Before it was captured, and before it was formed.
LATER, EARLIER, BEFORE = (f"2026-11-21T09:{time}Z" for time in ("21:30", "20:55", "17:00"))


def copied(golden: Path, name: str, folder: Path) -> Path:
    """Captures of a real quorum under the id ID."""
    for found in sorted(golden.glob(f"{name}/node-*")):
        shutil.copytree(found, folder / found.name)
        meta = folder / found.name / "meta.properties"
        meta.write_text(re.sub("cluster.id=.*", f"cluster.id={ID}", meta.read_text()))
    return folder


def wiped(folder: Path, captured_at: str | None, directory_id: str | None = None) -> Path:
    """A capture of node 2 on a disk that was formatted anew."""
    (folder / "__cluster_metadata-0").mkdir(parents=True)
    directory = f"directory.id={directory_id}\n" if directory_id else ""
    (folder / "meta.properties").write_text(f"version=1\ncluster.id={ID}\nnode.id=2\n{directory}")
    if captured_at is not None:
        (folder / "capture.json").write_text(f'{{"captured_at": "{captured_at}"}}')
    return folder


def lose(capsys: pytest.CaptureFixture[str], *captures: Path, flags: tuple[str, ...] = ()) -> tuple[int, str]:
    """kraftlake plan lose 3: the others must be in sync. The exit code, and what it prints."""
    code = main(["plan", "lose", "3", "--captures", *map(str, captures), "--now", LATER, *flags])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("captured_at", [LATER, EARLIER, None])
@pytest.mark.parametrize("directory_id", ["DGIuhXwvTlORJ5DVcVUVEg", None])
def test_a_capture_of_a_node_in_another_life_voids_safe(
    golden: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    captured_at: str | None,
    directory_id: str | None,
) -> None:
    healthy, older = copied(golden, HEALTHY, tmp_path / "h"), copied(golden, OLDER, tmp_path / "s")
    assert lose(capsys, healthy)[0] == 0
    assert lose(capsys, healthy, older)[0] == 0
    disk = wiped(tmp_path / "w" / "node-2", captured_at, directory_id)
    # In one life, an older capture of an empty log is that of a node that has caught up since.
    assert lose(capsys, healthy, disk)[0] == (0 if captured_at == EARLIER else 1)
    code, out = lose(capsys, healthy, older, disk)
    assert code == 1
    assert f"node 2 was captured in {ID}/" in out
    flags = ("--cluster-id", f"{tmp_path / 'w'}=other", "--cluster", ID)
    assert lose(capsys, healthy, older, disk, flags=flags)[0] == 0


def test_a_stranger_whose_captures_are_not_older_voids_safe(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy, older = copied(golden, HEALTHY, tmp_path / "h"), copied(golden, OLDER, tmp_path / "s")
    assert lose(capsys, healthy, older)[0] == 0
    (older / "node-1" / "capture.json").unlink()
    code, out = lose(capsys, healthy, older)
    assert code == 1
    assert "or at an unknown time" in out


def test_a_disk_that_was_formatted_before_the_quorum_began_says_nothing_about_it(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy, older = copied(golden, HEALTHY, tmp_path / "h"), copied(golden, OLDER, tmp_path / "s")
    assert lose(capsys, healthy, older, wiped(tmp_path / "w" / "node-2", BEFORE))[0] == 0


def test_when_a_life_began_is_known_from_offset_0_alone() -> None:
    """And from epoch 1: a wiped voter may have elected one whose log was empty, in a later epoch."""

    def capture(first_offset: int, leader_epoch: int = 1) -> Capture:
        epoch_range = EpochRange(leader_epoch, first_offset, 20, "", 100_000, 200_000)
        return Capture("c", 1, ZERO_UUID, 0, first_offset, 20, (epoch_range,))

    older = CapturedElsewhere("id/other", 1, ZERO_UUID, 39_999)
    assert that_may_be_ours([older], [capture(0), capture(10)]) == ()
    assert that_may_be_ours([older], [capture(10)]) == (older,)
    assert that_may_be_ours([older], [capture(0, leader_epoch=3)]) == (older,)
    assert that_may_be_ours([older], []) == (older,)


@pytest.mark.parametrize(("until", "is_safe"), [(None, False), (-60_000, False), (-60_001, True)])
def test_recovery_is_not_safe_beside_a_node_in_another_life(
    golden: Path, until: int | None, is_safe: bool
) -> None:
    (facts,) = collect(find_controller_dirs([golden / HEALTHY]).directories)
    known = conclude(facts)
    assert recovery_advice(known, judge(known)).is_safe
    born = min(capture.epoch_ranges[0].first_appended_at for capture in facts.captures)
    elsewhere = CapturedElsewhere(f"{ID}/other", 7, ZERO_UUID, None if until is None else born + until)
    known = conclude(replace(facts, elsewhere=(elsewhere,)))
    advice = recovery_advice(known, judge(known))
    assert advice.is_safe == is_safe
    assert (f"Node 7 was captured in {ID}/other" in advice.why) == (not is_safe)


def above_its_elections(node: Path) -> None:
    """The captured log begins at 200, above both LEADER_CHANGEs, without any checkpoint."""
    log_dir = node / "__cluster_metadata-0"
    for checkpoint in log_dir.glob("*.checkpoint"):
        checkpoint.unlink()
    segments = sorted(log_dir.glob("*.log"))
    log = b"".join(segment.read_bytes() for segment in segments)
    for segment in segments:
        segment.unlink()
    first = next(item for item in scan(log) if isinstance(item, BatchHeader) and item.base_offset >= 200)
    (log_dir / f"{first.base_offset:020}.log").write_bytes(log[first.position :])


def test_a_life_without_an_election_in_sight_takes_no_voters_from_another(
    golden: Path, tmp_path: Path
) -> None:
    """A static quorum, whose quorum-states name its voters, beside a dynamic one with the same node ids."""
    for name in ("born-on-3.4", "election-storm"):
        for found in golden.glob(f"{name}/node-*"):
            copy = tmp_path / name / found.name
            shutil.copytree(found, copy)
            meta = copy / "meta.properties"
            meta.write_text(re.sub("cluster.id=.*", "cluster.id=same", meta.read_text()))
            if name == "born-on-3.4":
                above_its_elections(copy)
    lives = collect_lives(find_controller_dirs([tmp_path]).directories)
    dynamic, static = (conclude(life.facts) for life in lives)
    assert [row.source for row in derive(dynamic.facts).voter_sets] == ["bootstrap", "record"]
    assert not derive(static.facts).voter_sets
    (reported,) = observed_voter_sets(static, (), ())
    assert (reported.source, reported.commit_status) == ("quorum-state", "undecided")
    assert {row.commit_status for row in derive(static.facts).log_ranges} == {"undecided"}
    assert not derive(static.facts).high_watermarks
    advice = recovery_advice(static, judge(static))
    assert not advice.is_safe
    assert "names the static voters {1,2,3} of epoch 6, which proves no majority" in advice.why


def test_a_voter_by_id_alone_proves_nothing_if_another_life_holds_its_node() -> None:
    """As beside a capture of another directory in the same life."""

    def shown(*nodes: int, others: tuple[int, ...] = ()) -> tuple[str, str, float]:
        """The status of what node 2 stored, and of what it lacked; the upper bound of the watermark."""
        story = Story().leader(1, 0, 1, "1 2 3")
        for node in nodes:
            story.capture(str(node), 1000, "1:0-50" if node == 1 else "1:0-40", 1)
        elsewhere = tuple(CapturedElsewhere("id/other", node, directory, None) for node in others)
        known = conclude(replace(story.facts(), elsewhere=elsewhere))
        stored, lacked = (known.commit.of_batch(1, offset, offset + 1).status for offset in (30, 45))
        voters = known.in_force.voters_at(1, 49)
        assert voters is not None
        (bound,) = LogEnds.of(known).bounds(voters, [1000])
        return stored, lacked, bound

    directory = "AAAAAAAAAAAAAAAAAAAAAQ"
    assert shown(1, 2) == ("committed", "undecided", 50)
    assert shown(1, 2, others=(3,)) == shown(1, 2)
    assert shown(1, 2, others=(1,))[0] == shown(1, 2, others=(2,))[0] == "undecided"
    assert shown(1, 2, 3) == ("committed", "uncommitted", 40)
    for node in (2, 3):
        stored, lacked, bound = shown(1, 2, 3, others=(node,))
        assert (stored, lacked, bound) == ("committed", "undecided", 50)
    assert shown(1, 2, 3, others=(1, 2, 3)) == ("undecided", "undecided", inf)


def test_the_newest_captures_elsewhere_are_those_of_the_other_lives() -> None:
    def at(node: int, directory: str, time: int | None) -> Capture:
        return Capture(f"{time}", node, directory, 0, None, None, (), captured_until=time)

    def shown(lives: dict[str, list[Capture]]) -> dict[str, list[tuple[str, int, str, int | None]]]:
        found = captured_elsewhere(lives)
        return {
            life: [(one.cluster_id, one.node_id, one.directory_id, one.until) for one in each]
            for life, each in found.items()
        }

    lives = {"a": [at(1, "p", 5), at(1, "p", 9)], "b": [at(1, "q", 7)], "c": [at(1, "p", 8), at(2, "r", 1)]}
    assert shown(lives) == {
        "a": [("c", 1, "p", 8), ("c", 2, "r", 1)],
        "b": [("a", 1, "p", 9), ("c", 2, "r", 1)],
        "c": [("a", 1, "p", 9)],
    }
    lives = {"a": [at(1, "p", 5), at(1, "q", None)], "b": [at(1, "q", 7)], "c": [at(1, "p", 9)]}
    assert shown(lives) == {
        "a": [("c", 1, "p", 9), ("b", 1, "q", 7)],
        "b": [("a", 1, "q", None)],
        "c": [("a", 1, "p", 5), ("a", 1, "q", None)],
    }


def test_what_was_followed_of_another_life_is_named_so() -> None:
    elsewhere = CapturedElsewhere("id/other", FOLLOWED_NODE_ID, ZERO_UUID, None)
    assert elsewhere.words.startswith("a quorum was followed in id/other, another history of the cluster id")
