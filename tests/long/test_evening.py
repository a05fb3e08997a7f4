"""An evening of a real quorum: changed, captured and run three times; lake and page tell what happened.

What is expected is what this script did and what Kafka's own tools printed meanwhile; kraftlake is given the
captures alone. Needs `make kafka`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.report.formatting import listed
from jobs.cli import main
from tests.dashboards.browser import Visit, launched
from tests.long.live_quorum import LiveQuorum, kafka_tools

pytestmark = pytest.mark.long

Row = dict[str, Any]
Voters = frozenset[tuple[int, str]]
# A replica that must never want an election of its own, its log being longer than a voter's. Milliseconds.
NEVER = 600_000
# Long enough for a leader to be asked and copied while its followers stand still.
PATIENT_MS = 40_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What describe --status printed; it was so at one moment between began and ended."""

    began: datetime
    ended: datetime
    leader: int
    epoch: int
    high_watermark: int
    voters: Voters


@dataclass(slots=True)
class Evening:
    """What was done and seen, and where the lake and the page of it lie."""

    quorum: LiveQuorum
    copies: Path
    lake: Path
    page: Path
    seen: dict[str, Seen] = field(default_factory=dict)
    ended_with: list[int] = field(default_factory=list)

    def look(self, label: str, by: int) -> Seen:
        """Ask a controller until it knows of a leader and of its high watermark."""
        for _ in range(60):
            began = datetime.now(UTC)
            said = self.quorum.status(by)
            watermark = int(said.get("HighWatermark", "-1"))
            if watermark >= 0 and int(said["LeaderId"]) >= 0:
                voters = frozenset((v["id"], v["directoryId"]) for v in json.loads(said["CurrentVoters"]))
                ended = datetime.now(UTC)
                self.seen[label] = Seen(
                    began, ended, int(said["LeaderId"]), int(said["LeaderEpoch"]), watermark, voters
                )
                return self.seen[label]
        raise AssertionError(f"{label}: node {by} knows of no leader")

    def until(self, label: str, by: int, holds: Callable[[Seen], bool]) -> Seen:
        for _ in range(60):
            if holds(self.look(label, by)):
                return self.seen[label]
        raise AssertionError(f"{label}: {self.seen[label]}")

    def capture(self, *nodes: int) -> None:
        folders = [str(self.quorum.folder(node)) for node in nodes]
        assert main(["capture", *folders, "--to", str(self.copies)]) == 0

    def run(self) -> None:
        words = ["run", "--captures", str(self.copies), "--lake", str(self.lake), "--report", str(self.page)]
        self.ended_with.append(main(words))


@dataclass(frozen=True, slots=True)
class Story:
    """Who played which part: decided by Kafka's elections, noted while it happened."""

    evening: Evening
    first: int
    removed: int
    second: int
    third: int
    sets: tuple[Voters, ...]
    added_between: tuple[datetime, datetime]
    lost_between: tuple[datetime, datetime]
    killed: tuple[datetime, datetime]
    restarted: datetime

    @property
    def seen(self) -> dict[str, Seen]:
        return self.evening.seen


