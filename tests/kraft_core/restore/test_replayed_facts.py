"""What a replay of all captures shows counts in a restoration, where each directory is whole by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_core.format.batch import RawRecord
from kraft_core.format.log_dirs import BOOTSTRAP_NAME, LOG_DIR_NAME
from kraft_core.format.segment import scan
from kraft_core.restore.content import FORGOTTEN
from kraft_core.restore.replay import Cut
from tests.kraft_core.image.refused import UNKNOWN
from tests.kraft_core.image.worlds import partition_fields, topic_fields
from tests.kraft_core.restore.planned import all_stated, copied, losses, planned
from tests.long.load_mutations import MutableLog, written

WHOLE = "uncommitted-truncation/after"
# Of the newest checkpoint of each node there.
ENDS = {1: 321, 2: 325, 3: 325, 4: 326}
TOPIC, PARTITION, CONFIG, TOKEN, SCRAM_USER, FEATURE_LEVEL = 2, 3, 4, 10, 11, 12
NO_OP, ZK_MIGRATION, BEGIN = 20, 21, 23
KEPT_1, KEPT_2, KEPT_3 = (
    written(CONFIG, resourceType=4, resourceName="", name="log.retention.ms", value=value) for value in "123"
)
SECRETS = {"salt": b"s", "storedKey": b"k", "serverKey": b"k"}
ALICE = written(SCRAM_USER, name="alice", mechanism=1, iterations=4096, **SECRETS)
ZK_MIGRATED = written(ZK_MIGRATION, 0, zkMigrationState=3)


def _file(captures: Path, node: int, name: str) -> Path:
    return captures / f"node-{node}" / LOG_DIR_NAME / name


def _changed(path: Path) -> MutableLog:
    path.chmod(0o644)
    return MutableLog.of(path)


def _without_a_partition(path: Path) -> None:
    """A checkpoint lacks its last partition."""
    file = _changed(path)
    batch, nth = [(b, n) for b, n in file.data() if (b.records[n].value or b"\0\0")[1] == PARTITION][-1]
    del batch.records[nth]
    offset = 0
    for each in file.batches:
        each.records = [record._replace(offset=offset + n) for n, record in enumerate(each.records)]
        offset += len(each.records)
    file.write()


def _append(path: Path, *values: bytes) -> None:
    file = _changed(path)
    for value in values:
        file.append(value)
    file.write()


def _is_no_op(record: RawRecord) -> bool:
    return record.value is not None and record.value[1] == NO_OP


def _begin_at(captures: Path, node: int, end: int) -> None:
    """The log of a node begins with its checkpoint of this end offset, as once Kafka has deleted the rest."""
    folder = captures / f"node-{node}" / LOG_DIR_NAME
    for older in folder.glob("*.checkpoint"):
        if int(older.name[:20]) < end:
            older.unlink()
    for path in sorted(folder.glob("*.log")):
        log = MutableLog.of(path)
        path.unlink()
        log.batches = [batch for batch in log.batches if batch.records[0].offset >= end]
        if log.batches:
            log.path = path.with_name(f"{log.batches[0].records[0].offset:020}.log")
            log.write()


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_refused_record_in_a_transaction_that_is_open(tmp_path: Path, is_refused: bool) -> None:
    """The transaction is left out, but a controller that replays the log terminates (rule 49)."""
    captures = copied(WHOLE, tmp_path)
    partition = written(PARTITION, **partition_fields(UNKNOWN))
    inside = [partition] if is_refused else [written(TOPIC, 0, **topic_fields("t", UNKNOWN)), partition]
    for node in (1, 2, 3, 4):
        log = _changed(max(_file(captures, node, "").glob("*.log")))
        log.append(written(BEGIN), *inside)
        log.write()
    plan = planned(captures)
    assert plan.verdict == ("REFUSED" if is_refused else "SAFE")
    assert is_refused == ("Rule 49 is broken: PARTITION_RECORD at offset 508" in " ".join(plan.refusals))


def test_a_checkpoint_that_differs_from_the_log_of_others(tmp_path: Path) -> None:
    """The source lacks the log below its checkpoint, which lacks a partition (rule 22)."""
    captures = copied(WHOLE, tmp_path)
    _begin_at(captures, 1, 321)
    plan = planned(captures)
    assert plan.made is not None
    assert (plan.verdict, plan.made.source.node_id) == ("SAFE", 1)
    _without_a_partition(_file(captures, 1, f"{321:020}-0000000001.checkpoint"))
    plan = planned(captures)
    assert plan.verdict == "REFUSED"
    assert "Rule 22 is broken: Checkpoint 321-1 of 1@" in " ".join(plan.refusals)


def test_checkpoints_that_contradict_each_other_above_all_logs(tmp_path: Path) -> None:
    """No log shows which of them is right."""
    captures = copied(WHOLE, tmp_path)
    for node, end in ENDS.items():
        _begin_at(captures, node, end)
    assert planned(captures).verdict == "SAFE"
    _without_a_partition(_file(captures, 1, f"{321:020}-0000000001.checkpoint"))
    plan = planned(captures)
    assert plan.verdict == "REFUSED"
    assert plan.refusals[-1].endswith("end at 3@507 with other partitions.")


@pytest.mark.parametrize("at", [None, Cut(end_offset=400), Cut(end_offset=323)])
@pytest.mark.parametrize(
    ("nodes", "named"), [((2, 3, 4), "2"), ((3,), "3"), ((4,), "4"), ((1,), None), ((1, 2, 3, 4), None)]
)
def test_what_a_checkpoint_of_kafka_forgot_by_those_of_others(
    tmp_path: Path, nodes: tuple[int, ...], named: str | None, at: Cut | None
) -> None:
    """No log leads to any of the checkpoints. A log that ends alike with a credential that the source lacks
    shows that Kafka lost it; one that the source has is restored.
    """
    captures = copied(WHOLE, tmp_path)
    for node, end in ENDS.items():
        _begin_at(captures, node, end)
        path = _file(captures, node, f"{end:020}-0000000001.checkpoint")
        _append(path, *([ALICE] if node in nodes else []))
    plan = planned(captures, all_stated(captures, at=at))
    assert plan.made is not None
    assert plan.made.source.node_id == 1
    assert losses(plan).count(FORGOTTEN) == (named is not None)
    if at is None:
        assert plan.verdict == ("SAFE" if named is None else "LOSES")
    for loss in plan.losses:
        if loss.name == FORGOTTEN:
            assert f"The logs of node 1@{plan.made.source.directory_id} and {named}@" in loss.sentence
            assert "differ in scram_users 1 alice: Kafka loses credentials if" in loss.sentence


@pytest.mark.parametrize(
    ("of_source", "of_others", "later", "refusal", "forgot"),
    [
        ([KEPT_1], [KEPT_1], KEPT_3, None, 0),
        ([KEPT_1], [KEPT_2], KEPT_3, "end at 3@400 with other configs.", 0),
        ([], [ALICE], ALICE, None, 1),
        ([ALICE], [], ALICE, None, 0),
    ],
    ids=["equal", "contradict", "source forgot", "others forgot"],
)
def test_an_earlier_moment_at_which_checkpoints_differ(
    tmp_path: Path,
    of_source: list[bytes],
    of_others: list[bytes],
    later: bytes,
    refusal: str | None,
    forgot: int,
) -> None:
    """What differs there is written again before the logs end."""
    captures = copied(WHOLE, tmp_path)
    for node, end in ENDS.items():
        _begin_at(captures, node, end)
        path = _file(captures, node, f"{end:020}-0000000001.checkpoint")
        _append(path, *(of_source if node == 1 else of_others))
        log = _changed(max(_file(captures, node, "").glob("*.log")))
        batch, nth = next((b, n) for b, n in log.data() if _is_no_op(b.records[n]))
        batch.set_value(nth, later)
        log.write()
    assert planned(captures).verdict == "SAFE"
    plan = planned(captures, all_stated(captures, at=Cut(end_offset=400)))
    assert plan.verdict == ("REFUSED" if refusal else "LOSES")
    assert losses(plan).count(FORGOTTEN) == forgot
    if refusal:
        assert plan.refusals[-1].endswith(refusal)


def test_what_a_checkpoint_omits_by_design_excuses_nothing_of_another_kind(tmp_path: Path) -> None:
    """A token may have any id, also the key under which the state of the migration from ZooKeeper is held."""
    captures = copied(WHOLE, tmp_path)
    times = dict.fromkeys(("issueTimestamp", "maxTimestamp", "expirationTimestamp"), 1)
    owned = {"owner": "User:a", "requester": "User:a", "renewers": list[str]()}
    token = written(TOKEN, None, tokenId="zkMigrationState", **owned, **times)
    more = {1: [], 2: [ZK_MIGRATED], 3: [ZK_MIGRATED], 4: [ZK_MIGRATED]}
    for node, end in ENDS.items():
        _begin_at(captures, node, end)
        _append(_file(captures, node, f"{end:020}-0000000001.checkpoint"), *more[node])
    assert planned(captures).verdict == "SAFE"
    _append(_file(captures, 1, f"{ENDS[1]:020}-0000000001.checkpoint"), token)
    plan = planned(captures)
    assert plan.verdict == "REFUSED"
    assert plan.refusals[-1].endswith("end at 3@507 with other delegation_tokens.")


def test_an_earlier_moment_above_a_checkpoint_that_differs_from_the_log(tmp_path: Path) -> None:
    """Only --at is replayed from it."""
    captures = copied("dynamic-membership", tmp_path, 1)
    asked = all_stated(captures, at=Cut(end_offset=2939))
    assert planned(captures, asked).made is not None
    _without_a_partition(_file(captures, 1, f"{2939:020}-0000000006.checkpoint"))
    plan = planned(captures, asked)
    assert plan.verdict == "REFUSED"
    assert "Rule 22 is broken: Checkpoint 2939-6 of 1@" in " ".join(plan.refusals)


def test_what_a_checkpoint_of_kafka_forgot_by_the_log_of_others(tmp_path: Path) -> None:
    """The source lacks the log below its checkpoint; the other one has it, and its checkpoint is right."""
    captures = copied("dynamic-membership", tmp_path, 1, 2)
    _begin_at(captures, 1, 3692)
    plan = planned(captures, all_stated(captures))
    assert plan.made is not None
    assert plan.made.source.node_id == 1
    assert losses(plan).count(FORGOTTEN) == 1
    (forgotten,) = (loss.sentence for loss in plan.losses if loss.name == FORGOTTEN)
    assert forgotten.startswith(
        f"{3692:020}-0000000009.checkpoint and the log below it differ in scram_users 2"
    )


def _of_another_crc(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def _with_a_value_that_is_none(path: Path) -> None:
    file = MutableLog.of(path)
    batch, nth = file.data()[0]
    batch.set_value(nth, bytes([1, FEATURE_LEVEL, 0]))
    file.write()


def _with_more(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _only_a_header(path: Path) -> None:
    """It ends where its first batch does: each byte that is left can be read."""
    content = path.read_bytes()
    first = next(scan(content))
    path.write_bytes(content[: first.end])


def _without_a_header(path: Path) -> None:
    content = path.read_bytes()
    first = next(scan(content))
    path.write_bytes(content[first.end :])


def _not_a_file(path: Path) -> None:
    """What is no regular file cannot be opened, also by root."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("node", [1, 2, 4])
