"""The engine against every trace in tests/traces: all of it, and not one mismatch."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import COMPARISONS, compare_protocol, compare_trace, comparison_for, main
from tests.conformance.tally import Tally
from tests.conformance.trace import read_trace

TRACES = Path(__file__).parent.parent / "traces"

# Steps of the whole file by kind; a trace that shrinks or a comparison that skips shows here.
STEPS = {
    "log-replay": {"": 3_601},
    "log-replay-4.4.0": {"": 3_606},
    "log-replay-seeds": {"": 181},
    "leader-hwm": {"": 4_800},
    "cluster": {"event": 5_065, "operation": 15_866, "state": 8_843 + 220, "resignation": 15},
    "cluster-rewound": {"event": 5_043, "operation": 15_948, "state": 8_749 + 212, "resignation": 12},
}
LEFT_OUT = {
    "log-replay": set(),
    "log-replay-4.4.0": set(),
    "log-replay-seeds": set(),
    "leader-hwm": set(),
    "cluster": {"event that aborted the simulation", "MockLog's: epochs"},
    "cluster-rewound": {"event that aborted the simulation", "MockLog's: epochs"},
}

RPC_LEFT_OPEN = 805  # lines whose response the recorded state does not determine; the output names why


# Parts of quorums of other seeds: requests that waited behind others, a voter set written again unchanged,
# followers that catch up in an epoch that has ended, leaders that resigned before they followed, an election
# lost within one event, a sole voter killed before it wrote its first records.
SEEDS = {"role": 1_896, "rpc": 1_669}


@pytest.mark.parametrize("name", sorted(STEPS))
def test_engine_agrees_with_kafka(name: str, show_counts) -> None:
    path = TRACES / f"{name}.jsonl.gz"
    compare = comparison_for(path)
    assert compare is not None
    tally = compare_trace(path, compare)
    show_counts(tally.lines(path.name))
    assert [str(mismatch) for mismatch in tally.mismatches] == []
    assert _steps(tally, STEPS[name]) == STEPS[name]
    unsound = {reason for reason in tally.unsound if not reason.startswith("protocol state")}
    assert unsound == LEFT_OUT[name]


def test_engine_answers_as_kafka_does(show_counts) -> None:
    tally = compare_trace(TRACES / "rpc.jsonl.gz", COMPARISONS["rpc"])
    show_counts(tally.lines("rpc.jsonl.gz"))
    assert [str(mismatch) for mismatch in tally.mismatches] == []
    assert tally.steps.total() == 5_096
    assert tally.unsound.total() <= RPC_LEFT_OPEN


def test_engine_agrees_with_kafka_in_quorums_of_other_seeds() -> None:
    path = TRACES / "cluster-seeds.jsonl.gz"
    compare = comparison_for(path)
    assert compare is not None
    replicas = compare_protocol(path)
    assert replicas is not None
    for tally in (compare_trace(path, compare), replicas):
        assert [str(mismatch) for mismatch in tally.mismatches] == []
    assert replicas.steps["role"] == SEEDS["role"]
    answers = compare_trace(TRACES / "rpc-seeds.jsonl.gz", COMPARISONS["rpc"])
    assert [str(mismatch) for mismatch in answers.mismatches] == []
    assert answers.steps.total() == SEEDS["rpc"]


def test_a_lone_rpc_trace_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    lines = list(read_trace(TRACES / "rpc.jsonl.gz"))[:400]
    _write(tmp_path / "rpc.jsonl.gz", lines)
    assert main([str(tmp_path)]) == 0
    refused = next(line for line in lines if line["api"] == "UpdateRaftVoter" and line["resp"]["errorCode"])
    refused["resp"]["errorCode"] = 0
    _write(tmp_path / "rpc.jsonl.gz", [refused])
    assert main([str(tmp_path)]) == 1


def _steps(tally: Tally, kinds: dict[str, int]) -> dict[str, int]:
    return {
        kind: sum(count for name, count in tally.steps.items() if name.startswith(kind)) for kind in kinds
    }


def test_a_wrong_value_is_a_mismatch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = list(read_trace(TRACES / "log-replay.jsonl.gz"))[:40]
    lines[20]["state"]["leo"] += 1
    _write(tmp_path / "log-replay.jsonl.gz", lines)
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "case 0 step 19 leo" in printed
    assert "1 mismatches" in printed


def test_a_field_that_the_comparison_does_not_know_is_a_mismatch(tmp_path: Path) -> None:
    lines = list(read_trace(TRACES / "leader-hwm.jsonl.gz"))[:3]
    del lines[2]["hwm"]
    _write(tmp_path / "leader-hwm.jsonl.gz", lines)
    assert main([str(tmp_path)]) == 1


@pytest.mark.parametrize(
    "content", [b"not gzip", gzip.compress(b"{not json", mtime=0), gzip.compress(b'{"op": "hwm"}', mtime=0)]
)
def test_an_unreadable_trace_is_told_apart_from_a_mismatch(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log-replay.jsonl.gz").write_bytes(content)
    assert main([str(tmp_path)]) == 2
    assert "not readable as a trace" in capsys.readouterr().err


def test_a_folder_without_traces_compares_nothing(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path / "absent")]) == 2


def test_the_longest_name_decides() -> None:
    assert comparison_for(Path("cluster-rewound-2.jsonl.gz")) is COMPARISONS["cluster-rewound"]
    assert comparison_for(Path("cluster.jsonl")) is COMPARISONS["cluster"]
    assert comparison_for(Path("other.jsonl.gz")) is None


def _write(path: Path, lines: list[dict]) -> None:
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
