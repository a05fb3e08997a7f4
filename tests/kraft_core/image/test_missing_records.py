"""What a replay path lacks, and which versions that may concern."""

from kraft_core.image.missing_records import MissingRecords, may_lack, missing_records
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange


def log(first: int, end: int) -> ReplayRange:
    return ReplayRange(first, end, 1, "committed")


def snapshot(end: int) -> PathCheckpoint:
    return PathCheckpoint(end, 1, str(end), None)


def test_what_a_path_lacks():
    assert missing_records([log(0, 9), log(9, 20)], ()) == []
    assert missing_records([log(5, 20)], ()) == [MissingRecords(0, 5, None)]
    assert missing_records([log(0, 9), log(12, 20)], ()) == [MissingRecords(9, 12, None)]
    # Nobody asks for the state between the end of a log and a checkpoint, which states all.
    assert missing_records([log(0, 9), snapshot(12), log(12, 20)], ()) == []
    assert missing_records([snapshot(12), log(12, 20)], ()) == []
    assert missing_records([log(0, 9), log(11, 15), snapshot(18), log(18, 20)], [(3, 4), (19, 20)]) == [
        MissingRecords(3, 4, 17),
        MissingRecords(9, 11, 17),
        MissingRecords(19, 20, None),
    ]


def test_one_record_is_singular():
    one = "record 3 is missing: what it changed is unknown from there on"
    assert MissingRecords(3, 4, None).sentence == one
    more = "records 3 to 5 are missing: what they changed is unknown from there on, up to the snapshot at 9"
    assert MissingRecords(3, 6, 9).sentence == more


def test_which_versions_it_concerns():
    missing = missing_records([log(0, 9), log(11, 15), snapshot(18), log(18, 30)], [(25, 26)])
    assert may_lack([], 0, None) is None
    assert may_lack(missing, 2, 5) is None  # it ended before
    assert may_lack(missing, 2, 9) is None
    assert may_lack(missing, 2, 12) == (9, 17)  # it may have ended in between, and begun again
    assert may_lack(missing, 2, None) == (9, None)
    assert may_lack(missing, 12, 14) == (9, 17)  # what came between is not known
    assert may_lack(missing, 16, 20) == (9, 17)
    assert may_lack(missing, 17, 20) is None  # a checkpoint states it
    assert may_lack(missing, 20, 26) == (25, None)
    assert may_lack(missing, 27, None) == (25, None)
