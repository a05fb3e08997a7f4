"""May this feature, or every feature of a release, be finalized now?

Computed from the leader's whole log, from its committed part and, where it is SAFE, from what lies between:
the answer is known only if all agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kraft_core.image.effective_configs import BROKER_RESOURCE, MIN_ISR
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, CONFIGS, CONTROLLERS, FEATURES
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.releases import (
    CONTROLLERS_UNREGISTER,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_LEVELS,
    METADATA_VERSION,
    OTHER_FEATURES,
    RECORD_LEVELS,
    RELEASES,
    Release,
    changes_between,
    release_by,
)
from kraft_core.plan.actions import Lose, UpgradeKRaftVersion
from kraft_core.plan.answer import Answer, AnswerName
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.feature_control import Blocker, FeatureState, blockers, level_words, refusal, state_of
from kraft_core.plan.risks import Risk
from kraft_core.plan.states_between import of_kinds, unproven_gap
from kraft_core.plan.steps import CAPTURE_MORE, PlanStep, bootstrap
from kraft_core.plan.verdicts import Judged, judge
from kraft_core.protocol.errors import ErrorCode
from kraft_core.wording import count

_MESSAGES = {message.api_key: message for message in METADATA_RECORDS}
FEATURES_TOOL = "bin/kafka-features.sh"


@dataclass(frozen=True, slots=True)
class FeatureUpgrade:
    """Levels to finalize. release: all of a release's, in one command; None: those features alone."""

    updates: Mapping[str, int]
    release: Release | None = None

    @property
    def words(self) -> str:
        levels = ", ".join(level_words(feature, level) for feature, level in self.updates.items())
        return levels if self.release is None else f"the levels of release {self.release.name} ({levels})"


def release_upgrade(release: Release) -> FeatureUpgrade:
    """What upgrade --release-version asks for: every feature that a new cluster of the release has."""
    level = release.metadata_versions.high
    others = {
        feature: release.default_level(feature, level)
        for feature in OTHER_FEATURES
        if release.known_high(feature) is not None
    }
    return FeatureUpgrade({METADATA_VERSION: level, **{f: n for f, n in others.items() if n > 0}}, release)


def plan_upgrade(metadata: CapturedMetadata, upgrade: FeatureUpgrade) -> Answer:
    """The verdict on the upgrade, or on the downgrade where a level is below the one in force."""
    question = f"finalize {upgrade.words}"
    gaps = metadata.gaps
    state = _state(metadata, metadata.image, metadata.quorum.kraft_version)
    if state is None:
        missing = gaps or (_unseen(metadata),)
        return Answer(question, "not_known", missing[0], missing=missing)
    made = _answer(metadata, upgrade, state)
    then = _state(metadata, metadata.committed, metadata.committed_kraft_version)
    open_questions = list(_needed(metadata, state, made))
    if then is None:
        open_questions.append("the captures do not prove this metadata committed")
    elif _ruling(metadata, then, upgrade) != _ruling(metadata, state, upgrade):
        open_questions.append("it depends on records at the log's end that are not proven committed")
    elif made.verdict == "safe":
        gap = unproven_gap(
            metadata,
            of_kinds(FEATURES, BROKERS, CONTROLLERS),
            lambda image: _rules_so(metadata, image, upgrade, _ruling(metadata, state, upgrade)),
        )
        open_questions += [] if gap is None else [gap]
    if made.verdict == "not_known" or not open_questions:
        return made
    reason = f"{open_questions[0]}; otherwise, by the captures: {made.verdict}, {made.reason}"
    return replace(
        made, verdict="not_known", reason=reason, missing=tuple(open_questions), steps=(CAPTURE_MORE,)
    )


def _needed(metadata: CapturedMetadata, state: FeatureState, made: Answer) -> Iterator[str]:
    """What the captures do not show: a refusal needs the leader's log, anything else that it leads, too."""
    leader = metadata.quorum.leader_log_gap if made.verdict == "refused" else metadata.quorum.leader_gap
    yield from (words for words in (leader, metadata.gap) if words is not None)
    if release_by(state.local) is None:
        yield f"leader {state.leader_id} runs a release that Kraftlake does not know"


def _state(metadata: CapturedMetadata, image: Image | None, kraft_version: int | None) -> FeatureState | None:
    quorum = metadata.quorum
    if image is None or quorum.leader is None or kraft_version is None:
        return None
    # With kraft.version 0 the controllers are named in controller.quorum.voters, and each must register.
    named = quorum.voters.voters.ids if quorum.voters is not None and kraft_version == 0 else ()
    return state_of(image, quorum.leader.id, kraft_version, named)


