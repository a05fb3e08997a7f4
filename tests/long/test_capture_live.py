"""kraftlake capture of real controllers while they write, elect, truncate and snapshot."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from jobs.cli import main
from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.format.controller_dir import find_controller_dirs
from tests.kafka import LAB, SCRIPTS, needs_kafka
from tests.kraft_core.findings.collect_rule_facts import collect_rule_facts

# Three controllers and a broker that is given work until a file `stop` appears. Each controller in turn is
# killed and started again, the leader too, so that logs are truncated and snapshots overtake segments. Kafka
# deletes once a minute what snapshots cover: each lives longer than that.
SCENARIO = """
NAME=capture-live; SEG=16384; SNAP=8000; CTRL_EXTRA="metadata.max.retention.bytes=60000"
. "$SCRIPTS/scenarios/lib.sh"
CTRLS="1 2 3"; PORT[1]=29601; PORT[2]=29602; PORT[3]=29603; PORT[11]=29611
cid
for i in $CTRLS; do voters="${voters:+$voters,}$i@127.0.0.1:${PORT[$i]}:$(k $V storage random-uuid)"; done
for i in $CTRLS; do fmt c $i --initial-controllers "$voters"; done
fmt b 11 --no-initial-controllers
listens() { until (echo > /dev/tcp/127.0.0.1/${PORT[$1]}) 2> /dev/null; do sleep 1; done; }
for i in $CTRLS; do start c $i; done; start b 11
for i in $CTRLS; do listens $i; done; listens 11
echo "READY $RUN"
(echo waitbrokers 1; echo topic t 3 1
 for n in {1..500}; do echo cfgspam topic:t 50; echo topic t-$n 20 1; done) > "$RUN/work"
ops 127.0.0.1:29611 127.0.0.1:29612 < "$RUN/work" > /dev/null &
while [ ! -e "$STOP" ]; do
  for i in $CTRLS; do sleep 25; kill9 $i; sleep 2; start c $i; listens $i; done
done
kill %%
"""
KILLS = 6
LONGEST_S = 420


def begins_later(node: str) -> bool:
    """Whether the node has deleted its first segment."""
    return min(path.stem for path in Path(node).glob("**/__cluster_metadata-0/*.log")) != "0" * 20


@pytest.mark.long
@needs_kafka
def test_copies_of_a_busy_quorum_fit_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop = tmp_path / "stop"
    environment = {"KAFKA_LAB": str(LAB), "BASE": str(tmp_path), "SCRIPTS": str(SCRIPTS), "STOP": str(stop)}
    scenario = subprocess.Popen(
        ["bash", "-c", SCENARIO],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "stderr").open("w"),
        text=True,
    )
    try:
        running = folder_of(scenario)
        nodes = [str(running / f"node-{n}") for n in (1, 2, 3)]
        until = time.monotonic() + LONGEST_S
        rounds = 0
        deleted = False
        timeline = tmp_path / "capture-live" / "timeline.md"
        while time.monotonic() < until:
            if deleted and timeline.read_text().count("kill -9 node") >= KILLS:
                break
            deleted = deleted or any(map(begins_later, nodes))
            assert main(["capture", *nodes, "--to", str(tmp_path / "copies")]) == 0
            rounds += 1
            time.sleep(1)
    finally:
        stop.touch()
        scenario.communicate(timeout=200)
    with capsys.disabled():
        print(f"\n{rounds} rounds of captures, {capsys.readouterr().out.count('tries')} copies")
    check(tmp_path / "copies", rounds)


def folder_of(scenario: subprocess.Popen[str]) -> Path:
    """Where the controllers' directories are, once the quorum is up."""
    assert scenario.stdout is not None
    for line in scenario.stdout:
        if line.startswith("READY "):
            return Path(line.split()[1])
    raise AssertionError("the quorum did not come up")


def check(copies: Path, rounds: int) -> None:
    """Together the copies show a lawful quorum that moved on between them."""
    found = find_controller_dirs([copies])
    assert not found.refused
    directories = found.directories
    assert len(directories) == 3 * rounds
    assert not [f for d in directories for f in d.faults]
    assert max(len(d.segments) for d in directories) > 2
    assert any(d.segments[0].base_offset > 0 for d in directories)  # covered by a checkpoint, says rule 19
    facts = collect(directories)
    assert len(facts) == 1
    # Of three kills in a row one is the leader's: two elections at least, after the first.
    assert len({held.leader_epoch for c in facts[0].captures for held in c.epoch_ranges}) >= 1 + KILLS // 3
    known = conclude(facts[0])
    broken = judge(known, collect_rule_facts(directories)[facts[0].cluster_id])
    assert [f.sentence for f in broken if f.severity == "error"] == []
