"""Checkpoints that differ from the log (rule 22), and records that Kafka refuses (rule 49): plans by captures
know of them what a lake knows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jobs.plan_captures import Opened, from_captures, from_lake
from kraft_core.findings.captured_replays import replay_facts
from kraft_core.findings.facts import ReplayRefusal, SnapshotDeviation, UnreadableBytes
from kraft_core.findings.unread_files import unread_files
from kraft_core.format.batch import BatchHeader, crc32c
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.log_dirs import BOOTSTRAP_NAME, LOG_DIR_NAME
from kraft_core.format.segment import scan
from kraft_core.plan.actions import Action, Add, Lose, Remove
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from kraft_core.plan.plan import plan
from tests.jobs.lakes import run
from tests.jobs.plan_metadata import lake_arguments
from tests.jobs.run.test_any_order import copied_quorum
from tests.kraft_core.image.refused import DIRECTORY, UNKNOWN
from tests.kraft_core.image.worlds import change_fields, partition_fields, topic_fields
from tests.long.load_mutations import Batch, MutableLog, written
from transforms.ingest.capture_rows import is_unreadable
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import QUARANTINE, REFUSED_RECORDS, SNAPSHOT_CHECKS

LEADER, FOLLOWER, OTHER = 2, 1, 3
NODES = (1, 2, 3, 4)
OF_FORMATTING = f"{LOG_DIR_NAME}/{0:020}-0000000000.checkpoint"
ENDS = {1: 321, 2: 325, 3: 325, 4: 326}
TOPIC, PARTITION, PARTITION_CHANGE, REMOVE_TOPIC, NO_OP, BEGIN, END, ABORT = 2, 3, 5, 9, 20, 23, 24, 25
A_TOPIC = written(TOPIC, 0, **topic_fields("unseen", UNKNOWN))
NO_SUCH_TOPIC = written(REMOVE_TOPIC, topicId=UNKNOWN)
OF_UNKNOWN = written(PARTITION_CHANGE, **change_fields(UNKNOWN, isr=[1]))
NOT_READ = bytes([1, PARTITION, 1, 0])
OF_NEWER_KAFKA = bytes([1, 0x8F, 0x4E, 0, 0])
Damage = Callable[[Path], None]


def log_file(folder: Path, node: int) -> Path:
    """The first segment of a node's log."""
    return min((folder / f"node-{node}" / LOG_DIR_NAME).glob("*.log"))


def in_log(offset: int, *values: bytes, nodes: tuple[int, ...] = NODES) -> Damage:
    """Replace the first NO_OP_RECORDs from an offset on."""

    def change(folder: Path) -> None:
        for node in nodes:
            log, rest = MutableLog.of(log_file(folder, node)), list(values)
            for batch, nth in log.data():
                record = batch.records[nth]
                if rest and record.offset >= offset and record.value and record.value[1] == NO_OP:
                    batch.set_value(nth, rest.pop(0))
            assert not rest
            log.write()

    return change


def in_transaction(*values: bytes) -> Damage:
    """The values between the markers of a metadata transaction."""
    return in_log(150, written(BEGIN), *values, written(END))


def checkpoint(node: int, change: Callable[[MutableLog], None]) -> Damage:
    def of_node(folder: Path) -> None:
        log_dir = folder / f"node-{node}" / LOG_DIR_NAME
        file = MutableLog.of(log_dir / f"{ENDS[node]:020}-0000000001.checkpoint")
        change(file)
        file.write()

    return of_node


def lacking(file: MutableLog, type_: int = PARTITION) -> None:
    """It lacks the last record of a type, if it had one; the offsets of those behind it fall by one."""
    found = [(batch, nth) for batch, nth in file.data() if (batch.records[nth].value or b"\0\0")[1] == type_]
    for batch, nth in found[-1:]:
        del batch.records[nth]
    file.batches = [batch for batch in file.batches if batch.records]
    offset = 0
    for batch in file.batches:
        batch.records = [record._replace(offset=offset + n) for n, record in enumerate(batch.records)]
        offset += len(batch.records)


def first_value(value: bytes) -> Callable[[MutableLog], None]:
    """Replace the value of the first data record."""

    def change(file: MutableLog) -> None:
        batch, nth = file.data()[0]
        batch.set_value(nth, value)

    return change


def of_formatting(node: int, value: bytes) -> Damage:
    """A record more in its checkpoint of formatting."""

    def of_node(folder: Path) -> None:
        file = MutableLog.of(folder / f"node-{node}" / OF_FORMATTING)
        file.append(value)
        file.write()

    return of_node


def cut_off(node: int, name: str, batches: int) -> Damage:
    """Its checkpoint of formatting ends after that many of its batches, none of them damaged."""

    def of_node(folder: Path) -> None:
        path = folder / f"node-{node}" / name
        content = path.read_bytes()
        path.write_bytes(content[: [0, *(item.end for item in scan(content))][batches]])

    return of_node


