"""plan start-broker: what becomes of the partitions in a broker's log directories when it starts with them.

A broker loads each partition's directory with the topic id in its partition.metadata. Where the metadata does
not assign that partition of that topic id to the broker, Kafka renames the directory to -stray and serves it
no more.
Source: LogManager.loadLog, LogManager.isStrayReplica and BrokerMetadataPublisher of release 4.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kraft_core.format.side_files import NO_EPOCH
from kraft_core.image.brokers import Broker, is_online
from kraft_core.image.change import Key
from kraft_core.image.effective_configs import elr_enabled
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.held_partitions import (
    StrayReason,
    is_elsewhere,
    is_registered,
    is_stray,
    stray_reason,
    topic_ids,
)
from kraft_core.plan.risks import Risk
from kraft_core.plan.start_failures import StartFailure, copied_twice, start_failures
from kraft_core.plan.states_between import not_proven, of_broker
from kraft_core.plan.steps import CAPTURE_MORE, PlanStep
from kraft_core.restore.broker_dirs import BrokerLogDir, BrokersEvidence, HeldPartition
from kraft_core.wording import count, first_named

_MOST_NAMED = 10
_DELETE_ONE = "delete one of the two directories, the one on the disk that failed last; keep a copy"
_COPY_DIRS = "kraftlake capture --broker-dirs LOG_DIR... --to FOLDER"
_GIVE_DIRS = PlanStep(
    "give every log directory of the broker, or a copy of each, and no other",
    _COPY_DIRS,
    "plan again, and continue only if it is SAFE",
)


@dataclass(frozen=True, slots=True)
class BrokerStart:
    """The metadata, and the broker's log directories by their paths. unread: why others cannot be read."""

    metadata: CapturedMetadata
    log_dirs: Mapping[str, BrokerLogDir]
    unread: tuple[str, ...] = ()

    @property
    def quorum(self) -> CapturedQuorum:
        return self.metadata.quorum

    @property
    def copied_at(self) -> int | None:
        """The time (ms) of the oldest copy among the directories, None if they were read themselves."""
        times = [each.copied_at for each in self.log_dirs.values() if each.copied_at is not None]
        return min(times, default=None)

    def own(self, broker_id: int) -> dict[str, BrokerLogDir]:
        """Those of the log directories that are this broker's, by their paths."""
        return {path: each for path, each in self.log_dirs.items() if each.broker_id == broker_id}


@dataclass(frozen=True, slots=True)
class _Judged:
    """failure: why the broker does not start at all. missing: what is not known."""

    risks: tuple[Risk, ...]
    failure: StartFailure | None
    missing: tuple[str, ...]


def plan_start(start: BrokerStart, broker_id: int) -> Answer:
    """The verdict. log_dirs of other brokers are not known of this one."""
    metadata = start.metadata
    question = f"start broker {broker_id} with {', '.join(start.log_dirs) or 'no log directory'}"
    if metadata.image is None:
        missing = metadata.gaps or ("no captured log of the leader can be replayed",)
        return Answer(question, "not_known", missing[0], missing=missing)
    judged = _judge(start, broker_id, metadata.image)
    made = _answer(start, question, judged)
    questions = [*metadata.gaps, *_written_later(start, broker_id, metadata.image), *judged.missing]
    # Between the ends, a replica may not have been assigned to the broker, which would make it stray.
    questions += not_proven(
        metadata, made.verdict, of_broker(broker_id), lambda state: _judge(start, broker_id, state) == judged
    )
    if not questions:
        return made
    reason = f"{questions[0]}; otherwise, by the captures: {made.verdict}, {made.reason}"
    is_known = metadata.image.tables.get(BROKERS, (broker_id,)) is not None
    steps = (_GIVE_DIRS,) if judged.missing and is_known else ()
    if not is_known or len(questions) > len(judged.missing):
        steps = (*steps, CAPTURE_MORE)
    return replace(made, verdict="not_known", reason=reason, missing=tuple(questions), steps=steps)