def _unseen(metadata: CapturedMetadata) -> str:
    quorum = metadata.quorum
    if quorum.leader is None:
        return f"no leader of epoch {quorum.epoch} is known"
    return (
        f"the log does not show metadata.version, or what leader {quorum.leader.id} supports: controllers "
        "register from metadata.version 3.7-IV0 on"
    )


def _is_downgrade(state: FeatureState, upgrade: FeatureUpgrade) -> bool:
    return upgrade.release is None and any(n < state.level(f) for f, n in upgrade.updates.items())


def _ruling(metadata: CapturedMetadata, state: FeatureState, upgrade: FeatureUpgrade) -> object:
    """Kafka's answer, and what the price of the change depends on: levels, and who has registered."""
    text = refusal(state, upgrade.updates, downgrade=_is_downgrade(state, upgrade))
    levels = tuple(map(state.level, upgrade.updates))
    unregistered = (_unregistered(metadata, state), _other_controllers(metadata, state))
    return text, state.metadata_version, levels, unregistered


def _rules_so(metadata: CapturedMetadata, image: Image, upgrade: FeatureUpgrade, ruling: object) -> bool:
    state = _state(metadata, image, metadata.quorum.kraft_version)
    return state is not None and _ruling(metadata, state, upgrade) == ruling


def _answer(metadata: CapturedMetadata, upgrade: FeatureUpgrade, state: FeatureState) -> Answer:
    """The answer if the captures show all."""
    question = f"finalize {upgrade.words}"
    evidence = tuple(_evidence(metadata, state))
    text = refusal(state, upgrade.updates, downgrade=_is_downgrade(state, upgrade))
    found = list(blockers(state, upgrade.updates))
    if text is not None:
        return Answer(
            question,
            "refused",
            f"Kafka refuses to {question}: INVALID_UPDATE_VERSION: {text}",
            (
                *evidence,
                *_no_way_back(metadata, state, upgrade),
                *(_blocker_words(state, metadata, b) for b in found),
            ),
            steps=tuple(_unblock(metadata, state, found)),
            error=ErrorCode.INVALID_UPDATE_VERSION,
            error_text=text,
        )
    raft = _raft_answer(metadata, upgrade, state)
    if raft is not None:
        return replace(raft, evidence=evidence)
    if all(state.level(feature) == level for feature, level in upgrade.updates.items()):
        reason = "already in effect; nothing would change"
        return Answer(question, "safe", reason, evidence)
    stuck = _not_committed(judge(metadata.quorum, Lose(())))
    if stuck is not None:
        verdict, reason, missing = stuck
        return Answer(question, verdict, reason, evidence, missing, steps=(CAPTURE_MORE,))
    risks = tuple(_risks(metadata, state, upgrade))
    reason = "; ".join(risk.sentence for risk in risks) or "Kafka accepts it, and it can be undone"
    steps = tuple(_steps(metadata, state, upgrade))
    return Answer(question, "risky" if risks else "safe", reason, evidence, (), risks, steps)


def _raft_answer(metadata: CapturedMetadata, upgrade: FeatureUpgrade, state: FeatureState) -> Answer | None:
    """What the raft layer objects to, of a kraft.version that is not committed yet; None if it does not."""
    level = upgrade.updates.get(KRAFT_VERSION)
    if level is None or level == state.kraft_version == metadata.committed_kraft_version:
        return None
    judged = judge(metadata.quorum, UpgradeKRaftVersion(level))
    verdict = judged.verdict
    if verdict.name == "safe":
        return None
    name = "risky" if verdict.name == "unsafe" else verdict.name
    reason = f"{KRAFT_VERSION} {level}: {verdict.reason}"
    return Answer(
        f"finalize {upgrade.words}",
        name,
        reason,
        missing=judged.missing,
        error=verdict.error,
        error_text=verdict.error_text,
    )


def _not_committed(judged: Judged) -> tuple[AnswerName, str, tuple[str, ...]] | None:
    """Why the record would not commit, or may not; None if it does."""
    if judged.verdict.name == "safe":
        return None
    if judged.verdict.name == "unsafe":
        return "risky", "Kafka accepts it, but nothing commits: too few voters are in sync", ()
    return "not_known", "; ".join(judged.missing) or judged.verdict.reason, judged.missing


