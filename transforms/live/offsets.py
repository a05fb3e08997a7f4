"""A cluster's part of a stream's offset, as Spark keeps it in its checkpoint."""

from __future__ import annotations

from typing import Any

from kraft_core.wire.follower import Position
from transforms.live.options import LiveCluster
from transforms.source.errors import SourceError

Offset = dict[str, Any]
SNAPSHOT_END = "snapshotEnd"


def offset_of(position: Position, cluster_id: str) -> Offset:
    epoch = {} if position.leader_epoch is None else {"epoch": position.leader_epoch}
    covered = {SNAPSHOT_END: position.snapshot_end} if position.snapshot_end else {}
    return {
        "offset": position.offset,
        **epoch,
        "ledIn": position.led_in,
        **covered,
        "clusterId": cluster_id,
    }


def start_of(offset: Offset, cluster: LiveCluster) -> tuple[Position | str, str | None]:
    """Where to begin, and the id of the cluster, None if it is not known. Raises SourceError."""
    if "offset" not in offset:
        return offset["at"], cluster.cluster_id
    if cluster.cluster_id not in (None, offset["clusterId"]):
        raise SourceError(
            f"{cluster.name}: the checkpoint is of cluster {offset['clusterId']}, not of "
            f"{cluster.cluster_id}: use a checkpoint of its own for each cluster"
        )
    covered = offset.get(SNAPSHOT_END, 0)
    return Position(offset["offset"], offset.get("epoch"), offset["ledIn"], covered), offset["clusterId"]
