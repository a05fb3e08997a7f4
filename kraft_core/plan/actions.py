"""The actions of an operator. A directory id may be left out if the captures show just one."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_core.raft.voters import Endpoint


@dataclass(frozen=True, slots=True)
class Add:
    """Make an observer a voter."""

    node_id: int
    directory_id: str | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """Make a voter an observer."""

    node_id: int
    directory_id: str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Restart a voter with other endpoints."""

    node_id: int
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """A voter is gone for good: put a new disk under its id, or (`successor`) another node in its place."""

    node_id: int
    successor: int | None = None


@dataclass(frozen=True, slots=True)
class UpgradeKRaftVersion:
    """Finalize a level of kraft.version."""

    level: int = 1


@dataclass(frozen=True, slots=True)
class Lose:
    """These nodes stop."""

    node_ids: tuple[int, ...]


Action = Add | Remove | Update | Replace | UpgradeKRaftVersion | Lose


def lost_by(action: Action) -> frozenset[int]:
    """The nodes that an action takes for gone."""
    if isinstance(action, Lose):
        return frozenset(action.node_ids)
    return frozenset({action.node_id}) if isinstance(action, Replace) else frozenset()
