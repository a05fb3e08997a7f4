"""A lake as the source of shell and diff, beside a captured replica of the same cluster."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from jobs.cli import main
from jobs.time_travel.lake_source import LakeSource, open_cluster
from jobs.time_travel.open_source import open_captured, open_lake
from jobs.time_travel.source import MetadataSource, voters_at
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.image.differences import differences
from kraft_core.image.events import Event
from kraft_core.image.image import Image
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.missing_records import MissingRecords
from kraft_core.image.replay_path import ReplayRange
from kraft_core.image.replica import CapturedReplica, OutOfReachError
from kraft_core.image.tables import KINDS, PRODUCER_IDS
from transforms.histories.missing import Lacking
from transforms.histories.replay_steps import known_paths
from transforms.lake.delta_rs import exists, rows_with
from transforms.lake.tables import BROKERS, FINDINGS, HISTORIES, TOPICS

DYNAMIC = "rPoTXydvQsK3Nv6AA77Cqg"


@pytest.fixture(scope="module")
def sources(lake: Any, golden: Path) -> tuple[MetadataSource, MetadataSource]:
    """The cluster in the lake, and a replica that holds all of its log."""
    return open_lake(lake.path, DYNAMIC), open_captured(golden / "dynamic-membership/node-3")


def shown(image: Image) -> dict[str, list[str]]:
    """All rows of an image, by kind. Who asked for producer ids a checkpoint forgets."""
    rows = {kind: [BY_NAME[kind].row(value) for _, value in image.tables.items(kind)] for kind in KINDS}
    rows[PRODUCER_IDS] = [{"next": row["next_producer_id"]} for row in rows[PRODUCER_IDS]]
    return {kind: sorted(map(repr, rows[kind])) for kind in KINDS}


# Before all, in the bootstrap transaction, within the life, at checkpoints, at the end.
@pytest.mark.parametrize("offset", [-1, 0, 5, 8, 110, 453, 964, 983, 1894, 1955, 2400, 3000, 3691, 3697])
def test_an_image_is_that_of_the_replica(sources: tuple[MetadataSource, MetadataSource], offset: int) -> None:
    of_lake, of_replica = (source.image_at(offset) for source in sources)
    assert shown(of_lake) == shown(of_replica)
    assert of_lake.in_transaction == of_replica.in_transaction
    if not of_replica.in_transaction:
        assert (of_lake.offset, of_lake.leader_epoch) == (of_replica.offset, of_replica.leader_epoch)
        assert of_lake.timestamp == of_replica.timestamp


@pytest.mark.parametrize(("first", "last"), [(-1, 3697), (110, 453), (2400, 964), (983, 3000), (1894, 1894)])
def test_differences_are_those_of_the_images(
    sources: tuple[MetadataSource, MetadataSource], first: int, last: int
) -> None:
    of_lake = sources[0]
    before, after = (of_lake.image_at(offset) for offset in (first, last))
    found = list(of_lake.differences(before, after))
    assert found == list(differences(before, after))
    assert bool(found) == (first != last)


def test_an_image_is_read_from_the_tables_as_they_were(lake: Any, tmp_path: Path) -> None:
    """Whatever a run does to them before a kind is first asked for."""
    path = shutil.copytree(lake.path, tmp_path / "lake")
    whole = shown(open_cluster(path, DYNAMIC).image_at(2400))
    image = open_cluster(path, DYNAMIC).image_at(2400)
    for table in HISTORIES:
        if exists(path, table):
            DeltaTable(path / table.name).delete()
    assert shown(image) == whole
    assert not any(shown(open_cluster(path, DYNAMIC).image_at(2400))[TOPICS.name])


@pytest.mark.parametrize("offset", [110, 3697])
def test_doubts_do_not_depend_on_what_is_read(
    lake: Any, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    source = open_cluster(lake.path, DYNAMIC)
    missing = MissingRecords(100, 105, None)
    monkeypatch.setattr(source, "_lacking", Lacking([missing], [missing]))
    monkeypatch.setattr(source, "_not_evaluated", ["not evaluated"])
    source.image_at(offset)
    assert source.notes == [missing.sentence, "not evaluated"]


@pytest.mark.parametrize(("first", "last"), [(1, 110), (900, 2400), (3000, 3697)])
def test_each_batch_changes_what_it_changes_in_the_replica(
    lake: Any, golden: Path, first: int, last: int
) -> None:
    of_lake = open_cluster(lake.path, DYNAMIC)
    (directory,) = find_controller_dirs([golden / "dynamic-membership/node-3"]).directories
    of_replica = CapturedReplica.of_directory(directory)
    found: list[list[dict[str, list[str]]]] = []
    for source in (of_lake, of_replica):
        image, after = source.image_at(first - 1), []
        for batch in source.changes_from(image, first, last):
            for change in batch:
                image.tables.put(change)
            if batch:
                after.append(shown(image))
        found.append(after)
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_times_lead_to_the_same_offsets(sources: tuple[MetadataSource, MetadataSource]) -> None:
    of_lake, of_replica = sources
    for time in (1795254000000, 1795254079300, 1795254089300, 1795254150000, 1795254249000):
        assert of_lake.offset_at(time) == of_replica.offset_at(time)
    with pytest.raises(OutOfReachError, match="beyond the end of the log"):
        of_lake.image_at(10_000)


def test_a_time_at_which_missing_offsets_may_have_been_appended_is_undecided(lake: Any) -> None:
    """The path without three offsets."""
    (whole,) = known_paths(lake.path, [DYNAMIC]).values()
    place, around = next((n, s) for n, s in enumerate(whole) if s.first_offset < 1000 < s.end_offset)
    assert isinstance(around, ReplayRange)
    parts = [replace(around, end_offset=1000), replace(around, first_offset=1003)]
    source = LakeSource(lake.path, DYNAMIC, [*whole[:place], *parts, *whole[place + 1 :]])
    below, above = (source.append_before(offset) for offset in (1000, 1004))
    assert below is not None
    assert above is not None
    assert below < above - 1
    assert source.offset_at(below - 1) < 1000
    assert source.offset_at(above) >= 1003
    for time in (below, above - 1):
        with pytest.raises(OutOfReachError, match=r"offset 1000 is missing, .* after offset 999 and .* 1003"):
            source.offset_at(time)


@pytest.mark.parametrize(
    "path",
    [
        ("image", "topics", "byName", "t-assign"),
        ("image", "topics", "byName", "t-*"),
        ("image", "topics", "by*", "t-assign", "0"),
        ("image", "topics", "byName", "{t-assign,t-rf2}", "?"),
        ("image", "topics", "byId", "TOPIC_ID"),
        ("image", "topics", "byId", "TOPIC_ID", "0"),
        ("image", "topics"),
        ("image", "acls"),
        ("image", "features"),
        (),
    ],
)
def test_the_log_of_a_path_is_the_same(
    sources: tuple[MetadataSource, MetadataSource], path: tuple[str, ...]
) -> None:
    topic_id = sources[1].image_at(983).tables.topic_ids["t-assign"]
    path = tuple(topic_id if part == "TOPIC_ID" else part for part in path)

    def events_of(source: MetadataSource) -> list[Any]:
        events = source.events([path], source.last_offset)
        return sorted(
            (e.offset, e.leader_epoch, e.record_type, e.path, repr(e.before), repr(e.after)) for e in events
        )

    assert events_of(sources[0]) == events_of(sources[1]) != []


def test_batches_and_times_of_events_are_the_same(sources: tuple[MetadataSource, MetadataSource]) -> None:
    of_lake, of_replica = sources
    assert isinstance(of_lake, LakeSource)

    def shown(events: Iterable[Event]) -> list[Any]:
        found = [e for e in events if e.is_exact]
        return sorted((e.offset, e.timestamp, e.leader_epoch, e.batch_base_offset) for e in found)

    expected = shown(of_replica.events([("image", "cluster", "brokers")], of_replica.last_offset))
    assert shown(of_lake.events_of({BROKERS: ds.scalar(True)})) == expected != []


def test_voters_and_epochs(sources: tuple[MetadataSource, MetadataSource]) -> None:
    of_lake, of_replica = sources
    # Only the first voter was formatted with the bootstrap set.
    events_of = [(one.offset, one.leader_epoch, one.ids) for one in of_lake.voter_sets() if one.offset >= 0]
    assert events_of == [(one.offset, one.leader_epoch, one.ids) for one in of_replica.voter_sets()]
    assert [(e.leader_epoch, e.leader_id, e.start_offset) for e in of_lake.epochs()] == [
        (e.leader_epoch, e.leader_id, e.start_offset) for e in of_replica.epochs()
    ]


def test_voters_above_missing_records_are_not_known(
    lake: Any, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set of before them may have been replaced; a checkpoint states who could vote."""
    source = open_lake(lake.path, DYNAMIC)
    assert isinstance(source, LakeSource)

    def voters(at: int, *missing: MissingRecords) -> int | None:
        monkeypatch.setattr(source, "_lacking", Lacking(list(missing), list(missing)))
        found = voters_at(source, at)
        return found and found.offset

    of_replica = voters_at(open_captured(golden / "dynamic-membership/node-3"), 3000)
    assert of_replica is not None
    assert voters(3000) == of_replica.offset == 2022
    assert voters(3000, MissingRecords(697, 2589, None)) is None
    assert voters(600, MissingRecords(697, 2589, None)) == 72
    assert voters(3000, MissingRecords(697, 2010, None)) == 2022
    assert voters(2950, MissingRecords(697, 2589, 2938)) == 2022
    assert voters(2900, MissingRecords(697, 2589, 2938)) is None


