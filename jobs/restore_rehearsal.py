"""What a rehearsed restoration proves: as a sentence, and as metrics."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.quorum.sample import Sample
from jobs.time_travel.moment import iso
from kraft_core.restore.restoration import Restoration
from kraft_core.wording import count


def sentence(plan: Restoration) -> str:
    """As of when it could be restored, and what of all that was seen would be lost."""
    made = plan.made
    if made is None or plan.verdict == "REFUSED":
        return "not restorable from these captures"
    seen, end = made.horizon.end_offset, made.source_end
    lost = f"at most offsets {end} to {seen - 1} of those seen" if seen > end else "no offset that was seen"
    names = sorted({loss.name for loss in plan.losses})
    named = f"; {count(len(names), 'loss', 'losses')} to accept: {', '.join(names)}" if names else ""
    return f"restorable as of {iso(plan.as_of)}, up to offset {end} (exclusive): would lose {lost}{named}"


def samples(plan: Restoration, now: int) -> Iterator[Sample]:
    """now: when it was rehearsed (ms)."""
    cluster = {"cluster_id": plan.cluster_id}
    made = plan.made if plan.verdict != "REFUSED" else None
    yield Sample("kraftlake_restorable", 0 if made is None else 1, cluster)
    yield Sample("kraftlake_restore_rehearsed_timestamp_seconds", now / 1000, cluster)
    if made is None:
        return
    if plan.as_of is not None:
        yield Sample("kraftlake_restorable_as_of_timestamp_seconds", plan.as_of / 1000, cluster)
    yield Sample("kraftlake_restorable_end_offset", made.source_end, cluster)
    lost = max(0, made.horizon.end_offset - made.source_end)
    yield Sample("kraftlake_restorable_lost_offsets", lost, cluster)
    for name in sorted({loss.name for loss in plan.losses}):
        yield Sample("kraftlake_restore_loss", 1, {**cluster, "loss": name})
