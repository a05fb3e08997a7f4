"""The plan of a restoration: what is written, from what, and whether it keeps everything.

A plan is a function of the captures and of what is requested: made again from the same, it is the same, with
the same bytes. It holds no secrets but in the checkpoint itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from kraft_core.evidence.collect import CollectedCluster
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.facts import Capture, TimeSource
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import lacking, ranges_text, unproven
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.image.brokers import Broker
from kraft_core.image.controllers import Controller
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, CONTROLLERS, KINDS, ZK_MIGRATION
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kraft_core.restore.checkpoint import UnwritableError, checkpoint_bytes, level_of
from kraft_core.restore.choice import OLDER_METADATA, PossibleLoss, choose
from kraft_core.restore.horizon import ExhaustedError, Horizon, horizon_of
from kraft_core.restore.offline import SureReplica, offline
from kraft_core.restore.replay import ReplayedLog, UnusableLogError, replayed, without_transaction
from kraft_core.wording import count

NO_SURE_REPLICA, FORGOTTEN = "no-sure-replica", "forgotten-by-kafka"
MOST_NAMED = 10
KRAFT_VERSION_FEATURE = "kraft.version"
# metadata.version 3.9-IV0.
KRAFT_VERSION_LEVEL = 21
BROKERS_DELETE = (
    "The restored metadata may be older than what the brokers know, and a running broker deletes the data of "
    "topics that it lacks: stop all brokers first, and state it (--brokers-stopped)."
)
RestoreVerdict = Literal["SAFE", "LOSES", "REFUSED"]


@dataclass(frozen=True, slots=True)
class NewVoter:
    """A controller of the restored quorum; directory_id: of the directory that is made for it.

    A node that is a broker, too, keeps the directory id that its partitions name, whatever is asked for.
    """

    id: int
    directory_id: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What is asked for. made_at (ms): the time in the written batches.

    listener: the name of the controllers' listener, None to take it from the captures. gone: voters that were
    not captured and never come back; lost_brokers: brokers that never come back. kraft_version: None for that
    of the captures. are_stopped: all
    controllers had stopped before the captures were taken; brokers_stopped: no broker runs until the new
    quorum has a leader.
    """

    voters: tuple[NewVoter, ...]
    made_at: int
    listener: str | None = None
    gone: frozenset[int] = frozenset()
    lost_brokers: frozenset[int] = frozenset()
    kraft_version: int | None = None
    are_stopped: bool = False
    brokers_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What is written.

    voters: with the directory ids that they get. brokers_too: those that are registered as brokers, whose
    directories hold partitions. source_end, source_epoch: end offset (exclusive) and epoch of the source.
    unproven: what of the source is kept although no capture proves it committed, in words; "" for nothing.
    left_behind: what other captures hold and the source does not, in words; "" for nothing. left_out: an open
    metadata transaction, in words; "" for none. counts: things by kind. deviations: where
    a captured checkpoint is not what the log below it leads to, by a known fault of Kafka. checkpoint: the
    bytes of the image; both hold secrets.
    """

    voters: tuple[NewVoter, ...]
    brokers_too: frozenset[int]
    source: Capture
    directory: ControllerDir
    source_end: int
    source_epoch: int
    unproven: str
    left_behind: str
    left_out: str
    kraft_version: int
    metadata_version: int
    listener: str
    horizon: Horizon
    sure: tuple[SureReplica, ...]
    counts: dict[str, int]
    deviations: tuple[str, ...]
    image: Image = field(repr=False, compare=False)
    checkpoint: bytes = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the checkpoint, hex."""
        return hashlib.sha256(self.checkpoint).hexdigest()

    @property
    def checkpoint_name(self) -> str:
        return f"{self.horizon.new_end:020}-{self.horizon.new_epoch:010}.checkpoint"


@dataclass(frozen=True, slots=True)
class Restoration:
    """The plan. made: None where it is refused.

    as_of (ms): the captures that count were taken then or later, None if none does; by which source.
    """

    cluster_id: str
    as_of: int | None
    as_of_source: TimeSource | None
    refusals: tuple[str, ...]
    losses: tuple[PossibleLoss, ...]
    made: Restored | None

    @property
    def verdict(self) -> RestoreVerdict:
        if self.refusals or self.made is None:
            return "REFUSED"
        return "LOSES" if self.losses else "SAFE"


