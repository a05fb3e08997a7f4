"""The input of every plan: the quorum of captures or of a lake, and its metadata."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from jobs.arguments import is_given
from jobs.captures.given_clusters import given_clusters
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.lives import named_lives
from jobs.runtime.outcome import ExitCode, Failure, UnknownCluster
from jobs.runtime.output import warn_line
from kraft_core.format.capture import identity, missing_ids
from kraft_core.format.controller_dir import ControllerDir, fault_lines, find_controller_dirs

if TYPE_CHECKING:
    from kraft_core.evidence.collect import CollectedCluster
    from kraft_core.plan.actions import Action
    from kraft_core.plan.captured_metadata import CapturedMetadata
    from kraft_core.plan.captured_quorum import CapturedQuorum
    from kraft_core.plan.load import CapturedDirectories
    from kraft_core.plan.plan import Plan


# Of logs: a replay of so much takes seconds.
_LARGE_BYTES = 8 << 20


def must_be_one_source(args: argparse.Namespace) -> None:
    """Raises Failure for two sources, and for what only captures may lack: nothing would be read of it."""
    if sum((bool(args.captures), args.lake is not None, bool(args.live))) > 1:
        raise Failure("give --captures, --lake or --live, not two of them")
    for option in ("cluster_id", "node_id", "captured_at"):
        if not args.captures and is_given(getattr(args, option)):
            name = option.replace("_", "-")
            raise Failure(f"--{name} is about --captures that do not have it; --cluster selects a cluster")


def plan_captured(args: argparse.Namespace, action: Action) -> tuple[Plan, list[str]]:
    """The plan by --captures or --lake, and what of them could not be read. Raises Failure."""
    from kraft_core.plan.plan import plan

    quorum, unread, _ = _opened(args)
    return plan(quorum, action), unread


def captured_metadata(args: argparse.Namespace) -> tuple[CapturedMetadata, list[str]]:
    """The quorum with its metadata, and what could not be read. Raises Failure."""
    if args.live:
        raise Failure(
            f"plan {args.action} needs the registrations, which --live does not read: give "
            "--captures PATH... or --lake PATH"
        )
    quorum, unread, metadata = _opened(args)
    return metadata(quorum), unread


def captured_directories(args: argparse.Namespace) -> tuple[CapturedDirectories, list[str]]:
    """The captured directories with their quorum, and what could not be read. Raises Failure."""
    if not args.captures:
        raise Failure(
            "plan load reads the bytes of logs and checkpoints, which neither a lake nor a running quorum "
            "provides: give --captures PATH..."
        )
    from kraft_core.plan.load import CapturedDirectories

    quorum, unread, directories = _of_captures(args)
    return CapturedDirectories(quorum, directories), unread


Opened = tuple["CapturedQuorum", list[str], Callable[["CapturedQuorum"], "CapturedMetadata"]]


def _opened(args: argparse.Namespace) -> Opened:
    """The quorum, what could not be read, and how to read the metadata. Raises Failure."""
    if not args.captures and args.lake is None:
        raise Failure("give --captures PATH..., --lake PATH or --live HOST:PORT")
    return from_captures(args) if args.captures else from_lake(args)


def from_captures(args: argparse.Namespace) -> Opened:
    """By captured directories. Raises Failure."""
    from kraft_core.plan.captured_metadata import metadata_of

    quorum, unread, directories = _of_captures(args)
    return quorum, unread, lambda quorum: metadata_of(quorum, directories)


def _of_captures(args: argparse.Namespace) -> tuple[CapturedQuorum, list[str], dict[str, ControllerDir]]:
    """The quorum, what could not be read, and the directory of each capture by its id. Raises Failure."""
    for path in args.captures:
        if not path.exists():
            raise Failure(f"{path} does not exist")
    from kraft_core.evidence.collect import collect_lives
    from kraft_core.evidence.conclusions import conclude
    from kraft_core.plan.captured_quorum import errors_in, quorum_of
    from kraft_core.plan.registrations import registered

    found = find_controller_dirs(args.captures)
    cluster_id, given = given_clusters(args.cluster_id, args.settings.cluster_paths, str)
    clusters = collect_lives(found.directories, args.captured_at, cluster_id, args.node_id, given.of)
    if not clusters:
        lacking = [_lacks_ids(d) for d in found.directories if missing_ids(d)]
        for line in (*lacking, *chain.from_iterable(map(fault_lines, found.directories))):
            warn_line(f"kraftlake plan: {line}")
    chosen = captured_cluster(clusters, args.cluster)
    cluster, directories = chosen.facts.cluster_id, chosen.directories
    owners = [(d, identity(d, cluster_id, args.node_id, given.of(d.path))) for d in found.directories]
    held = [(c.capture_id, d) for c, d in zip(chosen.facts.captures, directories, strict=True)]
    conclusions = conclude(chosen.facts)
    size = sum(segment.size_bytes for directory in directories for segment in directory.segments)
    if size >= _LARGE_BYTES:
        warn_line(f"kraftlake plan: replaying {size >> 20} MB of captured logs; a lake has done so")
    errors = errors_in(conclusions, held)
    quorum = known(quorum_of(conclusions, registered(directories), errors), cluster)
    unread = list(map(str, found.refused))
    unread += [_lacks_ids(d) for d, who in owners if who is None]
    unread += [line for directory in directories for line in fault_lines(directory)]
    return quorum, unread, dict(held)


def _lacks_ids(directory: ControllerDir) -> str:
    return f"{directory.path}: {missing_ids(directory)} in meta.properties"


def from_lake(args: argparse.Namespace) -> Opened:
    """By a lake's newest captures. Raises Failure."""
    # The tables' declarations import PySpark, a second that --captures need not wait.
    from jobs.quorum.quorum_facts import (
        errors_of,
        facts_of,
        faults_of,
        registered_in,
        superseded_by,
        why_not_settled,
    )
    from jobs.runtime.lake_clusters import one_cluster
    from kraft_core.evidence.conclusions import conclude
    from kraft_core.plan.captured_metadata import other_log, read_metadata
    from kraft_core.plan.captured_quorum import quorum_of

    lake = args.lake.resolve()
    must_be_lake(lake)
    cluster = one_cluster(lake, args.cluster)
    unsettled = why_not_settled(lake, cluster)
    conclusions = conclude(facts_of(lake, cluster))
    errors = errors_of(lake, cluster)
    quorum = known(quorum_of(conclusions, registered_in(lake, cluster), errors), cluster)
    superseded = quorum.superseded_by or unsettled or superseded_by(lake, cluster, quorum)
    quorum = replace(quorum, superseded_by=superseded)
    newest = [captures[-1].capture_id for captures in conclusions.holdings.captures.values()]

    def metadata(quorum: CapturedQuorum) -> CapturedMetadata:
        from jobs.time_travel.lake_source import open_cluster

        histories = open_cluster(lake, cluster)
        made = read_metadata(quorum, histories)
        other = other_log(quorum, histories.steps)
        return made if other is None else replace(made, gap=other)

    return quorum, faults_of(lake, cluster, newest), metadata


