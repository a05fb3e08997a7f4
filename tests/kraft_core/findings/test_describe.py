"""The parser of describe outputs, on real ones and on those of older releases."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.describe import LONGEST_COMMAND_MS, observed_watermarks, parse_describe
from kraft_core.findings.facts import Observation
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.evidence.golden import GOLDEN, MOMENTS
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.findings.golden import SCENARIOS, known, observations

NODE = {1: "dlQnpRFNQLyzxMXecUSy_g", 2: "JJnBYSCjLKkJ5gRPQ1FZ7g", 4: "SOrsTZWA5cqGYWsEVOGWQA"}


def test_a_status() -> None:
    name = "1795256935447-status-true-leader.txt"
    text = (GOLDEN / "stale-split/quorum" / name).read_text()
    (seen,) = parse_describe(name, text, 1795256936491)
    assert (seen.cluster_id, seen.kind, seen.node_id) == ("W2JPl0IXSia8pSNJSDCaUw", "status", 4)
    assert (seen.observed_from, seen.observed_to) == (1795256935447, 1795256936491)
    assert (seen.leader_epoch, seen.high_watermark) == (5, 5096)
    assert seen.directory_id == "ECpnbSlUzT-kBBANzlFArw"
    assert [node for node, _ in seen.voters] == [1, 2, 3, 4, 5]
    assert seen.observers == ()


def replication(text: str) -> list[tuple[object, ...]]:
    rows = parse_describe("1795252521000-replication.txt", text, cluster_id="c")
    assert {(row.cluster_id, row.observed_to - row.observed_from) for row in rows} == {
        ("c", LONGEST_COMMAND_MS)
    }
    return [
        (r.node_id, r.directory_id, r.log_end_offset, r.lag_records, r.last_fetch_at, r.status) for r in rows
    ]


def test_a_replication_plain_and_human_readable() -> None:
    """-1 is unknown, and "36 ms ago" no time."""
    folder = GOLDEN / "uncommitted-truncation/quorum"
    plain = replication(next(folder.glob("*-replication-during-uncommitted.txt")).read_text())
    assert plain[0] == (1, NODE[1], 367, 0, 1795252521927, "Leader")
    assert plain[1] == (2, NODE[2], 352, 15, 1795252515351, "Follower")
    human = replication(next(folder.glob("*-replication-human-during-uncommitted.txt")).read_text())
    assert human[0] == (1, NODE[1], 369, 0, None, "Leader")
    restarted = replication(next(folder.glob("*-replication-new-leader-2.txt")).read_text())
    assert restarted[1] == (1, NODE[1], None, 366, None, "Follower")
    assert {row[-1] for row in restarted} == {"Leader", "Follower", "Observer"}


OLDER_STATUS = """ClusterId:              fMCL8kv1SWm87L_Md-I2hg
LeaderId:               3002
LeaderEpoch:            2
HighWatermark:          -1
MaxFollowerLag:         0
MaxFollowerLagTimeMs:   -1
CurrentVoters:          [3000,3001,3002]
CurrentObservers:       [0]
"""
OLDER_REPLICATION = (
    "NodeId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus  \t\n"
    "3002  \t22          \t0  \t1664000000000     \t1664000000000        \tLeader  \t\n"
)


def test_outputs_of_releases_without_directory_ids() -> None:
    (seen,) = parse_describe("1664000000000.txt", OLDER_STATUS)
    assert (seen.node_id, seen.directory_id, seen.high_watermark) == (3002, ZERO_UUID, None)
    assert seen.voters == ((3000, ZERO_UUID), (3001, ZERO_UUID), (3002, ZERO_UUID))
    assert replication(OLDER_REPLICATION) == [(3002, ZERO_UUID, 22, 0, 1664000000000, "Leader")]


def test_what_is_no_output() -> None:
    assert parse_describe("1664000000000.txt", "Timed out waiting for a node assignment.\n") == []
    assert parse_describe("1664000000000.txt", "") == []
    with pytest.raises(ValueError, match="does not begin with the time"):
        parse_describe("status.txt", OLDER_STATUS)
    with pytest.raises(ValueError, match="no HighWatermark"):
        parse_describe("1664000000000.txt", OLDER_STATUS.replace("HighWatermark", "Watermark"))
    with pytest.raises(ValueError, match="'soon' is not a number"):
        parse_describe("1664000000000.txt", OLDER_STATUS.replace("-1\nMax", "soon\nMax"))
    with pytest.raises(ValueError, match=f"'{'x' * 80}' is not a number"):
        parse_describe("1664000000000.txt", OLDER_STATUS.replace("-1\nMax", f"{'x' * 81}\nMax"))
    with pytest.raises(ValueError, match="is not an output of --replication"):
        parse_describe("1664000000000.txt", OLDER_STATUS.replace("[0]", "[0"))


def test_a_line_of_spaces_is_read_at_once() -> None:
    """In time that grows with its length, not with its square."""
    began = time.process_time()
    with pytest.raises(ValueError, match="no LeaderEpoch"):
        parse_describe("1664000000000.txt", f"LeaderId: a{' ' * 250_000}b\n")
    assert time.process_time() - began < 1


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_output_is_read(scenario: str) -> None:
    found = observations(scenario)
    assert {seen.source for seen in found} == {
        path.name for path in (GOLDEN / scenario / "quorum").glob("*.txt")
    }
    assert {seen.cluster_id for seen in found} == {
        known(name).facts.cluster_id for name in MOMENTS if name.split("/")[0] == scenario
    }


def test_watermarks_of_a_stale_leader_are_only_believed() -> None:
    rows = observed_watermarks(known("all of stale-split"), observations("stale-split"))
    assert len({(row.evidence, row.source, row.as_of) for row in rows}) == len(rows)
    assert {row.leader_epoch for row in rows if row.believed_bound is not None} == {4}
    assert {row.believed_bound for row in rows if row.leader_epoch == 4} == {5014, 5225}
    assert max(row.lower_bound or 0 for row in rows) == 5446
    conclusions = conclude(known("stale-split/before").facts)
    unknown = parse_describe("1664000000000.txt", OLDER_STATUS)
    assert observed_watermarks(conclusions, unknown) == []


@pytest.mark.parametrize(
    "voters",
    [
        "[" * 100_000,
        "7",
        "null",
        "{}x",
        '[{"directoryId": "A"}]',
        '[{"id": "3001"}]',
        '[{"id": 3001, "directoryId": "\\ud800"}]',
        '[{"id": 3001, "directoryId": 7}]',
        "[true]",
        "[[1]]",
        f"[{'9' * 5000}]",
    ],
)
def test_voters_that_no_kafka_prints(voters: str) -> None:
    """One sentence, however long the text."""
    fields = "ClusterId: c\nLeaderId: 1\nLeaderEpoch: 1\nHighWatermark: 1\nCurrentObservers: []\n"
    with pytest.raises(ValueError, match="is not an output of --replication") as raised:
        parse_describe("1750000000000.txt", f"{fields}CurrentVoters: {voters}\n")
    assert len(str(raised.value)) < 200
    str(raised.value).encode()


def _reported(at: int, leader: int, epoch: int, high_watermark: int, name: str = "") -> Observation:
    name = name or f"{at}-status"
    return Observation(
        "story", name, at, at, "status", leader, ZERO_UUID, "Leader", epoch, high_watermark=high_watermark
    )


@pytest.mark.parametrize(
    ("at", "others", "bounded"),
    [
        (199, [], True),  # before leader 2 was elected
        (500, [], False),
        (199, [_reported(150, 3, 3, 20)], False),
        (199, [_reported(1500, 3, 3, 20)], True),
    ],
)
def test_a_leader_that_was_replaced_bounds_nothing_from_above(
    at: int, others: list[Observation], bounded: bool
) -> None:
    """It answers until it learns of the next epoch; before Kafka 3.7, an isolated one did so for ever."""
    story = Story().leader(1, 0, 1, "1 2 3").leader(2, 20, 2, "1 2 3", granted="2 3").data(2, 21)
    story.capture("2", 2000, "1:0-20 2:20-60", 2)
    output = _reported(at, 1, 1, 20)
    rows = observed_watermarks(conclude(story.facts()), [output, *others])
    of_output = [(row.lower_bound, row.upper_bound) for row in rows if output.source in row.source]
    assert sorted(of_output, key=str) == sorted([(20, None)] + [(None, 20)] * bounded, key=str)


def upper_bounds(story: Story, *outputs: Observation) -> list[tuple[int, int]]:
    rows = observed_watermarks(conclude(story.facts()), outputs)
    return [(row.as_of, row.upper_bound) for row in rows if row.upper_bound is not None]


def begun() -> Story:
    """Leader 1 and its epoch's first 40 records, by the copy that was made at 1000."""
    return Story().leader(1, 0, 1, "1 2 3").capture("1", 1000, "1:0-40", 1)


