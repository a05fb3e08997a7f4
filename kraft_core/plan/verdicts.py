"""The verdict on an action: what the protocol engine answers in every state that the captures allow.

Of several answers the first of these counts: refused, unsafe, not known, safe. Only _decided answers safe,
and only if the captures show everything that it counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kraft_core.findings.observed_quorum import static_voters_reported
from kraft_core.plan import engine
from kraft_core.plan.actions import Action, Replace, UpgradeKRaftVersion, lost_by
from kraft_core.plan.captured_quorum import COUNTED, CapturedQuorum
from kraft_core.plan.engine import QuorumAnswer, World
from kraft_core.plan.feature_support import directories_not_known, unsupported
from kraft_core.plan.parts import ActionPart, parts_of
from kraft_core.plan.standings import Member, Standing
from kraft_core.plan.verdict import Verdict
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import ReplicaKey


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
    """The outcome of an action. high_watermarks: the leader's, at least and at most, None where not known.

    missing: what to capture to know a verdict that is not known, in words; empty for any other.
    """

    verdict: Verdict
    stages: tuple[Stage, ...]
    high_watermarks: tuple[int | None, int | None]
    before: Side | None
    after: Side | None
    missing: tuple[str, ...] = ()


def judge(quorum: CapturedQuorum, action: Action) -> Judged:
    """The verdict on an action, from every world that the captures allow."""
    both = engine.worlds(quorum)
    verdict = _ruled_out(quorum, action)
    if verdict is None and both is None:
        verdict = Verdict("not_known", _not_in_sight(quorum))
    if verdict is not None or both is None:
        assert verdict is not None
        missing = _missing(quorum, action, verdict, None)
        return Judged(verdict, (), (None, None), None, None, missing)
    watermarks = _watermarks(quorum, both)
    before = side(engine.write(both[0])) if quorum.leader_gap is None else None
    stages: list[Stage] = []
    here: tuple[World, ...] = both
    parts = parts_of(quorum, action)
    for part in parts:
        verdict, here = _take(part, here)
        verdict = _decided(quorum, verdict, part.gap)
        stages.append(Stage(part.what, verdict))
        if verdict.name != "safe":
            break
    verdict = stages[-1].verdict
    after = side(engine.write(here[0])) if here and verdict.name in ("safe", "unsafe") else None
    last = parts[len(stages) - 1]
    missing = _missing(quorum, action, verdict, last)
    return Judged(verdict, tuple(stages), watermarks, before, after, missing)


def _decided(quorum: CapturedQuorum, verdict: Verdict, gap: str | None) -> Verdict:
    """The verdict that the captures prove. The worlds differ by what they do not show of the followers.

    gap: what they do not show beside the replicas. Refused and unsafe need the leader's log, safe needs that
    the leader led, too.
    """
    gaps = [quorum.leader_gap, gap] if verdict.name == "safe" else [quorum.leader_log_gap]
    open_questions = "; ".join(words for words in gaps if words is not None)
    if not open_questions or verdict.name == "not_known":
        return verdict
    would_be = f"otherwise, by the captures: {verdict.name}, {verdict.reason}"
    return Verdict("not_known", f"{open_questions}; {would_be}", verdict.error, verdict.error_text)


def _missing(
    quorum: CapturedQuorum, action: Action, verdict: Verdict, part: ActionPart | None
) -> tuple[str, ...]:
    """What to capture to know the verdict: the leader first, then voters, then what the part needs.

    Nobody can capture again what the action takes for gone, and nothing depends on it.
    """
    if verdict.name != "not_known":
        return ()
    gone = lost_by(action)
    found = [] if quorum.leader_gap is None else [quorum.leader_gap]
    found += [
        f"voter {member.key.id}: {member.gap}"
        for member in quorum.members
        if member.is_voter and member.standing is Standing.NOT_KNOWN and member.key != quorum.leader
        if member.key.id not in gone
    ]
    if part is not None and part.caught_up is not None and not quorum.is_counted(part.caught_up):
        member = quorum.member(part.caught_up)
        found.append(f"{part.caught_up.id}: {member.words if member else quorum.not_seen}")
    if isinstance(action, UpgradeKRaftVersion):
        found += _directories(quorum)
    found += [part.gap] if part is not None and part.gap is not None else []
    return tuple(dict.fromkeys(found))


def _ruled_out(quorum: CapturedQuorum, action: Action) -> Verdict | None:
    """What the records alone decide: a stale voter set, a node that is not a voter, too old software."""
    if quorum.known.in_force.is_unlawful(quorum.epoch):
        reason = (
            f"the leader of epoch {quorum.epoch} was elected by another voter set than its log's (Kafka's "
            "stale voter set): what it acknowledges may be lost; recover first, see kraftlake explain"
        )
        return Verdict("unsafe", reason)
    refusal = None
    if isinstance(action, Replace) and quorum.voters is not None and quorum.voter_of(action.node_id) is None:
        reason = f"{action.node_id} is not a voter of {quorum.voters.words}, so it cannot be replaced"
        refusal = Verdict("refused", reason, ErrorCode.VOTER_NOT_FOUND)
    if isinstance(action, UpgradeKRaftVersion):
        text = unsupported(quorum, action.level)
        if text is not None:
            error = ErrorCode.INVALID_UPDATE_VERSION
            reason = f"Kafka refuses to upgrade kraft.version to {action.level}: {error.name}: {text}"
            refusal = Verdict("refused", reason, error, text)
    return None if refusal is None else _decided(quorum, refusal, None)


def _watermarks(quorum: CapturedQuorum, both: tuple[World, World]) -> tuple[int | None, int | None]:
    """The leader's high watermark: at least, and at most.

    Without its log, which may have gone on and may have other voters in force, nothing bounds it from above.
    """
    if quorum.contested:
        return None, None
    if quorum.leader_log_gap is not None:
        return engine.proven_watermark(quorum), None
    least, most = (world.leader.log.known_high_watermark for world in both)
    return least, most


def _not_in_sight(quorum: CapturedQuorum) -> str:
    if quorum.leader is None:
        return f"no leader of epoch {quorum.epoch} is known: {quorum.no_leader}"
    if quorum.voters is None or quorum.kraft_version is None:
        reported = static_voters_reported(quorum.known)
        unproven = f"; {reported}, which proves no majority" if reported else ""
        return f"the voter set in force is in no captured log or checkpoint{unproven}"
    return f"no captured log contains a record of epoch {quorum.epoch}, whose leader is {quorum.leader.id}"


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


def _take(part: ActionPart, here: tuple[World, ...]) -> tuple[Verdict, tuple[World, ...]]:
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
        return _already(here), here
    return _committed(part, after)


def _already(here: tuple[World, ...]) -> Verdict:
    """A request that changes nothing: what it asks for is in the leader's log, and lasts if that commits."""
    lives = [engine.goes_on(world) for world in here]
    if all(lives):
        return Verdict("safe", "already in effect; nothing would be written")
    shown = engine.side_words(here[0])
    reason = (
        f"the leader's log already has this change, but whether it commits depends on its voters: {shown}"
    )
    return Verdict("not_known" if any(lives) else "unsafe", reason)


