"""Differences between two moments and between two replicas."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from jobs import diff
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.settings import Settings

GOLDEN = Path(__file__).parents[2] / "golden"
NODE = GOLDEN / "dynamic-membership/node-3"
CHECKPOINTS = GOLDEN / "dynamic-membership/node-1/__cluster_metadata-0"


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    diff.add_arguments(parser)
    parser.set_defaults(settings=Settings())
    return diff.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def say(capsys):
    def output_of(before: str | Path, after: str | Path, *more: str | Path) -> str:
        capsys.readouterr()
        assert run("--from", before, "--to", after, *more) == ExitCode.FINE
        return capsys.readouterr().out

    return output_of


def test_two_offsets_as_text(say):
    assert say("1000", "1200", NODE).splitlines() == [
        f"from offset 1000, epoch 1, 2026-11-21T09:41:39.734Z of {NODE}",
        f"to   offset 1200, epoch 3, 2026-11-21T09:42:09.522Z of {NODE}",
        "controllers: 1 changed",
        "  controller 1: incarnation_id pcmwjeBfTfqhWWSr5LOabw -> 8Wn2mMnOT1WpvqfakL-ZSA",
        "topics: 1 added",
        "  topic t-after-kill1: added: topic_id 7p7rAZDPSCKLNdX6hZmZuA, topic_name t-after-kill1"
        ", with 30 partitions",
        "partitions: 30 added",
        "configs: 1 added",
        "  config retention.ms of TOPIC:t-after-kill1: added: resource_type TOPIC"
        ", resource_name t-after-kill1, name retention.ms, value 1000039",
    ]


def test_backwards_additions_are_removals(say):
    out = say("1200", "1000", NODE)
    assert "topic t-after-kill1: removed, with 30 partitions" in out
    assert "partitions: 30 removed" in out


def test_json_has_both_values_and_the_changed_columns(say):
    printed = json.loads(say("2084", "2085", NODE, "--format", "json"))
    (difference,) = printed["differences"]
    assert difference["subject"] == "partition 0 of t-x"
    assert difference["columns"] == [
        "isr",
        "eligible_leader_replicas",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "partition_epoch",
    ]
    assert (difference["before"]["isr"], difference["after"]["isr"]) == ([12], [])
    assert (printed["from"]["offset"], printed["to"]["offset"]) == (2084, 2085)
    assert printed["from"]["not_known"] == printed["to"]["not_known"] == []


def test_json_says_what_is_not_known(say):
    log = GOLDEN / "corrupt/good/00000000000000000408.log"
    printed = json.loads(say("end", "end", log, "--format", "json"))
    for end in (printed["from"], printed["to"]):
        assert end["not_known"][0] == "no checkpoint covers the log before offset 408"


def test_a_voter_that_was_added(say):
    before = GOLDEN / "uncommitted-truncation/before/node-1"
    added = "  voter 4 (SOrsTZWA5cqGYWsEVOGWQA): added: CONTROLLER://127.0.0.1:29104, kraft.version 0 to 1"
    assert say("28", "355", before).splitlines()[2:4] == ["voters: 1 added", added]
    removed = "  voter 4 (SOrsTZWA5cqGYWsEVOGWQA): removed"
    assert say("355", "354", before).splitlines()[2:] == ["voters: 1 removed", removed]
    (found,) = json.loads(say("354", "355", before, "--format", "json"))["differences"]
    assert (found["kind"], found["subject"]) == ("voters", "voter 4 (SOrsTZWA5cqGYWsEVOGWQA)")
    assert (found["change"], found["before"], found["after"]["id"]) == ("added", None, 4)


def test_a_voter_at_another_address(say):
    lines = say("1200", "end", NODE).splitlines()
    assert lines[2:5] == [
        "voters: 2 changed",
        "  voter 1 (yXFMI53ESTKUCDKX7tA-Fg): CONTROLLER://127.0.0.1:29001 -> CONTROLLER://127.0.0.1:29051",
        "  voter 3 (CsPDY-A_v5VCjF6-h7rvZQ): CONTROLLER://127.0.0.1:29003 -> CONTROLLER://127.0.0.1:29063",
    ]


def test_a_static_quorum_that_became_dynamic(say):
    """Of the static voters the log has the ids alone."""
    node = GOLDEN / "static-upgrade/node-1"
    assert say("5", "end", node).splitlines()[2:8] == [
        "kraft.version: 0 -> 1",
        "voters: 1 added, 1 removed, 2 changed",
        "  voter 1 (iiEHjNmCybeMBDmbyIDn8A): directory id none -> iiEHjNmCybeMBDmbyIDn8A",
        "  voter 2 (o3SGdZOMtWZJe0hNsbphdQ): directory id none -> o3SGdZOMtWZJe0hNsbphdQ",
        "  voter 3: removed",
        "  voter 4 (eq92WsS9FWgMySnV2P92nA): added: CONTROLLER://127.0.0.1:29404, kraft.version 0 to 1",
    ]
    back = say("end", "5", node).splitlines()
    assert (back[2], back[6]) == ("kraft.version: 1 -> 0", "  voter 3: added")


def test_voters_that_are_not_known(say):
    log = GOLDEN / "corrupt/good/00000000000000000408.log"
    unknown = "not known who could vote at offset 506"
    assert say("end", "end", log).splitlines()[2:] == [
        f"voters: {unknown} of {log}",
        "no difference in what is known",
    ]
    printed = json.loads(say("end", "end", log, "--format", "json"))
    assert [printed[end]["not_known"][-1] for end in ("from", "to")] == [unknown, unknown]


def test_two_times(say):
    assert (
        say("09:41:40", "2026-11-21T09:42:10Z", NODE).splitlines()[2:]
        == (say("1000", "1430", NODE).splitlines()[2:])
    )


def test_two_replicas(say):
    """Node 1 lost alice's credential by a fault of Kafka (test_golden_checkpoints)."""
    lines = say(GOLDEN / "dynamic-membership/node-1", NODE).splitlines()
    assert lines[2:] == [
        "scram_users: 1 added",
        "  SCRAM-SHA-512 credential of alice: added: mechanism SCRAM-SHA-512, name alice, iterations 4096",
    ]


