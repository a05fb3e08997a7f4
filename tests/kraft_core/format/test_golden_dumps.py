"""Every file of the golden captures reads as Kafka's own tool reads it."""

import gzip
import shutil
from pathlib import Path

import pytest

from tests.golden_compare import compare_tree, main

GOLDEN = Path(__file__).parents[2] / "golden"


def test_records_equal_the_output_of_kafkas_tool():
    result = compare_tree(GOLDEN)
    assert result.differences == []
    # The counts themselves are asserted, so that nothing passes for having been passed over.
    assert dict(result.counts) == {
        "dumps": 336,
        "dumps of files that the tool passes over": 1,
        "batches": 23272,
        "bad batches": 6,
        "batches beyond where the tool stopped": 320,
        "records": 62248,
        "envelopes": 57181,
        "payloads": 62237,
        "unread values": 7,
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"partitionLeaderEpoch: 1 ", b"partitionLeaderEpoch: 2 "),
        (b"offset: 5 ", b"offset: 6 "),
        (b'"voterId":1', b'"voterId":2'),
        (b'"type":"NO_OP_RECORD"', b'"type":"NO_OP"'),
        (b'"name":"metadata.version","featureLevel":', b'"featureLevel":7,"name":'),
        (b"magic: 2", b"magic: 1"),
    ],
)
def test_any_change_in_a_dump_is_a_difference(tmp_path, before, after):
    name = "00000000000000000000.log"
    scenario = GOLDEN / "v4.4.0-mini"
    text = gzip.decompress((scenario / "dump/node-1" / f"{name}.txt.gz").read_bytes())
    (tmp_path / "dump/node-1").mkdir(parents=True)
    (tmp_path / "node-1").mkdir()
    shutil.copy(scenario / "node-1/__cluster_metadata-0" / name, tmp_path / "node-1" / name)
    (tmp_path / "dump/node-1" / f"{name}.txt").write_bytes(text)
    assert main([str(tmp_path)]) == 0
    assert before in text
    (tmp_path / "dump/node-1" / f"{name}.txt").write_bytes(text.replace(before, after, 1))
    assert main([str(tmp_path)]) == 1


def test_a_folder_without_dumps_does_not_pass(tmp_path):
    assert main([str(tmp_path)]) == 1
