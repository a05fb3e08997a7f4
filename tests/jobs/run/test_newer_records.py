"""Records of a newer Kafka in a lake: what they changed is not known, and who asks for the state is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
from jobs.time_travel.open_source import open_lake
from kraft_core.format.batch import write_batch
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import run
from tests.kraft_core.batches import raw

TOPIC, PARTITION, NO_OP = 2, 3, 20
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
UNKNOWN_TYPE = bytes((1, 99, 0, 0))


@pytest.mark.usefixtures("spark")
def test_the_state_above_them_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = {"topicId": TOPIC_ID, "replicas": [1], "isr": [1], "leader": 1}
    log = (
        metadata(0, [(TOPIC, 0, {"name": "t", "topicId": TOPIC_ID}), (PARTITION, 0, held)])
        + write_batch(2, 1, [raw(2, UNKNOWN_TYPE)])
        + metadata(3, [(NO_OP, 0, {"unknownTaggedFields": [(9, b"x")]})])
    )
    captured(tmp_path / "captures", "newer", log)
    assert run(tmp_path / "lake", tmp_path / "captures") == 0
    source = open_lake(tmp_path / "lake", "newer")
    assert list(source.image_at(1).tables.topic_ids) == ["t"]
    assert source.notes == []
    source.image_at(3)
    words = "is of a newer Kafka: what else changed is unknown from there on"
    assert source.notes == [f"record {offset} {words}" for offset in (2, 3)]
    capsys.readouterr()
    asked = ["--topic", "t", "--partition", "0", "--at", "3"]
    assert main(["explain", "--lake", str(tmp_path / "lake"), *asked]) == 1
    assert f"warning: record 2 {words}" in capsys.readouterr().err
    asked[1] = "unknown"
    assert main(["explain", "--lake", str(tmp_path / "lake"), *asked]) == 1
    assert "not known: part of the log could not be read" in capsys.readouterr().err
    assert main(["diff", "--lake", str(tmp_path / "lake"), "--from", "1", "--to", "3"]) == 0
    printed = capsys.readouterr()
    assert "no difference in what is known" in printed.out
    assert f"warning: record 2 {words}" in printed.err