def test_equal_replicas(say):
    out = say(f"{GOLDEN / 'dynamic-membership/node-2'}@3690", f"{NODE}@3690")
    assert out.splitlines()[2:] == ["no difference"]


def test_a_checkpoint_and_the_log_at_its_end(say):
    checkpoint = CHECKPOINTS / "00000000000000000453-0000000001.checkpoint"
    out = say(checkpoint, f"{GOLDEN / 'dynamic-membership/node-1'}@452")
    assert out.splitlines()[2:] == ["no difference"]


def test_a_changed_secret_is_reported_without_its_value(say):
    out = say("960", "end", NODE) + say("960", "end", NODE, "--format", "json")
    assert "kLpBpqjCRL-oyRDZNj-EuQ" not in out
    assert "delegation token 3d9d63fa2170ac49: added" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "1", "--to", "2"], "the directory that this moment refers to, or --lake PATH"),
        (
            ["--from", "nope", "--to", "2", NODE],
            "nope is neither a moment nor a path: give an offset, a time",
        ),
        (["--from", "-5", "--to", "2", NODE], "-5 is neither a moment nor a path"),
        (["--from", "nope@2", "--to", NODE], "no such file or directory: nope"),
        (["--from", "2020-01-01", "--to", "2", NODE], "before this history, which covers 2026-11-21T"),
        (["--from", "1", "--to", "99999", NODE], "offset 99999 is beyond the end of the log"),
        (["--from", f"{NODE}@soon", "--to", "2", NODE], "'soon' is not a moment"),
    ],
)
def test_failures_say_what_is_wrong(words, message):
    with pytest.raises(Failure, match=message) as failure:
        run(*words)
    assert failure.value.exit_code == ExitCode.USAGE


def test_what_one_source_could_not_read_is_said_once(tmp_path, capsys):
    log = tmp_path / "00000000000000000408.log"
    log.write_bytes((GOLDEN / "corrupt/crc-flip-middle/00000000000000000408.log").read_bytes())
    assert run("--from", "410", "--to", "end", log) == ExitCode.FINE
    assert capsys.readouterr().err.count("cannot be read: bad_crc") == 1
