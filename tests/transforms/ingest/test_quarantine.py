"""What one capture lost: which captures of the replica supply it, and what no copy supplied."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from itertools import permutations
from typing import Any

from transforms.ingest.capture_rows import better_row
from transforms.ingest.quarantine import faults, quarantined

Row = dict[str, Any]
FILE = "__cluster_metadata-0/00000000000000000000.log"


def capture(name: str, day: int, *runs: tuple[int, int, int], source: str = "flag", node_id: int = 1) -> Row:
    """A row of captures, as far as it is read. runs: epoch, first and end offset."""
    at = datetime(2026, 11, day, tzinfo=UTC)
    return {
        "capture_id": name,
        "node_id": node_id,
        "directory_id": "A",
        "captured_at": at,
        "captured_at_source": source,
        "last_captured_at": at,
        "log_start_offset": 0,
        "log_readable": True,
        "epoch_ranges": [
            dict(zip(("leader_epoch", "first_offset", "end_offset"), run, strict=True)) for run in runs
        ],
        "snapshots": [],
        "damage": [],
        "file_faults": [],
        "superseded_faults": None,
    }


def damaged(row: Row, reason: str, first: int | None, end: int | None, file: str = FILE) -> Row:
    """The same capture with damage."""
    lost = {"file": file, "position": 100, "size_bytes": 7, "sha256": None, "reason": reason}
    return row | {"damage": [lost | {"lost_from_offset": first, "lost_to_offset": end}]}


def suppliers(lost: Row, *others: Row) -> list[str]:
    """The captures that supply what one of them lost. Quarantine has it exactly if there is none."""
    found = faults([lost, *others], [])
    assert found == faults([*others, lost], [])
    (fault,) = found
    assert bool(quarantined(found)) is not bool(fault["supplied_by"])
    return fault["supplied_by"]


def test_the_first_capture_that_holds_the_offsets() -> None:
    lost = damaged(capture("lost", 22, (1, 0, 20), (1, 30, 50)), "bad_crc", 20, 30)
    assert suppliers(lost) == []
    assert suppliers(lost, capture("b", 24, (1, 0, 60)), capture("a", 23, (1, 0, 50))) == ["a"]
    assert suppliers(lost, capture("a", 21, (1, 0, 50)), capture("b", 24, (1, 0, 50))) == ["a"]
    assert suppliers(lost, capture("half", 23, (1, 0, 25))) == []
    assert suppliers(lost, capture("low", 23, (1, 0, 25)), capture("high", 24, (1, 25, 50))) == [
        "low",
        "high",
    ]
    assert suppliers(lost, capture("a", 23, (1, 0, 50), node_id=2)) == []


def test_offsets_of_another_epoch_are_other_batches() -> None:
    """A tail that the replica truncated does not supply what took its place."""
    lost = damaged(capture("lost", 23, (1, 0, 20), (2, 30, 50)), "bad_crc", 20, 30)
    assert suppliers(lost, capture("truncated", 22, (1, 0, 40))) == []
    assert suppliers(lost, capture("a", 22, (1, 0, 40)), capture("b", 24, (2, 25, 35))) == []
    assert suppliers(lost, capture("whole", 24, (1, 0, 20), (2, 20, 50))) == ["whole"]
    assert suppliers(lost, capture("whole", 24, (1, 0, 25), (2, 25, 50))) == ["whole"]
    tail = damaged(capture("lost", 23, (1, 0, 20), (2, 20, 50)), "torn_tail", 50, None)
    assert suppliers(tail, capture("truncated", 22, (1, 0, 60))) == []
    assert suppliers(tail, capture("whole", 22, (1, 0, 20), (2, 20, 60))) == ["whole"]


def test_of_an_unknown_number_of_offsets_an_older_capture_may_hold_some_only() -> None:
    lost = damaged(capture("lost", 23, (1, 0, 20)), "bad_crc", 20, None)
    assert suppliers(lost, capture("older", 22, (1, 0, 30))) == []
    assert suppliers(lost, capture("later", 24, (1, 0, 30))) == ["later"]
    torn = damaged(capture("lost", 23, (1, 0, 20)), "torn_tail", 20, None)
    assert suppliers(torn, capture("older", 22, (1, 0, 30))) == ["older"]


def test_where_the_log_goes_on_in_the_next_file_all_up_to_it_was_lost() -> None:
    lost = damaged(capture("lost", 23, (1, 0, 20), (1, 40, 50)), "zero_tail", 20, None)
    assert suppliers(lost, capture("half", 22, (1, 0, 30))) == []
    assert suppliers(lost, capture("whole", 22, (1, 0, 45))) == ["whole"]
    nothing = damaged(capture("lost", 23, (1, 0, 50)), "zero_tail", 20, None)
    assert suppliers(nothing) == ["lost"]


def test_values_that_no_decoder_understood_are_lost_in_every_copy() -> None:
    lost = damaged(capture("lost", 22, (1, 0, 50)), "malformed_value", 20, 30)
    assert suppliers(lost, capture("whole", 23, (1, 0, 50))) == []


def test_a_whole_checkpoint() -> None:
    file = "__cluster_metadata-0/00000000000000000020-0000000001.checkpoint"
    lost = damaged(capture("lost", 22, (1, 0, 50)), "bad_crc", None, None, file)
    held = {"end_offset": 20, "leader_epoch": 1, "content_digest": "x"}
    copy = capture("copy", 23, (1, 0, 50)) | {"snapshots": [held]}
    cases = ((True, "snapshot", ["copy"]), (False, "snapshot", []), (True, "bootstrap", []))
    for complete, kind, expected in cases:
        (fault,) = faults([lost, copy], [held | {"complete": complete, "kind": kind}])
        assert fault["supplied_by"] == expected


def test_a_checkpoint_with_a_value_that_no_decoder_understood() -> None:
    """It is complete, but no copy of it supplies the value, nor does it supply bytes of a damaged copy."""
    held = {"end_offset": 20, "leader_epoch": 1, "content_digest": "x"}
    file = "__cluster_metadata-0/00000000000000000020-0000000001.checkpoint"
    for first, second in (("empty_value", "empty_value"), ("bad_crc", "empty_value")):
        lost = damaged(capture("lost", 22, (1, 0, 50)), first, None, None, file)
        copy = damaged(capture("copy", 23, (1, 0, 50)), second, None, None, file) | {"snapshots": [held]}
        found = faults([lost, copy], [held | {"complete": True, "kind": "snapshot"}])
        assert [fault["supplied_by"] for fault in found] == [[], []]


def test_a_file_that_could_not_be_read() -> None:
    fault = {"file": "capture.json", "reason": "invalid: no time"}
    lost = capture("lost", 22, (1, 0, 50)) | {"file_faults": [fault]}
    assert suppliers(lost, capture("earlier", 21, (1, 0, 50))) == []
    assert suppliers(lost, capture("later", 23, (1, 0, 60))) == ["later"]
    copied_again = capture("lost", 22, (1, 0, 50)) | {"superseded_faults": [fault]}
    assert suppliers(copied_again) == ["lost"]


def test_copies_of_one_capture_in_any_order() -> None:
    """The fault of a copy that another copy does not have is kept apart."""
    fault = {"file": "capture.json", "reason": "invalid: no time"}
    sound = capture("same", 22, (1, 0, 50))
    faulty = capture("same", 23, (1, 0, 50), source="file_time") | {"file_faults": [fault]}
    other = capture("same", 24, (1, 0, 50)) | {"file_faults": [fault | {"reason": "invalid: no JSON"}]}
    merged = {repr(reduce(better_row, order)) for order in permutations((sound, faulty, other))}
    assert len(merged) == 1
    row = better_row(faulty, sound)
    assert (row["file_faults"], row["superseded_faults"]) == ([], [fault])
    assert better_row(row, faulty) == row
    assert better_row(sound, sound)["superseded_faults"] is None
    (lost,) = faults([row], [])
    assert lost["supplied_by"] == ["same"]
    assert faults([faulty], [])[0]["supplied_by"] == []