def counts_one_more(node: int) -> Damage:
    """The first data batch of its checkpoint states one record more than it has, with a CRC that fits."""

    def of_node(folder: Path) -> None:
        path = folder / f"node-{node}" / LOG_DIR_NAME / f"{ENDS[node]:020}-0000000001.checkpoint"
        content = bytearray(path.read_bytes())
        batch = next(b for b in scan(content) if isinstance(b, BatchHeader) and not b.is_control)
        content[batch.position + 57 : batch.position + 61] = (batch.record_count + 1).to_bytes(4, "big")
        crc = crc32c(bytes(content[batch.position + 21 : batch.end]))
        content[batch.position + 17 : batch.position + 21] = crc.to_bytes(4, "big")
        path.write_bytes(content)

    return of_node


def begins_at_checkpoint(*nodes: int) -> Damage:
    """The log of a node begins at the end of its checkpoint, as once Kafka has deleted what lies below."""

    def cut(folder: Path) -> None:
        for node in nodes:
            log = MutableLog.of(log_file(folder, node))
            log.batches = [batch for batch in log.batches if batch.records[0].offset >= ENDS[node]]
            log.path.unlink()
            first = log.batches[0].records[0].offset
            replace(log, path=log.path.with_name(f"{first:020}.log")).write()

    return cut


def without_segment(node: int) -> Damage:
    """Its first segment cannot be opened: what is no regular file cannot, also by root."""

    def change(folder: Path) -> None:
        file = log_file(folder, node)
        file.unlink()
        file.mkdir()

    return change


def in_order(node: int, change: Callable[[list[Batch]], None]) -> Damage:
    """A change of the order of batches of a log."""

    def of_node(folder: Path) -> None:
        log = MutableLog.of(log_file(folder, node))
        change(log.batches)
        log.write()

    return of_node


def swapped(batches: list[Batch]) -> None:
    batches[90:92] = batches[91], batches[90]


def repeated(batches: list[Batch]) -> None:
    batches.insert(90, batches[90])


def one_after_another(*damages: Damage) -> Damage:
    def every(folder: Path) -> None:
        for damage in damages:
            damage(folder)

    return every


