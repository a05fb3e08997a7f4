"""The roles of a replica, and every valid transition between them.

KIP-595, Leader Election; KIP-996 put prospective before candidate. An observer is a follower that is not a
voter; an unattached replica may be either. `mermaid` renders the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    OBSERVER = "observer"
    RESIGNED = "resigned"


@dataclass(frozen=True, slots=True)
class Transition:
    """`bumps_epoch`: True: the epoch must rise; False: it must not; None: it may."""

    before: Role
    after: Role
    cause: str
    bumps_epoch: bool | None


def _table() -> tuple[Transition, ...]:
    unattached, prospective, candidate = Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE
    leader, follower, observer, resigned = Role.LEADER, Role.FOLLOWER, Role.OBSERVER, Role.RESIGNED
    rows = [
        Transition(unattached, unattached, "learns of a higher epoch, or votes", None),
        Transition(unattached, prospective, "election timeout", False),
        Transition(unattached, follower, "learns who leads", None),
        Transition(unattached, observer, "learns who leads and is not a voter", None),
        Transition(prospective, prospective, "votes", False),
        Transition(prospective, candidate, "a majority grants the pre-vote", True),
        Transition(prospective, unattached, "loses the pre-vote, or learns of a higher epoch", None),
        Transition(prospective, follower, "learns who leads, or loses and knew the leader", None),
        Transition(prospective, observer, "learns who leads, no longer a voter", None),
        Transition(candidate, leader, "a majority grants its vote", False),
        Transition(candidate, prospective, "election timeout", False),
        Transition(candidate, unattached, "learns of a higher epoch", True),
        Transition(candidate, follower, "learns who leads", None),
        Transition(candidate, observer, "learns who leads, no longer a voter", None),
        Transition(leader, resigned, "shuts down, removed itself, or no majority fetches", False),
        Transition(leader, unattached, "learns of a higher epoch", True),
        Transition(leader, follower, "learns of a higher epoch and who leads it", True),
        Transition(leader, observer, "learns of a higher epoch and who leads it, no voter", True),
        Transition(resigned, unattached, "election timeout, or learns of a higher epoch", True),
        Transition(resigned, follower, "learns of a higher epoch and who leads it", True),
        Transition(resigned, observer, "learns of a higher epoch and who leads it, no voter", True),
        Transition(follower, prospective, "fetch timeout", False),
        Transition(follower, unattached, "learns of a higher epoch", True),
        Transition(follower, follower, "learns of another leader, or of more of its endpoints", None),
        Transition(follower, observer, "its log has a voter set without it", None),
        Transition(observer, follower, "its log has a voter set with it", None),
        Transition(observer, unattached, "learns of a higher epoch", True),
        Transition(observer, observer, "learns of another leader, or of more of its endpoints", None),
    ]
    return tuple(rows)


TRANSITIONS = _table()


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    lines = [f"    {row.before.value} --> {row.after.value}: {row.cause}" for row in TRANSITIONS]
    return "\n".join(["stateDiagram-v2", "    [*] --> unattached", *lines])
