"""Moves of a quorum without clock and network: which replica does what, and whom it reaches.

A move is all that happens between two moments at which a directory can be copied. Any sequence of moves is an
execution: a move that has no effect at its place is skipped, so a failing execution can be shrunk.
Replicas are addressed by slot, for two directories can claim one node id.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elect:
    """A replica's timeout passes; so do those of the slots that it reaches."""

    slot: int
    reaches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Append:
    """A leader whose epoch has committed appends a batch."""

    slot: int
    records: int


@dataclass(frozen=True, slots=True)
class Pull:
    """One replica fetches from another, `rounds` times; `one`: at most one batch each time."""

    slot: int
    source: int
    rounds: int = 1
    one: bool = False


@dataclass(frozen=True, slots=True)
class ChangeVoters:
    """A leader is asked to add or remove a replica."""

    leader: int
    slot: int
    add: bool


@dataclass(frozen=True, slots=True)
class UpdateVoter:
    """A voter has new endpoints, and sends them to a leader; with kraft.version 0 that remembers them."""

    leader: int
    slot: int


@dataclass(frozen=True, slots=True)
class UpgradeKRaftVersion:
    """A leader is asked to finalize kraft.version 1; voters whose directory it does not know report it."""

    slot: int


@dataclass(frozen=True, slots=True)
class WriteCheckpoint:
    """A replica snapshots what it knows to be committed."""

    slot: int
    delete_older: bool


@dataclass(frozen=True, slots=True)
class Reboot:
    """A replica stops and starts; `keeps_unflushed`: or loses what it had not flushed."""

    slot: int
    keeps_unflushed: bool = True


@dataclass(frozen=True, slots=True)
class EmptyDisk:
    """The node starts from an empty directory with another directory id, where that is lawful.

    See execution.may_lose_disk. static: after an upgrade its configuration still has the static voters.
    """

    slot: int
    static: bool = False


@dataclass(frozen=True, slots=True)
class EmptyStaticDisk:
    """Unlawful: the same of a voter that the others know by its id alone."""

    slot: int


@dataclass(frozen=True, slots=True)
class SecondDirectory:
    """Unlawful: another empty directory of the node's id joins; the first one lives on."""

    slot: int


@dataclass(frozen=True, slots=True)
class Restore:
    """Unlawful: the directory is again what it was `back` moments ago; `log_only`: but for the side files.

    log_only: quorum-state and leader-epoch-checkpoint stay as they are, as far as Kafka leaves them so.
    """

    slot: int
    back: int
    log_only: bool = False


LawfulMove = (
    Elect
    | Append
    | Pull
    | ChangeVoters
    | UpdateVoter
    | UpgradeKRaftVersion
    | WriteCheckpoint
    | Reboot
    | EmptyDisk
)
Move = LawfulMove | EmptyStaticDisk | SecondDirectory | Restore