def restoration_of(
    cluster: CollectedCluster, request: RestoreRequest, unread: Iterable[str] = ()
) -> Restoration:
    """The plan for a cluster by all its captures. Nothing is written.

    unread: what could not be read and may be of this cluster, in words.
    """
    known = conclude(cluster.facts)
    choice = choose(known, judge(known), request.gone, request.are_stopped)
    refusals = [*unread, *_of_identity(cluster), *choice.refusals]
    if not request.brokers_stopped and any(loss.name in OLDER_METADATA for loss in choice.losses):
        refusals.append(BROKERS_DELETE)
    logs: dict[str, ReplayedLog] = {}
    for capture, directory in _held(cluster):
        try:
            logs[capture.capture_id] = replayed(directory)
        except (UnusableLogError, OSError) as error:
            refusals.append(f"{directory.path}: {error}")
    made = None
    if choice.capture is not None and not refusals:
        try:
            made = _made(known, cluster, choice.capture, logs, request)
        except (UnusableLogError, UnwritableError, ExhaustedError) as error:
            refusals.append(f"{error}.")
    losses = [*choice.losses, *(_of_content(made) if made else ())]
    return Restoration(
        cluster.kafka_cluster_id,
        choice.advice.as_of,
        choice.advice.as_of_source,
        tuple(dict.fromkeys(refusals)),
        tuple(dict.fromkeys(losses)),
        made,
    )


def _held(cluster: CollectedCluster) -> Iterator[tuple[Capture, ControllerDir]]:
    return zip(cluster.facts.captures, cluster.directories, strict=True)


def _of_identity(cluster: CollectedCluster) -> Iterator[str]:
    """Captures that are not of one history, or whose own files do not say of which cluster they are."""
    if cluster.facts.cluster_id != cluster.kafka_cluster_id:
        yield (
            f"The captures of cluster id {cluster.kafka_cluster_id} are of several histories: give those of "
            "one alone."
        )
    for directory in cluster.directories:
        stated = directory.meta.cluster_id if directory.meta else None
        if stated != cluster.kafka_cluster_id:
            yield f"{directory.path}: its meta.properties does not name cluster {cluster.kafka_cluster_id}."


def _made(
    known: Conclusions,
    cluster: CollectedCluster,
    source: Capture,
    logs: dict[str, ReplayedLog],
    request: RestoreRequest,
) -> Restored:
    """What is written. Raises UnusableLogError, UnwritableError, ExhaustedError."""
    log = logs[source.capture_id]
    if log.end_offset != source.log_end_offset:
        raise UnusableLogError(f"its log was read to {log.end_offset}, not to {source.log_end_offset}")
    _check_request(log, request)
    horizon = horizon_of(known.facts.captures, known.facts.snapshots, [each.image for each in logs.values()])
    image, sure = offline(without_transaction(log).image, horizon, request.lost_brokers)
    listener, kraft_version = request.listener or _listener(log), _kraft_version(log, request)
    voters = tuple(_placed(voter, request, log, known.facts.captures) for voter in request.voters)
    return Restored(
        voters=voters,
        brokers_too=frozenset(v.id for v in voters if _broker(log, v.id) is not None),
        source=source,
        directory=next(d for c, d in _held(cluster) if c.capture_id == source.capture_id),
        source_end=log.end_offset,
        source_epoch=log.leader_epoch,
        unproven=ranges_text(unproven(known, source)),
        left_behind=ranges_text(lacking(known, source)),
        left_out=""
        if log.open_transaction is None
        else f"the metadata transaction that began at offset {log.open_transaction} and did not end",
        kraft_version=kraft_version,
        metadata_version=level_of(image),
        listener=listener,
        horizon=horizon,
        sure=tuple(sure),
        counts={kind: image.tables.count(kind) for kind in KINDS},
        deviations=tuple(dict.fromkeys(each for held in logs.values() for each in held.deviations)),
        image=image,
        checkpoint=checkpoint_bytes(
            image,
            horizon.new_epoch,
            request.made_at,
            _voter_set(voters, listener) if kraft_version else None,
        ),
    )


