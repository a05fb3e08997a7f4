"""Each rule broken on purpose: a golden capture with edited bytes, or a forged describe output.

One row a rule (some have two): what is done to the captures, what the finding must be, and which other rules
that breaks of necessity. Every other error would be a false one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from kraft_core.findings.facts import Observation
from kraft_core.findings.judge import LOG_RULES_OF, RULES_OF, judge
from kraft_core.format.batch import BatchHeader, RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.control import KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.findings.broken import (
    Captures,
    Node,
    batches_of,
    control_batch,
    edited,
    leader_change,
    no_op_batch,
    voters_batch,
    voters_of,
    with_control,
    with_epoch,
    without,
)

BEFORE, AFTER = "uncommitted-truncation/before", "uncommitted-truncation/after"
REMOVAL = "uncommitted-removal/before"
WIPE, LATER = "disk-failure/before-wipe", "uncommitted-then-committed/after"
STATIC, DYNAMIC, STORM = "static-upgrade/at-3.9.2", "dynamic-membership", "election-storm"


MESSAGES = {message.type_name: message for message in METADATA_RECORDS}


# --- what is done ---------------------------------------------------------------------------------


def flip_a_byte(captures: Captures) -> None:
    path = captures.node(AFTER, 2).segments[0]
    content = bytearray(path.read_bytes())
    header = next(header for header, _ in batches_of(path) if header.base_offset > 100)
    content[header.end - 1] ^= 1
    path.write_bytes(bytes(content))


def swap_two_batches(captures: Captures) -> None:
    path = captures.node(AFTER, 2).segments[0]
    parts = [batch for _, batch in batches_of(path)]
    parts[30], parts[31] = parts[31], parts[30]
    path.write_bytes(b"".join(parts))


def second_leader(captures: Captures) -> None:
    change = with_control(LEADER_CHANGE, lambda value: value | {"leaderId": 3})
    captures.node(AFTER, 3).edit_batch(352, change)


def epoch_goes_back(captures: Captures) -> None:
    captures.node(AFTER, 3).edit_batch(400, with_epoch(2))


def another_batch(captures: Captures) -> None:
    captures.node(AFTER, 3).edit_batch(400, lambda header, _: no_op_batch(header, later_by=1))


def stated_before_it_was_written(captures: Captures) -> None:
    """Two minutes before its newest batch; a minute is within what clocks differ by."""
    node = captures.node(AFTER, 1)
    stated = datetime.fromtimestamp(last_time(node) / 1000 - 120, UTC)
    (node.path / "capture.json").write_text(f'{{"captured_at": "{stated:%Y-%m-%dT%H:%M:%S}Z"}}')


def only_report(captures: Captures) -> None:
    """The captures are as they were; what is wrong is an output: node 2 led epoch 3."""


def checkpoint_of_the_lost(captures: Captures) -> None:
    """Node 1 has a checkpoint of what it wrote in epoch 1 above 352, which epoch 3 took the place of."""
    older = captures.node(BEFORE, 1).checkpoint(321)
    older.rename(older.with_name("00000000000000000353-0000000001.checkpoint"))


def checkpoint_of_another_epoch(captures: Captures) -> None:
    """Node 1 has a checkpoint whose last record was of epoch 2, where every log has epoch 1: a stray file."""
    older = captures.node(AFTER, 1).checkpoint(321)
    older.rename(older.with_name("00000000000000000340-0000000002.checkpoint"))


def lost_tail(captures: Captures) -> None:
    """An older log: with the newer leader-epoch-checkpoint beside it, its end would be unknown."""
    node = captures.node(AFTER, 1)
    node.truncate(340)
    node.set_epochs((1, 0))


def leader_without_the_end(captures: Captures) -> None:
    """Node 1 of three that agree up to 54 becomes leader with a log up to 50, after they were captured."""
    node = captures.node(WIPE, 1)
    node.truncate(50)
    node.append(leader_change(50, 2, last_time(node) + 60_000, 1, (1, 2, 3)))
    node.set_quorum_state(leaderEpoch=2, leaderId=1)
    node.set_epochs((1, 0), (2, 50))


def other_epoch_cache(captures: Captures) -> None:
    captures.node(AFTER, 2).set_epochs((1, 0), (3, 360))


def no_leader_change(captures: Captures) -> None:
    for node in captures.nodes(AFTER):
        node.edit_batch(352, lambda header, _: no_op_batch(header))


def second_uncommitted_change(captures: Captures) -> None:
    """The leader removes voter 4 again while its addition at 355 is not committed."""
    for number in (1, 4):
        node = captures.node(BEFORE, number)
        removed = voters_of(node, 28)
        node.edit_batch(lone(node, 360), lambda header, _, value=removed: voters_batch(header, value))


def two_voters_at_once(captures: Captures) -> None:
    """The record that adds voter 4 takes voter 2 away as well, in every log."""
    for node in captures.nodes(LATER):
        node.edit_batch(1249, with_control(KRAFT_VOTERS, without(2)))


def change_before_a_commit(captures: Captures) -> None:
    """Node 1 wins epoch 2 and removes voter 2 before anybody has fetched its LEADER_CHANGE."""
    node = captures.node(WIPE, 1)
    at = last_time(node) + 1
    value = without(2)(voters_of(node, 2))
    node.append(leader_change(54, 2, at, 1, (1, 2, 3)))
    node.append(control_batch(55, 2, at + 1, KRAFT_VOTERS, value))
    node.set_quorum_state(leaderEpoch=2, leaderId=1)
    node.set_epochs((1, 0), (2, 54))


def voters_under_version_0(captures: Captures) -> None:
    """A VotersRecord in a log of kraft.version 0, on every node."""
    nodes = captures.nodes(STATIC)
    value = {
        "version": 0,
        "voters": [
            {
                "voterId": number,
                "voterDirectoryId": ZERO_UUID,
                "endpoints": [{"name": "CONTROLLER", "host": "localhost", "port": 9090 + number}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
            for number in (1, 2, 3)
        ],
    }
    offset = lone(nodes[0], 450)
    for node in nodes:
        node.edit_batch(offset, lambda header, _: voters_batch(header, value))


def version_falls(captures: Captures) -> None:
    """The record of kraft.version 1 in the first batch says 0, on every node."""
    for node in captures.nodes(WIPE):
        node.edit_batch(0, with_control(KRAFT_VERSION, lambda value: value | {"kRaftVersion": 0}))


def nothing(captures: Captures) -> None:
    """The captures themselves break it."""


def checkpoint_with_other_voters(captures: Captures) -> None:
    path = captures.node(AFTER, 2).checkpoint(325)
    path.write_bytes(edited(path.read_bytes(), with_control(KRAFT_VOTERS, without(3))))


def checkpoint_without_its_end(captures: Captures) -> None:
    path = captures.node(AFTER, 2).checkpoint(325)
    batches = [batch for _, batch in batches_of(path)]
    path.write_bytes(b"".join(batches[:-1]))


def checkpoint_above_the_high_watermark(captures: Captures) -> None:
    """Node 1's checkpoint bears the offset of its uncommitted tail."""
    checkpoint_of_the_lost(captures)


