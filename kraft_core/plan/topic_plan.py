"""May these topics be created, changed or deleted now? What Kafka's controller would answer about each.

Asked of the leader's whole log, of its committed part and, where it is SAFE, of what lies between; where
brokers are in controlled shutdown, both as if the controller knew it from their heartbeats and as if it did
not: the answer is known only if all agree.
What the controllers' files say is in no log: where it decides, it must be given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Protocol

from kraft_core.image.change import Change
from kraft_core.image.effective_configs import BROKER_RESOURCE
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import (
    BROKERS,
    CLIENT_QUOTAS,
    CONFIGS,
    CONTROLLERS,
    FEATURES,
    PARTITIONS,
    TOPICS,
)
from kraft_core.messages.releases import release_by
from kraft_core.plan.actions import Lose
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_steps import bootstrap_server
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.feature_control import supported_by
from kraft_core.plan.risks import Risk
from kraft_core.plan.states_between import not_proven
from kraft_core.plan.steps import CAPTURE_MORE, PlanStep
from kraft_core.plan.topic_words import ALL_PARTITIONS, cluster_words, result_words
from kraft_core.plan.verdicts import judge
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller import RULES_OF, ActiveController
from kraft_core.topic_control.controller_file import ALTER_POLICY, ControllerFile
from kraft_core.topic_control.java import JavaRandom
from kraft_core.topic_control.requests import RequestRefusedError, TopicResult

_BATCH_BYTES = 8 << 20
# At most: a record's frame and fields without lists, and what a replica takes in replicas, ISR, directories.
_RECORD_BYTES, _REPLICA_BYTES = 300, 32
# Every set of them is tried.
_MOST_STOPPING = 4
QUOTA = "controller_mutation_rate"
_NOTHING_WRITTEN = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})


class TopicChange(Protocol):
    """A request about topics. is_limited: it counts against controller_mutation_rate (KIP-599).

    is_placed: the controller may choose brokers for it. is_written: it is more than a request to validate.
    """

    @property
    def words(self) -> str: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def is_limited(self) -> bool: ...
    @property
    def is_placed(self) -> bool: ...
    @property
    def is_written(self) -> bool: ...

    def results(self, controller: ActiveController, /) -> Sequence[TopicResult]:
        """Raises RequestRefusedError."""
        ...

    def risks(self, controller: ActiveController, results: Sequence[TopicResult], /) -> Iterator[Risk]: ...
    def missing(self, controller: ActiveController, results: Sequence[TopicResult], /) -> Iterator[str]: ...
    def evidence(self, controller: ActiveController, results: Sequence[TopicResult], /) -> Iterator[str]: ...
    def steps(self, controller: ActiveController, servers: str, /) -> Iterator[PlanStep]: ...


@dataclass(frozen=True, slots=True)
class TopicQuestion:
    """properties: of the controllers' file, None where it was not given. seed: of the random placement."""

    change: TopicChange
    properties: Mapping[str, str] | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class _Outcome:
    controller: ActiveController
    results: tuple[TopicResult, ...]
    risks: tuple[Risk, ...]
    missing: tuple[str, ...]

    @property
    def ruling(self) -> object:
        """All that the verdict depends on."""
        told = tuple((each.name, each.error, each.text) for each in self.results)
        return told, self.risks, self.missing


def plan_topics(metadata: CapturedMetadata, asked: TopicQuestion) -> Answer:
    """The verdict on the request."""
    image, leader, change = metadata.image, metadata.quorum.leader, asked.change
    if image is None or leader is None:
        missing = metadata.gaps or (f"no leader of epoch {metadata.quorum.epoch} is known",)
        return Answer(change.words, "not_known", missing[0], missing=missing, steps=(CAPTURE_MORE,))
    outcomes = _outcomes(asked, image, leader.id)
    made = _answer(metadata, asked, outcomes[0])
    unseen = tuple(dict.fromkeys(_unseen(metadata, asked, outcomes, made, leader.id)))
    missing = tuple(dict.fromkeys((*unseen, *made.missing)))
    if not missing:
        return made
    reason = f"{missing[0]}; if the rest is as the captures show: {made.verdict}, {made.reason}"
    steps = (CAPTURE_MORE,) if unseen else made.steps
    return replace(made, verdict="not_known", reason=reason, missing=missing, steps=steps)


