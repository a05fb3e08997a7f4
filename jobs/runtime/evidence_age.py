"""How old the evidence of an answer is, and whether it is still current."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.runtime.finding_text import when

_SINCE = "Elections, commits, truncations and voter changes since then are not covered."


@dataclass(frozen=True, slots=True)
class EvidenceAge:
    """The age of evidence at a reference time.

    as_of: until when the captures cover the cluster, None if they do not show it. now: the reference time.
    max_hours: above that the evidence is old. bounded_by: None where the captures state their times; else
    what as_of is by, and they may be of any later time until they were read.
    """

    as_of: datetime | None
    now: datetime
    max_hours: float
    bounded_by: str | None = None

    @property
    def is_old(self) -> bool:
        """Whether the answer holds as of as_of only. Evidence of unknown or of future time is old, too."""
        if self.as_of is None or self.as_of > self.now or self.bounded_by is not None:
            return True
        return (self.now - self.as_of) / timedelta(hours=1) > self.max_hours

    def verdict_now(self, verdict: str) -> str:
        """The verdict at the reference time: what was safe a day ago is safe as of then only."""
        if verdict != "safe" or not self.is_old:
            return verdict
        return "safe_as_of" if self.as_of is not None and self.as_of <= self.now else "not_known"

    def reason_now(self, verdict: str, reason: str) -> str:
        """The reason of a verdict at the reference time: where the evidence's time decides it, that too."""
        if verdict == "not_known" or self.verdict_now(verdict) != "not_known":
            return reason
        when_taken = "at an unknown time" if self.as_of is None else "after the reference time"
        return f"the captures were taken {when_taken}; otherwise, by the captures: {verdict}, {reason}"

    @property
    def sentence(self) -> str:
        """How old the evidence is, and what may have changed since."""
        if self.as_of is None:
            return "It is not known when the captures were taken: state it (capture.json or --captured-at)."
        if self.as_of > self.now:
            return (
                f"The evidence ends at {when(self.as_of)}, after the reference time {when(self.now)}: "
                "check the clocks and --now."
            )
        if self.bounded_by is not None:
            return (
                f"The evidence ends at {when(self.as_of)} ({self.bounded_by}) or later: state when each "
                "capture was taken (capture.json or --captured-at). " + _SINCE
            )
        older = f", more than {self.max_hours:g} h: capture the controllers again" if self.is_old else ""
        return (
            f"The evidence ends at {when(self.as_of)}, {_duration(self.now - self.as_of)} ago{older}. "
            f"{_SINCE}"
        )


def _duration(age: timedelta) -> str:
    """An age in its two largest units: "2 d 3 h", "3 h 20 min", "40 s"."""
    seconds = int(age.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60))
    parts = [
        (seconds // size % limit, name) for (name, size), limit in zip(units, (10**9, 24, 60), strict=True)
    ]
    first = next(nth for nth, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count} {name}" for count, name in parts[first : first + 2] if count)
