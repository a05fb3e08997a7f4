"""A replica asked for its metadata at an offset or a time, with files that are missing, torn or in excess."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.record import Record
from kraft_core.image import tables
from kraft_core.image.differences import differences
from kraft_core.image.history import History
from kraft_core.image.image import Image
from kraft_core.image.replica import CapturedReplica, OutOfReachError
from kraft_core.messages.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from kraft_core.messages.metadata import METADATA_RECORDS
from tests.kraft_core.image.worlds import Row, replay

GOLDEN = Path(__file__).parents[2] / "golden"
MESSAGES = {message.type_name: message for message in METADATA_RECORDS}


def feature(offset: int, timestamp: int, level: int) -> Row:
    return Row(offset, 1, timestamp, "FEATURE_LEVEL_RECORD", {"name": "f", "featureLevel": level})


# The level of the feature is the offset plus one; the clock goes back at offset 3.
LOG = [feature(offset, time, offset + 1) for offset, time in enumerate([100, 200, 300, 250, 400, 500])]


def batch(row: Row) -> bytes:
    value = write_metadata_value(MESSAGES[row.type], 0, row.value)
    return write_batch(row.offset, row.leader_epoch, [RawRecord(row.offset, row.timestamp, None, value)])


def control(offset: int, type_: int, value: dict[str, int]) -> bytes:
    key = b"\x00\x00" + type_.to_bytes(2, "big")
    record = RawRecord(offset, 0, key, write_control_value(type_, {"version": 0} | value))
    return write_batch(offset, 1, [record], is_control=True)


class Files:
    """A log directory that a test fills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "__cluster_metadata-0"
        self.folder.mkdir()

    def segment(self, rows: list[Row]) -> Path:
        path = self.folder / f"{rows[0].offset:020d}.log"
        path.write_bytes(b"".join(map(batch, rows)))
        return path

    def checkpoint(self, end_offset: int, timestamp: int) -> Path:
        path = self.folder / f"{end_offset:020d}-{1:010d}.checkpoint"
        path.write_bytes(
            control(0, SNAPSHOT_HEADER, {"lastContainedLogTimestamp": timestamp})
            + batch(feature(1, timestamp, end_offset))
            + control(2, SNAPSHOT_FOOTER, {})
        )
        return path

    def replica(self) -> CapturedReplica:
        (directory,) = find_controller_dirs([self.folder.parent]).directories
        return CapturedReplica.of_directory(directory)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def level(image: Image) -> int | None:
    value = image.tables.get(tables.FEATURES, ("f",))
    return None if value is None else value.level


def test_every_offset_of_a_whole_log(files):
    files.segment(LOG[:2])
    files.segment(LOG[2:])
    replica = files.replica()
    assert [level(replica.image_at(offset)) for offset in range(-1, 6)] == [None, 1, 2, 3, 4, 5, 6]
    assert (replica.image_at().offset, replica.last_offset, replica.notes) == (5, 5, [])


@pytest.mark.parametrize(
    ("time", "offset"), [(99, -1), (100, 0), (299, 1), (300, 3), (399, 3), (400, 4), (10_000, 5)]
)
def test_times_are_mapped_by_the_running_maximum_of_timestamps(files, time, offset):
    files.segment(LOG)
    assert files.replica().offset_at(time) == offset


def test_a_checkpoint_takes_effect_by_the_running_maximum_too(files):
    """Its time is that of the last batch below it, whose leader's clock had gone back."""
    files.segment(LOG)
    files.checkpoint(4, 250)
    replica = files.replica()
    assert [replica.offset_at(time) for time in (99, 250, 299, 300, 400)] == [-1, 1, 1, 3, 4]


def test_a_clock_that_went_back_above_a_checkpoint(files):
    files.checkpoint(3, 300)
    files.segment(LOG[3:])
    replica = files.replica()
    with pytest.raises(OutOfReachError, match="before the oldest known state"):
        replica.offset_at(260)
    assert [replica.offset_at(time) for time in (300, 400)] == [3, 4]


def test_a_checkpoint_without_a_time_bounds_no_time(files):
    files.checkpoint(3, -1)
    files.segment(LOG[3:])
    replica = files.replica()
    with pytest.raises(OutOfReachError, match="before the oldest known state"):
        replica.offset_at(249)
    assert (level(replica.image_at(2)), replica.offset_at(250)) == (3, 3)


def test_a_time_at_which_missing_offsets_may_have_been_appended_is_undecided(files):
    """The clocks of leaders are no finer than a millisecond: so is the time of the last known record."""
    files.segment(LOG[:2])
    files.segment(LOG[4:5])
    replica = files.replica()
    assert [replica.offset_at(time) for time in (99, 100, 199, 400)] == [-1, 0, 0, 4]
    for time in (200, 399):
        missing = "undecided: offset 2 is missing, .* those after offset 1 and after offset 4"
        with pytest.raises(OutOfReachError, match=missing):
            replica.offset_at(time)
    files.checkpoint(6, 500)  # the one offset that it adds is of its time
    assert files.replica().offset_at(499) == 4
    files.checkpoint(7, 600)
    assert files.replica().offset_at(599) == 5


