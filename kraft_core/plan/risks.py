"""What an operator should know before acting, as far as the captures show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.evidence.set_history import set_nodes
from kraft_core.plan.actions import Action, Remove, Replace, Update, lost_by
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.parts import directory_of
from kraft_core.plan.standings import Standing
from kraft_core.plan.verdicts import Judged, lagging
from kraft_core.raft.voters import Endpoint, ReplicaKey
from kraft_core.wording import count


@dataclass(frozen=True, slots=True)
class Risk:
    name: str
    sentence: str


def risks(quorum: CapturedQuorum, action: Action, judged: Judged) -> tuple[Risk, ...]:
    """Every risk found, those of the quorum first."""
    found = [*_of_quorum(quorum, judged), *_of_voters(quorum, action), *_of_action(quorum, action, judged)]
    return tuple(found)


def _of_quorum(quorum: CapturedQuorum, judged: Judged) -> Iterator[Risk]:
    if quorum.known.in_force.is_unlawful(quorum.epoch):
        words = f"epoch {quorum.epoch} was won with a voter set that is not in force in its log"
        yield Risk("stale_voter_set", words)
    if quorum.leader is None:
        yield Risk("no_leader", f"no leader of epoch {quorum.epoch} is known: {quorum.no_leader}")
    elif not quorum.leader_is_captured:
        words = f"leader {quorum.leader.id} was not captured: its log may contain more, even VotersRecords"
        yield Risk("leader_not_captured", words)
    elif judged.before is not None and judged.high_watermarks[0] is None:
        words = (
            f"nothing of epoch {quorum.epoch} is proven committed: until then the leader changes no voters"
        )
        yield Risk("no_own_epoch_commit", words)
    yield from _uncommitted_change(quorum)


def _uncommitted_change(quorum: CapturedQuorum) -> Iterator[Risk]:
    voters = quorum.voters
    if voters is None or voters.source != "record":
        return
    verdict = quorum.known.commit.of_batch(
        voters.leader_epoch, voters.batch_base_offset, voters.batch_end_offset
    )
    if verdict.status != "committed":
        words = f"the voter set in force, {voters.words}, is {verdict.status}: {verdict.evidence}"
        yield Risk("uncommitted_change", words)


def _of_voters(quorum: CapturedQuorum, action: Action) -> Iterator[Risk]:
    for member in lagging(quorum):
        if member.key.id not in lost_by(action):
            yield Risk("voter_not_keeping_up", f"voter {member.key.id}: {member.words}")
    for member in quorum.members:
        entry = quorum.voter_of(member.key.id)
        if member.is_voter or entry is None or member.standing is Standing.REPLACED:
            continue
        words = (
            f"node {member.key.id} runs from directory {member.key.directory_id}, but the voter is directory "
            f"{entry.key.directory_id}: it fetches, but does not count"
        )
        yield Risk("stale_directory_id", words)
    yield from _moved(quorum)


def _moved(quorum: CapturedQuorum) -> Iterator[Risk]:
    """A voter whose controller registered another address than its entry has."""
    for voter in quorum.voters.voters if quorum.voters else ():
        registered = quorum.registration(voter.key.id)
        if registered is None or quorum.voters is None or registered.offset < quorum.voters.offset:
            continue
        by_name = {end.name: end for end in registered.endpoints}
        for end in voter.endpoints:
            other = by_name.get(end.name)
            if other is not None and other != end:
                yield Risk("moved_voter", _moved_words(voter.key, end, other))


def _moved_words(key: ReplicaKey, entry: Endpoint, other: Endpoint) -> str:
    what = "host" if entry.host != other.host else "port"
    return f"the {what} of voter {key.id} changed: entry {entry}, running at {other}"


def _of_action(quorum: CapturedQuorum, action: Action, judged: Judged) -> Iterator[Risk]:
    if isinstance(action, Remove):
        yield from _rejoining(quorum, action)
    if isinstance(action, Update):
        yield from _taken(quorum, action)
    if isinstance(action, Remove | Replace) and quorum.leader and quorum.leader.id == action.node_id:
        yield Risk("leader_goes", f"{action.node_id} is the leader: nothing is written during the election")
    if isinstance(action, Replace) and action.successor is None and judged.before is not None:
        left = len(judged.before.voters) - 1
        tolerated = failures((left - 1) // 2)
        verb = "tolerates" if left == 1 else "tolerate"
        words = f"between the removal and the addition {count(left, 'voter')} {verb} {tolerated}"
        yield Risk("fewer_voters_meanwhile", words)
    after = judged.after
    if after is None:
        return
    if after.hangs_on:
        names = ", ".join(str(key.id) for key in after.hangs_on)
        yield Risk("no_spare_voter", f"afterwards every commit needs each of {names}")
    if len(after.voters) % 2 == 0:
        voters = len(after.voters)
        words = f"{voters} voters tolerate no more failures than {voters - 1}, but need a larger majority"
        yield Risk("even_voters", words)


def failures(tolerated: int) -> str:
    """How many failures a voter set tolerates, in words."""
    return count(tolerated, "failure") if tolerated else "no failure"


def _taken(quorum: CapturedQuorum, action: Update) -> Iterator[Risk]:
    """Other voters and clients would reach another voter at the new address."""
    wanted = {(end.host, end.port) for end in action.endpoints}
    for voter in quorum.voters.voters if quorum.voters else ():
        ends = () if voter.key.id == action.node_id else quorum.endpoints_of(voter.key.id)
        for end in ends:
            if (end.host, end.port) in wanted:
                yield Risk("address_of_another", f"{end} is the endpoint of voter {voter.key.id}")


def _rejoining(quorum: CapturedQuorum, action: Remove) -> Iterator[Risk]:
    """With auto-join a running controller that is not a voter adds itself."""
    key = ReplicaKey(action.node_id, directory_of(quorum, action.node_id, action.directory_id, voter=True))
    member = quorum.member(key)
    if member is not None and member.standing not in (Standing.NOT_KNOWN, Standing.REPLACED):
        words = (
            f"{key.id} is running: with controller.quorum.auto.join.enable=true it adds itself again at once"
        )
        yield Risk("auto_join", words)
    sets = [node.voters for node in set_nodes(quorum.known) if node.source == "record"]
    had = [any(voter.key == key for voter in one.voters) for one in sets]
    for nth in range(2, len(sets)):
        if had[nth] and not had[nth - 1] and any(had[: nth - 1]):
            words = f"{key.id} was removed before and came back at offset {sets[nth].offset}"
            yield Risk("came_back_before", words)