def _outcomes(asked: TopicQuestion, image: Image, leader_id: int) -> list[_Outcome]:
    """What the controller answers, by which of the brokers that shut down it knows of."""
    stopping = sorted(
        broker.broker_id
        for _, broker in image.tables.items(BROKERS)
        if broker.in_controlled_shutdown and not broker.fenced
    )
    sizes = range(len(stopping), -1, -1) if asked.change.is_placed else (len(stopping),)
    if len(stopping) > _MOST_STOPPING:
        sizes = (len(stopping), 0)
    worlds = [frozenset(each) for size in sizes for each in combinations(stopping, size)]
    return [_outcome(asked, _controller(asked, image, leader_id, each)) for each in worlds]


def _controller(
    asked: TopicQuestion, image: Image, leader_id: int, stopping: frozenset[int]
) -> ActiveController:
    resources = ((BROKER_RESOURCE, ""), (BROKER_RESOURCE, str(leader_id)))
    dynamic = [name for each in resources for name in image.tables.group(CONFIGS, *each)]
    file = ControllerFile(asked.properties, dynamic)
    release = release_of_leader(image, leader_id) or RULES_OF[0]
    return ActiveController(image, leader_id, file, JavaRandom(asked.seed or 0), stopping, release)


def release_of_leader(image: Image, leader_id: int) -> str | None:
    """The release that the controller registered the features of; None for another than those of RULES_OF."""
    supported = supported_by(image, CONTROLLERS).get(leader_id)
    release = None if supported is None else release_by(supported)
    return release.name if release is not None and release.name in RULES_OF else None


def _outcome(asked: TopicQuestion, controller: ActiveController) -> _Outcome:
    change = asked.change
    try:
        results = tuple(change.results(controller))
    except RequestRefusedError as refused:
        results = tuple(TopicResult(name, refused.error, refused.text) for name in change.names)
    risks = tuple(change.risks(controller, results))
    missing = tuple(change.missing(controller, results))
    return _Outcome(controller, results, risks, missing)


def _unseen(
    metadata: CapturedMetadata, asked: TopicQuestion, outcomes: list[_Outcome], made: Answer, leader_id: int
) -> Iterator[str]:
    """What the captures do not show: a refusal needs the leader's log, anything else that it leads, too."""
    quorum, controller = metadata.quorum, outcomes[0].controller
    leader = quorum.leader_log_gap if made.verdict == "refused" else quorum.leader_gap
    yield from (words for words in (leader, metadata.gap) if words is not None)
    if not controller.metadata_version:
        yield "the log does not show metadata.version"
    if release_of_leader(controller.image, leader_id) is None:
        yield f"leader {leader_id} runs a release whose answers about topics Kraftlake does not know"
    too_many = asked.change.is_placed and len(controller.stopping) > _MOST_STOPPING
    if too_many or any(each.ruling != outcomes[0].ruling for each in outcomes):
        names = ", ".join(map(str, sorted(controller.stopping)))
        yield f"it depends on whether the controller knows from heartbeats that {names} shut down"
    if metadata.committed is None:
        yield "nothing that was captured proves this metadata committed"
        return
    yield from not_proven(
        metadata,
        made.verdict,
        partial(_concerns, set(asked.change.names)),
        lambda state: all(each.ruling == outcomes[0].ruling for each in _outcomes(asked, state, leader_id)),
    )


def _concerns(names: Collection[str], change: Change, before: Any | None) -> bool:
    """names: as a request has them, of topics, of partitions, or ALL_PARTITIONS."""
    if change.kind == PARTITIONS:
        partition: Partition | None = before if change.value is None else change.value
        # Of each topic, since partition 0 shows the replication factor of all its partitions.
        topics = {topic for name in names for topic in (name, name.rpartition("-")[0])}
        return partition is not None and (ALL_PARTITIONS in names or partition.topic_name in topics)
    return change.kind in (TOPICS, BROKERS, CONFIGS, FEATURES, CONTROLLERS, CLIENT_QUOTAS)


