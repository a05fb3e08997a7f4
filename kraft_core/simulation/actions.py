"""What can happen to a simulated quorum, and random sequences of it.

Every action means something in every state, so any part of a sequence is one, too: a failing run can be
shrunk by leaving actions out (runs.shrink). `node` is any number; it is taken modulo the number of nodes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elapse:
    ticks: int


@dataclass(frozen=True, slots=True)
class Write:
    """The leader, or each of several that believe they lead, appends `batches` batches."""

    batches: int


@dataclass(frozen=True, slots=True)
class SnapshotLog:
    node: int
    delete_older: bool


@dataclass(frozen=True, slots=True)
class NetworkPartition:
    """The nodes whose bit is set reach only each other, and so do the others."""

    mask: int


@dataclass(frozen=True, slots=True)
class Loss:
    """From now on `lost` percent of the messages are lost, and `doubled` percent arrive twice."""

    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class Crash:
    """`keeps` percent of what was not flushed survives."""

    node: int
    keeps: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start one of the stopped nodes; `new_port` changes its endpoints."""

    node: int
    new_port: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceDisk:
    """The node returns with an empty disk, under another directory id."""

    node: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A graceful shutdown: a leader resigns and names its successors."""

    node: int


@dataclass(frozen=True, slots=True)
class AddVoter:
    node: int


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    node: int


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Finalize kraft.version 1."""


Action = (
    Elapse
    | Write
    | SnapshotLog
    | NetworkPartition
    | Loss
    | Crash
    | Start
    | ReplaceDisk
    | Stop
    | AddVoter
    | RemoveVoter
    | Upgrade
)

_MAX_STOPPED_NODES = 16


def random_actions(seed: int, count: int) -> tuple[Action, ...]:
    """`count` random actions, mostly time and writes, with time between them; then all faults are healed."""
    source = random.Random(seed)
    faults = (_random_action(source) for _ in range(count))
    healing = (
        NetworkPartition(0),
        Loss(0, 0),
        *(Start(0) for _ in range(_MAX_STOPPED_NODES)),
        Elapse(1000),
        Write(1),
        Elapse(500),
    )
    return (Elapse(400), *_with_time_between(source, faults), *healing)


def _with_time_between(source: random.Random, actions: Iterable[Action]) -> Iterable[Action]:
    for action in actions:
        yield action
        if not isinstance(action, Elapse):
            yield Elapse(source.choice((5, 20, 60)))


def _random_action(source: random.Random) -> Action:
    node, percent = source.randrange(16), source.randrange(100)
    if percent < 26:
        return Elapse(source.choice((20, 80, 200, 500)))
    if percent < 46:
        return Write(source.randrange(1, 4))
    if percent < 54:
        return NetworkPartition(source.choice((0, 0, 0, source.randrange(1 << 10))))
    if percent < 58:
        return Loss(source.choice((0, 0, 5, 20)), source.choice((0, 5, 20)))
    if percent < 64:
        return Crash(node, source.choice((0, 50, 100)))
    if percent < 74:
        return Start(node, new_port=source.random() < 0.2)
    if percent < 76:
        return ReplaceDisk(node)
    if percent < 79:
        return Stop(node)
    if percent < 87:
        return AddVoter(node)
    if percent < 93:
        return RemoveVoter(node)
    if percent < 98:
        return SnapshotLog(node, delete_older=source.random() < 0.5)
    return Upgrade()
