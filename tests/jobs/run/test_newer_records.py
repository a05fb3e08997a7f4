"""Records in a lake that are of a newer Kafka, or refused: who asks for the state above them is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
from jobs.time_travel.lake_source import LakeSource
from jobs.time_travel.open_source import open_lake
from kraft_core.format.batch import write_batch
from kraft_core.image.replay_path import COMMITTED, PathCheckpoint, ReplayRange
from tests.dashboards.small_lakes import write
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import run
from tests.kraft_core.batches import raw
from transforms.lake.tables import REFUSED_RECORDS

TOPIC, PARTITION, PARTITION_CHANGE, NO_OP = 2, 3, 5, 20
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
UNKNOWN_TYPE = bytes((1, 99, 0, 0))


@pytest.mark.usefixtures("spark")
def test_the_state_above_them_is_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = {"topicId": TOPIC_ID, "replicas": [1], "isr": [1], "leader": 1}
    log = (
        metadata(0, [(TOPIC, 0, {"name": "t", "topicId": TOPIC_ID}), (PARTITION, 0, held)])
        + metadata(2, [(PARTITION_CHANGE, 0, {"topicId": TOPIC_ID, "partitionId": 7})])
        + write_batch(3, 1, [raw(3, UNKNOWN_TYPE)])
        + metadata(4, [(NO_OP, 0, {"unknownTaggedFields": [(9, b"x")]})])
    )
    captured(tmp_path / "captures", "newer", log)
    assert run(tmp_path / "lake", tmp_path / "captures") == 1  # rule 49
    source = open_lake(tmp_path / "lake", "newer")
    assert list(source.image_at(1).tables.topic_ids) == ["t"]
    assert source.notes == []
    source.image_at(4)
    words = "is of a newer Kafka: what else changed is unknown from there on"
    newer = [f"record {offset} {words}" for offset in (3, 4)]
    refused = (
        "PARTITION_CHANGE_RECORD at offset 2 cannot be replayed: change of unknown partition 7 of topic "
    )
    assert source.notes == [*newer, refused + TOPIC_ID]
    capsys.readouterr()
    asked = ["--topic", "t", "--partition", "0", "--at", "4"]
    assert main(["explain", "--lake", str(tmp_path / "lake"), *asked]) == 1
    warned = capsys.readouterr().err
    assert all(f"warning: {note}" in warned for note in source.notes)
    asked[1] = "unknown"
    assert main(["explain", "--lake", str(tmp_path / "lake"), *asked]) == 1
    assert "not known: part of the log could not be read" in capsys.readouterr().err
    assert main(["diff", "--lake", str(tmp_path / "lake"), "--from", "1", "--to", "4"]) == 0
    printed = capsys.readouterr()
    assert "no difference in what is known" in printed.out
    assert all(f"warning: {note}" in printed.err for note in source.notes)


def test_a_checkpoint_ends_the_doubt_about_a_refused_record(tmp_path: Path) -> None:
    """It states what the record changed: a refused one above it counts again."""
    of_row = {"leader_epoch": 1, "type": "PARTITION_CHANGE_RECORD", "cause": "unknown_partition"}
    of_row |= {"subject": "7", "reason": "unknown", "by_controllers_only": False, "log_digest": ""}
    of_row |= {"commit_status": COMMITTED, "base_end_offset": 0, "base_content_digest": ""}
    rows = [{"cluster_id": "refused", "offset": offset, **of_row} for offset in (4, 9, 25)]
    rows.append(rows[0] | {"offset": 29, "base_end_offset": 30})
    write(tmp_path, REFUSED_RECORDS, rows)
    steps = [
        ReplayRange(0, 6, 1, COMMITTED),
        PathCheckpoint(10, 1, "digest", 1000),
        ReplayRange(10, 28, 1, COMMITTED),
        PathCheckpoint(30, 1, "other", 2000),
    ]

    def doubts(offset: int) -> list[str]:
        source = LakeSource(tmp_path, "refused", [*steps])
        source.image_at(offset)
        return [note.split(" cannot ")[0] for note in source.notes if "cannot be replayed" in note]

    first, second = (f"PARTITION_CHANGE_RECORD at offset {offset}" for offset in (4, 25))
    own = "PARTITION_CHANGE_RECORD of the checkpoint at 29"
    wanted = {3: [], 4: [first], 5: [first], 9: [], 24: [], 25: [second], 27: [second], 29: [own]}
    assert {offset: doubts(offset) for offset in wanted} == wanted
