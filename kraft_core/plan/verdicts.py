"""The plan of an action: its verdict, the quorum before and after, and what the captures leave open.

safe: Kafka accepts it, it commits by the replicas that keep up, and so does what follows. unsafe: Kafka
accepts it, but then nothing commits until more replicas come back. refused: Kafka's answer is an error.
not_known: the captures do not decide it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kraft_core.plan import engine
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import CapturedQuorum, Member, Standing
from kraft_core.plan.engine import QuorumAnswer, World
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    Request,
    UpdateFeaturesRequest,
    UpdateVoterRequest,
)
from kraft_core.raft.voters import Endpoint, ReplicaKey

VerdictName = Literal["safe", "unsafe", "refused", "not_known"]

# What Kafka's tools print for an error code.
EXCEPTIONS = {
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.UNSUPPORTED_VERSION: "UnsupportedVersionException",
    ErrorCode.INVALID_REQUEST: "InvalidRequestException",
    ErrorCode.INVALID_UPDATE_VERSION: "InvalidUpdateVersionException",
    ErrorCode.DUPLICATE_VOTER: "DuplicateVoterException",
    ErrorCode.VOTER_NOT_FOUND: "VoterNotFoundException",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NotLeaderOrFollowerException",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """error, error_text: Kafka's, where it refuses; `reason` is for people."""

    name: VerdictName
    reason: str
    error: ErrorCode | None = None
    error_text: str | None = None

    @property
    def exception(self) -> str | None:
        return EXCEPTIONS.get(self.error) if self.error else None


@dataclass(frozen=True, slots=True)
class Side:
    """A voter set before or after: how many voters it can lose, in principle and now.

    keeping_up: voters that hold the leader's log, the leader included. spare: how many of those may stop
    while commits continue; negative if nothing commits. hangs_on: every commit depends on each of them.
    """

    voters: tuple[ReplicaKey, ...]
    majority: int
    tolerated_failures: int
    keeping_up: int
    spare: int
    hangs_on: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One request or loss of an action, judged on the quorum that the one before left."""

    what: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of an action. high_watermarks: at least and at most, None if not known yet."""

    verdict: Verdict
    stages: tuple[Stage, ...]
    high_watermarks: tuple[int | None, int | None]
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A stage to apply to a world: a request to the leader, or the loss of nodes.

    caught_up: a replica that must hold the log. is_awaited: the operator waits until it does.
    """

    what: str
    request: Callable[[World], Request] | None = None
    lost: tuple[int, ...] = ()
    caught_up: ReplicaKey | None = None
    is_awaited: bool = False


def judge(quorum: CapturedQuorum, action: Action) -> Judged:
    """The verdict on an action, from every world that the captures allow."""
    both = engine.worlds(quorum)
    obstacle = _obstacle(quorum, action)
    if both is None or obstacle is not None:
        verdict = obstacle or Verdict("not_known", _not_in_sight(quorum))
        return Judged(verdict, (), (None, None), None, None)
    watermarks = (_watermark(both[0]), _watermark(both[1]))
    before = side(engine.write(both[0]))
    stages: list[Stage] = []
    here: tuple[World, ...] = both
    for part in _parts(quorum, action):
        verdict, here = _take(part, here)
        stages.append(Stage(part.what, verdict))
        if verdict.name != "safe":
            break
    verdict = stages[-1].verdict
    if not quorum.leader_is_captured and not isinstance(action, Lose):
        verdict = _of_unseen_leader(quorum, verdict)
    after = side(engine.write(here[0])) if here and verdict.name in ("safe", "unsafe") else None
    return Judged(verdict, tuple(stages), watermarks, before, after)


def _watermark(world: World) -> int | None:
    return world.leader.log.known_high_watermark


def _obstacle(quorum: CapturedQuorum, action: Action) -> Verdict | None:
    """Why the engine's answer would not hold for this quorum: a stale voter set, or older software."""
    if quorum.known.in_force.is_unlawful(quorum.epoch):
        reason = (
            f"the leader of epoch {quorum.epoch} was elected by another voter set than its log's (Kafka's "
            "stale voter set): what it acknowledges may be lost; recover first, see kraftlake explain"
        )
        return Verdict("unsafe", reason)
    if isinstance(action, UpgradeKRaftVersion) and quorum.leader and quorum.kraft_version == 0:
        registered = quorum.registration(quorum.leader.id)
        if registered is None or not registered.upgrades_kraft_version:
            reason = (
                f"nothing shows that leader {quorum.leader.id} runs Kafka 4.1 or newer; 3.9 answers that "
                "kraft.version was upgraded, and leaves it at 0"
            )
            return Verdict("not_known", reason)
    return None


