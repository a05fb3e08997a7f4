"""What is asked for of a restoration: the new voters, the moment, and what somebody states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kraft_core.restore.choice import Line
from kraft_core.restore.replay import Cut

Placement = Literal["newest", "as-of"]


@dataclass(frozen=True, slots=True)
class NewVoter:
    """A controller of the restored quorum; directory_id: of the directory that is made for it.

    A node that is a broker, too, keeps the directory id that its partitions name, whatever is asked for.
    """

    id: int
    directory_id: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What is asked for. made_at (ms): when; the time of what is written.

    listener: the name of the controllers' listener, None to take it from the captures. gone: voters that
    never come back, and were not captured after they had stopped for good; lost_brokers: brokers that never
    come back; brokers_back: the only ones that do, None for all but the lost. kraft_version: None for that of
    the captures. are_stopped: all controllers had stopped before the captures were taken; brokers_stopped: no
    broker runs until the new quorum has a leader. at: None for the end of the source's log. placement: of an
    older moment, whether replicas and ISRs are those of the end of the log or of that moment. line: of
    several histories that whose log ends so.
    """

    voters: tuple[NewVoter, ...]
    made_at: int
    listener: str | None = None
    gone: frozenset[int] = frozenset()
    lost_brokers: frozenset[int] = frozenset()
    brokers_back: frozenset[int] | None = None
    kraft_version: int | None = None
    are_stopped: bool = False
    brokers_stopped: bool = False
    at: Cut | None = None
    placement: Placement = "newest"
    line: Line | None = None