def _written_later(start: BrokerStart, broker_id: int, image: Image) -> Iterator[str]:
    """Why the metadata is older than the directories: a shutdown of a later broker epoch, or messages of a
    leader epoch that it does not have yet.

    If the controllers have not, either, their metadata went back: brokers truncate messages, or never return
    to the ISR.
    """
    broker: Broker | None = image.tables.get(BROKERS, (broker_id,))
    own = start.own(broker_id)
    for path, log_dir in own.items():
        last_run = log_dir.clean_shutdown
        if broker is not None and last_run is not None and last_run > broker.broker_epoch:
            yield (
                f"{path} was last used in broker epoch {last_run}, which is later than {broker.broker_epoch} "
                "in the captured metadata"
            )
    later: list[str] = []
    for log_dir in own.values():
        for each in log_dir.held:
            partition: Partition | None = image.tables.get(PARTITIONS, each.key)
            if partition is not None and each.leader_epoch > partition.leader_epoch:
                later.append(f"{each.name} of epoch {each.leader_epoch}, not {partition.leader_epoch}")
    if later:
        yield (
            "the directories hold messages of later leader epochs than the captured metadata: "
            f"{_named(later)} (if the controllers lack these epochs, too, brokers truncate messages, or "
            "never return to the ISR)"
        )


def _judge(start: BrokerStart, broker_id: int, image: Image) -> _Judged:
    own = start.own(broker_id)
    others = [path for path in start.log_dirs if path not in own]
    missing = [*start.unread, *(f"{path} is of broker {start.log_dirs[path].broker_id}" for path in others)]
    missing += copied_twice(own)
    broker: Broker | None = image.tables.get(BROKERS, (broker_id,))
    if broker is None:
        missing.append(f"broker {broker_id} is not registered at the end of the log")
        return _Judged((), None, tuple(missing))
    given = {log_dir.directory_id for log_dir in own.values()}
    missing += [f"its log directory {each} was not given" for each in broker.log_dirs if each not in given]
    risks = (
        *_stray(own, broker_id, image),
        *_misplaced(own, broker, image),
        *_restored(own, broker, image),
        *_misnamed(own, broker_id, image),
        *_lacking(own, image),
        *_unclean(own, broker, image),
    )
    failures = (*start_failures(own), *_held_twice(own, broker_id, image))
    return _Judged(risks, next(iter(failures), None), tuple(missing))


def _held_twice(own: Mapping[str, BrokerLogDir], broker_id: int, image: Image) -> Iterator[StartFailure]:
    for text in duplicates(own, broker_id, image):
        yield StartFailure("java.lang.IllegalStateException", text, _DELETE_ONE)


def _answer(start: BrokerStart, question: str, judged: _Judged) -> Answer:
    held = sum(len(log_dir.held) for log_dir in start.log_dirs.values())
    evidence = (
        f"{count(held, 'partition')} in {count(len(start.log_dirs), 'log directory', 'log directories')}",
    )
    failure = judged.failure
    if failure is not None:
        told = failure.text.replace("\n", " ")
        reason = f"the broker fails to start: {failure.exception}: {told}"
        steps = (PlanStep(failure.step),)
        return Answer(
            question, "refused", reason, evidence, risks=judged.risks, steps=steps, error_text=failure.text
        )
    if judged.risks:
        steps = tuple(_steps(judged.risks))
        return Answer(question, "risky", judged.risks[0].sentence, evidence, risks=judged.risks, steps=steps)
    return Answer(question, "safe", "the metadata assigns the replica in each directory to it", evidence)


