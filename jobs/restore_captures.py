"""The captures that a restoration is based on, and the plan made from them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from jobs.captures.given_clusters import given_clusters
from jobs.plan_captures import captured_cluster
from jobs.restore_plan import PlanInputs
from jobs.runtime.outcome import Failure
from jobs.runtime.progress import Counted, Progress
from kraft_core.evidence.collect import CollectedCluster, collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.capture import missing_ids
from kraft_core.format.controller_dir import fault_lines, find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.restore.choice import line_ends
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import Restoration, restoration_of


def inputs_given(args: argparse.Namespace, request: RestoreRequest) -> PlanInputs:
    return PlanInputs(
        captures=tuple(str(path.absolute()) for path in args.captures),
        broker_dirs=tuple(str(path.absolute()) for path in args.broker_dirs),
        cluster=args.cluster,
        cluster_ids=tuple(args.cluster_id),
        captured_at=args.captured_at,
        request=request,
    )


@dataclass(frozen=True, slots=True)
class Captured:
    """The history that is restored, the others of its cluster id, and what was not read, in words."""

    cluster: CollectedCluster
    others: list[CollectedCluster]
    unread: list[str]


def planned_restoration(inputs: PlanInputs, found: Captured) -> Restoration:
    broker_dirs = map(Path, inputs.broker_dirs)
    with Progress().shown("replay"):
        return restoration_of(found.cluster, inputs.request, found.unread, broker_dirs, found.others)


def captured(inputs: PlanInputs, args: argparse.Namespace) -> Captured:
    """What is restored by the captures as they are now. Raises Failure.

    A broker's copy of the metadata log is a capture like any other.
    """
    roots = [Path(path) for path in inputs.captures]
    for path in (*roots, *map(Path, inputs.broker_dirs)):
        if not path.exists():
            raise Failure(f"{path} does not exist")
    roots += [path for path in map(Path, inputs.broker_dirs) if (path / LOG_DIR_NAME).exists()]
    found = find_controller_dirs(roots)
    plain, given = given_clusters(inputs.cluster_ids, args.settings.cluster_paths, str)
    counted, directories = Counted(), found.directories
    with Progress().shown("read captures", counted, "directories"):
        each = counted.each(directories, len(directories))
        clusters = collect_lives(each, inputs.captured_at, plain, None, given.of)
    chosen = captured_cluster(clusters, inputs.cluster)
    lives = [each for each in clusters if each.kafka_cluster_id == chosen.kafka_cluster_id]
    line = inputs.request.line
    if line is not None and len(lives) > 1:
        named = [life for life in lives if line in line_ends(conclude(life.facts))]
        if len(named) > 1:
            raise Failure(f"several histories have a log that ends at {line[0]}@{line[1]}")
        chosen = named[0] if named else chosen
    unread = [f"{each}." for each in found.refused]
    unread += [f"{d.path}: {missing_ids(d)} in meta.properties." for d in found.directories if missing_ids(d)]
    unread += [f"{text}." for life in lives for d in life.directories for text in fault_lines(d)]
    return Captured(chosen, [life for life in lives if life is not chosen], unread)