def _check_request(log: ReplayedLog, request: RestoreRequest) -> None:
    """Raises UnwritableError for what was asked for and cannot be, or was never tried."""
    brokers = {key[0] for key, _ in log.image.tables.items(BROKERS)}
    unknown = sorted(request.lost_brokers - brokers)
    if unknown:
        raise UnwritableError(f"no broker {unknown[0]} is registered")
    if log.kraft_version > 1:
        raise UnwritableError(f"kraft.version {log.kraft_version} is newer than any that was tried")
    if log.image.tables.count(ZK_MIGRATION):
        raise UnwritableError("the cluster was moved from ZooKeeper: to restore that state was not tried")


def _kraft_version(log: ReplayedLog, request: RestoreRequest) -> int:
    """The level that is asked for, where every registered broker supports it. Raises UnwritableError."""
    asked = log.kraft_version if request.kraft_version is None else request.kraft_version
    if asked == log.kraft_version:
        return asked
    if asked < log.kraft_version:
        raise UnwritableError(f"kraft.version is {log.kraft_version} and never falls")
    if level_of(log.image) < KRAFT_VERSION_LEVEL:
        raise UnwritableError(f"kraft.version {asked} needs metadata.version {KRAFT_VERSION_LEVEL} (3.9-IV0)")
    brokers: list[Broker] = [broker for _, broker in log.image.tables.items(BROKERS)]
    for broker in brokers:
        ranges = [f for f in broker.features if f.name == KRAFT_VERSION_FEATURE]
        if not any(f.min_supported_version <= asked <= f.max_supported_version for f in ranges):
            raise UnwritableError(f"broker {broker.broker_id} does not support kraft.version {asked}")
    return asked


def _listener(log: ReplayedLog) -> str:
    """The name of the controllers' listener by the voters, else by the registrations of controllers."""
    names = {e.name for voter in log.voters or () for e in voter.endpoints}
    if not names:
        controllers: list[Controller] = [c for _, c in log.image.tables.items(CONTROLLERS)]
        names = {point.name for controller in controllers for point in controller.end_points}
    if len(names) != 1:
        found = f"it may be {' or '.join(sorted(names))}" if names else "the captures do not name it"
        raise UnwritableError(f"give the controllers' listener (--listener NAME): {found}")
    return names.pop()


def _broker(log: ReplayedLog, node: int) -> Broker | None:
    return log.image.tables.get(BROKERS, (node,))


def _placed(
    voter: NewVoter, request: RestoreRequest, log: ReplayedLog, captures: Iterable[Capture]
) -> NewVoter:
    """The voter with its directory id: of a node that is a broker, too, that of its metadata.log.dir.

    With another id its partitions would stay without a leader, as they name the old directory. On a new disk
    that bears the old id, a broker would lead without its messages. So its directory must be captured. Raises
    UnwritableError.
    """
    broker = _broker(log, voter.id)
    if broker is None:
        return voter
    if voter.id in request.gone | request.lost_brokers:
        raise UnwritableError(f"the disk of node {voter.id} is gone: give the controller another id")
    held = {c.directory_id for c in captures if c.node_id == voter.id} & set(broker.log_dirs)
    if len(held) != 1:
        raise UnwritableError(
            f"node {voter.id} is registered as a broker, and which of its directories holds the metadata log "
            "is not known: capture it, or give the controller another id"
        )
    return replace(voter, directory_id=held.pop())


def _voter_set(voters: Iterable[NewVoter], listener: str) -> VoterSet:
    return VoterSet.of(
        Voter(
            ReplicaKey(voter.id, voter.directory_id),
            (Endpoint(listener, voter.host, voter.port),),
            min_supported_version=0,
            max_supported_version=1,
        )
        for voter in voters
    )


def _of_content(made: Restored) -> Iterator[PossibleLoss]:
    """Partitions whose acknowledged messages no broker has that comes back; what a checkpoint forgot."""
    for sentence in made.deviations:
        yield PossibleLoss(FORGOTTEN, sentence)
    waiting = [each for each in made.sure if not each.is_back]
    if waiting:
        named = ", ".join(f"{each.topic_name}-{each.partition_id}" for each in waiting[:MOST_NAMED])
        more = f" and {len(waiting) - MOST_NAMED} more" if len(waiting) > MOST_NAMED else ""
        yield PossibleLoss(
            NO_SURE_REPLICA,
            f"{count(len(waiting), 'partition')} without a leader: no broker that comes back is sure to have "
            f"all acknowledged messages of {named}{more}.",
        )