def test_an_image_is_its_askers_own(files):
    """Also the newest, which the replica keeps."""
    files.segment(LOG)
    replica = files.replica()
    for offset in (None, 5, 2):
        whole = replica.image_at(offset)
        changed = replica.image_at(offset)
        changed.apply(feature(whole.offset + 1, 600, 99))
        assert replica.image_at(offset).tables == whole.tables != changed.tables
        assert replica.image_at(offset).offset == whole.offset < changed.offset


def test_an_offset_beyond_the_log_is_out_of_reach(files):
    files.segment(LOG)
    with pytest.raises(OutOfReachError, match="offset 6 is beyond the end of the log; its last offset is 5"):
        files.replica().image_at(6)


def test_a_log_without_its_beginning_starts_at_the_checkpoint(files):
    files.segment(LOG[2:])
    files.checkpoint(3, 300)
    replica = files.replica()
    assert [level(replica.image_at(offset)) for offset in (2, 3, 5)] == [3, 4, 6]
    with pytest.raises(
        OutOfReachError, match="undecided: offset 1 is gone; the oldest known state is the one after offset 2"
    ):
        replica.image_at(1)
    assert replica.offset_at(300) == 3
    with pytest.raises(OutOfReachError, match="before the oldest known state"):
        replica.offset_at(99)


def test_offsets_between_an_old_checkpoint_and_the_log_are_missing(files):
    files.checkpoint(1, 100)
    files.segment(LOG[3:])
    files.checkpoint(4, 250)
    replica = files.replica()
    assert [level(replica.image_at(offset)) for offset in (0, 3, 5)] == [1, 4, 6]
    with pytest.raises(OutOfReachError, match="offset 2 is gone"):
        replica.image_at(2)


def test_a_log_without_beginning_and_checkpoint_is_noted(files):
    files.segment(LOG[4:])
    replica = files.replica()
    assert level(replica.image_at()) == 6
    assert replica.notes == ["no checkpoint covers the log before offset 4"]


def test_a_checkpoint_beyond_the_log_is_the_newest_state(files):
    files.segment(LOG[:2])
    files.checkpoint(6, 500)
    replica = files.replica()
    assert (replica.last_offset, level(replica.image_at()), replica.offset_at(500)) == (5, 6, 5)
    with pytest.raises(OutOfReachError, match="offset 3 is missing; the last one before it is 1"):
        replica.image_at(3)
    assert [step.offset for step in replica.steps()] == [-1, 0, 1, 5]


def test_only_checkpoints(files):
    files.checkpoint(3, 300)
    files.checkpoint(6, 500)
    replica = files.replica()
    assert [level(replica.image_at(offset)) for offset in (2, 5)] == [3, 6]
    assert replica.offset_at(500) == 5
    assert [step.offset for step in replica.steps()] == [2, 5]


def test_an_unfinished_checkpoint_is_left_out_and_named(files):
    files.segment(LOG)
    path = files.checkpoint(3, 300)
    path.write_bytes(path.read_bytes()[:-70])
    replica = files.replica()
    assert level(replica.image_at()) == 6
    (note,) = replica.notes
    assert note.startswith(f"{path.name} is not a complete checkpoint: no footer at the end")


def test_a_gap_is_noted_and_history_continues_from_the_next_checkpoint(files):
    files.segment(LOG[:2])
    files.segment(LOG[4:])
    files.checkpoint(4, 350)
    replica = files.replica()
    assert replica.notes == ["offsets 2 to 3 are missing"]
    steps = list(replica.steps())
    assert [(type(step) is Image, step.offset) for step in steps] == [
        (True, -1),
        (False, 0),
        (False, 1),
        (True, 3),
        (False, 4),
        (False, 5),
    ]


def test_segments_that_overlap_are_read_once(files):
    files.segment(LOG[:4])
    files.segment(LOG[2:])
    replica = files.replica()
    assert [step.offset for step in replica.steps() if isinstance(step, Record)] == [0, 1, 2, 3, 4, 5]
    assert len(replica.notes) == 2
    assert "offset 2 repeated, skipped" in replica.notes[0]


def test_a_log_that_goes_back_to_a_lower_epoch_is_named(files):
    """No CRC covers the epoch of a batch: of a flipped bit nothing else tells."""
    path = files.segment(LOG)
    content = bytearray(path.read_bytes())
    content[2 * len(batch(LOG[0])) + 12 + 3] ^= 2  # partitionLeaderEpoch: 1 becomes 3
    path.write_bytes(content)
    assert files.replica().notes == [
        f"{path.name}: the log goes back from epoch 3 to 1 at offset 3: it was damaged, or assembled from two"
    ]