def _stray(own: Mapping[str, BrokerLogDir], broker_id: int, image: Image) -> Iterator[Risk]:
    """Directories that Kafka renames to -stray, by the reason."""
    ids = topic_ids(image)
    held = [each for log_dir in own.values() for each in log_dir.held]
    by_reason: defaultdict[StrayReason | None, list[HeldPartition]] = defaultdict(list)
    for each in held:
        by_reason[stray_reason(each, broker_id, image, ids)].append(each)
    if recreated := by_reason["other_topic_id"]:
        words = [f"{each.name} of topic id {each.topic_id}, now {ids[each.topic_name]}" for each in recreated]
        yield Risk("other_topic_id", f"the topic has another id; Kafka makes them stray: {_named(words)}")
    if gone := by_reason["unknown_topic"]:
        words = [f"{each.name} of topic id {each.topic_id}" for each in gone]
        yield Risk(
            "unknown_topic", f"the metadata has no such topic; Kafka makes them stray: {_named(words)}"
        )
    if moved := by_reason["stray_replica"]:
        words = [each.name for each in moved]
        yield Risk(
            "stray_replica", f"broker {broker_id} is not a replica; Kafka makes them stray: {_named(words)}"
        )


def _misplaced(own: Mapping[str, BrokerLogDir], broker: Broker, image: Image) -> Iterator[Risk]:
    """Directories that the broker has not registered, or to which another replica is assigned."""
    for path, log_dir in own.items():
        if not is_registered(log_dir.directory_id, broker):
            yield Risk(
                "unregistered_directory",
                f"{path} has directory id {log_dir.directory_id}, which broker {broker.broker_id} has not "
                "registered",
            )
    elsewhere = [
        f"{each.name} in {path}"
        for path, log_dir in own.items()
        for each in log_dir.held
        if is_elsewhere(each, log_dir.directory_id, broker, image)
    ]
    if elsewhere:
        yield Risk(
            "other_directory",
            f"the metadata has these replicas in another log directory of the broker: {_named(elsewhere)}",
        )


def _kept(
    own: Mapping[str, BrokerLogDir], broker_id: int, image: Image
) -> Iterator[tuple[str, HeldPartition, Partition]]:
    """What is not stray: its log directory's path, and the partition that the metadata assigns."""
    for path, log_dir in own.items():
        for each in log_dir.held:
            assigned: Partition | None = image.tables.get(PARTITIONS, each.key)
            if assigned is not None and not is_stray(each, broker_id, image):
                yield path, each, assigned


def _restored(own: Mapping[str, BrokerLogDir], broker: Broker, image: Image) -> Iterator[Risk]:
    """Replicas that the metadata has in a directory that failed: what is here is another, perhaps older copy.

    The broker serves it all the same and, where its replica is the last in the ISR, leads with it.
    """
    found: list[str] = []
    for path, each, assigned in _kept(own, broker.broker_id, image):
        directory = assigned.directory_of(broker.broker_id)
        if directory != own[path].directory_id and not is_online(broker, directory):
            found.append(f"{each.name} in {path}")
    if found:
        yield Risk(
            "failed_directory",
            "the metadata has these replicas in a log directory that failed, so their copies here may lack "
            f"messages: {_named(found)}",
        )


def _misnamed(own: Mapping[str, BrokerLogDir], broker_id: int, image: Image) -> Iterator[Risk]:
    """Directories that Kafka keeps by their topic id, but loads as partitions of the topic that they name."""
    found = [
        f"{each.name} of topic id {each.topic_id}, which is {assigned.topic_name}"
        for _, each, assigned in _kept(own, broker_id, image)
        if assigned.topic_name != each.topic_name
    ]
    if found:
        words = (
            "directories have the name of one topic and the id of another: the broker uses them for neither"
        )
        yield Risk("other_topic_name", f"{words}: {_named(found)}")


def _lacking(own: Mapping[str, BrokerLogDir], image: Image) -> Iterator[Risk]:
    """Replicas that a given directory should hold: the broker begins them anew."""
    lacking = BrokersEvidence.of(own.values(), ()).lacking(image)
    names = [image.tables.get(PARTITIONS, key) for _, key in sorted(lacking)]
    words = [f"{each.topic_name}-{each.partition_id}" for each in names if each is not None]
    if words:
        yield Risk("lacking_replica", f"the broker starts these replicas without messages: {_named(words)}")