def _evidence(metadata: CapturedMetadata, state: FeatureState) -> Iterator[str]:
    levels = [level_words(METADATA_VERSION, state.metadata_version), f"{KRAFT_VERSION} {state.kraft_version}"]
    levels += [level_words(feature, level) for feature, level in sorted(state.finalized.items())]
    yield f"finalized before offset {metadata.quorum.log_end}: {', '.join(levels)}"
    release = release_by(state.local)
    software = f"the features of Kafka {release.name}" if release else "features of no known release"
    yield f"leader {state.leader_id} registered {software}"
    yield f"registered: brokers {_ids(state.brokers)}, controllers {_ids(state.controllers)}"


def _no_way_back(metadata: CapturedMetadata, state: FeatureState, upgrade: FeatureUpgrade) -> Iterator[str]:
    """The levels below which the cluster may not go, what they brought, and what of it the log holds."""
    level = upgrade.updates.get(METADATA_VERSION, state.metadata_version)
    passed = changes_between(level, state.metadata_version)
    if passed:
        names = ", ".join(METADATA_LEVELS[each] for each in passed)
        yield f"{names} changed the records, and the log may hold them: {_records_since(passed)}"
        kinds = {(_MESSAGES[api_key].type_name, version) for api_key, version in _kinds_since(passed)}
        for each in metadata.written(kinds) if kinds else ():
            type_, version = each.kind
            held = f"{count(each.count, 'record')}, the first at offset {each.first_offset}"
            yield f"the captured log holds {type_} version {version}: {held}"


def _ids(nodes: Mapping[int, object]) -> str:
    return ", ".join(map(str, sorted(nodes))) or "none"


def _blocker_words(state: FeatureState, metadata: CapturedMetadata, blocker: Blocker) -> str:
    who = f"{blocker.kind} {blocker.node_id}"
    asked = level_words(blocker.feature, blocker.level)
    if blocker.supported is None:
        return f"{who} has not registered, so {asked} is refused"
    registered = (state.brokers if blocker.kind == "broker" else state.controllers)[blocker.node_id]
    release = release_by(registered)
    software = f" (Kafka {release.name})" if release else ""
    gone = ", which looks gone" if _looks_gone(metadata, blocker) else ""
    return f"{who}{software}{gone}: supports {blocker.feature} {blocker.supported}, not {blocker.level}"


def _looks_gone(metadata: CapturedMetadata, blocker: Blocker) -> bool:
    """Whether nothing shows the node alive: a broker is fenced, a controller no voter and not captured."""
    if blocker.kind == "broker":
        image = metadata.image
        broker = image.tables.get(BROKERS, (blocker.node_id,)) if image is not None else None
        return broker is not None and broker.fenced
    quorum = metadata.quorum
    return quorum.voter_of(blocker.node_id) is None and not quorum.members_of(blocker.node_id)


def _unblock(metadata: CapturedMetadata, state: FeatureState, found: list[Blocker]) -> Iterator[PlanStep]:
    """What to do about each node that blocks: remove it if it is gone, else give it newer software."""
    boot = bootstrap(metadata.quorum)
    first = {(each.kind, each.node_id): each for each in reversed(found)}
    for kind, node_id in sorted(first):
        blocker = first[kind, node_id]
        if not _looks_gone(metadata, blocker):
            yield PlanStep(
                f"upgrade the software of {kind} {node_id}{_first_release(blocker)}, and restart it"
            )
        elif kind == "broker":
            yield PlanStep(
                f"if broker {node_id} is gone for good, remove its registration",
                f"bin/kafka-cluster.sh unregister {boot} --id {node_id}",
                "no replica is left on it: kafka-topics --describe shows where",
            )
        else:
            yield _controller_ghost(state, node_id, blocker)
    if found:
        yield PlanStep("capture the controllers again, and plan again")


def _controller_ghost(state: FeatureState, node_id: int, blocker: Blocker) -> PlanStep:
    if state.metadata_version >= CONTROLLERS_UNREGISTER:
        return PlanStep(
            f"if controller {node_id} is gone for good, remove its registration",
            expect=f"Admin.unregisterController({node_id}), with the clients of Kafka 4.4",
        )
    return PlanStep(
        f"start a controller with id {node_id}{_first_release(blocker)} until it has registered",
        expect=f"before metadata.version {METADATA_LEVELS[CONTROLLERS_UNREGISTER]} a registration cannot "
        f"be removed, only replaced by a newer one of the same id",
    )


def _first_release(blocker: Blocker) -> str:
    """The first release that supports the level, as words; empty where none is known."""
    for release in RELEASES.values():
        if blocker.feature in release.supported and blocker.level in release.supported[blocker.feature]:
            return f" to {release.name} or later" if blocker.supported is not None else ""
    return ""


