"""Whether directories that were written keep every rule of the metadata log, read as any captures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.format.controller_dir import find_controller_dirs


def broken_rules(homes: Sequence[Path]) -> list[Finding]:
    """The errors that the rules of kraft_core.raft.rules find in node directories, by cluster and rule."""
    clusters = collect_lives(find_controller_dirs(homes).directories)
    found = [finding for cluster in clusters for finding in judge(conclude(cluster.facts))]
    return [finding for finding in found if finding.severity == "error"]
