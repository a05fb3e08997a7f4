"""Records of a newer Kafka in a lake: what they changed is not known, and who asks for the state is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.time_travel.open_source import open_lake
from kraft_core.format.batch import write_batch
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import run
from tests.kraft_core.batches import raw

TOPIC, NO_OP = 2, 20
UNKNOWN_TYPE = bytes((1, 99, 0, 0))


@pytest.mark.usefixtures("spark")
def test_the_state_above_them_is_doubted(tmp_path: Path) -> None:
    log = (
        metadata(0, [(TOPIC, 0, {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"})])
        + write_batch(1, 1, [raw(1, UNKNOWN_TYPE)])
        + metadata(2, [(NO_OP, 0, {"unknownTaggedFields": [(9, b"x")]})])
    )
    captured(tmp_path / "captures", "newer", log)
    assert run(tmp_path / "lake", tmp_path / "captures") == 0
    source = open_lake(tmp_path / "lake", "newer")
    assert list(source.image_at(0).tables.topic_ids) == ["t"]
    assert source.notes == []
    source.image_at(2)
    words = "is of a newer Kafka: what else changed is unknown from there on"
    assert source.notes == [f"record {offset} {words}" for offset in (1, 2)]