def _risks(metadata: CapturedMetadata, state: FeatureState, upgrade: FeatureUpgrade) -> Iterator[Risk]:
    level = upgrade.updates.get(METADATA_VERSION, state.metadata_version)
    passed = changes_between(state.metadata_version, level)
    if passed:
        names = ", ".join(METADATA_LEVELS[each] for each in passed)
        records = _records_since(passed)
        words = f"Kafka never goes back below metadata.version {passed[-1]}: {names} may write {records}"
        yield Risk("irreversible", words)
    if upgrade.updates.get(KRAFT_VERSION, 0) > state.kraft_version:
        yield Risk("irreversible", f"{KRAFT_VERSION} is never downgraded")
    yield from _elr_risk(metadata, state, upgrade)
    for feature, level in upgrade.updates.items():
        if feature not in (METADATA_VERSION, KRAFT_VERSION) and level < state.level(feature):
            words = f"clients can no longer use {feature} {state.level(feature)}"
            yield Risk("feature_lost", words)
    unregistered = _unregistered(metadata, state)
    if unregistered:
        words = (
            f"voters {', '.join(unregistered)} have not registered: what they support is not known, and the "
            "leader refuses if its controller.quorum.voters names them"
        )
        yield Risk("voter_not_registered", words)
    others = _other_controllers(metadata, state)
    if others:
        words = (
            f"nodes {', '.join(others)} were captured, and are neither voters nor registered: what they "
            "support is not known, and a controller that does not support a level terminates"
        )
        yield Risk("controller_not_registered", words)


def _unregistered(metadata: CapturedMetadata, state: FeatureState) -> list[str]:
    """Voters without a registration."""
    return [str(node_id) for node_id in _voter_ids(metadata) if node_id not in state.controllers]


def _other_controllers(metadata: CapturedMetadata, state: FeatureState) -> list[str]:
    """Captured nodes that are neither voters nor registered, as a controller that has not reached the leader.

    Kafka's leader does not know of them, and refuses nothing.
    """
    ids = {member.key.id for member in metadata.quorum.members if not member.is_voter}
    known = {*state.controllers, *state.brokers, *_voter_ids(metadata)}
    return [str(node_id) for node_id in sorted(ids - known)]


def _voter_ids(metadata: CapturedMetadata) -> list[int]:
    voters = metadata.quorum.voters
    return [voter.key.id for voter in voters.voters] if voters is not None else []


def _elr_risk(metadata: CapturedMetadata, state: FeatureState, upgrade: FeatureUpgrade) -> Iterator[Risk]:
    """Kafka changes configs with it (ConfigurationControlManager.maybeGenerateElrSafetyRecords)."""
    if not upgrade.updates.get(ELR_VERSION, 0) or state.finalized.get(ELR_VERSION, 0):
        return
    configs = metadata.image.tables.items(CONFIGS) if metadata.image is not None else ()
    named = sorted(
        (key[1] for key, _ in configs if key[0] == BROKER_RESOURCE and key[1] and key[2] == MIN_ISR),
        key=lambda name: (len(name), name),
    )
    words = f"Kafka sets {MIN_ISR} for the whole cluster, and removes it from the configs of single brokers"
    yield Risk("configs_change", f"{words} ({', '.join(named)} have one)" if named else words)


def _records_since(levels: list[int]) -> str:
    """The records that these levels of metadata.version bring, in words."""
    found = [f"{_MESSAGES[api_key].name} version {version}" for api_key, version in _kinds_since(levels)]
    return ", ".join(found) or "values that older releases refuse"


def _kinds_since(levels: list[int]) -> list[tuple[int, int]]:
    """(record id, version) of the records that these levels of metadata.version bring."""
    return [kind for kind, level in sorted(RECORD_LEVELS.items()) if level in levels]


def _steps(metadata: CapturedMetadata, state: FeatureState, upgrade: FeatureUpgrade) -> Iterator[PlanStep]:
    boot = bootstrap(metadata.quorum)
    tool = f"{FEATURES_TOOL} {boot}"
    if upgrade.release is not None:
        command = f"upgrade --release-version {upgrade.release.name}"
        note = f"by the tools of Kafka {upgrade.release.name}"
    else:
        verb = "downgrade" if _is_downgrade(state, upgrade) else "upgrade"
        command = f"{verb} " + " ".join(f"--feature {f}={n}" for f, n in upgrade.updates.items())
        note = None
    yield PlanStep("ask Kafka without changing anything", f"{tool} {command} --dry-run", note)
    yield PlanStep("finalize", f"{tool} {command}", note)
    yield PlanStep("look", f"{tool} describe", f"FinalizedVersionLevel of {', '.join(upgrade.updates)}")