ORPHAN = written(PARTITION, **partition_fields(UNKNOWN))
MISPLACED = written(PARTITION, **partition_fields(UNKNOWN, directories=[DIRECTORY]))
OF_NO_STATE = written(PARTITION, **partition_fields(UNKNOWN, leaderRecoveryState=7))
LACKS_A_PARTITION = checkpoint(FOLLOWER, lacking)
CUT = begins_at_checkpoint(*NODES)
# By name: the damage, and the verdicts on the loss of voter 3 and on adding voter 5.
CASES: dict[str, tuple[Damage, str]] = {
    "whole": (lambda _: None, "safe"),
    "follower-lacks": (LACKS_A_PARTITION, "not_known"),
    "leader-lacks": (checkpoint(LEADER, lacking), "not_known"),
    "other-lacks": (checkpoint(OTHER, lacking), "safe"),
    "has-more": (checkpoint(FOLLOWER, lambda file: file.append(A_TOPIC)), "not_known"),
    "log-has-more": (in_log(200, A_TOPIC), "not_known"),
    "refused-below": (in_log(200, OF_UNKNOWN), "not_known"),
    "refused-above": (in_log(340, OF_UNKNOWN), "not_known"),
    "aborted": (in_log(200, written(BEGIN), NO_SUCH_TOPIC, written(ABORT)), "not_known"),
    "aborted-partition": (in_log(200, written(BEGIN), ORPHAN, written(ABORT)), "not_known"),
    "ended-partition": (in_log(200, written(BEGIN), ORPHAN, written(END)), "not_known"),
    "open-partition": (in_log(340, written(BEGIN), ORPHAN), "not_known"),
    "removed-inside": (in_transaction(A_TOPIC, NO_SUCH_TOPIC, OF_UNKNOWN), "not_known"),
    "removed-before": (
        one_after_another(in_log(100, A_TOPIC, NO_SUCH_TOPIC), in_transaction(ORPHAN)),
        "not_known",
    ),
    "registered-inside": (in_transaction(A_TOPIC, ORPHAN, OF_UNKNOWN, NO_SUCH_TOPIC), "safe"),
    "not-registered": (in_transaction(A_TOPIC, OF_UNKNOWN, NO_SUCH_TOPIC), "not_known"),
    "misplaced-inside": (in_transaction(A_TOPIC, MISPLACED, NO_SUCH_TOPIC), "not_known"),
    "of-no-state-inside": (in_transaction(A_TOPIC, OF_NO_STATE, NO_SUCH_TOPIC), "not_known"),
    "one-log": (in_log(200, OF_UNKNOWN, nodes=(FOLLOWER,)), "not_known"),
    "not-opened": (without_segment(FOLLOWER), "not_known"),
    "swapped": (in_order(FOLLOWER, swapped), "not_known"),
    "other-repeats": (one_after_another(in_order(OTHER, repeated), LACKS_A_PARTITION), "not_known"),
    # What could not be read may explain the refusal, and what the checkpoint lacks.
    "not-read": (in_log(200, NOT_READ, OF_UNKNOWN), "not_known"),
    "newer": (in_log(200, OF_NEWER_KAFKA, OF_UNKNOWN), "safe"),
    "newer-lacks": (one_after_another(in_log(200, OF_NEWER_KAFKA), LACKS_A_PARTITION), "safe"),
    # A node that loads such a checkpoint fails.
    "checkpoint-empty": (checkpoint(FOLLOWER, first_value(b"")), "not_known"),
    "checkpoint-not-read": (checkpoint(FOLLOWER, first_value(NOT_READ)), "not_known"),
    "checkpoint-count": (counts_one_more(FOLLOWER), "not_known"),
    "other-checkpoint-empty": (checkpoint(OTHER, first_value(b"")), "safe"),
    "checkpoint-newer": (checkpoint(FOLLOWER, first_value(OF_NEWER_KAFKA)), "safe"),
    "formatting-empty": (of_formatting(FOLLOWER, b""), "not_known"),
    "formatting-newer": (of_formatting(FOLLOWER, OF_NEWER_KAFKA), "safe"),
    "bootstrap-of-0-bytes": (cut_off(FOLLOWER, BOOTSTRAP_NAME, 0), "not_known"),
    "bootstrap-of-1-batch": (cut_off(FOLLOWER, BOOTSTRAP_NAME, 1), "not_known"),
    "bootstrap-of-2-batches": (cut_off(FOLLOWER, BOOTSTRAP_NAME, 2), "not_known"),
    "formatting-of-0-bytes": (cut_off(FOLLOWER, OF_FORMATTING, 0), "not_known"),
    "formatting-of-1-batch": (cut_off(FOLLOWER, OF_FORMATTING, 1), "not_known"),
    "other-bootstrap-of-0-bytes": (cut_off(OTHER, BOOTSTRAP_NAME, 0), "safe"),
    "cut-checkpoint-empty": (one_after_another(checkpoint(FOLLOWER, first_value(b"")), CUT), "not_known"),
    # The log goes on from the oldest checkpoint of a replica, which is trusted.
    "cut": (CUT, "safe"),
    "cut-lacks": (one_after_another(LACKS_A_PARTITION, CUT), "safe"),
    "cut-refused": (one_after_another(in_log(340, OF_UNKNOWN), CUT), "not_known"),
    "one-cut-lacks": (one_after_another(LACKS_A_PARTITION, begins_at_checkpoint(FOLLOWER)), "not_known"),
}
ACTIONS: tuple[Action, ...] = (Lose((OTHER,)), Lose((FOLLOWER,)), Remove(OTHER), Add(4))


def drawn_in_transactions(seed: int) -> Damage:
    """Records of one topic and its partitions, in transactions that end, are aborted or stay open."""
    rng = random.Random(seed)
    values = [A_TOPIC, NO_SUCH_TOPIC, ORPHAN, ORPHAN, OF_UNKNOWN, OF_UNKNOWN, MISPLACED, OF_NO_STATE]
    values += [written(BEGIN), written(BEGIN), written(END), written(ABORT)]
    added = rng.choices(values, k=rng.randint(3, 25))
    if rng.random() < 0.5:
        # The checkpoints do not differ.
        added += [written(ABORT), NO_SUCH_TOPIC]
    return in_log(rng.choice([30, 60, 100]), *added, nodes=rng.choice([NODES, NODES, (FOLLOWER,)]))


def drawn(seed: int) -> Damage:
    """Some damages, some of them of some nodes only."""
    rng = random.Random(seed)
    values = [A_TOPIC, OF_UNKNOWN, ORPHAN, OF_NEWER_KAFKA, NOT_READ, NO_SUCH_TOPIC, written(ABORT)]
    damages: list[Damage] = []
    for _ in range(rng.randint(1, 3)):
        node = rng.choice(NODES)
        some = rng.choice([NODES, NODES, (node,)])
        added, lost = rng.choices(values, k=rng.randint(1, 3)), rng.choice([TOPIC, PARTITION])
        damages.append(
            rng.choice(
                [
                    in_log(rng.randrange(30, 380), *added, nodes=some),
                    checkpoint(node, lambda file, added=added: file.append(*added)),
                    checkpoint(node, lambda file, lost=lost: lacking(file, lost)),
                    in_order(node, rng.choice([swapped, repeated])),
                ]
            )
        )
    cut = begins_at_checkpoint(*rng.sample(NODES, rng.randint(1, 4)))
    return one_after_another(*damages, *([cut] if rng.random() < 0.3 else []))