def test_what_captures_contradict_is_not_known(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that differ are all replayed, so that what they changed may be wrong from there on (rule 3)."""

    def with_finding(path: Any, table: Any, *more: Any, **where: Any) -> list[dict[str, Any]]:
        found = rows_with(path, table, *more, **where)
        return [{"first_offset": 1000, "leader_epochs": [1]}, *found] if table is FINDINGS else found

    monkeypatch.setattr("jobs.time_travel.lake_source.rows_with", with_finding)
    doubt = "captures contradict each other about epoch 1, from offset 1000 on"
    for offset, notes in ((999, []), (1000, [doubt]), (3000, [doubt])):
        source = open_lake(lake.path, DYNAMIC)
        source.image_at(offset)
        assert source.notes == notes


def test_shell_and_diff_ask_it(lake: Any, golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = ["--lake", str(lake.path), "--cluster", DYNAMIC]
    assert main(["shell", *ours, "--at-offset", "983", "ls", "/image/topics/byName"]) == 0
    assert capsys.readouterr().out.split() == ["t-assign", "t-del", "t-rf2", "t-small", "t-wide"]
    replica = golden / "dynamic-membership/node-3"
    assert main(["diff", *ours, "--from", "983", "--to", f"{replica}@983"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no difference"


def test_missing_paths_are_reported(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shell", "--lake", str(lake.path), "ls"]) == 2
    assert "choose one with --cluster" in capsys.readouterr().err
    assert main(["shell", "--lake", str(lake.path), "--cluster", "nobody", "ls"]) == 2
    assert "has no capture of cluster nobody" in capsys.readouterr().err
