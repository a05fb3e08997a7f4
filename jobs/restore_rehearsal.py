"""kraftlake restore rehearse: assume that every controller is lost and only the captures remain."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from jobs.metrics import lines, named, put
from jobs.quorum.rehearsal_samples import rehearsal_samples
from jobs.restore_captures import captured, inputs_given, planned_restoration
from jobs.restore_plan import PlanInputs, as_plan
from jobs.restore_text import summary
from jobs.runtime.crash import exit_code_of, failure_of
from jobs.runtime.interrupt import ending_by_sigterm
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_answer
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from jobs.time_travel.moment import iso
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.recovery import counting_sets
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.uuid_text import random_uuid
from kraft_core.restore.directories import TargetError, check_identity, check_written, write_restoration
from kraft_core.restore.rehearsal import Rehearsal, rehearsal_of
from kraft_core.restore.request import NewVoter, RestoreRequest
from kraft_core.restore.restoration import Restoration
from transforms.lake.storage.location import Location

# No node has it: node ids are 32-bit numbers from 0 on.
REHEARSED_ID = (1 << 31) - 1


@dataclass(slots=True)
class _Attempt:
    """How far it came. cluster_id: of the captures, else the one asked for. error: what ended it, if any."""

    inputs: PlanInputs
    cluster_id: str | None
    plan: Restoration | None = None
    error: Exception | None = None


def rehearse(args: argparse.Namespace) -> int:
    """Plan, write to scratch, verify and remove it. However it ends, metrics and lake say so.

    Raises Failure, and whatever ended the attempt.
    """
    if args.lake is not None:
        must_be_lake(args.lake)
    record = RunRecord("restore", Progress(args.log))
    now = time.time_ns() // 1_000_000
    attempt = _attempt(args, now)
    error, plan = attempt.error, attempt.plan
    rehearsal = rehearsal_of(plan, now, None if error is None else _words(error))
    if args.metrics is not None and attempt.cluster_id is not None:
        names = {cluster.id: cluster.name for cluster in args.settings.clusters}
        found = named(rehearsal_samples(attempt.cluster_id, rehearsal), names)
        put(args.metrics, "".join(f"{line}\n" for line in lines(found)))
    code = ExitCode.FINE if rehearsal.is_restorable else ExitCode.FOUND
    if args.lake is not None:
        _note(args, record, attempt, rehearsal, code if error is None else exit_code_of(error, None))
    if error is not None:
        raise error
    assert plan is not None
    print_answer(args.format, lambda: as_plan(attempt.inputs, plan), (sentence(rehearsal), *summary(plan)))
    return code


def sentence(rehearsal: Rehearsal) -> str:
    """As of when it could be restored, and what of all that was seen would be lost."""
    if not rehearsal.is_restorable:
        return "not restorable from these captures"
    upto = f"up to offset {rehearsal.end_offset} (exclusive)"
    return f"restorable as of {iso(rehearsal.as_of)}, {upto}: {rehearsal.would_lose}"


def _attempt(args: argparse.Namespace, now: int) -> _Attempt:
    """The plan, written to scratch and read back, or what ended it."""
    voter = NewVoter(REHEARSED_ID, random_uuid(), "rehearsal.invalid", 9093)
    request = RestoreRequest(voters=(voter,), made_at=now, listener=args.listener, brokers_stopped=True)
    attempt = _Attempt(inputs_given(args, request), args.cluster)
    try:
        found = captured(attempt.inputs, args)
        attempt.cluster_id = found.cluster.kafka_cluster_id
        known = conclude(found.cluster.facts)
        voters = [voter for counted in counting_sets(known) for voter in counted.voters]
        gone = frozenset(v.key.id for v in voters if not known.holdings.replicas_of(v))
        attempt.inputs = replace(attempt.inputs, request=replace(request, gone=gone))
        attempt.plan = planned_restoration(attempt.inputs, found)
        _write_and_verify(attempt.plan, voter)
    except TargetError as error:
        attempt.error = Failure(str(error), ExitCode.FOUND)
    except Exception as error:  # however it fails, it was rehearsed and failed
        attempt.error = error
    return attempt


def _write_and_verify(plan: Restoration, voter: NewVoter) -> None:
    """Write to scratch what is planned, if it is not refused. Raises TargetError, OSError."""
    if plan.made is None or plan.verdict == "REFUSED":
        return
    with ending_by_sigterm(), tempfile.TemporaryDirectory(prefix="kraftlake-rehearsal-") as scratch:
        (home,) = write_restoration(plan.made, plan.cluster_id, b"", Path(scratch) / "new")
        check_identity(plan.made, plan.cluster_id, voter, home)
        check_written(plan.made, home / LOG_DIR_NAME)


def _words(error: Exception) -> str:
    """What ended it, for tables: of an internal error, whose text may hold anything, the name alone."""
    known = error if isinstance(error, Failure) else failure_of(error, None)
    return f"internal error {type(error).__name__}" if known is None else str(known)


def _note(
    args: argparse.Namespace, record: RunRecord, attempt: _Attempt, rehearsal: Rehearsal, code: ExitCode
) -> None:
    """Add it to the lake, under the lease. Raises Failure where the lake does not know the cluster."""
    from jobs.runtime.lease import held_lease
    from transforms.lake.commits import TableWriter
    from transforms.lake.tables import REHEARSALS, RUNS
    from transforms.quality.rehearsals import rehearsal_row

    lake = args.lake.resolve()
    TableWriter(lake, None).create(RUNS)
    give_up = time.monotonic() + args.wait
    with held_lease(lake, record, give_up, record.progress.say) as lease:
        name = None if attempt.cluster_id is None else _name_in(lake, attempt.cluster_id)
        if name is not None:
            if not rehearsal.is_restorable:
                record.failed[name] = f"could not be restored: {'; '.join(rehearsal.why_not)}"
            lease.writer.create(REHEARSALS)
            lease.writer.append(REHEARSALS, [rehearsal_row(rehearsal, name, record.run_id)])
        elif attempt.error is None:
            words = f"has no captures of cluster {attempt.cluster_id}: load them first with kraftlake run"
            raise Failure(f"{lake} {words}")
        lease.end(code)


def _name_in(lake: Location, cluster_id: str) -> str | None:
    """The id under which the tables hold a cluster, of several histories the newest; None if they do not."""
    from transforms.lake.delta_rs import distinct
    from transforms.lake.lives import held_lives
    from transforms.lake.tables import CAPTURES

    lives = [row["cluster_id"] for row in held_lives(lake) if row["kafka_cluster_id"] == cluster_id]
    name = lives[-1] if lives else cluster_id
    return name if distinct(lake, CAPTURES, "cluster_id", cluster_id=[name]) else None