def _joined(part: ActionPart, key: ReplicaKey, here: tuple[World, ...]) -> tuple[World, ...]:
    """The worlds with the state of a replica that is to be added: at its least, and at its most.

    Kafka adds one that had the whole log once and fetched within the last hour, behind or not. An operator
    who waits for it knows that, but nothing proves that it is in sync afterwards: at its least it is not.
    """
    quorum = here[0].quorum
    is_restarted = part.is_awaited and here[0].leader.voters.voter_for(key) is not None
    if quorum.is_counted(key) and not is_restarted:
        return tuple(engine.joining(world, key, fetches=True) for world in here)
    if part.is_awaited:
        least = engine.joining(here[0], key, fetches=False)
        return (least, *(engine.joining(world, key, fetches=True) for world in here[1:]))
    member = quorum.member(key)
    may_keep_up = member is None or member.standing is Standing.NOT_KNOWN
    return (here[0], *(engine.joining(world, key, fetches=may_keep_up) for world in here[1:]))


def _refusal(part: ActionPart, answer: QuorumAnswer) -> Verdict:
    return Verdict(
        "refused", f"Kafka refuses to {part.what}: {_error(answer)}", answer.error, answer.text or ""
    )


def _error(answer: QuorumAnswer) -> str:
    """Its name, and Kafka's text if there is one."""
    return ": ".join(filter(None, (answer.error.name, answer.text)))


def _undecided(quorum: CapturedQuorum, part: ActionPart, refused: QuorumAnswer) -> str:
    unknown = [f"{m.key.id} ({m.words})" for m in quorum.members if m.standing is Standing.NOT_KNOWN]
    if part.caught_up is not None:
        member = quorum.member(part.caught_up)
        unknown.insert(0, f"{part.caught_up.id} ({member.words if member else quorum.not_seen})")
    unknown += _directories(quorum)
    names = ", ".join(dict.fromkeys(unknown)) or "what the captures do not show"
    return f"it depends on {names}: Kafka may answer {_error(refused)}"


