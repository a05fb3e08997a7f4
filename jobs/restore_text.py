"""The plan of a restoration as text: the verdict, what may be lost, and the runbook with the actual names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from jobs.restore_plan import first_brokers
from jobs.time_travel.moment import iso
from kraft_core.addresses import address_text
from kraft_core.evidence.facts import label
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.restore.content import MOST_NAMED
from kraft_core.restore.later import RIGHTS_RETURN, TOPICS_RETURN
from kraft_core.restore.request import RestoreRequest
from kraft_core.restore.restoration import Restoration, Restored
from kraft_core.wording import count, first_named

# A voter that runs appends twice a second, if it is only that nothing happens.
LATE_S = 10


def summary(plan: Restoration) -> Iterator[str]:
    """The verdict and what it rests on."""
    made = plan.made
    yield f"{plan.verdict}: cluster {plan.cluster_id}, as of {iso(plan.as_of)} ({plan.as_of_source})"
    for refusal in plan.refusals:
        yield f"  refused: {refusal}"
    for loss in plan.losses:
        yield f"  may be lost: {loss.name}: {loss.sentence}"
    yield from _copies(plan)
    if made is None:
        return
    yield (
        f"  source: node {label(made.source.replica)}, epoch {made.source_epoch}, up to offset "
        f"{made.source_end} (exclusive): {made.directory.path}"
    )
    if made.restored_end < made.source_end:
        yield (
            f"  as it was at {iso(made.restored_time)}, epoch {made.restored_epoch}, up to offset "
            f"{made.restored_end} (exclusive)"
        )
    if made.unproven:
        yield f"  kept, though not proven committed: {made.unproven}"
    if made.left_behind:
        yield f"  left behind, though in other captures: {made.left_behind}"
    if made.left_out:
        yield f"  left out, because a new leader would abort it: {made.left_out}"
    if made.brokers_back:
        fenced = ", ".join(map(str, made.brokers_fenced))
        more = f"; fenced at the end of the log, so they may be gone: {fenced}" if fenced else ""
        yield f"  brokers expected back: {', '.join(map(str, made.brokers_back))}{more}"
    held = ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in made.counts.items() if n)
    yield f"  metadata: {held}"
    for broker, partitions in made.stray.items():
        named = first_named(partitions, MOST_NAMED)
        yield f"  stray on broker {broker}, or deleted if it is running: {named}"
    written = made.horizon
    yield (
        f"  written: offset {written.new_end}, epoch {written.new_epoch}, above the highest seen, "
        f"{written.end_offset} and {written.leader_epoch}"
    )


def _copies(plan: Restoration) -> Iterator[str]:
    """What each voter's copy ends with. That it is the disk as it was left, and no backup, is only stated."""
    newest = max((copy.last_appended_at or 0 for copy in plan.copies), default=0)
    for copy in plan.copies:
        if copy.last_appended_at is None:
            yield f"  voter {copy.node}: no record in its segments"
            continue
        behind = (newest - copy.last_appended_at) // 1000
        late = f", {behind:,} s before the newest: is this a backup?" if behind >= LATE_S else ""
        yield (
            f"  voter {copy.node}: up to offset {copy.end_offset} (exclusive), last record at "
            f"{iso(copy.last_appended_at)}{late}"
        )


def runbook(request: RestoreRequest, plan: Restoration, out: Path | None) -> Iterator[str]:
    """The steps with the real names; nothing where the plan is refused. out: its file, None for none."""
    made = plan.made
    if made is None or plan.verdict == "REFUSED":
        return
    yield "steps (docs/restore.md explains each):"
    for nth, step in enumerate(_steps(request, plan, made, out), start=1):
        yield f"  {nth}. {step}"


def _steps(request: RestoreRequest, plan: Restoration, made: Restored, out: Path | None) -> Iterator[str]:
    voters = request.voters
    servers = ",".join(address_text(v.host, v.port) for v in voters)
    names = sorted({loss.name for loss in plan.losses})
    accepted = f" --accept-loss {' '.join(names)}" if names else ""
    yield "stop all old controllers, and move their metadata directories away: they could elect a leader too"
    yield (
        "stop all brokers, and keep them stopped until the new quorum has a leader"
        if request.brokers_stopped
        else "brokers may keep running, because the metadata is the newest; they look for a leader at the "
        "addresses they know"
    )
    if out is None:
        yield "plan again with --out PLAN"
    file = "PLAN" if out is None else shlex.quote(str(out))
    yield f"kraftlake restore apply {file} --to NEWDIR{accepted}"
    yield f"kraftlake restore verify NEWDIR --against {file}"
    for voter in voters:
        if voter.id in made.brokers_too:
            yield (
                f"in the metadata.log.dir of node {voter.id}, which also contains partitions, replace "
                f"{LOG_DIR_NAME} with NEWDIR/node-{voter.id}/{LOG_DIR_NAME}, and leave everything else"
            )
            continue
        yield (
            f"copy NEWDIR/node-{voter.id} to the empty metadata.log.dir of node {voter.id} on {voter.host}, "
            "owned by Kafka's user; do not change its directory.id"
        )
    if made.kraft_version:
        yield f"configure controller.quorum.bootstrap.servers={servers} on all nodes"
        yield "remove controller.quorum.voters on all nodes"
    else:
        static = ",".join(f"{v.id}@{address_text(v.host, v.port)}" for v in voters)
        yield f"configure controller.quorum.voters={static} on all nodes"
    yield (
        f"start the voters; kafka-metadata-quorum.sh --bootstrap-controller {servers} describe --status "
        f"must show a leader in an epoch above {made.horizon.new_epoch}"
    )
    losses = {each.loss for each in made.later}
    if TOPICS_RETURN in losses:
        yield (
            "to keep messages of topics that return, rename directories TOPIC-N.<uuid>-delete or -stray of "
            "their topic ids to TOPIC-N on the stopped brokers, and delete *.index and *.timeindex in "
            "them: Kafka rebuilds them; otherwise they date the messages to 1970, and retention deletes them"
        )
    first = ", ".join(f"{broker} ({count(n, 'partition')})" for broker, n in first_brokers(made).items())
    yield f"start the brokers that are sure to have all messages: {first or 'none'}; then the others"
    if RIGHTS_RETURN in losses:
        yield "revoke what rights-return lists before you let clients in"
    yield "compare topics, ISRs, ACLs and users with what you expect; look for directories *-stray on brokers"
    if made.kraft_version:
        yield (
            "add controllers: format each with --no-initial-controllers, start it, then "
            f"kafka-metadata-quorum.sh --bootstrap-controller {servers} --command-config ITS-PROPERTIES "
            "add-controller"
        )
        yield (
            "list the added controllers in controller.quorum.bootstrap.servers on all nodes, and restart "
            "these one by one, before a restored voter is removed: brokers look for a new leader at these "
            "addresses only"
        )
    if made.restored_end < made.source_end:
        yield (
            "to undo it later, keep these captures: plan again from them and captures of the new quorum, "
            f"with --line {made.source_epoch}@{made.source_end}"
        )
    yield "to abort before the voters have started, put the old directories back; later, plan again instead"
