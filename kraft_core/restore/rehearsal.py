"""What a rehearsed restoration proves: whether a quorum can be rebuilt, as of when, and what is lost.

It holds no secrets: names of losses, and reasons that name files, offsets and types of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kraft_core.wording import count

if TYPE_CHECKING:
    from kraft_core.restore.restoration import Restoration


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One rehearsal: every controller is assumed lost, and only the captures remain.

    rehearsed_at (ms). is_restorable: directories were written, and read back as planned. verdict: of the
    plan, None where there is none; refusals: why it is refused. failure: why captures could not be read, or
    what was planned could not be written or read back. losses: their names, rising.
    as_of (ms): the captures were taken then or later, None if it is not known.
    source_node_id, end_offset: whose log would be restored, up to which offset (exclusive); seen_end_offset:
    the highest end of a log that was seen; None where nothing is planned.
    """

    rehearsed_at: int
    is_restorable: bool
    verdict: str | None
    refusals: tuple[str, ...]
    failure: str | None
    losses: tuple[str, ...]
    as_of: int | None
    source_node_id: int | None
    end_offset: int | None
    seen_end_offset: int | None

    @property
    def lost_offsets(self) -> int:
        """How many of the offsets that were seen a restoration would lose; 0 where none is possible."""
        return max(0, (self.seen_end_offset or 0) - (self.end_offset or 0))

    @property
    def would_lose(self) -> str:
        """What of all that was seen would be lost, and what would have to be accepted."""
        end, lost = self.end_offset or 0, self.lost_offsets
        last = end + lost - 1
        what = f"at most offsets {end} to {last} of those seen" if lost else "no offset that was seen"
        losses = count(len(self.losses), "loss", "losses")
        named = f"; {losses} to accept: {', '.join(self.losses)}" if self.losses else ""
        return f"would lose {what}{named}"

    @property
    def why_not(self) -> tuple[str, ...]:
        """Why nothing could be restored."""
        return self.refusals if self.failure is None else (*self.refusals, self.failure)


def rehearsal_of(plan: Restoration | None, rehearsed_at: int, failure: str | None) -> Rehearsal:
    """plan: None where it could not be made. rehearsed_at (ms). failure: None if all went well."""
    made = None if plan is None or plan.verdict == "REFUSED" else plan.made
    return Rehearsal(
        rehearsed_at=rehearsed_at,
        is_restorable=made is not None and failure is None,
        verdict=None if plan is None else plan.verdict,
        refusals=() if plan is None else plan.refusals,
        failure=failure,
        losses=() if plan is None else tuple(sorted({loss.name for loss in plan.losses})),
        as_of=None if plan is None else plan.as_of,
        source_node_id=None if made is None else made.source.node_id,
        end_offset=None if made is None else made.source_end,
        seen_end_offset=None if made is None else made.horizon.end_offset,
    )