def _directories(quorum: CapturedQuorum) -> list[str]:
    """Which directory ids are not known, in words; empty for none."""
    names = ", ".join(map(str, directories_not_known(quorum)))
    who = "the leader of a static quorum does not report" if quorum.is_live else "no capture has"
    return [f"the directory ids of voters {names}, which {who}"] if names else []


def _committed(part: ActionPart, after: tuple[World, ...]) -> tuple[Verdict, tuple[World, ...]]:
    """Whether the append commits by the replicas in sync, and what is written after it."""
    done = [engine.commits(world) for world in after]
    settled = tuple(engine.settled(world) for world in after)
    lasting = tuple(world for world in settled if world is not None)
    if not any(done):
        stuck = engine.side_words(after[0])
        reason = f"Kafka accepts the change, but it will not commit: {stuck}; later changes are then refused"
        return Verdict("unsafe", reason), after
    if len(lasting) < len(after):
        reason = f"after {part.what} the others elect no leader, by what was captured"
        return Verdict("unsafe" if not lasting else "not_known", reason), lasting
    lives = [engine.commits(engine.write(world)) for world in lasting]
    if not all(done) or not all(lives):
        shown = engine.side_words(after[0])
        reason = f"the change commits only with voters not known to be in sync: {shown}"
        return Verdict("not_known", reason), lasting
    return Verdict("safe", f"the change will commit: {engine.side_words(lasting[0])}"), lasting


def _take_loss(part: ActionPart, here: tuple[World, ...]) -> tuple[Verdict, tuple[World, ...]]:
    lost = [engine.lose(world, part.lost) for world in here]
    left = [None if world is None else engine.settled(world) for world in lost]
    alive = [world is not None and engine.commits(engine.write(world)) for world in left]
    lasting = tuple(world for world in left if world is not None)
    leads = bool(lasting) and here[0].leader.key != lasting[0].leader.key
    names = ", ".join(str(node_id) for node_id in part.lost)
    strangers = [str(node_id) for node_id in part.lost if node_id not in here[0].leader.voters.ids]
    note = f"{', '.join(strangers)} {'is not a voter' if len(strangers) == 1 else 'are not voters'}; "
    differing = _without_latest_set(here[0], part.lost)
    if all(alive) and differing:
        reason = f"without {names} an election is not certain: {differing}"
        return Verdict("not_known", reason), lasting
    if all(alive):
        who = f"; {lasting[0].leader.key.id} can lead" if leads else ""
        reason = f"nothing committed is lost; {engine.side_words(lasting[0])}{who}"
        return Verdict("safe", (note if strangers else "") + reason), lasting
    if any(alive):
        shown = engine.side_words(replace(here[0], fetching=_left(here[0], part.lost)))
        reason = f"without {names} it depends on voters not known to be in sync: {shown}"
        return Verdict("not_known", reason), lasting
    reason = f"without {names} nothing commits: too few of the remaining voters are in sync"
    return Verdict("unsafe", reason), lasting


def _without_latest_set(world: World, lost: tuple[int, ...]) -> str:
    """Why the voters left may not elect by the leader's latest voter set; empty if they can.

    A voter elects by the latest set of its own log (KIP-853), and votes for any log that is not behind its
    own: the voter left with the longest log must hold the latest VotersRecord, else they may elect nobody.
    A leader that is left is that voter, unless it has removed itself: then nobody can elect it again.
    """
    quorum = world.quorum
    if quorum.voters is None or quorum.voters.source == "static":
        return ""
    entries, offset = quorum.voters.voters, quorum.voters.offset
    if world.leader.key.id not in lost and entries.voter_for(world.leader.key) is not None:
        return ""
    left = (quorum.member(key) for key in _left(world, lost) if entries.voter_for(key) is not None)
    if any((member.end_offset or 0) > offset for member in left if member is not None):
        return ""
    return f"no remaining voter had fetched the VotersRecord at {offset}; capture again once they have"


def _left(world: World, lost: tuple[int, ...]) -> frozenset[ReplicaKey]:
    return frozenset(key for key in world.fetching if key.id not in lost)


def lagging(quorum: CapturedQuorum) -> tuple[Member, ...]:
    """The voters that are not in sync, or may not be."""
    return tuple(m for m in quorum.members if m.is_voter and m.standing not in (*COUNTED, Standing.LOST))