def captured_cluster(clusters: Sequence[CollectedCluster], wanted: str | None) -> CollectedCluster:
    """The wanted cluster, or the only one; of several lives the newest, or that named. Raises Failure."""
    if not clusters:
        raise Failure(
            "no controller directory with a cluster id and a node id; if meta.properties lacks them, give "
            "--cluster-id and --node-id",
            ExitCode.NOTHING_READABLE,
        )
    by_id = {each.facts.cluster_id: each for each in clusters}
    newest = {each.kafka_cluster_id: each for each in clusters}
    every = newest | by_id
    if wanted is not None and wanted not in every:
        raise UnknownCluster(f"no cluster {wanted}; found: {', '.join(sorted(by_id))}", wanted, by_id)
    if wanted is None and len(newest) > 1:
        raise Failure(f"{len(newest)} clusters: choose one with --cluster: {', '.join(sorted(newest))}")
    chosen = next(iter(newest.values())) if wanted is None else every[wanted]
    lives = [id_ for id_, each in by_id.items() if each.kafka_cluster_id == chosen.kafka_cluster_id]
    if len(lives) > 1:
        warn_line(f"cluster id {chosen.kafka_cluster_id} {named_lives(lives, chosen.facts.cluster_id)}")
    return chosen


def known(quorum: CapturedQuorum | None, cluster: str) -> CapturedQuorum:
    if quorum is None:
        raise Failure(f"no captured log of {cluster} contains a batch", ExitCode.NOTHING_READABLE)
    return quorum