def first_segment_gone(captures: Captures) -> None:
    captures.node(STORM, 1).segments[0].unlink()


def removed_leader_goes_on(captures: Captures) -> None:
    """Leader 3 removes itself at 790 and then voter 2, in the logs of nodes 3 and 4."""
    for number in (3, 4):
        node = captures.node(REMOVAL, number)
        first, left = without(3)(voters_of(node, 28)), without(2, 3)(voters_of(node, 28))
        node.edit_batch(790, with_control(KRAFT_VOTERS, lambda _, value=first: value))
        node.edit_batch(lone(node, 795), lambda header, _, value=left: voters_batch(header, value))


def removed_leader_counts_itself(captures: Captures) -> None:
    """Leader 2 removes itself in epoch 3; of the other voters, 1 and 3, only 1 has stored more than 480."""
    for node in captures.nodes(AFTER):
        left = without(2)(voters_of(node, 28))
        node.edit_batch(lone(node, 400), lambda header, _, value=left: voters_batch(header, value))
    captures.node(AFTER, 3).truncate(480)


def quorum_state_behind(captures: Captures) -> None:
    captures.node(AFTER, 2).set_quorum_state(leaderEpoch=1, leaderId=-1)


def checkpoint_without_a_record(captures: Captures) -> None:
    """A batch of a checkpoint's records is empty of meaning: NoOpRecords in its place."""
    path = captures.node(AFTER, 2).checkpoint(325)

    def edit(header: BatchHeader, batch: bytes) -> bytes:
        return batch if header.is_control else no_op_batch(header)

    path.write_bytes(edited(path.read_bytes(), edit))


