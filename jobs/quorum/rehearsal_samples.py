"""The metrics of rehearsed restorations."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.quorum.sample import Sample
from kraft_core.restore.rehearsal import Rehearsal


def rehearsal_samples(cluster_id: str, rehearsal: Rehearsal) -> Iterator[Sample]:
    """What the newest rehearsal of a cluster proves."""
    cluster = {"cluster_id": cluster_id}
    yield Sample("kraftlake_restorable", int(rehearsal.is_restorable), cluster)
    yield Sample("kraftlake_restore_rehearsed_timestamp_seconds", rehearsal.rehearsed_at / 1000, cluster)
    if not rehearsal.is_restorable or rehearsal.end_offset is None:
        return
    if rehearsal.as_of is not None:
        yield Sample("kraftlake_restorable_as_of_timestamp_seconds", rehearsal.as_of / 1000, cluster)
    yield Sample("kraftlake_restorable_end_offset", rehearsal.end_offset, cluster)
    yield Sample("kraftlake_restorable_lost_offsets", rehearsal.lost_offsets, cluster)
    for name in rehearsal.losses:
        yield Sample("kraftlake_restore_loss", 1, {**cluster, "loss": name})
