"""Deviations of a checkpoint: which are by design, and their explanations."""

from __future__ import annotations

import pytest

from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import deviations
from tests.kraft_core.image.test_golden_checkpoints import DIRECTORIES, checkpoints_of, records_of
from tests.kraft_core.image.worlds import replay, rows


def config(resource_type: int, name: str):
    return "CONFIG_RECORD", {"resourceType": resource_type, "resourceName": "x", "name": name, "value": "1"}


@pytest.mark.parametrize(
    ("made", "by_design"),
    [
        (("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": 3}), True),
        (config(2, "message.format.version"), True),
        (config(32, "no.such.config"), True),
        (config(16, "no.such.config"), True),
        (config(2, "retention.ms"), False),
        (config(4, "no.such.config"), False),
        (("FEATURE_LEVEL_RECORD", {"name": "f", "featureLevel": 1}), False),
    ],
)
def test_what_kafka_leaves_out_by_design(made, by_design):
    (deviation,) = deviations(replay(rows([made])), Image())
    assert deviation.by_design is by_design
    assert bool(deviation.explanation) is by_design
    (other_way,) = deviations(Image(), replay(rows([made])))
    assert not other_way.by_design


def test_a_topics_config_that_outlived_the_topic_is_explained():
    (deviation,) = deviations(Image(), replay(rows([config(2, "retention.ms")])))
    assert "ConfigurationsDelta" in deviation.explanation
    (deviation,) = deviations(Image(), replay(rows([config(4, "retention.ms")])))
    assert deviation.explanation == ""


def test_the_forgotten_credential_is_explained():
    directory = DIRECTORIES["dynamic-membership/node-1"]
    replayed = replay([record for record in records_of(directory) if record.offset < 1956])
    checkpoint = {id_.end_offset: image for id_, image in checkpoints_of(directory)}[1956]
    (deviation,) = deviations(replayed, checkpoint)
    assert not deviation.by_design
    assert "ScramDelta" in deviation.explanation
