"""What plan, apply, verify and rehearse of kraftlake restore do."""

from __future__ import annotations

import argparse
import json
import secrets
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.captures.given_clusters import given_clusters
from jobs.metrics import lines, put
from jobs.plan import captured_cluster
from jobs.restore_plan import PlanInputs, as_plan, inputs_of
from jobs.restore_rehearsal import samples, sentence
from jobs.restore_text import runbook, summary
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_line, print_lines
from jobs.runtime.progress import Counted, Progress
from jobs.time_travel.moment import InvalidMomentError, parse_moment
from kraft_core.evidence.collect import CollectedCluster, collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.recovery import counting_sets
from kraft_core.format.capture import missing_ids
from kraft_core.format.controller_dir import fault_lines, find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.uuid_text import uuid_text
from kraft_core.restore.choice import line_ends
from kraft_core.restore.directories import (
    TargetError,
    check_apart,
    check_identity,
    check_written,
    write_restoration,
)
from kraft_core.restore.replay import Cut
from kraft_core.restore.request import NewVoter, RestoreRequest
from kraft_core.restore.restoration import Restoration, restoration_of

# No node has it: node ids are 32-bit numbers from 0 on.
REHEARSED_ID = (1 << 31) - 1


def _plan(args: argparse.Namespace) -> int:
    request = RestoreRequest(
        voters=tuple(NewVoter(v.id, _random_uuid(), v.host, v.port) for v in args.voters),
        made_at=time.time_ns() // 1_000_000,
        listener=args.listener,
        kraft_version=args.kraft_version,
        gone=frozenset(args.gone),
        lost_brokers=frozenset(args.lost_brokers),
        are_stopped=args.controllers_stopped,
        brokers_stopped=args.brokers_stopped,
        placement=args.placement,
        line=args.line,
    )
    inputs = _inputs(args, request)
    found = _captured(inputs, args)
    inputs = replace(inputs, request=replace(request, at=_cut(args.at, found.cluster)))
    made = _restoration(inputs, found)
    content = as_plan(inputs, made)
    if args.out is not None:
        try:
            with args.out.open("x") as file:
                file.write(json.dumps(content, indent=2) + "\n")
        except FileExistsError:
            raise Failure(f"{args.out} exists: give the plan a new name") from None
    if args.format == "json":
        print_line(json_line(content))
    else:
        print_lines((*summary(made), *runbook(inputs.request, made)))
    return ExitCode.FINE if made.verdict == "SAFE" else ExitCode.FOUND


def _cut(text: str, cluster: CollectedCluster) -> Cut | None:
    """The moment of --at; None for the end. A bare time of day is of the day of the newest record."""
    newest = (run.last_appended_at for capture in cluster.facts.captures for run in capture.runs)
    try:
        moment = parse_moment(text, max(newest, default=0))
    except InvalidMomentError as error:
        raise Failure(str(error)) from None
    if moment.offset is not None:
        return Cut(end_offset=moment.offset + 1)
    return None if moment.time is None else Cut(time=moment.time)


def _inputs(args: argparse.Namespace, request: RestoreRequest) -> PlanInputs:
    return PlanInputs(
        captures=tuple(str(path.absolute()) for path in args.captures),
        broker_dirs=tuple(str(path.absolute()) for path in args.broker_dirs),
        cluster=args.cluster,
        cluster_ids=tuple(args.cluster_id),
        captured_at=args.captured_at,
        request=request,
    )


@dataclass(frozen=True, slots=True)
class _Captured:
    """The history that is restored, the others of its cluster id, and what was not read, in words."""

    cluster: CollectedCluster
    others: list[CollectedCluster]
    unread: list[str]


def _restoration(inputs: PlanInputs, found: _Captured) -> Restoration:
    broker_dirs = map(Path, inputs.broker_dirs)
    with Progress().shown("replay"):
        return restoration_of(found.cluster, inputs.request, found.unread, broker_dirs, found.others)


def _captured(inputs: PlanInputs, args: argparse.Namespace) -> _Captured:
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
    unread = [f"{each.path}: {each.reason}." for each in found.refused]
    unread += [f"{d.path}: {missing_ids(d)} in meta.properties." for d in found.directories if missing_ids(d)]
    unread += [f"{text}." for life in lives for d in life.directories for text in fault_lines(d)]
    return _Captured(chosen, [life for life in lives if life is not chosen], unread)