@pytest.fixture(scope="module")
def story(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The evening, once for all tests."""
    tools = kafka_tools()
    assert spark
    folder = tmp_path_factory.mktemp("evening")
    quorum = LiveQuorum(tools, folder / "quorum", 29900, fetch_timeouts=dict.fromkeys((1, 2, 3), PATIENT_MS))
    try:
        return played(Evening(quorum, folder / "copies", folder / "lake", folder / "page.html"))
    finally:
        quorum.close()


def played(evening: Evening) -> Story:
    """Add voter 4, remove a follower, lose the leader; lose a change of voters with the next leader."""
    quorum = evening.quorum
    everyone = (1, 2, 3, 4)
    key = begun(quorum)

    first = evening.look("begun", 1).leader
    began = datetime.now(UTC)
    assert quorum.add(4, by=first).code == 0
    added = (began, datetime.now(UTC))
    evening.look("added", first)
    removed = min({1, 2, 3} - {first})
    assert quorum.remove(removed, key(removed)[1], by=first).code == 0
    evening.look("removed", first)
    # It no longer votes, and is never to want to.
    quorum.fetch_timeouts[removed] = NEVER
    quorum.stop(removed)
    quorum.start(removed)
    evening.capture(*everyone)
    evening.run()

    evening.look("before the kill", first)
    left = sorted(set(everyone) - {first, removed})
    killed = datetime.now(UTC)
    quorum.kill(first)
    second = evening.until("second leader", left[0], lambda s: s.leader != first).leader
    elected = datetime.now(UTC)
    quorum.start(first)
    followers = sorted(set(everyone) - {second, removed})
    evening.until("first is back", first, lambda s: s.leader == second)
    # The one to be added must have what the leader has, the followers nothing of what comes now.
    caught_up(quorum, removed, by=second)
    evening.look("before the pause", second)
    quorum.pause(*followers)
    time.sleep(2)
    lost_from = datetime.now(UTC)
    adding = quorum.begin_to_add(removed, by=second)
    try:
        evening.until("uncommitted", second, lambda s: key(removed) in s.voters)
        lost_to = datetime.now(UTC)
        evening.capture(second, removed, *followers)
    finally:
        # Nobody is to ask the next leader for the same.
        adding.kill()
        adding.wait()
    quorum.kill(second)
    quorum.resume(*followers)
    restarted = datetime.now(UTC)
    evening.run()

    third = evening.until("third leader", followers[0], lambda s: s.leader != second).leader
    quorum.start(second)
    caught_up(quorum, second, by=third)
    caught_up(quorum, removed, by=third)
    evening.look("at the end", third)
    evening.capture(*everyone)
    evening.run()

    three, four = frozenset(map(key, (1, 2, 3))), frozenset(map(key, everyone))
    sets = (three, four, four - {key(removed)}, four)
    return Story(
        evening,
        first,
        removed,
        second,
        third,
        sets,
        added_between=added,
        lost_between=(lost_from, lost_to),
        killed=(killed, elected),
        restarted=restarted,
    )


def begun(quorum: LiveQuorum) -> Callable[[int], tuple[int, str]]:
    """Start three voters and an observer, 4. Returns what names a node as a voter."""
    for node in (1, 2, 3, 4):
        quorum.address(node)
    directories = {node: quorum.random_uuid() for node in (1, 2, 3)}
    initial = ",".join(f"{n}@{quorum.address(n)}:{d}" for n, d in directories.items())
    for node in (1, 2, 3):
        quorum.format(node, "--initial-controllers", initial)
    quorum.format(4, "--no-initial-controllers")
    directories[4] = quorum.directory_id(4)
    for node in (1, 2, 3, 4):
        quorum.start(node)
    quorum.leader(1, 2, 3)
    return lambda node: (node, directories[node])


def caught_up(quorum: LiveQuorum, node: int, by: int) -> None:
    """Wait until the leader says that the node has all but its newest records."""
    for _ in range(60):
        printed = quorum.quorum_tool("describe", "--replication", by=by, timeout=30).printed
        rows = [line.split() for line in printed.splitlines()[1:]]
        if any(row and row[0] == str(node) and int(row[3]) <= 2 for row in rows):
            return
    raise AssertionError(f"node {node} does not catch up: {printed}")


@pytest.fixture(scope="module")
def ask(story: Story) -> Callable[..., list[Row]]:
    """kraftlake sql, one statement."""

    def asked(query: str, capsys: pytest.CaptureFixture[str]) -> list[Row]:
        capsys.readouterr()
        assert main(["sql", query, "--lake", str(story.evening.lake), "--format", "json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return asked


def moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def test_every_run_is_fine(story: Story) -> None:
    """Nothing that happened breaks a rule of KRaft: a truncation of what was never committed does not."""
    assert story.evening.ended_with == [0, 0, 0]


def test_voter_sets(story: Story, ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The four sets of the evening, their commit statuses, and offsets between the watermarks of then."""
    rows = ask("SELECT * FROM voter_sets WHERE source = 'record' ORDER BY `offset`, leader_epoch", capsys)
    sets = [frozenset((v["voter_id"], v["directory_id"]) for v in row["voters"]) for row in rows]
    assert sets == list(story.sets)
    assert [row["commit_status"] for row in rows] == ["committed"] * 3 + ["truncated"]
    seen = story.seen
    assert [row["truncated_by_epoch"] for row in rows] == [None] * 3 + [seen["third leader"].epoch]
    assert [row["leader_epoch"] for row in rows] == [seen["begun"].epoch] * 3 + [seen["second leader"].epoch]
    _, added, removed, lost = (row["offset"] for row in rows)
    assert seen["begun"].high_watermark <= added < seen["added"].high_watermark
    assert seen["added"].high_watermark <= removed < seen["removed"].high_watermark
    assert seen["uncommitted"].high_watermark <= lost
    for row, (began, ended) in ((rows[1], story.added_between), (rows[3], story.lost_between)):
        assert began <= moment(row["in_force_from"]) <= ended


def test_membership_changes_not_committed(story: Story, ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = ask("SELECT * FROM membership_changes_not_committed", capsys)
    assert (row["kind"], row["voter_id"], row["commit_status"]) == ("added", story.removed, "truncated")
    assert row["truncated_by_epoch"] == story.seen["third leader"].epoch


def test_leaders_and_epochs(story: Story, ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Every leader that a describe named led that epoch, and nobody else was elected between them."""
    rows = ask("SELECT * FROM leader_timeline WHERE leader_id IS NOT NULL", capsys)
    led = {row["leader_epoch"]: row["leader_id"] for row in rows}
    assert {s.epoch: s.leader for s in story.seen.values()}.items() <= led.items()
    turns = [leader for n, leader in enumerate(led.values()) if n == 0 or leader != list(led.values())[n - 1]]
    assert turns == [story.first, story.second, story.third]
    (taken,) = [row for row in rows if row["leader_epoch"] == story.seen["second leader"].epoch]
    killed, elected = story.killed
    assert killed <= moment(taken["elected_at"]) <= elected
    # An idle controller writes a record every half second.
    assert (
        timedelta(0)
        <= timedelta(milliseconds=taken["leaderless_ms"])
        <= elected - killed + timedelta(seconds=2)
    )
    assert story.second in taken["granting_voters"]
    (last,) = [row for row in rows if row["leader_epoch"] == story.seen["third leader"].epoch]
    assert moment(last["elected_at"]) >= story.restarted
    assert story.second not in last["granting_voters"]


def test_the_truncation(story: Story, ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever held the lost set lost it: the leader of then and the voter that was to be added."""
    rows = ask("SELECT * FROM truncations ORDER BY node_id", capsys)
    assert [row["node_id"] for row in rows] == sorted((story.second, story.removed))
    lost = ask("SELECT `offset` FROM voter_sets WHERE commit_status = 'truncated'", capsys)
    for row in rows:
        assert row["truncated_by_epoch"] == story.seen["third leader"].epoch
        assert row["leader_epochs"] == [story.seen["second leader"].epoch]
        assert story.seen["before the pause"].high_watermark <= row["first_offset"]
        assert row["voter_set_offsets"] == [r["offset"] for r in lost]
        assert row["first_offset"] <= lost[0]["offset"] < row["end_offset"]


def test_watermark_bounds_contain_what_describe_said(
    story: Story, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lower bound holds from its moment on, an upper bound up to it; and they say something."""
    rows = ask("SELECT * FROM high_watermarks", capsys)
    assert rows
    assert {row["evidence"] for row in rows} & {"describe"} == set()
    for row in rows:
        at = moment(row["as_of"])
        for said in story.seen.values():
            if row["lower_bound"] is not None and at <= said.began:
                assert row["lower_bound"] <= said.high_watermark, (row, said)
            if row["upper_bound"] is not None and at >= said.ended:
                assert said.high_watermark <= row["upper_bound"], (row, said)
    (bounds,) = ask("SELECT * FROM watermark_bounds", capsys)
    assert bounds["lower_bound"] > story.seen["uncommitted"].high_watermark
    (committed,) = ask("SELECT committed_end_offset FROM committed_ends", capsys)
    assert committed["committed_end_offset"] >= story.seen["at the end"].high_watermark
    stalled = [r for r in rows if r["upper_bound"] is not None and moment(r["as_of"]) < story.restarted]
    assert min(r["upper_bound"] for r in stalled) < max(r["lower_bound"] or 0 for r in rows)


def test_recovery_and_data_are_as_expected(
    story: Story, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """No finding of severity error, a safe recovery, and expectations that hold."""
    assert ask("SELECT sentence FROM findings WHERE severity = 'error'", capsys) == []
    (advice,) = ask("SELECT is_safe FROM recoveries", capsys)
    assert advice["is_safe"]
    assert main(["validate", "--lake", str(story.evening.lake)]) == 0
    assert ask("SELECT * FROM expectations_now WHERE NOT success", capsys) == []


@pytest.fixture
def page(story: Story) -> Iterator[Any]:
    with launched() as browser:
        visit = Visit(browser, story.evening.page, viewport={"width": 1240, "height": 1000})
        yield visit.page
        visit.end()


def test_the_page(story: Story, page: Any) -> None:
    """The tables below the pictures, read as a person reads them, and the pictures' marks."""
    seen = story.seen
    third = seen["third leader"].epoch
    changes = cells(page, "Membership changes")
    changed = [(row["Change"], row["Status"].lstrip("✓✕ ")) for row in reversed(changes)]
    assert changed[-3:] == [
        ("added node 4", "committed"),
        (f"removed node {story.removed}", "committed"),
        (f"added node {story.removed}", f"truncated by epoch {third}"),
    ]
    led = {int(row["Epoch"]): row["Leader"] for row in cells(page, "Epochs")}
    assert {s.epoch: f"node {s.leader}" for s in seen.values()}.items() <= led.items()
    facts = page.locator(".facts").inner_text()
    assert listed(sorted(node for node, _ in seen["at the end"].voters)) in facts
    assert f"node {story.third}" in facts
    marks = [m.get_attribute("aria-label") for m in page.locator(".chart .m").all()]
    assert any(f"truncated by epoch {third}" in mark for mark in marks)
    lost = cells(page, "Truncations between captures")
    assert len(lost) == 2


def cells(page: Any, caption: str) -> list[dict[str, str]]:
    """The rows of the table with that caption, by the words of its head."""
    table = page.locator("table", has=page.locator("caption", has_text=caption)).first
    head = table.locator("thead th").all_text_contents()
    return [
        dict(zip(head, (" ".join(t.split()) for t in row.locator("td").all_text_contents()), strict=True))
        for row in table.locator("tbody tr").all()
    ]
