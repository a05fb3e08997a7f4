"""An action as the requests and losses that it consists of, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kraft_core.plan import engine
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.engine import World
from kraft_core.plan.feature_support import upgrade_gap
from kraft_core.plan.standings import Standing
from kraft_core.protocol.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    Request,
    UpdateFeaturesRequest,
    UpdateVoterRequest,
)
from kraft_core.raft.voters import Endpoint, ReplicaKey


@dataclass(frozen=True, slots=True)
class ActionPart:
    """A part of an action, to apply to a world: a request to the leader, or the loss of nodes.

    caught_up: a replica that must hold the log. is_awaited: the operator waits until it does. gap: what the
    captures do not show of this part, None if they show all of it.
    """

    what: str
    request: Callable[[World], Request] | None = None
    lost: tuple[int, ...] = ()
    caught_up: ReplicaKey | None = None
    is_awaited: bool = False
    gap: str | None = None


def parts_of(quorum: CapturedQuorum, action: Action) -> Sequence[ActionPart]:
    match action:
        case Add():
            return [_adding(quorum, action.node_id, action.directory_id)]
        case Remove():
            return [_removing(quorum, action.node_id, action.directory_id)]
        case Lose():
            names = ", ".join(str(node_id) for node_id in action.node_ids)
            return [ActionPart(f"lose {names}", lost=action.node_ids)]
        case Update():
            return [
                ActionPart(f"restart {action.node_id}", lost=(action.node_id,)),
                _updating(quorum, action.node_id, action.endpoints),
            ]
        case Replace():
            lost = ActionPart(f"lose {action.node_id}", lost=(action.node_id,))
            out = _removing(quorum, action.node_id, None)
            if action.successor is None:
                fresh = fresh_directory(quorum, action.node_id) or _unknown_directory(action.node_id)
                return [lost, out, replace(_adding(quorum, action.node_id, fresh), is_awaited=True)]
            return [lost, replace(_adding(quorum, action.successor, None), is_awaited=True), out]
        case UpgradeKRaftVersion():
            level = action.level
            what = f"upgrade kraft.version to {level}"
            return [ActionPart(what, lambda _: UpdateFeaturesRequest(level), gap=upgrade_gap(quorum, level))]


def fresh_directory(quorum: CapturedQuorum, node_id: int) -> str | None:
    """The directory id of the node's new disk, if one was captured that is not a voter's."""
    found = [
        member.key.directory_id
        for member in quorum.members_of(node_id)
        if not member.is_voter and member.standing is not Standing.REPLACED
    ]
    return found[-1] if found else None


def directory_of(
    quorum: CapturedQuorum, node_id: int, directory_id: str | None, *, voter: bool
) -> str | None:
    """The directory id that an operator means, where none is given."""
    if directory_id is not None:
        return directory_id
    entry = quorum.voter_of(node_id)
    if voter and entry is not None:
        return entry.key.directory_id
    captured = [
        (m.captured_at, m.key.directory_id or "") for m in quorum.members_of(node_id) if m.captured_at
    ]
    return fresh_directory(quorum, node_id) or (max(captured)[1] or None if captured else None)


def _adding(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> ActionPart:
    directory = directory_of(quorum, node_id, directory_id, voter=False)
    key = ReplicaKey(node_id, directory or _unknown_directory(node_id))
    endpoints = quorum.endpoints_of(node_id)

    def request(world: World) -> Request:
        default = (replace(engine.UNKNOWN_ENDPOINT, name=world.leader.endpoints[0].name),)
        return AddVoterRequest(world.leader.cluster_id, key, endpoints or default)

    gap = None if endpoints else f"no registration shows the listeners of {node_id}"
    return ActionPart(f"add {_named(key)}", request, caught_up=key, gap=gap)


def _unknown_directory(node_id: int) -> str:
    return f"<directory id of {node_id}>"


def _named(key: ReplicaKey) -> str:
    return f"{key.id}@{key.directory_id}"


def _removing(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> ActionPart:
    directory = directory_of(quorum, node_id, directory_id, voter=True)
    key = ReplicaKey(node_id, directory or _unknown_directory(node_id))
    return ActionPart(
        f"remove {_named(key)}",
        lambda world: RemoveVoterRequest(world.leader.cluster_id, key),
    )


def _updating(quorum: CapturedQuorum, node_id: int, endpoints: tuple[Endpoint, ...]) -> ActionPart:
    entry = quorum.voter_of(node_id)
    directory = directory_of(quorum, node_id, None, voter=True)
    key = ReplicaKey(node_id, directory or _unknown_directory(node_id))
    low, high = (entry.min_supported_version, entry.max_supported_version) if entry else (0, 1)

    def request(world: World) -> Request:
        cluster_id, epoch = world.leader.cluster_id, world.leader.epoch
        return UpdateVoterRequest(cluster_id, epoch, key, endpoints, low, max(high, 1))

    return ActionPart(f"update the endpoints of {node_id}", request, caught_up=key, is_awaited=True)