def _not_in_sight(quorum: CapturedQuorum) -> str:
    if quorum.leader is None:
        return f"nobody is known to lead epoch {quorum.epoch}: an election was under way at the captures"
    if quorum.voters is None or quorum.kraft_version is None:
        return "the voter set in force is in no captured log or checkpoint"
    return f"no captured log holds a record of epoch {quorum.epoch}, which {quorum.leader.id} leads"


def _of_unseen_leader(quorum: CapturedQuorum, verdict: Verdict) -> Verdict:
    """The leader itself decides, and its log may hold more, VotersRecords too."""
    leader = quorum.leader.id if quorum.leader else "?"
    end = quorum.log_end
    reason = (
        f"leader {leader} was not captured; if its log ends at {end}, as the others show: {verdict.reason}"
    )
    return Verdict("not_known", reason, verdict.error, verdict.error_text)


def side(world: World) -> Side:
    """The voter set by which the leader counts, and its state."""
    voters = world.leader.voters
    up = [
        voter.key
        for voter in voters
        if voter.matches(world.leader.key) or any(voter.matches(key) for key in world.fetching)
    ]
    return Side(
        tuple(voter.key for voter in voters),
        voters.majority,
        len(voters) - voters.majority,
        len(up),
        len(up) - voters.majority,
        engine.hangs_on(world),
    )


def _parts(quorum: CapturedQuorum, action: Action) -> Sequence[_Part]:
    match action:
        case Add():
            return [_adding(quorum, action.node_id, action.directory_id)]
        case Remove():
            return [_removing(quorum, action.node_id, action.directory_id)]
        case Lose():
            names = ", ".join(str(node_id) for node_id in action.node_ids)
            return [_Part(f"lose {names}", lost=action.node_ids)]
        case Update():
            return [
                _Part(f"restart {action.node_id}", lost=(action.node_id,)),
                _updating(quorum, action.node_id, action.endpoints),
            ]
        case Replace():
            lost = _Part(f"lose {action.node_id}", lost=(action.node_id,))
            out = _removing(quorum, action.node_id, None)
            if action.successor is None:
                fresh = fresh_directory(quorum, action.node_id) or _unknown_directory(action.node_id)
                return [lost, out, replace(_adding(quorum, action.node_id, fresh), is_awaited=True)]
            return [lost, replace(_adding(quorum, action.successor, None), is_awaited=True), out]
        case UpgradeKRaftVersion():
            level = action.level
            what = f"upgrade kraft.version to {level}"
            return [_Part(what, lambda _: UpdateFeaturesRequest(level))]


def fresh_directory(quorum: CapturedQuorum, node_id: int) -> str | None:
    """The directory id of the node's new disk, if one was captured that is no voter's."""
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
    captured = [(m.captured_at, m.key.directory_id) for m in quorum.members_of(node_id) if m.captured_at]
    return fresh_directory(quorum, node_id) or (max(captured)[1] if captured else None)


