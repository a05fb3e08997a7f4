"""The high watermarks that leaders reported in describe outputs, for the rules about them.

No file stores the high watermark. An output is what a leader reported at one moment; -1 (unknown) is none.
"""

from __future__ import annotations

from typing import TypeAlias

from kraft_core.evidence.facts import Capture
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import Observation
from kraft_core.raft.voters import ReplicaKey

ReportedWatermark: TypeAlias = tuple[Observation, int, int]
"""An output, its high watermark, its epoch."""


def reported_watermarks(view: ClusterView) -> list[ReportedWatermark]:
    """Each known high watermark that a leader of the captured quorum reported, with its epoch, by time."""
    found = [
        (output, output.high_watermark, output.leader_epoch)
        for output in view.reports.tied
        if output.high_watermark is not None and output.leader_epoch is not None
    ]
    return sorted(found, key=lambda entry: (entry[0].observed_from, entry[0].observed_to, entry[0].source))


def of_leader(view: ClusterView, leader: ReplicaKey, epoch: int) -> tuple[Capture, ...]:
    """The captures of a leader that hold anything of its epoch."""
    captures = view.known.holdings.captures.get(leader, ())
    return tuple(
        c for c in captures if any(epoch_range.leader_epoch == epoch for epoch_range in c.epoch_ranges)
    )