DAMAGES = {name: damage for name, (damage, _) in CASES.items()} | {
    f"drawn-{seed}": drawn(seed) for seed in range(30)
}
DAMAGES |= {f"drawn-in-transactions-{seed}": drawn_in_transactions(seed) for seed in range(24)}


@pytest.fixture(scope="module")
def captures(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replays")
    for cluster, damage in DAMAGES.items():
        damage(copied_quorum(golden / "uncommitted-truncation/after", folder / cluster))
    return folder


@pytest.fixture(scope="module")
def read(spark: Any, captures: Path) -> Path:
    assert spark is not None  # the session that the run finds open
    assert run(captures / "lake", *(captures / cluster for cluster in DAMAGES)) == 1
    return captures / "lake"


@pytest.fixture(scope="module")
def by_captures(captures: Path) -> Callable[[str], Opened]:
    """A cluster as its captures show it."""
    return cache(lambda cluster: from_captures(lake_arguments(captures, cluster, [captures / cluster])))


@dataclass(frozen=True)
class LakeFacts:
    """What a lake knows of a cluster: deviations, refusals, and the lost values in quarantine."""

    deviations: set[SnapshotDeviation]
    refusals: set[ReplayRefusal]
    lost: set[UnreadableBytes]


@pytest.fixture(scope="module")
def facts_of_lake(read: Path) -> dict[str, LakeFacts]:
    """By cluster. Each table is read once."""
    found = {cluster: LakeFacts(set(), set(), set()) for cluster in DAMAGES}
    for row in rows_with(read, SNAPSHOT_CHECKS):
        checked = row["end_offset"], row["leader_epoch"], row["content_digest"]
        deviations = (SnapshotDeviation(*checked, **each) for each in row["deviations"])
        found[row["cluster_id"]].deviations.update(deviations)
    for row in rows_with(read, REFUSED_RECORDS):
        refusal = ReplayRefusal(**{name: row[name] for name in ReplayRefusal.__slots__})
        found[row["cluster_id"]].refusals.add(refusal)
    names = [name for name in UnreadableBytes.__slots__ if name != "supplied_by"]
    for row in rows_with(read, QUARANTINE):
        values = {name: row[name] for name in names}
        if not is_unreadable(values):
            found[row["cluster_id"]].lost.add(UnreadableBytes(**values))
    return found


@pytest.mark.parametrize("cluster", DAMAGES)
def test_captures_show_what_a_lake_knows(
    captures: Path,
    by_captures: Callable[[str], Opened],
    read: Path,
    facts_of_lake: dict[str, LakeFacts],
    cluster: str,
) -> None:
    quorum, _, metadata = by_captures(cluster)
    of_lake, _, metadata_of_lake = from_lake(lake_arguments(read, cluster))
    directories = find_controller_dirs([captures / cluster]).directories
    by_node = {d.meta.node_id: d for d in directories if d.meta is not None}
    held = {c.capture_id: by_node[c.node_id] for c in quorum.known.facts.captures}
    found = replay_facts(quorum.known, held)
    known = facts_of_lake[cluster]
    assert set(found.snapshot_deviations) == known.deviations
    lost = {*found.unreadable, *unread_files(held.items())}
    assert {each for each in lost if not each.reason.startswith("unreadable")} == known.lost
    # Where captures contradict each other, a lake replays what each of them holds.
    if not any(line.contested for line in quorum.known.lineage.lines.values()):
        assert set(found.replay_refusals) == known.refusals
    for action in ACTIONS:
        by_files, by_lake = plan(quorum, action).judged, plan(of_lake, action).judged
        assert by_files.verdict.name == by_lake.verdict.name, (action, by_files, by_lake)
    asked = BrokerChange(11, is_removal=False)
    by_files, by_lake = plan_broker(metadata(quorum), asked), plan_broker(metadata_of_lake(of_lake), asked)
    # A lake replays its log from the beginning, a plan by captures the leader's newest checkpoint.
    verdicts = {by_files.verdict, by_lake.verdict}
    assert verdicts in ({"risky"}, {"not_known"}, {"risky", "not_known"}), (by_files, by_lake)


@pytest.mark.parametrize("cluster", CASES)
def test_a_capture_that_shows_an_error_is_not_counted(
    by_captures: Callable[[str], Opened], cluster: str
) -> None:
    quorum, _, _ = by_captures(cluster)
    assert plan(quorum, Lose((OTHER,))).judged.verdict.name == CASES[cluster][1]