def _planned(path: Path, args: argparse.Namespace) -> tuple[PlanInputs, Restoration]:
    """The plan in a file, if the captures still lead to it. Raises Failure."""
    try:
        content = json.loads(path.read_text())
        inputs = inputs_of(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path} is no plan of kraftlake restore: {error}") from None
    made = _restoration(inputs, _captured(inputs, args))
    if json.loads(json.dumps(as_plan(inputs, made))) != content:
        raise Failure(f"the captures no longer lead to {path}: plan again", ExitCode.FOUND)
    return inputs, made


def _apply(args: argparse.Namespace) -> int:
    inputs, plan = _planned(args.plan, args)
    if plan.made is None or plan.verdict == "REFUSED":
        raise Failure(f"{args.plan} is refused: nothing is written", ExitCode.FOUND, plan.refusals)
    named = {loss.name for loss in plan.losses}
    missing, unknown = sorted(named - set(args.accept_loss)), sorted(set(args.accept_loss) - named)
    if unknown:
        raise Failure(
            f"the plan names no loss {', '.join(unknown)}: it names {', '.join(sorted(named)) or 'none'}"
        )
    if missing:
        lines = [f"{loss.name}: {loss.sentence}" for loss in plan.losses if loss.name in missing]
        raise Failure(
            f"repeat what may be lost: --accept-loss {' '.join(sorted(named))}", ExitCode.FOUND, lines
        )
    try:
        check_apart(args.to, [Path(path) for path in inputs.captures])
        report = json.dumps(as_plan(inputs, plan), indent=2).encode()
        homes = write_restoration(plan.made, plan.cluster_id, report, args.to)
    except TargetError as error:
        raise Failure(str(error)) from None
    print_lines(f"written: {home}" for home in homes)
    return ExitCode.FINE


def _verify(args: argparse.Namespace) -> int:
    _, plan = _planned(args.against, args)
    if plan.made is None:
        raise Failure(f"{args.against} is refused: it describes no directory", ExitCode.FOUND, plan.refusals)
    for voter in plan.made.voters:
        home = args.folder / f"node-{voter.id}"
        try:
            check_identity(home, plan.cluster_id, voter)
            check_written(plan.made, home / LOG_DIR_NAME)
        except TargetError as error:
            raise Failure(str(error), ExitCode.FOUND) from None
        print_line(f"as planned: {home}")
    return ExitCode.FINE


def _rehearse(args: argparse.Namespace) -> int:
    """As if every controller were lost now, but for the captures: written to scratch, verified, removed."""
    voter = NewVoter(REHEARSED_ID, _random_uuid(), "rehearsal.invalid", 9093)
    request = RestoreRequest(
        voters=(voter,),
        made_at=time.time_ns() // 1_000_000,
        listener=args.listener,
        brokers_stopped=True,
    )
    inputs = _inputs(args, request)
    found = _captured(inputs, args)
    sets = counting_sets(conclude(found.cluster.facts))
    gone = frozenset(voter.key.id for counted in sets for voter in counted.voters)
    inputs = replace(inputs, request=replace(request, gone=gone))
    plan = _restoration(inputs, found)
    if plan.made is not None and plan.verdict != "REFUSED":
        with tempfile.TemporaryDirectory(prefix="kraftlake-rehearsal-") as scratch:
            target = Path(scratch) / "new"
            (home,) = write_restoration(plan.made, plan.cluster_id, b"", target)
            check_identity(home, plan.cluster_id, voter)
            check_written(plan.made, home / LOG_DIR_NAME)
    if args.metrics is not None:
        put(args.metrics, "".join(f"{line}\n" for line in lines(samples(plan, request.made_at))))
    if args.format == "json":
        print_line(json_line(as_plan(inputs, plan)))
    else:
        print_lines((sentence(plan), *summary(plan)))
    return ExitCode.FOUND if plan.verdict == "REFUSED" else ExitCode.FINE


def _random_uuid() -> str:
    """A directory id as Kafka makes them: none begins with a dash, which tools would take for a flag."""
    while (text := uuid_text(secrets.token_bytes(16))).startswith("-"):
        pass
    return text


VERBS = {"plan": _plan, "apply": _apply, "verify": _verify, "rehearse": _rehearse}