def foreign_voters_in_leader_change(captures: Captures) -> None:
    """The LEADER_CHANGE of epoch 3 names voters 1, 2 and 4 on every node; no such set ever was."""
    names = [{"voterId": number} for number in (1, 2, 4)]
    for node in captures.nodes(AFTER):
        node.edit_batch(352, with_control(LEADER_CHANGE, lambda value: value | {"voters": names}))


def restored_backup(captures: Captures) -> None:
    """Node 1's whole directory, quorum-state too, is that of an earlier moment of epoch 1."""
    lost_tail(captures)
    captures.node(AFTER, 1).set_quorum_state(leaderEpoch=1, leaderId=1)


def second_directory(captures: Captures) -> None:
    """Node 3 of a static quorum has one more directory with its log."""
    captures.node(STATIC, 3).copy_as("C" * 22)


def other_static_voters(captures: Captures) -> None:
    """Node 2 was started with two more controllers in controller.quorum.voters; Kafka 3.9 does not mind."""
    voters = [{"voterId": voter} for voter in (1, 2, 3, 4, 5)]
    captures.node(STATIC, 2).set_quorum_state(currentVoters=voters)


def same_directory(captures: Captures) -> None:
    """The directory of node 3 of a static quorum is a copy of node 1's, with another node.id."""
    first, third = (captures.node(STATIC, number).path for number in (1, 3))
    shutil.rmtree(third)
    shutil.copytree(first, third)
    meta = third / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=3"))


def log_behind_its_files(captures: Captures) -> None:
    captures.node(AFTER, 3).set_epochs((1, 0), (3, 352), (4, 9999))


# --- what is forged -------------------------------------------------------------------------------


def reported(captures: Captures, epoch: int, leader: int, *high_watermarks: int) -> tuple[Observation, ...]:
    """Outputs of a leader, a minute apart, all before the captures of the last moment were taken."""
    known, _ = captures.facts()
    end = min(capture.captured_at for capture in known.facts.captures) - 1
    return tuple(
        Observation(
            known.facts.cluster_id,
            f"{end}-status-{nth}.txt",
            end - 60_000 * (len(high_watermarks) - nth),
            end - 60_000 * (len(high_watermarks) - nth) + 1_000,
            "status",
            leader,
            ZERO_UUID,
            "Leader",
            leader_epoch=epoch,
            high_watermark=high_watermark,
        )
        for nth, high_watermark in enumerate(high_watermarks)
    )


def unknown_topic_removed(captures: Captures) -> None:
    """In every log, in the place of a NoOpRecord."""
    removal = write_metadata_value(MESSAGES["REMOVE_TOPIC_RECORD"], 0, {"topicId": ZERO_UUID})

    def edit(header: BatchHeader, batch: bytes) -> bytes:
        if not header.base_offset <= 400 < header.next_offset:
            return batch
        assert header.record_count == 1
        record = RawRecord(header.base_offset, header.max_timestamp, None, removal)
        return write_batch(header.base_offset, header.leader_epoch, [record])

    for node in captures.nodes(AFTER):
        node.edit_log(edit)


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """place: first offset and leader epochs of the finding. also: other rules that the damage breaks."""

    rule: int
    moments: tuple[str, ...]
    damage: Callable[[Captures], None]
    place: tuple[int | None, tuple[int, ...]]
    also: frozenset[int] = frozenset()
    severity: Literal["error", "warning"] = "error"
    observed: tuple[int, int, tuple[int, ...]] | None = None  # epoch, leader, its high watermarks


def also(*rules: int) -> frozenset[int]:
    return frozenset(rules)


