"""Which captures of one cluster id are of one history, and which are of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.evidence.life_lines import BatchPlace, LoggedCapture, LoggedCheckpoint, LoggedRange
from kraft_core.evidence.lives import ClusterLife, lives_of

HOUR = 3_600_000


@dataclass(frozen=True)
class Batch:
    """A batch of a log; its CRC stands for its content."""

    leader_epoch: int
    first: int
    end: int
    crc: int
    at: int


Log = tuple[Batch, ...]


def log(crc: int, *ends: tuple[int, int], first: int = 0, at: int = 0) -> Log:
    """A log whose batches have CRCs from `crc` on: for each end (epoch, end offset) batches of 10 records."""
    batches: list[Batch] = []
    for epoch, end in ends:
        while first < end:
            n = len(batches)
            batches.append(Batch(epoch, first, min(first + 10, end), crc + n, at + first * 1000))
            first = min(first + 10, end)
    return tuple(batches)


def of(log: Iterable[Batch], first: int = 0, end: int = 1 << 40) -> Log:
    """The batches of a log between two offsets."""
    return tuple(batch for batch in log if first <= batch.first and batch.end <= end)


def captured(name: str, log: Sequence[Batch], **facts: object) -> LoggedCapture:
    """A capture of a log that was cut anywhere."""
    ranges = []
    for epoch, group in groupby(log, key=lambda batch: batch.leader_epoch):
        held = list(group)
        low, high = held[0], held[-1]
        ranges.append(LoggedRange(epoch, low.first, high.end, low.at, high.at, low.crc))
    return replace(LoggedCapture(name, tuple(ranges)), **facts)  # type: ignore[arg-type]


Named = dict[str, Log]


def judged(captures: Sequence[LoggedCapture], logs: Named) -> list[ClusterLife]:
    """The lives, when the batches that must be compared are read of the logs of the captures."""

    def batches(place: BatchPlace) -> frozenset[int]:
        held = [logs[c.capture_id] for c in captures if place.owner in (c.capture_id, c.known_life)]
        return frozenset(b.crc for log in held for b in log if (b.leader_epoch, b.first) == place[1:])

    return lives_of(captures, lambda places: {place: batches(place) for place in places})


def lives(logs: Named, **facts: dict[str, object]) -> list[list[str]]:
    """The lives of captures of these logs, as names of captures."""
    captures = [captured(name, held, **facts.get(name, {})) for name, held in logs.items()]
    return [list(life.capture_ids) for life in judged(captures, logs)]


def checkpoint(end: int, epoch: int, digest: str = "digest") -> dict[str, object]:
    return {"checkpoints": frozenset({LoggedCheckpoint(end, epoch, digest)})}


TUTORIAL = log(1000, (1, 100), (2, 300))
STRANGER = log(5000, (1, 250), at=HOUR)


def test_captures_of_growing_logs_are_one_life() -> None:
    found = lives({"a1": of(TUTORIAL, end=50), "b1": of(TUTORIAL, end=40), "a2": TUTORIAL})
    assert found == [["a1", "a2", "b1"]]


def test_two_clusters_that_begin_with_other_batches_are_two_lives() -> None:
    assert lives({"a": TUTORIAL, "b": STRANGER}) == [["a"], ["b"]]


def test_the_newest_record_makes_a_life_the_newest() -> None:
    other = log(5000, (1, 250), at=-HOUR)
    assert lives({"a": of(TUTORIAL, end=200), "b": other}) == [["b"], ["a"]]


def test_a_truncated_tail_is_no_other_life() -> None:
    overruled = (*of(TUTORIAL, end=100), *log(7000, (1, 140), first=100))
    assert lives({"a": TUTORIAL, "b": overruled, "c": of(overruled, first=20)}) == [["a", "b", "c"]]


def test_a_clone_with_its_common_past_is_one_life_and_without_it_two() -> None:
    clone = (*of(TUTORIAL, end=100), *log(7000, (2, 400), first=100))
    assert lives({"a": TUTORIAL, "b": clone}) == [["a", "b"]]
    cleaned = {"a": of(TUTORIAL, first=100), "b": of(clone, first=100)}
    assert lives(cleaned) == [["a"], ["b"]]
    before = {"a-before": of(TUTORIAL, end=120), "b-before": of(clone, first=50, end=120)}
    assert lives(cleaned | before) == [["a", "a-before", "b", "b-before"]]


def test_a_staging_copy_that_has_not_gone_on_is_the_same_life() -> None:
    assert lives({"a": TUTORIAL, "copy": of(TUTORIAL, end=200)}) == [["a", "copy"]]


def test_a_log_cut_within_an_epoch_is_compared_where_both_have_a_batch() -> None:
    logs = {"a": of(TUTORIAL, first=130), "b": of(TUTORIAL, first=160), "c": of(STRANGER, first=120)}
    places: set[BatchPlace] = set()
    lives_of([captured(name, held) for name, held in logs.items()], lambda asked: places.update(asked) or {})
    assert ("a", 2, 160) in places
    assert ("b", 2, 160) not in places  # its first batch is known
    assert lives(logs) == [["a", "b"], ["c"]]


def test_what_was_not_compared_is_not_connected() -> None:
    captures = [captured("a", of(TUTORIAL, first=130)), captured("b", of(TUTORIAL, first=160))]
    assert [life.capture_ids for life in lives_of(captures)] == [("a",), ("b",)]


def test_captures_without_a_common_offset_are_one_life() -> None:
    logs = {"a": of(TUTORIAL, end=80), "b": of(TUTORIAL, first=200), "empty": ()}
    assert lives(logs) == [["a", "b", "empty"]]


def test_beside_a_stranger_they_are_not_where_nothing_connects_them() -> None:
    logs = {"a": of(TUTORIAL, end=80), "b": of(TUTORIAL, first=200), "empty": (), "s": of(STRANGER, end=60)}
    assert lives(logs) == [["empty"], ["s"], ["a"], ["b"]] or lives(logs) == [["empty"], ["a"], ["b"], ["s"]]
    joined: dict[str, dict[str, object]] = {n: {"directory": (1, "dir")} for n in ("a", "b", "empty")}
    assert sorted(lives(logs, **joined)) == [["a", "b", "empty"], ["s"]]
    shared = {n: checkpoint(250, 2) for n in ("a", "b")}
    assert sorted(lives(logs, **shared)) == [["a", "b"], ["empty"], ["s"]]


def test_the_directory_id_of_a_cloned_image_connects_nothing() -> None:
    image: dict[str, dict[str, object]] = {name: {"directory": (1, "dir")} for name in ("a", "b", "c")}
    logs = {"a": TUTORIAL, "b": STRANGER, "c": of(TUTORIAL, first=200)}
    assert lives(logs, **image) == [["a", "c"], ["b"]]
    logs["c"] = log(9000, (7, 900), first=800, at=HOUR)
    assert sorted(lives(logs, **image)) == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("second", "count"),
    [
        (log(5000, (3, 80), at=0), 1),  # earlier, and in no higher epoch: the older part of the log
        (log(5000, (3, 80), at=9 * HOUR), 2),  # formatted anew after the old log had been cleaned
        (log(5000, (6, 80), at=0), 2),
    ],
)
def test_what_lies_below_must_be_older(second: Log, count: int) -> None:
    assert len(lives({"a": log(1000, (5, 900), first=700), "b": second})) == count


@pytest.mark.parametrize(
    ("end", "epoch", "count"),
    [
        (200, 2, 2),  # it would prove everything below 200 committed
        (900, 2, 2),  # it would prove the whole log committed
        (900, 3, 1),  # what became of the log's tail is not known
        (200, 1, 2),  # the record below it is of epoch 2 in the log
        (200, 3, 2),
        (250, 3, 2),
    ],
)
def test_a_checkpoint_that_nothing_connects_proves_nothing(end: int, epoch: int, count: int) -> None:
    logs: Named = {"a": of(TUTORIAL, end=250), "s": ()}
    assert len(lives(logs, s=checkpoint(end, epoch))) == count
    connected = checkpoint(end, epoch) | {"directory": (1, "dir")}
    joined = lives(logs, a={"directory": (1, "dir")}, s=connected)
    assert len(joined) == (2 if (end, epoch) in ((200, 1), (200, 3), (250, 3)) else 1)


def test_a_log_does_not_begin_with_the_voters_of_a_strange_checkpoint() -> None:
    logs: Named = {"a": of(TUTORIAL, first=200), "s": ()}
    assert len(lives(logs, s=checkpoint(200, 1))) == 2
    assert len(lives(logs, s=checkpoint(100, 1))) == 1
    assert len(lives(logs, s=checkpoint(100, 2))) == 1
    assert len(lives(logs, a=checkpoint(200, 1), s=checkpoint(200, 1))) == 1


def test_of_two_checkpoints_epochs_rise() -> None:
    assert len(lives({"a": (), "s": ()}, a=checkpoint(200, 3), s=checkpoint(900, 2))) == 2
    assert len(lives({"a": (), "s": ()}, a=checkpoint(200, 3), s=checkpoint(900, 4))) == 1


def test_logs_of_one_epoch_are_of_one_life_only_if_something_connects_them() -> None:
    logs = {"a": of(TUTORIAL, 100, 150), "b": of(TUTORIAL, first=200)}
    assert lives(logs) == [["a"], ["b"]]
    same = {"directory": (1, "dir")}
    assert lives(logs, a=same, b=same) == [["a", "b"]]
    assert lives(logs | {"c": of(TUTORIAL, first=140)}) == [["a", "b", "c"]]


def test_a_log_that_begins_where_another_ends_is_of_its_life_only_if_something_connects_them() -> None:
    assert len(lives({"a": of(TUTORIAL, end=100), "b": of(TUTORIAL, first=100)})) == 2
    assert len(lives({"a": of(TUTORIAL, end=100), "b": of(TUTORIAL, first=110)})) == 1


def test_a_life_that_was_known_before_lives_were_told_apart_is_divided() -> None:
    logs = {"a": TUTORIAL, "b": STRANGER, "a2": of(TUTORIAL, end=90), "b2": of(STRANGER, end=90)}
    assert lives(logs, **{name: {"known_life": "X"} for name in logs}) == [["a", "a2"], ["b", "b2"]]


def test_a_life_keeps_its_name_when_it_grows() -> None:
    both = {"a": captured("a", TUTORIAL), "b": captured("b", STRANGER)}
    names = {life.capture_ids: life.name for life in lives_of(both.values())}
    more = [*both.values(), captured("a2", of(TUTORIAL, end=200))]
    again = {life.capture_ids: life.name for life in lives_of(more)}
    assert again[("a", "a2")] == names[("a",)]
    assert len(set(names.values())) == 2


# --- any captures of any histories ---


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Log]:
    """Captures, named after their true history, which is one of three; tails may have been overruled."""
    logs: dict[str, Log] = {}
    for cluster in range(draw(st.integers(1, 3))):
        ends, end = [], 0
        for epoch in draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)):
            end += draw(st.integers(1, 6)) * 10
            ends.append((epoch, end))
        ends = [(epoch, end) for epoch, (_, end) in zip(sorted(e for e, _ in ends), ends, strict=True)]
        whole = log(1000 * (cluster + 1), *ends, at=draw(st.integers(0, 3)) * HOUR)
        for n in range(draw(st.integers(1, 4))):
            first = draw(st.integers(0, end // 10 - 1)) * 10
            held = of(whole, first, draw(st.integers(first // 10 + 1, end // 10)) * 10)
            tail: Log = ()
            if held and draw(st.booleans()):
                last = held[-1]
                crc = 10_000 * (cluster + 1) + 100 * n + last.first
                tail = log(crc, (last.leader_epoch, last.end + 20), first=last.end, at=last.at)
                tail = () if tail[0].first < end and held == () else tail
            logs[f"{cluster}-{n}"] = (*held, *tail)
    return logs


def overlap(one: Log, other: Log) -> bool:
    return any(a.first < b.end and b.first < a.end for a in one for b in other)


@given(histories(), st.data())
def test_nothing_joins_logs_that_share_no_batch_where_they_meet(logs: Named, data: st.DataObject) -> None:
    captures = [captured(name, held) for name, held in logs.items()]
    found = judged(captures, logs)
    assert sorted(c for life in found for c in life.capture_ids) == sorted(logs)
    for life in found:
        clusters = {name[0] for name in life.capture_ids}
        for one in life.capture_ids:
            for other in life.capture_ids:
                if one[0] != other[0]:
                    assert not overlap(logs[one], logs[other])
        if len(found) > 1:
            assert len(clusters) == 1
    assert judged(data.draw(st.permutations(captures)), logs) == found


@given(histories(), st.data())
def test_any_split_of_runs_tells_the_same_lives(logs: Named, data: st.DataObject) -> None:
    names = data.draw(st.permutations(sorted(logs)))
    known: dict[str, str] = {}
    at_once = judged([captured(name, held) for name, held in logs.items()], logs)
    done: list[str] = []
    found: list[ClusterLife] = []
    while len(done) < len(names):
        done = names[: len(done) + data.draw(st.integers(1, 3))]
        captures = [captured(name, logs[name], known_life=known.get(name)) for name in done]
        found = judged(captures, logs)
        known = {c: f"X/{life.name}" for life in found for c in life.capture_ids}
    assert found == at_once


@given(histories(), st.data())
def test_copies_of_a_known_capture_are_of_its_life(logs: Named, data: st.DataObject) -> None:
    """Captures that are equal but for their ids may be given as one."""
    known = data.draw(st.sets(st.sampled_from(sorted(logs))))
    one = [captured(n, held, known_life=n[0] if n in known else None) for n, held in logs.items()]
    names = {each.capture_id: f"{each.capture_id}-again" for each in one if each.capture_id in known}
    continued = [
        replace(e, continues=frozenset(data.draw(st.sets(st.sampled_from([*names.values(), "?"])))))
        for e in one
    ]
    apart = [
        *continued,
        *(replace(e, capture_id=names[e.capture_id]) for e in continued if e.capture_id in names),
    ]
    joined = [replace(e, copies=(names[e.capture_id],) if e.capture_id in names else ()) for e in continued]
    every = logs | {name: logs[id_] for id_, name in names.items()}
    assert judged(joined, every) == judged(apart, every)