@pytest.mark.parametrize(
    "damage",
    [
        _of_another_crc,
        _with_a_value_that_is_none,
        _with_more,
        _empty,
        _only_a_header,
        _without_a_header,
        _not_a_file,
    ],
)
def test_a_damaged_bootstrap_checkpoint(tmp_path: Path, damage: Callable[[Path], None], node: int) -> None:
    """Of the source, of another voter, or of an observer: the disk may have damaged more. None is needed."""
    captures = copied(WHOLE, tmp_path)
    path = captures / f"node-{node}" / BOOTSTRAP_NAME
    path.chmod(0o644)
    damage(path)
    plan = planned(captures)
    assert plan.verdict == "REFUSED"
    (refusal,) = (each for each in plan.refusals if each.startswith("Rule 0 is broken: "))
    assert f"{BOOTSTRAP_NAME} of {node}@" in refusal
    path.rmdir() if path.is_dir() else path.unlink()
    assert planned(captures).verdict == "SAFE"


def test_the_words_for_an_empty_bootstrap_checkpoint(tmp_path: Path) -> None:
    captures = copied(WHOLE, tmp_path)
    path = captures / "node-2" / BOOTSTRAP_NAME
    path.chmod(0o644)
    _empty(path)
    (refusal,) = (each for each in planned(captures).refusals if each.startswith("Rule 0 is broken: "))
    assert "lacks its header or footer (incomplete): a part of it is missing." in refusal
