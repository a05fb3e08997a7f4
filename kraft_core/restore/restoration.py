"""The plan of a restoration: what is written, from what, and whether it keeps everything.

A plan is a function of the captures and of what is requested: made again from the same, it is the same, with
the same bytes. It holds no secrets but in the checkpoint itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from kraft_core.evidence.collect import CollectedCluster
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.facts import Capture, TimeSource, label
from kraft_core.findings.captured_replays import file_facts
from kraft_core.findings.facts import RuleFacts
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import lacking, ranges_text, unproven
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.side_file_texts import checkpoint_name
from kraft_core.image.brokers import Broker
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, KINDS, ZK_MIGRATION
from kraft_core.restore.broker_dirs import (
    BrokerDirError,
    BrokerLogDir,
    BrokersEvidence,
    broker_log_dir,
    held_twice,
    of_one_id,
    offline_replicas,
)
from kraft_core.restore.checkpoint import UnwritableError, checkpoint_bytes, level_of
from kraft_core.restore.choice import (
    OLDER_METADATA,
    Choice,
    PossibleLoss,
    choose,
)
from kraft_core.restore.content import content_losses, unregistered_loss
from kraft_core.restore.copies import VoterCopy, voter_copies
from kraft_core.restore.earlier import placed
from kraft_core.restore.ends_alike import ForgottenBySource, check_line, cut_alike, forgotten_by
from kraft_core.restore.horizon import ExhaustedError, Horizon, horizon_of
from kraft_core.restore.later import Consequence, Seen, consequences, stray
from kraft_core.restore.new_voters import kraft_version, listener, placed_voter, registered, voters_of
from kraft_core.restore.offline import SureReplica, offline
from kraft_core.restore.replay import (
    ReplayedLog,
    UnusableLogError,
    forgotten,
    replayed,
    replayed_until,
    without_transaction,
)
from kraft_core.restore.request import NewVoter, RestoreRequest
from kraft_core.restore.tails import CapturedLog, committable, has_tails, tails
from kraft_core.restore.unled import unled
from kraft_core.restore.whole import why_cut

BROKERS_DELETE = (
    "The restored metadata may be older than that of the brokers, and a running broker deletes the data of "
    "topics that are missing in it: stop all brokers first, and state it (--brokers-stopped)."
)
RestoreVerdict = Literal["SAFE", "LOSES", "REFUSED"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What is written.

    voters: with the directory ids that they get. brokers_too: those that are registered as brokers, whose
    directories hold partitions. source_end, source_epoch: end offset (exclusive) and epoch of the source's
    log; restored_end, restored_epoch, restored_time (ms): of the last record of it that is restored.
    unproven: what of the source is kept although no capture proves it committed, in words; "" for nothing.
    left_behind: what other captures hold and the source does not, in words; "" for nothing. left_out: an open
    metadata transaction, in words; "" for none. counts: things by kind. later: what is restored
    otherwise than it was last seen; stray: by broker the partitions whose directories the metadata does not
    know, or knows elsewhere. brokers_back: those that are expected; brokers_fenced: of them
    those that were fenced at the end of the source's log. unregistered: broker and id of log directories that
    were given and are not registered. forgotten: by what logs that end alike lead to. checkpoint: the bytes
    of the image; both hold secrets.
    """

    voters: tuple[NewVoter, ...]
    brokers_too: frozenset[int]
    source: Capture
    directory: ControllerDir
    source_end: int
    source_epoch: int
    restored_end: int
    restored_epoch: int
    restored_time: int
    unproven: str
    left_behind: str
    left_out: str
    kraft_version: int
    metadata_version: int
    listener: str
    horizon: Horizon
    sure: tuple[SureReplica, ...]
    counts: dict[str, int]
    later: tuple[Consequence, ...]
    stray: dict[int, tuple[str, ...]]
    brokers_back: tuple[int, ...]
    brokers_fenced: tuple[int, ...]
    unregistered: tuple[tuple[int, str], ...]
    forgotten: tuple[ForgottenBySource, ...]
    image: Image = field(repr=False, compare=False)
    checkpoint: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the checkpoint, hex."""
        return hashlib.sha256(self.checkpoint).hexdigest()

    @property
    def checkpoint_name(self) -> str:
        return checkpoint_name(self.horizon.new_end, self.horizon.new_epoch)


@dataclass(frozen=True, slots=True)
class Restoration:
    """The plan. made: None where it is refused.

    as_of (ms): the captures that count were taken then or later, None if none does; by which source.
    copies: of voters, which are stated to be their disks as they were left.
    """

    cluster_id: str
    as_of: int | None
    as_of_source: TimeSource | None
    refusals: tuple[str, ...]
    losses: tuple[PossibleLoss, ...]
    copies: tuple[VoterCopy, ...]
    made: Restored | None

    @property
    def verdict(self) -> RestoreVerdict:
        if self.refusals or self.made is None:
            return "REFUSED"
        return "LOSES" if self.losses else "SAFE"


def restoration_of(
    cluster: CollectedCluster,
    request: RestoreRequest,
    unread: Iterable[str] = (),
    broker_dirs: Iterable[Path] = (),
    other_lives: Sequence[CollectedCluster] = (),
) -> Restoration:
    """The plan for a cluster by all its captures. Nothing is written.

    unread: what could not be read and may be of this cluster, in words. broker_dirs: log directories of
    brokers. other_lives: other histories of the same cluster id.
    """
    known = conclude(cluster.facts)
    lives = [conclude(life.facts) for life in other_lives]
    logs: list[CapturedLog] = []
    unusable: list[str] = []
    cut: dict[str, str] = {}
    for life in (cluster, *other_lives):
        for capture, directory in zip(life.facts.captures, life.directories, strict=True):
            try:
                logs.append(CapturedLog(capture, directory, replayed(directory)))
                why = why_cut(directory, logs[-1].log)
            except (UnusableLogError, OSError) as error:
                unusable.append(f"{directory.path}: {error}")
                continue
            # Of a running controller, nobody states that nothing follows.
            if why is not None and request.are_stopped:
                cut[capture.capture_id] = why
    beside = tuple(unled([(label(each.capture.replica), each.log) for each in logs]))
    asked = (request.gone, request.are_stopped, request.line)
    facts = _file_facts(known, cluster, unusable)
    choice = choose(known, judge(known, facts), *asked, lives, cut, beside)
    chosen = None if choice.capture is None else choice.capture.capture_id
    source = next((each for each in logs if each.capture.capture_id == chosen), None)
    refusals = [*unread, *_of_identity(cluster), *choice.refusals, *unusable]
    log_dirs, unusable_dirs = _broker_log_dirs(broker_dirs, cluster.kafka_cluster_id)
    refusals += unusable_dirs
    may_be_committed = committable(known, choice, source, logs) if log_dirs else ()
    brokers = BrokersEvidence.of(log_dirs.values(), may_be_committed)
    newest = None if source is None or has_tails(choice) else without_transaction(source.log).image
    losses = [*choice.losses, *brokers.unseen(newest)]
    if not request.brokers_stopped and any(loss.name in OLDER_METADATA for loss in losses):
        refusals.append(BROKERS_DELETE)
    made = None
    if source is not None and not refusals:
        try:
            made = _made([known, *lives], choice, source, logs, request, brokers)
        except (UnusableLogError, UnwritableError, ExhaustedError, OSError) as error:
            refusals.append(f"{error}.")
    # A broker that runs has registered its directories, so captures that lack one are older than it.
    may_be_older = made is not None and (made.restored_end < made.source_end or made.unregistered)
    if may_be_older and not request.brokers_stopped:
        refusals.append(BROKERS_DELETE)
        made = None
    if made is not None:
        forgot = [each for held in logs for each in held.log.deviations]
        losses += content_losses([*forgot, *_forgotten(made, facts)], made.later, made.sure)
        losses += (unregistered_loss(*each) for each in made.unregistered)
    return Restoration(
        cluster.kafka_cluster_id,
        choice.advice.as_of,
        choice.advice.as_of_source,
        tuple(dict.fromkeys(refusals)),
        tuple(dict.fromkeys(losses)),
        tuple(voter_copies(known)),
        made,
    )


def _file_facts(known: Conclusions, cluster: CollectedCluster, unusable: list[str]) -> RuleFacts:
    """What a plan of voters judges too, also of directories that are whole by themselves: a checkpoint is
    compared with the logs of all. unusable: takes why it cannot be read.
    """
    ids = (capture.capture_id for capture in cluster.facts.captures)
    try:
        return file_facts(known, zip(ids, cluster.directories, strict=True))
    except OSError as error:
        unusable.append(f"{error}.")
        return RuleFacts()


def _forgotten(made: Restored, facts: RuleFacts) -> Iterator[str]:
    """What is restored otherwise by known defects of Kafka, by the logs of others, in sentences."""
    ids = [each.id for each in made.directory.checkpoints if each.id is not None]
    loaded = max((id_.end_offset for id_ in ids if id_.end_offset <= made.restored_end), default=0)
    below = [each for each in facts.snapshot_deviations if each.end_offset == loaded and each.explanation]
    yield from map(forgotten, below)
    named = {(each.kind, each.subject) for each in below}
    for each in made.forgotten:
        thing = each.deviation.kind, each.deviation.subject
        if thing not in named:
            named.add(thing)
            yield each.sentence


def _broker_log_dirs(paths: Iterable[Path], cluster_id: str) -> tuple[dict[str, BrokerLogDir], list[str]]:
    """Log directories of brokers, and why they cannot be used, in sentences."""
    log_dirs: dict[str, BrokerLogDir] = {}
    why: list[str] = []
    for path in paths:
        try:
            log_dirs[str(path)] = broker_log_dir(path, cluster_id)
        except BrokerDirError as error:
            why.append(f"{error}.")
    why += (
        f"{first} and {second} are copies of one log directory: give only the newest one of each."
        for first, second in of_one_id(log_dirs)
    )
    why += (
        f"{first} and {second} of one broker both hold {name}: give only the newest copy of each directory; "
        "if both are, the broker does not start."
        for first, second, name in held_twice(log_dirs)
    )
    return log_dirs, why


def _of_identity(cluster: CollectedCluster) -> Iterator[str]:
    """Captures whose own files do not say of which cluster they are."""
    for directory in cluster.directories:
        stated = directory.meta.cluster_id if directory.meta else None
        if stated != cluster.kafka_cluster_id:
            yield f"{directory.path}: its meta.properties is not of cluster {cluster.kafka_cluster_id}."


def _made(
    lives: Sequence[Conclusions],
    choice: Choice,
    source: CapturedLog,
    logs: Sequence[CapturedLog],
    request: RestoreRequest,
    brokers: BrokersEvidence,
) -> Restored:
    """What is written. lives: that which is restored first.

    Raises UnusableLogError, UnwritableError, ExhaustedError, OSError.
    """
    known, capture, directory, log = lives[0], choice.capture, source.directory, source.log
    assert capture is not None
    if log.end_offset != capture.log_end_offset:
        raise UnusableLogError(f"its log was read up to {log.end_offset}, not {capture.log_end_offset}")
    taken, forgotten_there = _taken(source, logs, request)
    horizon = horizon_of(
        [capture for life in lives for capture in life.facts.captures],
        [snapshot for life in lives for snapshot in life.facts.snapshots],
        [each.log for each in logs],
        brokers.held,
    )
    newest = without_transaction(log).image
    restored = placed(without_transaction(taken).image, newest, request.placement)
    request = _with_lost_brokers(log, restored, request)
    seen: list[Seen] = [(newest, None), *tails(known, choice, source, logs)]
    without = brokers.lacking(newest) | offline_replicas(restored)
    image, sure = offline(restored, horizon, request.lost_brokers, without, brokers.epochs)
    back: list[Broker] = [
        broker for (id_,), broker in restored.tables.items(BROKERS) if id_ not in request.lost_brokers
    ]
    name, version = request.listener or listener(log), kraft_version(log, request)
    voters = tuple(placed_voter(voter, request, log, known.facts.captures) for voter in request.voters)
    voter_set = voters_of(voters, name) if version else None
    return Restored(
        voters=voters,
        brokers_too=frozenset(v.id for v in voters if registered(log, v.id) is not None),
        source=capture,
        directory=directory,
        source_end=log.end_offset,
        source_epoch=log.leader_epoch,
        restored_end=taken.end_offset,
        restored_epoch=taken.leader_epoch,
        restored_time=taken.image.timestamp,
        unproven=ranges_text(unproven(known, capture)),
        left_behind=ranges_text(lacking(known, capture)),
        left_out=""
        if taken.open_transaction is None
        else f"the metadata transaction that began at offset {taken.open_transaction} and did not end",
        kraft_version=version,
        metadata_version=level_of(image),
        listener=name,
        horizon=horizon,
        sure=tuple(sure),
        counts={kind: image.tables.count(kind) for kind in KINDS},
        later=tuple(dict.fromkeys([*_later(restored, seen), *brokers.unknown()])),
        stray=_joined(stray(restored, seen), brokers.stray(restored)),
        brokers_back=tuple(sorted(broker.broker_id for broker in back)),
        brokers_fenced=tuple(sorted(broker.broker_id for broker in back if broker.fenced)),
        unregistered=tuple(
            each for each in brokers.unregistered(newest) if each[0] not in request.lost_brokers
        ),
        forgotten=forgotten_there,
        image=image,
        checkpoint=checkpoint_bytes(image, horizon.new_epoch, horizon.new_time(request.made_at), voter_set),
    )


def _taken(
    source: CapturedLog, logs: Sequence[CapturedLog], request: RestoreRequest
) -> tuple[ReplayedLog, tuple[ForgottenBySource, ...]]:
    """The source up to the moment that is restored, and what it forgot. Raises as _made."""
    check_line(source, logs, request.line)
    forgot = tuple(forgotten_by(source, logs))
    if request.at is None:
        return source.log, forgot
    taken = replayed_until(source.directory, request.at)
    cut = list(cut_alike(source, taken, logs))
    at_moment = replace(source, log=taken)
    check_line(at_moment, cut, None)
    return taken, (*forgot, *forgotten_by(at_moment, cut))


def _later(restored: Image, seen: Iterable[Seen]) -> Iterator[Consequence]:
    for end, since in seen:
        yield from consequences(restored, end, since)


def _joined(*found: dict[int, set[str]]) -> dict[int, tuple[str, ...]]:
    brokers = sorted({broker for each in found for broker in each})
    return {broker: tuple(sorted({n for each in found for n in each.get(broker, ())})) for broker in brokers}


def _with_lost_brokers(log: ReplayedLog, restored: Image, request: RestoreRequest) -> RestoreRequest:
    """What was asked for, with every broker that is lost of those registered in what is restored.

    Raises UnwritableError for what cannot be, or was never tried.
    """
    brokers = {key[0] for key, _ in restored.tables.items(BROKERS)}
    unknown = sorted((request.lost_brokers | (request.brokers_back or frozenset())) - brokers)
    if unknown:
        raise UnwritableError(f"no broker {unknown[0]} is registered")
    if log.kraft_version > 1:
        raise UnwritableError(f"kraft.version {log.kraft_version} is newer than any that has been tested")
    if log.image.tables.count(ZK_MIGRATION):
        raise UnwritableError(
            "the cluster was migrated from ZooKeeper: restoring that state has not been tested"
        )
    back = brokers if request.brokers_back is None else request.brokers_back
    both = sorted(request.lost_brokers & request.brokers_back) if request.brokers_back is not None else []
    if both:
        raise UnwritableError(f"broker {both[0]} is stated both to be lost and to come back")
    return replace(request, lost_brokers=request.lost_brokers | (brokers - back))