def _answer(metadata: CapturedMetadata, asked: TopicQuestion, outcome: _Outcome) -> Answer:
    """The answer if the captures show all; its `missing` is what no log shows."""
    change, controller, results = asked.change, outcome.controller, outcome.results
    evidence = (
        *(words for each in results for words in result_words(each)),
        *change.evidence(controller, results),
        *cluster_words(controller, metadata.quorum.log_end),
    )
    shown = tuple(map(_as_json, results))
    refused = [each for each in results if each.error not in _NOTHING_WRITTEN]
    if refused:
        first = refused[0]
        assumed = [name for each in refused for name in each.assumed if name != ALTER_POLICY]
        text = first.text or ""
        return Answer(
            change.words,
            "refused",
            _refusal(change, results, refused),
            evidence,
            tuple(_in_files(assumed)),
            (
                *(risk for risk in outcome.risks if risk.name == "half_written"),
                *_gives_up(results),
            ),
            error=first.error,
            error_text=text,
            results=shown,
        )
    writes = change.is_written and any(each.records for each in results)
    stuck, unsure = _commits(metadata) if writes else ((), ())
    risks = (*outcome.risks, *stuck)
    assumed = [name for each in results for name in each.assumed]
    missing = (
        *_in_files(assumed),
        *outcome.missing,
        *_too_large(results),
        *_throttled(controller, change),
        *unsure,
    )
    return Answer(
        change.words,
        "risky" if risks else "safe",
        "; ".join(risk.sentence for risk in risks) or _fine(change, results),
        evidence,
        missing,
        risks,
        tuple(change.steps(controller, bootstrap_server(controller.image, -1))),
        results=shown,
    )


def _refusal(change: TopicChange, results: Sequence[TopicResult], refused: Sequence[TopicResult]) -> str:
    first = refused[0]
    text = f": {first.text.removesuffix('.')}" if first.text else ""
    if len(results) == 1:
        return f"Kafka refuses to {change.words}: {first.error.name}{text}"
    others = "the others are accepted" if len(refused) < len(results) else "it accepts none"
    some = f"{len(refused)} of {len(results)}"
    return f"Kafka refuses {some}, {first.name} first: {first.error.name}{text}; {others}"


def _fine(change: TopicChange, results: Sequence[TopicResult]) -> str:
    if all(not each.records for each in results):
        return "nothing would change" if change.is_written else "Kafka accepts it"
    return "Kafka accepts it" if change.is_written else "Kafka accepts it, and writes nothing"


def _commits(metadata: CapturedMetadata) -> tuple[tuple[Risk, ...], tuple[str, ...]]:
    """The risk that the records do not commit, or what is not known of that."""
    judged = judge(metadata.quorum, Lose(()))
    if judged.verdict.name == "unsafe":
        words = "the controllers commit nothing, as captured: too few voters are in sync"
        return (Risk("nothing_commits", words),), ()
    return (), () if judged.verdict.name == "safe" else judged.missing or (judged.verdict.reason,)


def _in_files(assumed: Iterable[str]) -> Iterator[str]:
    names = ", ".join(dict.fromkeys(assumed))
    if names:
        yield (
            f"{names}: the controllers' files are not in the log (Kafka's defaults are assumed; give "
            "--controller-config FILE; what a policy class decides remains unknown)"
        )


def _throttled(controller: ActiveController, change: TopicChange) -> Iterator[str]:
    quotas = [quota for _, quota in controller.image.tables.items(CLIENT_QUOTAS) if quota.key == QUOTA]
    if quotas and change.is_limited:
        yield f"{QUOTA} is limited for some users: the log does not show how much of it is used"


def _gives_up(results: Sequence[TopicResult]) -> Iterator[Risk]:
    if all(each.error is ErrorCode.UNKNOWN_SERVER_ERROR and not each.records for each in results):
        words = (
            "release 4.3 runs out of memory over so many partitions: the controller gives up its leadership"
        )
        yield Risk("controller_fails", words)


def _too_large(results: Sequence[TopicResult]) -> Iterator[str]:
    """Kafka writes the records of a request as one batch of at most 8 MiB."""
    values = [record.value for each in results for record in each.records]
    lists = sum(_REPLICA_BYTES * len(value.get("replicas") or ()) for value in values)
    texts = sum(len((value.get("value") or "").encode()) for value in values)
    if _RECORD_BYTES * len(values) + lists + texts > _BATCH_BYTES:
        yield "whether the records fit into a batch of 8 MiB, which a leader writes at most"


def _as_json(result: TopicResult) -> Mapping[str, Any]:
    records = [{"type": r.type, "version": r.version, "value": dict(r.value)} for r in result.records]
    return {
        "name": result.name,
        "error": result.error.name,
        "error_message": result.text,
        "records": records,
    }
