"""Plans said to be safe, compared with the execution: who holds what was committed, and who can lead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from kraft_core.plan import verdicts
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.registrations import Registration, Registrations
from kraft_core.plan.verdict import Verdict
from kraft_core.protocol.replica import Replica
from kraft_core.raft.log import voters_of_log
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet
from kraft_core.simulation.setup import endpoints_of
from tests.soundness.execution import Execution, electable, holds, log_order

CLOCK_TOLERANCE_MS = 2_000
"""A voter that lacks less than a fetch timeout's appends keeps up, says kraft_core.plan."""

_MOVED_PORTS = 5_000


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What an action leads to. counting: the voters by whom the leader counts; gone: nodes that are down.

    elects: whether the others may have to elect a leader.
    """

    counting: VoterSet
    gone: frozenset[int] = frozenset()
    elects: bool = False


def registering_all(quorum: CapturedQuorum) -> CapturedQuorum:
    """The quorum with every captured controller registered: logs of executions hold no such records."""
    ids = {member.key.id for member in quorum.members}
    controllers = {id_: Registration(id_, 0, endpoints_of(id_), (0, 1), True) for id_ in ids}
    return replace(quorum, registrations=Registrations(controllers, {}, None))


def safe_actions(quorum: CapturedQuorum, nodes: Collection[int] | None) -> Iterator[tuple[Action, Verdict]]:
    """The actions on these nodes, None: on all, that are said to be safe."""
    for action in _actions(quorum, nodes):
        verdict = verdicts.judge(quorum, action).verdict
        if verdict.name == "safe":
            yield action, verdict


def _actions(quorum: CapturedQuorum, nodes: Collection[int] | None) -> Iterator[Action]:
    assert quorum.voters is not None
    observers = [member.key for member in quorum.members if not member.is_voter]
    for both in combinations(quorum.voters.voters.ids, 2) if nodes is None else ():
        yield Lose(both)
    for node in quorum.voters.voters.ids:
        if nodes is None or node in nodes:
            yield from (Lose((node,)), Remove(node), Replace(node))
            yield Update(node, endpoints_of(node, _MOVED_PORTS))
            yield from (Replace(node, key.id) for key in observers if key.id != node)
    yield from (Add(key.id, key.directory_id) for key in observers if nodes is None or key.id in nodes)


def not_safe(
    execution: Execution, quorum: CapturedQuorum, action: Action, earliest: int, moments: Collection[int]
) -> str | None:
    """What is wrong with an action at each of the moments; None if nothing is at one of them.

    earliest: when (ms) the first of the copies was made.
    """
    found = [_not_safe_at(execution, quorum, action, moment, earliest) for moment in moments]
    return found[0] if all(found) else None


def _not_safe_at(
    execution: Execution, quorum: CapturedQuorum, action: Action, moment: int, earliest: int
) -> str | None:
    replicas = execution.moments[moment]
    # The captures were not all taken at once, and what was just appended may have been on its way.
    committed = execution.committed_by(min(execution.at[moment], earliest) - CLOCK_TOLERANCE_MS)
    for after in _aftermaths(quorum, action, _voters_in_force(replicas) or VoterSet(())):
        left = {slot: replica for slot, replica in replicas.items() if replica.key.id not in after.gone}
        up = [
            voter.key.id
            for voter in after.counting
            for replica in left.values()
            if voter.matches(replica.key)
            and all(holds(replica, batch, execution.committed_at) for batch in committed)
        ]
        if len(up) < after.counting.majority:
            names = [voter.key.id for voter in after.counting]
            return f"of the voters {names} only {up} hold what was committed"
        if after.elects and not electable(left):
            return f"the others, {sorted(replica.key.id for replica in left.values())}, elect nobody"
    return None


def _aftermaths(quorum: CapturedQuorum, action: Action, voters: VoterSet) -> Iterator[Aftermath]:
    """voters: in force before.

    A new disk under an old id is added once it has the log: until then the voters left need no vote of it.
    """
    match action:
        case Lose(node_ids=nodes):
            yield Aftermath(voters, frozenset(nodes), elects=True)
        case Update(node_id=node):
            yield Aftermath(voters, frozenset({node}), elects=True)
        case Remove(node_id=node):
            yield Aftermath(_without(voters, node))
        case Add(node_id=node, directory_id=directory):
            yield Aftermath(_with(voters, ReplicaKey(node, directory)))
        case Replace(node_id=node, successor=None):
            yield Aftermath(voters, frozenset({node}), elects=True)
            yield Aftermath(_without(voters, node), frozenset({node}))
        case Replace(node_id=node, successor=int(successor)):
            (key, *_) = (member.key for member in quorum.members_of(successor) if not member.is_voter)
            gone = frozenset({node})
            yield Aftermath(voters, gone, elects=True)
            yield Aftermath(_with(voters, key), gone)
            yield Aftermath(_without(_with(voters, key), node), gone)
        case _:
            raise AssertionError(action)


def _with(voters: VoterSet, key: ReplicaKey) -> VoterSet:
    return VoterSet.of((*voters, Voter(key))) if voters.voter_for(key) is None else voters


def _without(voters: VoterSet, node: int) -> VoterSet:
    return VoterSet.of(voter for voter in voters if voter.key.id != node)


def _voters_in_force(replicas: Mapping[int, Replica]) -> VoterSet | None:
    """The set of the best log: that of the newest leader, also once it has resigned or is gone.

    One of an older epoch may still lead by its own set, in vain: its majority fetches from it no more.
    """
    best = max(replicas.values(), key=log_order)
    return voters_of_log(best.log)