def _unclean(own: Mapping[str, BrokerLogDir], broker: Broker, image: Image) -> Iterator[Risk]:
    """Partitions of which only this broker has a replica in sync, after a shutdown that was not clean.

    With eligible leader replicas the controller takes the broker out of their ISR and ELR as it registers,
    and elects it again only as the last known leader; otherwise it leads as if nothing was missing.
    Source: LogManager.readBrokerEpochFromCleanShutdownFiles, ReplicationControlManager.handleBrokerShutdown.
    """
    clean = {broker.broker_epoch} if elr_enabled(image) else {broker.broker_epoch, NO_EPOCH}
    unclean = [path for path, log_dir in own.items() if log_dir.clean_shutdown not in clean]
    if not unclean:
        return
    partitions: Iterator[tuple[Key, Partition]] = image.tables.items(PARTITIONS)
    alone = [
        (each.topic_name, each.partition_id) for _, each in partitions if each.in_sync == {broker.broker_id}
    ]
    last = [f"{name}-{partition_id}" for name, partition_id in sorted(alone)]
    if last:
        yield Risk(
            "unclean_shutdown",
            f"the last shutdown was not clean (broker epoch {broker.broker_epoch} is not in "
            f".kafka_cleanshutdown of {_named(unclean)}), so messages that the broker had not flushed may be "
            f"lost where no other replica is in sync: {_named(last)}",
        )


def duplicates(own: Mapping[str, BrokerLogDir], broker_id: int, image: Image) -> Iterator[str]:
    """Kafka's message for each partition, and each future copy, that two directories hold; no stray ones.

    The broker ends at the first that it meets.
    """
    seen: dict[tuple[str, int, bool], str] = {}
    for path, log_dir in own.items():
        for each in log_dir.held:
            if is_stray(each, broker_id, image):
                continue
            here = f"{path.rstrip('/')}/{each.name}"
            first = seen.setdefault((each.topic_name, each.partition_id, each.is_future), here)
            if first != here:
                yield _twice_words(each, here, first)


def _twice_words(each: HeldPartition, here: str, first: str) -> str:
    if each.is_future:
        return f"Duplicate log directories found: {here}, {first}"
    return (
        f"Duplicate log directories for {each.name} are found in both {here} and {first}. It is likely "
        "because log directory failure happened while broker was replacing current replica with future "
        "replica. Recover broker from this failure by manually deleting one of the two directories for this "
        "partition. It is recommended to delete the partition in the log directory that is known to have "
        "failed recently."
    )


def _steps(risks: Sequence[Risk]) -> Iterator[PlanStep]:
    names = {risk.name for risk in risks}
    if names & {"other_topic_id", "unknown_topic", "stray_replica"}:
        yield PlanStep("copy what becomes stray to another place if you need its messages")
    if "failed_directory" in names:
        yield PlanStep("find the newest copy of each, and check that no other replica has later messages")
    if "other_topic_name" in names:
        yield PlanStep("give each directory the name that it had on the broker")
    if "unregistered_directory" in names:
        yield PlanStep(
            "check that the directory is this broker's, and the captures newer than its last start"
        )
    if "lacking_replica" in names:
        yield PlanStep("find the missing directories first: another replica must have their messages")
    if "unclean_shutdown" in names:
        yield PlanStep("if these are copies of before the broker stopped, copy again", _COPY_DIRS)
        yield PlanStep(
            "find out how the broker stopped: if only its process ended, all that it wrote is there; if its "
            "host did, compare the logs of the other replicas first"
        )


def _named(words: Sequence[str]) -> str:
    return first_named(list(words), _MOST_NAMED)
