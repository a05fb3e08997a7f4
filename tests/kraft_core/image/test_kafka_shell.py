"""The tree that kafka-metadata-shell shows of the same bytes: the same but for what is meant."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.record import Record, read_log
from kraft_core.image.image import Image
from kraft_core.image.replica import CapturedReplica
from tests.kraft_core.image.kafka_shell import (
    CHECKPOINT_OFFSET,
    DEFAULT_QUOTAS,
    RELEASE_3_9,
    SECRETS,
    as_meant,
    our_tree,
)

GOLDEN = Path(__file__).parents[2] / "golden"
SHELL = Path(__file__).parent / "metadata_shell"


def kafkas(name: str) -> list[str]:
    return gzip.decompress((SHELL / f"{name}.txt.gz").read_bytes()).decode().splitlines()


def replayed(*logs: Path) -> Image:
    image = Image()
    for log in logs:
        for record in read_log(log.read_bytes()):
            assert isinstance(record, Record)
            image.apply(record)
    assert image.refusals == []
    return image


def checkpoint(path: str) -> Image:
    return CapturedReplica.of_file(GOLDEN / path).image_at()


LOGS = {
    "dynamic-membership/node-1": {"SCRAM credentials", "delegation token ids", "default quotas"},
    "static-upgrade/node-1": {"SCRAM credentials"},
    "uncommitted-removal/after/node-1": set[str](),
    "disk-failure/node-2": set[str](),
    "election-storm/node-1": set[str](),
    "stale-split/final/node-3": set[str](),
}


@pytest.mark.parametrize("node", LOGS)
def test_replay_of_a_log(node: str):
    (directory,) = find_controller_dirs([GOLDEN / node]).directories
    image = replayed(*(segment.path for segment in directory.segments))
    meant, met = as_meant(kafkas(f"4.3.1/{node}/log"), image, (*SECRETS, DEFAULT_QUOTAS))
    assert our_tree(image) == meant
    assert met == LOGS[node]


@pytest.mark.parametrize("number", range(1, 7))
def test_replay_of_a_random_life(number: int):
    image = replayed(SHELL / "4.3.1" / "lives" / f"{number}.log")
    meant, met = as_meant(kafkas(f"4.3.1/lives/{number}"), image, SECRETS)
    assert our_tree(image) == meant
    assert met <= {difference.name for difference in SECRETS}


def test_replay_of_a_log_by_kafka_3_9():
    node = "static-upgrade/at-3.9.2/node-1"
    (directory,) = find_controller_dirs([GOLDEN / node]).directories
    image = replayed(*(segment.path for segment in directory.segments))
    meant, met = as_meant(kafkas(f"3.9.2/{node}/log"), image, (*SECRETS, *RELEASE_3_9))
    assert our_tree(image) == meant
    assert met == {"SCRAM credentials", "cordoned directories", "features of 3.9"}


ALL = {"SCRAM credentials", "delegation token ids", "default quotas", "provenance of a checkpoint"}
CHECKPOINTS = {
    "dynamic-membership/node-1/00000000000000000453-0000000001.checkpoint": ALL
    - {"delegation token ids", "default quotas"},
    "dynamic-membership/node-1/00000000000000001956-0000000004.checkpoint": ALL,
    "dynamic-membership/node-2/00000000000000002306-0000000006.checkpoint": ALL,
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint(name: str):
    path = Path(name)
    image = checkpoint(f"{path.parent}/__cluster_metadata-0/{path.name}")
    meant, met = as_meant(kafkas(f"4.3.1/{name}"), image, (*SECRETS, DEFAULT_QUOTAS, CHECKPOINT_OFFSET))
    assert our_tree(image) == meant
    assert met == CHECKPOINTS[name]


RECORDED = {
    "dynamic-membership/shell/node-3-00000000000000003692-0000000009": ALL,
    "static-upgrade/shell/node-1-00000000000000000356-0000000008": {
        "SCRAM credentials",
        "provenance of a checkpoint",
    },
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_checkpoint_of_the_golden_captures(name: str):
    scenario, file = name.split("/shell/")
    image = checkpoint(f"{scenario}/{file[:6]}/__cluster_metadata-0/{file[7:]}.checkpoint")
    text = (GOLDEN / f"{name}.checkpoint.tree.txt").read_text()
    lines = text.split(">> ", 1)[1].rsplit(">> ", 1)[0].splitlines()
    meant, met = as_meant(lines, image, (*SECRETS, DEFAULT_QUOTAS, CHECKPOINT_OFFSET))
    assert our_tree(image) == meant
    assert met == RECORDED[name]


def test_what_is_hidden_is_what_kafka_shows():
    """The differences take nothing away but secrets: every other line of Kafka's is ours, unchanged."""
    for number in range(1, 7):
        image = replayed(SHELL / "4.3.1" / "lives" / f"{number}.log")
        theirs = kafkas(f"4.3.1/lives/{number}")
        missing = set(theirs) - set(our_tree(image))
        assert all(line.startswith(("      ", "  ")) for line in missing)
        assert len(our_tree(image)) == len(theirs)
