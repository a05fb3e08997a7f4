"""What plan, apply and verify of kraftlake restore do."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from jobs.restore_captures import captured, inputs_given, planned_restoration
from jobs.restore_kafka import read_by_kafka
from jobs.restore_plan import PlanInputs, as_plan, inputs_of
from jobs.restore_rehearsal import rehearse
from jobs.restore_text import runbook, summary
from jobs.runtime.interrupt import ending_by_sigterm
from jobs.runtime.outcome import ExitCode, Failure, reason_of
from jobs.runtime.output import print_answer, print_lines
from jobs.time_travel.moment import InvalidMomentError, parse_moment
from kraft_core.evidence.collect import CollectedCluster
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.uuid_text import random_uuid
from kraft_core.restore.directories import (
    TargetError,
    check_apart,
    check_identity,
    check_written,
    write_restoration,
)
from kraft_core.restore.replay import Cut
from kraft_core.restore.request import NewVoter, RestoreRequest
from kraft_core.restore.restoration import Restoration
from kraft_core.restore.written_rules import broken_rules


def _plan(args: argparse.Namespace) -> int:
    request = RestoreRequest(
        voters=tuple(NewVoter(v.id, random_uuid(), v.host, v.port) for v in args.voters),
        made_at=time.time_ns() // 1_000_000,
        listener=args.listener,
        kraft_version=args.kraft_version,
        gone=frozenset(args.gone),
        lost_brokers=frozenset(args.lost_brokers),
        brokers_back=None if args.brokers_back is None else frozenset(args.brokers_back),
        are_stopped=args.controllers_stopped,
        brokers_stopped=args.brokers_stopped,
        placement=args.placement,
        line=args.line,
    )
    inputs = inputs_given(args, request)
    found = captured(inputs, args)
    inputs = replace(inputs, request=replace(request, at=_cut(args.at, found.cluster)))
    made = planned_restoration(inputs, found)
    content = as_plan(inputs, made)
    if args.out is not None:
        try:
            with args.out.open("x") as file:
                file.write(json.dumps(content, indent=2) + "\n")
        except FileExistsError:
            raise Failure(f"{args.out} exists: choose a new file") from None
    print_answer(args.format, lambda: content, (*summary(made), *runbook(inputs.request, made, args.out)))
    return ExitCode.FINE if made.verdict == "SAFE" else ExitCode.FOUND


def _cut(text: str, cluster: CollectedCluster) -> Cut | None:
    """The moment of --at; None for the end. A bare time of day is of the day of the newest record."""
    newest = (
        epoch_range.last_appended_at
        for capture in cluster.facts.captures
        for epoch_range in capture.epoch_ranges
    )
    try:
        moment = parse_moment(text, max(newest, default=0))
    except InvalidMomentError as error:
        raise Failure(str(error)) from None
    if moment.offset is not None:
        return Cut(end_offset=moment.offset + 1)
    return None if moment.time is None else Cut(time=moment.time)


def _planned(path: Path, args: argparse.Namespace) -> tuple[PlanInputs, Restoration]:
    """The plan in a file, if the captures still lead to it. Raises Failure."""
    try:
        content = json.loads(path.read_text())
        inputs = inputs_of(content)
    except OSError as error:
        raise Failure(f"{path} cannot be read: {reason_of(error)}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path} is not a plan of kraftlake restore: {error}") from None
    made = planned_restoration(inputs, captured(inputs, args))
    if json.loads(json.dumps(as_plan(inputs, made))) != content:
        raise Failure(f"the captures no longer give {path}: plan again", ExitCode.FOUND)
    return inputs, made


def _apply(args: argparse.Namespace) -> int:
    inputs, plan = _planned(args.plan, args)
    if plan.made is None or plan.verdict == "REFUSED":
        raise Failure(f"{args.plan} is refused: nothing was written", ExitCode.FOUND, plan.refusals)
    named = {loss.name for loss in plan.losses}
    missing, unknown = sorted(named - set(args.accept_loss)), sorted(set(args.accept_loss) - named)
    if unknown:
        raise Failure(
            f"the plan has no loss {', '.join(unknown)}; it lists {', '.join(sorted(named)) or 'none'}"
        )
    if missing:
        lines = [f"{loss.name}: {loss.sentence}" for loss in plan.losses if loss.name in missing]
        raise Failure(
            f"accept what may be lost: --accept-loss {' '.join(sorted(named))}", ExitCode.FOUND, lines
        )
    try:
        check_apart(args.to, [Path(path) for path in inputs.captures])
        report = json.dumps(as_plan(inputs, plan), indent=2).encode()
        with ending_by_sigterm():
            homes = write_restoration(plan.made, plan.cluster_id, report, args.to)
    except TargetError as error:
        raise Failure(str(error)) from None
    print_lines(f"written: {home}" for home in homes)
    return ExitCode.FINE


def _verify(args: argparse.Namespace) -> int:
    _, plan = _planned(args.against, args)
    if plan.made is None:
        raise Failure(
            f"{args.against} is a refused plan: it describes no directories", ExitCode.FOUND, plan.refusals
        )
    homes = [args.folder / f"node-{voter.id}" for voter in plan.made.voters]
    for voter, home in zip(plan.made.voters, homes, strict=True):
        try:
            check_identity(plan.made, plan.cluster_id, voter, home)
            check_written(plan.made, home / LOG_DIR_NAME)
        except TargetError as error:
            raise Failure(str(error), ExitCode.FOUND) from None
    if broken := broken_rules(homes):
        lines = [f"{finding.name}: {finding.sentence}" for finding in broken]
        raise Failure(
            f"{args.folder} violates rules of the metadata log: do not start it", ExitCode.FOUND, lines
        )
    print_lines(f"as planned, and no rule is violated: {home}" for home in homes)
    if args.kafka is not None:  # every voter's checkpoint has the same bytes
        print_lines(
            read_by_kafka(args.kafka, homes[0] / LOG_DIR_NAME / plan.made.checkpoint_name, plan.made.image)
        )
    return ExitCode.FINE


VERBS = {"plan": _plan, "apply": _apply, "verify": _verify, "rehearse": rehearse}