def test_a_leader_that_may_have_been_replaced_out_of_sight_bounds_nothing_from_above() -> None:
    """Before Kafka 3.7, an isolated one answered for ever, while the others went on in later epochs."""
    assert upper_bounds(begun(), _reported(2000, 1, 1, 20)) == []
    assert upper_bounds(begun(), _reported(2000, 1, 1, 20), _reported(3000, 1, 1, 20)) == []


def test_what_its_own_epoch_committed_later_shows_that_a_leader_was_the_newest() -> None:
    """Offset 39 was appended at 390, and is committed in epoch 1 by what was reported last."""
    later = _reported(2000, 1, 1, 40)
    assert upper_bounds(begun(), _reported(300, 1, 1, 20), later) == [(300, 20)]
    assert upper_bounds(begun(), _reported(390, 1, 1, 20), later) == []
    assert upper_bounds(begun(), _reported(300, 1, 1, 20), _reported(2000, 1, 1, 39)) == []


@pytest.mark.parametrize(
    ("later", "live", "bounded"), [(26, True, True), (25, True, False), (26, False, False)]
)
def test_so_does_a_later_high_watermark_above_the_log_end_of_the_same_answer(
    later: int, live: bool, bounded: bool
) -> None:
    """Two outputs of describe are two answers, perhaps of two leaders."""
    kind = "-live.txt" if live else ".txt"
    first = _reported(2000, 1, 1, 20, f"2000-status{kind}")
    ends = replace(
        first,
        source=f"2000-replication{kind}",
        kind="replication",
        leader_epoch=None,
        high_watermark=None,
        log_end_offset=25,
    )
    found = upper_bounds(begun(), first, ends, _reported(3000, 1, 1, later))
    assert found == [(2000, 20)] * bounded


def test_the_next_leader_shows_it_once_anything_was_committed_in_its_epoch() -> None:
    """Until then the leader of another epoch may have been elected before."""
    story = begun().leader(2, 40, 2, "1 2 3", granted="2 3").capture("2", 1000, "1:0-40 2:40-41", 2)
    first = _reported(395, 1, 1, 40)
    assert upper_bounds(story, first) == []
    assert upper_bounds(story, first, _reported(1500, 2, 2, 41)) == [(395, 40)]
