"""kraftlake explain --topic T --partition P as a user calls it."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main

CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
BEFORE = "is before this history, which covers 2026-11-21T09:40:31.847Z to 2026-11-21T09:44:03.540Z"
DELETED = "it was deleted at offset 984; give an earlier --at"


def asked(lake: Any, *words: str) -> list[str]:
    return ["explain", "--lake", str(lake.path), "--cluster", CLUSTER, *words]


def test_a_partition_without_a_leader(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--topic", "t-rf2", "--partition", "1", "--at", "3000")
    assert main(asked(lake, *words)) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"partition t-rf2-1 of cluster {CLUSTER} at offset 3000\n")
    assert "    So it was without a leader.\n" in out
    assert (
        "  2026-11-21T09:43:35.322Z  offset 2830  PARTITION_CHANGE_RECORD\n"
        "      partition: leader 11 to none, ISR [11] to [], ELR [] to [11], last known ELR [] to [11]\n"
        "        appended together with: broker 11 in controlled shutdown (offset 2589)\n"
    ) in out


def test_a_time_and_json(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--topic", "t-rf2", "--partition", "1", "--at", "2026-11-21T09:42:20Z", "--format", "json")
    assert main(asked(lake, *words)) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["trouble"], made["min_isr"]) == ("under min.insync.replicas: acks=all failed", 2)
    assert (made["first_offset"], made["end_offset"]) == (1420, 1507)
    assert made["end_at"] == "2026-11-21T09:42:24.407Z"
    assert made["lines"][-1]["cause"] == "reported by leader 11 (AlterPartition): 12 caught up"


def test_what_is_not_there(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for message, *words in (
        ("give --topic T and --partition P together", "--topic", "t-rf2"),
        ("--at TIME is an option of --topic", "--offset", "3", "--at", "5"),
        ("no topic t-rf at offset 3000; did you mean t-rf2?", "--topic", "t-rf", "--partition", "1"),
        (f"no topic t-del at offset 3000: {DELETED}", "--topic", "t-del", "--partition", "0"),
        ("topic t-rf2 has no partition 99 at offset", "--topic", "t-rf2", "--partition", "99"),
        ("is not a moment", "--topic", "t-rf2", "--partition", "1", "--at", "noon"),
        (BEFORE, "--topic", "t-rf2", "--partition", "1", "--at", "2020-01-01"),
        ("beyond the end of the log", "--topic", "t-rf2", "--partition", "1", "--at", "99999"),
    ):
        at = () if "--at" in words else ("--at", "3000") if "--partition" in words else ()
        assert main(asked(lake, *words, *at)) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("at", ["1500", "2026-11-21T09:42:20Z", "3000"])
def test_a_captured_replica_says_the_same(
    lake: Any, golden: Path, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    words = ("--topic", "t-rf2", "--partition", "1", "--at", at)
    assert main(asked(lake, *words)) == 0
    expected = capsys.readouterr().out
    assert main(["explain", "--captures", str(golden / "dynamic-membership/node-1"), *words]) == 0
    out, err = capsys.readouterr()
    assert out == expected
    assert "does not show which records at its end were committed" in err


def test_captures_in_place_of_a_lake(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captures = str(golden / "dynamic-membership/node-1")
    of_partition = ("--topic", "t-rf2", "--partition", "1")
    for message, *words in (
        ("--captures PATH is an option of --topic", "--captures", captures, "--recovery"),
        ("argument --captures: not allowed with", "--lake", captures, "--captures", captures, *of_partition),
        ("argument --lake: not allowed with", "--captures", captures, "--lake", captures, *of_partition),
        ('lake = "PATH" in kraftlake.toml, or --captures', *of_partition),
        ("no topic t-rf at", "--captures", captures, "--topic", "t-rf", "--partition", "1"),
        (DELETED, "--captures", captures, "--topic", "t-del", "--partition", "0"),
        ("beyond the end of the log", "--captures", captures, *of_partition, "--at", "99999"),
    ):
        with suppress(SystemExit):
            assert main(["explain", *words]) == 2
        assert message in capsys.readouterr().err
    settings = tmp_path / "kraftlake.toml"
    settings.write_text(f'lake = "{tmp_path}/none"\n')
    words = ["explain", "--config", str(settings), "--captures", captures, *of_partition]
    assert main(words) == 0
    assert "So it was without a leader." in capsys.readouterr().out
    assert main(["explain", "--config", str(settings), *of_partition]) == 2
    assert f"{tmp_path}/none is not a lake" in capsys.readouterr().err
    with suppress(SystemExit):
        main(["explain", "--help"])
    assert "explain [-h] (--lake PATH | --captures PATH)" in capsys.readouterr().out


def test_a_log_without_its_beginning_is_no_proof(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = golden / "dynamic-membership/node-1/__cluster_metadata-0"
    segment = str(log / "00000000000000002589.log")
    assert main(["explain", "--captures", segment, "--topic", "t-rf2", "--partition", "1"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "not known: part of the log could not be read; by the rest, there is no topic t-rf2" in err
    node = tmp_path / "node-1"
    shutil.copytree(log.parent, node)
    damaged = node / "__cluster_metadata-0/00000000000000001748.log"
    held = bytearray(damaged.read_bytes())
    held[len(held) // 2] ^= 1
    damaged.write_bytes(held)
    assert main(["explain", "--captures", str(node), "--topic", "t-rf2", "--partition", "1"]) == 1
    out, err = capsys.readouterr()
    assert "So it was without a leader." in out
    assert "warning: " in err
    assert main(["explain", "--captures", str(node), "--topic", "t-rf2", "--partition", "99"]) == 1
    assert "by the rest, topic t-rf2 has no partition 99" in capsys.readouterr().err


def test_a_log_that_ends_below_its_checkpoint(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its last segment was not copied; what happened there was taken for nothing, without a word."""
    copy = tmp_path / "node-1"
    shutil.copytree(golden / "dynamic-membership/node-1", copy)
    (copy / "__cluster_metadata-0/00000000000000002589.log").unlink()
    assert main(["explain", "--captures", str(copy), "--topic", "t-small", "--partition", "0"]) == 1
    assert "warning: offsets 2589 to 3691 are missing" in capsys.readouterr().err


def test_problems_before_a_checkpoint_are_not_known(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka deletes the log below a checkpoint; the answer was that there was no earlier problem."""
    copy, words = tmp_path / "node-1", ("--topic", "t-small", "--partition", "0", "--at", "2000")
    shutil.copytree(golden / "dynamic-membership/node-1", copy)
    assert main(["explain", "--captures", str(copy), *words]) == 0
    assert "The last problem before that" in capsys.readouterr().out
    for segment in ("00000000000000000000", "00000000000000000697"):
        (copy / f"__cluster_metadata-0/{segment}.log").unlink()
    assert main(["explain", "--captures", str(copy), *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no problem from offset 1955 on; of what was before, it shows nothing." in said