def test_damage_is_named_and_the_rest_is_read(files):
    path = files.segment(LOG)
    content = bytearray(path.read_bytes())
    content[len(batch(LOG[0])) + 70] ^= 1
    path.write_bytes(content)
    replica = files.replica()
    assert level(replica.image_at()) == 6
    assert "cannot be read: bad_crc" in replica.notes[0]
    assert "offset 1 is missing" in replica.notes[1]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_known_at_an_offset_does_not_depend_on_what_was_asked_before(files, seed):
    """Records that are missing or damaged hide what they changed, up to the next checkpoint."""
    random = Random(seed)
    held = [feature(offset, 100 * offset, 1) for offset in range(60) if random.random() > 0.1]
    lost = {row.offset for row in held if random.random() < 0.1}
    unreadable = b"\x01\x0c\x00\xff"
    written = [
        write_batch(row.offset, 1, [RawRecord(row.offset, 0, None, unreadable)])
        if row.offset in lost
        else batch(row)
        for row in held
    ]
    (files.folder / f"{held[0].offset:020d}.log").write_bytes(b"".join(written))
    ends = sorted({row.offset + random.randint(0, 1) for row in random.sample(held, 3)} - {0})
    for end in ends:
        files.checkpoint(end, 0)
    readable = {row.offset for row in held} - lost
    expected = {}
    for row in held:
        base = max((end for end in ends if end <= row.offset + 1), default=0)
        unknown = [offset for offset in range(base, row.offset + 1) if offset not in readable]
        expected[row.offset] = unknown[-1] + 1 if unknown else 0
    replica = files.replica()
    asked = random.choices(held, k=200)
    assert {row.offset: replica.known_from(row.offset) for row in held} == expected
    assert [replica.known_from(row.offset) for row in asked] == [expected[row.offset] for row in asked]
    assert {row.offset: files.replica().known_from(row.offset) for row in held} == expected


def test_fields_of_a_newer_kafka_are_named_once(files):
    """What they changed is not known: the rest of the metadata may be another."""
    newer = [replace(row, value=row.value | {"unknownTaggedFields": [(99, b"x")]}) for row in LOG[2:4]]
    files.segment([*LOG[:2], *newer, *LOG[4:]])
    replica = files.replica()
    assert level(replica.image_at(1)) == 2
    assert replica.notes == []
    assert level(replica.image_at()) == 6
    assert replica.notes == ["the log: FEATURE_LEVEL_RECORD at offset 2 has fields of a newer Kafka"]


def test_a_torn_tail_ends_the_log(files):
    path = files.segment(LOG)
    path.write_bytes(path.read_bytes()[:-5])
    replica = files.replica()
    assert replica.last_offset == 4
    assert "torn_tail" in replica.notes[0]


def test_an_empty_directory_and_an_empty_file_are_empty(files, tmp_path):
    (files.folder / f"{0:020d}.log").touch()
    assert files.replica().is_empty
    other = tmp_path / "some.file"
    other.touch()
    assert CapturedReplica.of_file(other).is_empty


def test_single_files(files):
    segment, checkpoint = files.segment(LOG[:3]), files.checkpoint(3, 300)
    assert level(CapturedReplica.of_file(segment).image_at()) == 3
    assert (
        CapturedReplica.of_file(checkpoint).image_at().offset,
        level(CapturedReplica.of_file(checkpoint).image_at()),
    ) == (
        2,
        3,
    )


@pytest.mark.parametrize("node", ["dynamic-membership/node-3", "static-upgrade/node-4", "v4.4.0-mini/node-1"])
def test_golden_at_every_fiftieth_offset(node):
    """From the nearest checkpoint or along the steps from the oldest: the same."""
    (directory,) = find_controller_dirs([GOLDEN / node]).directories
    replica = CapturedReplica.of_directory(directory)
    assert replica.notes == []
    replayed = History()
    for step in replica.steps():
        if isinstance(step, Image):
            replayed.load(step)
        else:
            replayed.apply(step)
        if step.offset % 50 == 0 and step.offset > 0:
            assert list(differences(replica.image_at(step.offset), replayed.image)) == []
            assert replica.image_at(step.offset).offset == replayed.image.offset
    assert replayed.image.offset == replica.last_offset


def test_a_moved_copy_is_equal(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(GOLDEN / "v4.4.0-mini/node-1", copy)
    (one,) = find_controller_dirs([copy]).directories
    (other,) = find_controller_dirs([GOLDEN / "v4.4.0-mini/node-1"]).directories
    assert (
        CapturedReplica.of_directory(one).image_at().tables
        == CapturedReplica.of_directory(other).image_at().tables
    )


def test_the_log_agrees_with_rows_made_by_hand():
    assert level(replay(LOG)) == 6


# From within the bootstrap transaction, over checkpoints, and nothing.
@pytest.mark.parametrize(("first", "last"), [(6, 110), (900, 2400), (3000, 3697), (3698, 3697)])
def test_the_changes_of_batches_lead_to_the_image_after_them(first: int, last: int) -> None:
    (directory,) = find_controller_dirs([GOLDEN / "dynamic-membership/node-3"]).directories
    replica = CapturedReplica.of_directory(directory)
    image = replica.image_at(first - 1)
    before = image.copy()
    batches = list(replica.changes_from(image, first, last))
    assert image.tables == before.tables
    for change in (change for batch in batches for change in batch):
        image.tables.put(change)
    assert image.tables == replica.image_at(last).tables
    if first <= last:
        assert sum(map(len, batches)) > len([batch for batch in batches if batch]) > 1
