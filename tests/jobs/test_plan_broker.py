"""kraftlake plan remove-broker and restart-broker as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from tests.jobs.plan_metadata import both_metadata
from transforms.lake.delta_rs import cluster_ids

# Broker 11 holds the only replica of each of the 60 partitions; two of three voters are down.
LOADED = ("--captures", "tests/golden/uncommitted-truncation/before", "--now", "2026-11-21T09:15:25Z")
EMPTY = ("--captures", "tests/golden/disk-failure/before-wipe", "--now", "2026-11-21T09:21:10Z")


@pytest.fixture(autouse=True)
def _in_the_checkout(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parents[1])


def test_a_restart_that_takes_the_only_replicas_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "restart-broker", "11", *LOADED]) == 1
    out = capsys.readouterr().out
    assert out.startswith("RISKY: without broker 11, no leader for base 0-59; as captured, the controllers ")
    assert "  broker 11 leads 60 partitions, is in the ISR of 60, and has replicas of 60 of 60\n" in out
    assert "     bin/kafka-server-stop.sh --node-id=11\n" in out


def test_every_partition_is_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "remove-broker", "11", *LOADED, "--format", "json"]) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "risky"
    assert made["partitions"]["offline"] == [f"base-{nth}" for nth in range(60)]
    assert [risk["name"] for risk in made["risks"]] == [
        "partitions_offline",
        "nothing_commits",
        "only_copy",
        "replicas_left",
    ]


def test_a_broker_that_kafka_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "remove-broker", "99", *EMPTY]) == 1
    out = capsys.readouterr().out
    text = "Broker ID 99 is not currently registered"
    assert out.startswith(
        f"REFUSED: Kafka refuses to unregister broker 99: BROKER_ID_NOT_REGISTERED: {text}\n"
    )
    assert f"  Kafka's tool prints BrokerIdNotRegisteredException: {text}\n" in out


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["x"], ["1", "2"]):
        assert main(["plan", "remove-broker", *words, *EMPTY]) == 2
        assert "remove-broker takes the id of one broker" in capsys.readouterr().err


def test_a_lake_gives_the_answers_of_its_captures(lake: Any, golden_captures: list[Path]) -> None:
    compared = set[str]()
    for cluster in cluster_ids(lake.path):
        by_captures, by_rows = both_metadata(lake.path, golden_captures, cluster)
        for is_removal in (False, True):
            asked = BrokerChange(11, is_removal)
            by_files = plan_broker(by_captures, asked)
            by_lake = plan_broker(by_rows, asked)
            assert by_lake.verdict == by_files.verdict, cluster
            assert by_lake.partitions == by_files.partitions
            if by_files.verdict != "not_known":
                assert by_lake == by_files
                compared.add(by_files.verdict)
    assert {"refused", "risky"} <= compared
