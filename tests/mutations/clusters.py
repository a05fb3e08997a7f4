"""Clusters of which one capture has a damaged log: whatever it says, it is judged, and nothing fails."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import tables
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.format.controller_dir import LOG_DIR_NAME, find_controller_dirs
from tests.kraft_core.findings.collect_rule_facts import collect_rule_facts
from tests.mutations.logs import Log, batches_of, damaged_log, some_log

NAME = "dynamic-membership/node-{}/__cluster_metadata-0/00000000000000000000.log"
NODES = (1, 2)
# The batches in which voters are added.
MOST_BATCHES = 60
META = "version=1\ncluster.id=c\nnode.id={}\ndirectory.id=AAAAAAAAAAAAAAAAAAAA{}w\n"


def check_cluster(rng: Random, folder: Path) -> int:
    """Reads, concludes and judges; the size of the damaged log in bytes."""
    captures = folder / "cluster"
    bad = rng.choice(NODES)
    size = 0
    for node in NODES:
        log_dir = captures / str(node) / LOG_DIR_NAME
        log_dir.mkdir(parents=True)
        (captures / str(node) / "meta.properties").write_text(META.format(node, node))
        log = Log(batches_of(NAME.format(node))[:MOST_BATCHES])
        data = damaged_log(rng, log, some_log(rng)) if node == bad else b"".join(log.batches)
        size += len(data)
        (log_dir / f"{0:020d}.log").write_bytes(data)
    try:
        # Logs that contradict each other may be of two lives of the cluster.
        for life in collect_lives(find_controller_dirs([captures]).directories):
            conclusions = conclude(life.facts)
            found = judge(conclusions, collect_rule_facts(life.directories)["c"])
            assert [tables(conclusions), recovery_advice(conclusions, found)]
    finally:
        shutil.rmtree(captures)
    return size
