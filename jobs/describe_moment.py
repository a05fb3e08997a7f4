"""describe topics|cluster|features|quorum: what Kafka's tools would have printed at a moment."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_tabbed, warn_line
from jobs.time_travel.moment import iso
from jobs.time_travel.opened_moment import OpenedMoment, opened_moment
from jobs.time_travel.source import Epoch, SourcedVoterSet, voters_at
from kraft_core.image.tables import BROKERS, CONTROLLERS
from kraft_core.kafka_tools.cluster import describe_cluster
from kraft_core.kafka_tools.quorum import (
    NOT_KNOWN,
    LeaderAnswer,
    QuorumAt,
    describe_replication,
    describe_status,
)
from kraft_core.kafka_tools.topic_configs import brokers_with_own_configs
from kraft_core.kafka_tools.topics import describe_topics
from kraft_core.messages.feature_tool import describe
from kraft_core.messages.releases import KRAFT_VERSION
from kraft_core.plan.feature_control import finalized_in, supported_by


def describe_moment(args: argparse.Namespace) -> int:
    """Print it. Returns FOUND where part of the log could not be read. Raises Failure."""
    at = opened_moment(args)
    described = {"topics": _topics, "cluster": _cluster, "features": _features, "quorum": _quorum}
    print_tabbed(described[args.what](at, args))
    return ExitCode.FOUND if at.doubts else ExitCode.FINE


def _topics(at: OpenedMoment, args: argparse.Namespace) -> Iterator[str]:
    own = brokers_with_own_configs(at.image)
    if args.node is None and own:
        names = ", ".join(map(str, own))
        warn_line(
            f"note: configs of single brokers are not shown ({names}): choose the queried one with --node"
        )
    warn_line("note: configs in the brokers' files, which kafka-topics also shows, are not in the log")
    return describe_topics(at.image, args.node, is_whole=not at.source.known_from(at.image.offset))


def _cluster(at: OpenedMoment, args: argparse.Namespace) -> Iterator[str]:
    return describe_cluster(at.image, _cluster_id(at), args.listener)


def _features(at: OpenedMoment, args: argparse.Namespace) -> Iterator[str]:
    node = args.node
    if node is None:
        node = _epoch(at).leader_id
    brokers = supported_by(at.image, BROKERS)
    nodes = supported_by(at.image, CONTROLLERS) | brokers
    if node not in nodes:
        known = ", ".join(map(str, sorted(nodes))) or "none"
        raise Failure(
            f"not known: what node {node} supports, which had not registered by then; registered: {known}",
            ExitCode.FOUND,
        )
    found = _voters(at, f"the level of {KRAFT_VERSION}")
    lacks = _lacks(at)
    if lacks:
        raise Failure(f"not known: the finalized levels{lacks}", ExitCode.FOUND)
    levels = finalized_in(at.image) | {KRAFT_VERSION: 0 if found.voters is None else 1}
    if node not in brokers:
        warn_line(
            f"note: the epoch that a controller prints is {NOT_KNOWN}, as it depends on when it started"
        )
    return describe(nodes[node], levels, at.image.offset if node in brokers else None)


def _quorum(at: OpenedMoment, args: argparse.Namespace) -> Iterator[str]:
    epoch, found = _epoch(at), _voters(at, "who could vote then")
    if not epoch.is_exact:
        warn_line(
            f"note: the leader is reported ({epoch.source}), not proven: its LEADER_CHANGE is not captured"
        )
    if found.voters is None:
        warn_line("note: addresses of a static quorum's voters are in their files, not in the log")
    answer = at.source.leader_answer(epoch.leader_epoch, at.image.offset + 1, found.ids)
    for note in _answer_notes(at, answer):
        warn_line(f"note: {note}")
    quorum = QuorumAt(
        *(_cluster_id(at), epoch.leader_id or -1, epoch.leader_epoch, found.voters, found.ids, answer)
    )
    return describe_replication(quorum) if args.replication else describe_status(quorum)


def _answer_notes(at: OpenedMoment, answer: LeaderAnswer | None) -> Iterator[str]:
    """Where the values come from that no log has, and when the leader last gave them."""
    if answer is not None:
        yield f"what the log does not show is the leader's answer to kraftlake follow at {iso(answer.at)}"
        return
    yield f"what is {NOT_KNOWN} was known only to the leader, and is not in the log"
    other = at.source.leader_answer(at.image.leader_epoch)
    if other is not None and other.high_watermark == at.image.offset + 1:
        yield f"its answer to kraftlake follow, of {iso(other.at)}, is by voters that it appended later"
    elif other is not None:
        when = f"of {iso(other.at)}, has the high watermark {other.high_watermark}"
        yield f"the newest answer of that leader to kraftlake follow, {when}: --at {other.high_watermark - 1}"


def _epoch(at: OpenedMoment) -> Epoch:
    """The epoch of the moment, whose leader is known. Raises Failure."""
    for epoch in at.source.epochs():
        if epoch.leader_epoch == at.image.leader_epoch and epoch.leader_id is not None:
            return epoch
    raise Failure(f"not known: who led epoch {at.image.leader_epoch}", ExitCode.FOUND)


def _voters(at: OpenedMoment, asked: str) -> SourcedVoterSet:
    """The set in force at the moment. asked: what depends on it. Raises Failure."""
    found = voters_at(at.source, at.image.offset)
    if found is None:
        raise Failure(f"not known: {asked}{_lacks(at)}", ExitCode.FOUND)
    return found


def _lacks(at: OpenedMoment) -> str:
    """Up to where records are missing that may have changed what is asked, and what would show it."""
    known_from = at.source.known_from(at.image.offset)
    if not known_from:
        return ""
    above = f"records below offset {known_from} are missing"
    return f": {above}: capture a replica that has them, or a checkpoint above them"


def _cluster_id(at: OpenedMoment) -> str:
    """Raises Failure."""
    if at.source.cluster_id is None:
        raise Failure(
            f"the cluster's id is not known: {at.path} is not a controller directory with a cluster.id in "
            f"its "
            "meta.properties"
        )
    return at.source.cluster_id