TABLE = (
    Row(0, (AFTER,), flip_a_byte, (106, ())),
    Row(0, (AFTER,), swap_two_batches, (44, (1,))),
    # The other LEADER_CHANGE is another batch at the same offset and epoch.
    Row(1, (AFTER,), second_leader, (352, (3,)), also(3)),
    # Its epoch has neither a LEADER_CHANGE nor an entry in the cache, and cuts the epoch around it in two.
    Row(2, (AFTER,), epoch_goes_back, (400, (2,)), also(3, 10, 11)),
    Row(3, (AFTER,), another_batch, (400, (3,))),
    # The lost batches count as committed: above what log ends allow, lost by node 1 and lacked by leader 2.
    Row(4, (BEFORE, AFTER), checkpoint_of_the_lost, (352, (1, 3)), also(5, 7, 18, 22)),
    # Renamed, it does not hold what its name promises either.
    Row(4, (AFTER,), checkpoint_of_another_epoch, (339, (1, 2))),
    # Node 1 led that epoch: its newer log alone shows the loss, too.
    Row(5, (BEFORE, AFTER), lost_tail, (340, (1,))),
    Row(6, (AFTER,), nothing, (490, (3,)), observed=(3, 2, (500, 490))),
    Row(7, (WIPE,), leader_without_the_end, (50, (1, 2))),
    Row(8, (BEFORE,), nothing, (365, (1,)), observed=(1, 1, (366,))),
    Row(9, (AFTER,), nothing, (352, (3,)), observed=(3, 2, (352,))),
    Row(10, (AFTER,), other_epoch_cache, (352, (3,))),
    Row(11, (AFTER,), no_leader_change, (352, (3,))),
    Row(12, (BEFORE,), second_uncommitted_change, (360, (1,))),
    Row(13, (LATER,), two_voters_at_once, (1249, (10,)), severity="warning"),
    Row(14, (WIPE,), change_before_a_commit, (55, (2,))),
    Row(15, (STATIC,), voters_under_version_0, (466, (8,))),
    Row(15, (WIPE,), version_falls, (2, (1,))),
    Row(16, ("stale-split/before", "stale-split/after"), nothing, (148, (3,)), severity="warning"),
    Row(17, (AFTER,), checkpoint_with_other_voters, (324, (1,))),
    Row(18, (AFTER,), checkpoint_without_its_end, (324, (1,))),
    # Renamed, it does not hold what its name promises either.
    Row(18, (BEFORE,), checkpoint_above_the_high_watermark, (352, (1,)), also(22)),
    Row(19, (STORM,), first_segment_gone, (13, ())),
    # Its second change comes while the first is uncommitted.
    Row(20, (REMOVAL,), removed_leader_goes_on, (795, (6,)), also(12)),
    # No file shows that quorum-state was copied after the log.
    Row(21, (AFTER,), quorum_state_behind, (None, (3,)), severity="warning"),
    Row(22, (AFTER,), checkpoint_without_a_record, (324, (1,))),
    Row(23, (AFTER,), foreign_voters_in_leader_change, (352, (3,))),
    Row(24, (AFTER,), removed_leader_counts_itself, (499, (3,)), observed=(3, 2, (500,))),
    # What it lost was committed.
    Row(44, (BEFORE, AFTER), restored_backup, (340, (1,)), also(5)),
    Row(45, (STATIC,), second_directory, (None, ()), severity="warning"),
    Row(46, (AFTER,), log_behind_its_files, (507, ()), severity="warning"),
    Row(49, (AFTER,), unknown_topic_removed, (400, (3,))),
    Row(48, (AFTER,), stated_before_it_was_written, (None, ()), severity="warning"),
    Row(50, (STATIC,), other_static_voters, (None, (8,)), severity="warning"),
    Row(51, (STATIC,), same_directory, (None, ())),
    # Or the same quorum had two leaders.
    Row(47, (AFTER,), only_report, (None, (3,)), also(1), severity="warning", observed=(3, 1, (400,))),
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.rule}-{row.damage.__name__}")
def test_a_broken_rule_is_found_and_nothing_else(row: Row, tmp_path: Path) -> None:
    captures = Captures(tmp_path, *row.moments)
    row.damage(captures)
    forged = reported(captures, row.observed[0], row.observed[1], *row.observed[2]) if row.observed else ()
    findings = judge(*captures.facts(forged))
    print(
        *(f"{f.rule} {f.severity} {f.first_offset} {f.leader_epochs} {f.sentence}" for f in findings),
        sep="\n",
    )
    places = [
        (f.first_offset, f.leader_epochs)
        for f in findings
        if (f.rule, f.severity) == (row.rule, row.severity)
    ]
    assert row.place in places
    errors = {f.rule for f in findings if f.severity == "error"}
    assert errors == row.also | ({row.rule} if row.severity == "error" else set())


def test_every_rule_has_a_row() -> None:
    of_brokers = {52}  # these directories are a controller's: test_broker_rules.py
    rules = {row.rule for row in TABLE} | of_brokers
    assert rules == {*RULES_OF, *LOG_RULES_OF} == {*range(25), *range(44, 53)}


# --- small tools ----------------------------------------------------------------------------------


def lone(node: Node, offset: int) -> int:
    """The first batch of one record at or above an offset."""
    return next(
        header.base_offset
        for path in node.segments
        for header, _ in batches_of(path)
        if header.base_offset >= offset and header.record_count == 1 and not header.is_control
    )


def last_time(node: Node) -> int:
    return max(header.max_timestamp for path in node.segments for header, _ in batches_of(path))