def _adding(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> _Part:
    directory = directory_of(quorum, node_id, directory_id, voter=False)
    key = ReplicaKey(node_id, directory or _unknown_directory(node_id))
    endpoints = quorum.endpoints_of(node_id)

    def request(world: World) -> Request:
        default = (replace(engine.UNKNOWN_ENDPOINT, name=world.leader.endpoints[0].name),)
        return AddVoterRequest(world.leader.cluster_id, key, endpoints or default)

    return _Part(f"add {_named(key)}", request, caught_up=key)


def _unknown_directory(node_id: int) -> str:
    return f"<directory id of {node_id}>"


def _named(key: ReplicaKey) -> str:
    return f"{key.id}@{key.directory_id}"


def _removing(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> _Part:
    directory = directory_of(quorum, node_id, directory_id, voter=True)
    key = ReplicaKey(node_id, directory or _unknown_directory(node_id))
    return _Part(
        f"remove {_named(key)}",
        lambda world: RemoveVoterRequest(world.leader.cluster_id, key),
    )


def _updating(quorum: CapturedQuorum, node_id: int, endpoints: tuple[Endpoint, ...]) -> _Part:
    entry = quorum.voter_of(node_id)
    directory = directory_of(quorum, node_id, None, voter=True)
    key = ReplicaKey(node_id, directory or _unknown_directory(node_id))
    low, high = (entry.min_supported_version, entry.max_supported_version) if entry else (0, 1)

    def request(world: World) -> Request:
        cluster_id, epoch = world.leader.cluster_id, world.leader.epoch
        return UpdateVoterRequest(cluster_id, epoch, key, endpoints, low, max(high, 1))

    return _Part(f"update the endpoints of {node_id}", request, caught_up=key, is_awaited=True)


def _take(part: _Part, here: tuple[World, ...]) -> tuple[Verdict, tuple[World, ...]]:
    """The verdict on one stage, and the worlds after it."""
    if part.request is None:
        return _take_loss(part, here)
    if part.caught_up is not None:
        here = _joined(part, part.caught_up, here)
    answers = [engine.ask(world, part.request(world)) for world in here]
    refused = [answer for answer in answers if answer.is_refused]
    if len({answer.error for answer in answers}) > 1:
        return Verdict("not_known", _undecided(here[0].quorum, part, refused[0])), here
    if refused:
        return _refusal(part, refused[-1]), here
    after = tuple(answer.world for answer in answers)
    if all(new.leader.log == old.leader.log for new, old in zip(after, here, strict=True)):
        return Verdict("safe", "it is so already; nothing would be written"), here
    return _committed(part, after)


def _joined(part: _Part, key: ReplicaKey, here: tuple[World, ...]) -> tuple[World, ...]:
    """The worlds with the state of a replica that is to be added: at its least, and at its most.

    Kafka adds one that had the whole log once and fetched within the last hour, behind or not.
    """
    if part.is_awaited:
        return tuple(engine.joining(world, key, fetches=True) for world in here)
    member = here[0].quorum.member(key)
    if member is not None and member.standing is Standing.KEEPS_UP:
        return here
    may_keep_up = member is None or member.standing is Standing.NOT_KNOWN
    return (here[0], *(engine.joining(world, key, fetches=may_keep_up) for world in here[1:]))


def _refusal(part: _Part, answer: QuorumAnswer) -> Verdict:
    name = answer.error.name
    text = answer.text or ""
    return Verdict("refused", f"Kafka refuses to {part.what}: {name}: {text}", answer.error, text)


def _undecided(quorum: CapturedQuorum, part: _Part, refused: QuorumAnswer) -> str:
    unknown = [f"{m.key.id} {m.words}" for m in quorum.members if m.standing is Standing.NOT_KNOWN]
    if part.caught_up is not None:
        member = quorum.member(part.caught_up)
        unknown.insert(
            0, f"{part.caught_up.id} {member.words}" if member else f"{part.caught_up.id} not captured"
        )
    names = "; ".join(unknown) or "what the captures do not show"
    return f"it depends on {names}: Kafka may answer {refused.error.name}: {refused.text}"


def _committed(part: _Part, after: tuple[World, ...]) -> tuple[Verdict, tuple[World, ...]]:
    """Whether the append commits by the replicas that keep up, and what is written after it."""
    done = [engine.commits(world) for world in after]
    settled = tuple(_settled(engine.fetch_all(world)) for world in after)
    lasting = tuple(world for world in settled if world is not None)
    if not any(done):
        stuck = engine.side_words(after[0])
        reason = f"Kafka accepts it, but it does not commit: {stuck}; until then, later changes are refused"
        return Verdict("unsafe", reason), after
    if len(lasting) < len(after):
        reason = f"after {part.what} the others elect no leader, as far as was captured"
        return Verdict("unsafe" if not lasting else "not_known", reason), lasting
    lives = [engine.commits(engine.write(world)) for world in lasting]
    if not all(done) or not all(lives):
        shown = engine.side_words(after[0])
        reason = f"it commits only if voters that these captures do not show keep up: {shown}"
        return Verdict("not_known", reason), lasting
    return Verdict("safe", f"it commits: {engine.side_words(lasting[0])}"), lasting


def _settled(world: World) -> World | None:
    """A leader that removed itself has resigned: the others elect another."""
    if isinstance(world.leader.state, engine.Resigned):
        return engine.elect(world)
    return world


def _take_loss(part: _Part, here: tuple[World, ...]) -> tuple[Verdict, tuple[World, ...]]:
    left = [engine.lose(world, part.lost) for world in here]
    alive = [world is not None and engine.commits(engine.write(world)) for world in left]
    lasting = tuple(world for world in left if world is not None)
    leads = here[0].leader.key.id in part.lost
    if all(alive):
        who = f"; {lasting[0].leader.key.id} can lead" if leads else ""
        return Verdict("safe", f"what is committed stays, and {engine.side_words(lasting[0])}{who}"), lasting
    names = ", ".join(str(node_id) for node_id in part.lost)
    if any(alive):
        shown = engine.side_words(replace(here[0], fetching=_left(here[0], part.lost)))
        return Verdict("not_known", f"without {names} it depends on voters not captured: {shown}"), lasting
    reason = f"without {names} nothing commits: too few voters are left that keep up"
    return Verdict("unsafe", reason), lasting


def _left(world: World, lost: tuple[int, ...]) -> frozenset[ReplicaKey]:
    return frozenset(key for key in world.fetching if key.id not in lost)


def lagging(quorum: CapturedQuorum) -> tuple[Member, ...]:
    """The voters that do not keep up, or may not."""
    fine = (Standing.LEADER, Standing.KEEPS_UP)
    return tuple(member for member in quorum.members if member.is_voter and member.standing not in fine)
