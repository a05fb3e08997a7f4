"""Leaders and voter sets that describe outputs and quorum-state files report: observed, not proven.

They show who led and who could vote at moments that no captured record covers. They count for no majority,
bound no high watermark, and never change what is proven. DescribeQuorum (KIP-595) is answered by the
leader: with its epoch and the newest voter set of its log, committed or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, label
from kraft_core.evidence.rows import EpochRow, ObservedSource, VoterRow, VoterSetRow
from kraft_core.evidence.static_voters import newest_static_election
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import Holder, Observation
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.wording import first_named

MOST_NAMED = 3
"""At most this many outputs are listed."""

NOTHING_BOUNDS_IT = -1
"""The offset of an observed set whose record may lie anywhere in the log."""


def one_quorum_per_cluster_id(view: ClusterView) -> Iterator[Breach]:
    """Rule 47: outputs that are not known to be from the captured quorum. Captures: see rule 3."""
    untied = view.reports.untied
    if untied:
        named = first_named([f"{output.source}: {why}" for output, why in untied], MOST_NAMED, "; ")
        about = "not known to be from the captured quorum"
        sentence = f"{len(untied)} describe outputs are {about}, and prove nothing."
        if len(untied) == 1:
            sentence = f"1 describe output is {about}, and proves nothing."
        yield Breach(
            of_rule(47),
            "warning",
            ("describe",),
            sentence,
            named,
            leader_epochs=tuple(sorted({o.leader_epoch for o, _ in untied if o.leader_epoch is not None})),
            observed_at=tuple(output.observed_to for output, _ in untied),
        )


# --- epochs ---


def observed_epochs(rows: Iterable[EpochRow], observations: Iterable[Observation]) -> list[EpochRow]:
    """The epochs, with what describe outputs report of them and those that nothing else shows."""
    found = {row.leader_epoch: row for row in rows}
    reports: defaultdict[int, list[Observation]] = defaultdict(list)
    for output in set(observations):
        if output.kind == "status" and output.leader_epoch is not None and output.node_id >= 0:
            reports[output.leader_epoch].append(output)
    for epoch, outputs in reports.items():
        found[epoch] = _with_reports(found.get(epoch) or _unproven(epoch, outputs), outputs)
    return [found[epoch] for epoch in sorted(found)]


def _unproven(epoch: int, outputs: Sequence[Observation]) -> EpochRow:
    cluster_id = outputs[0].cluster_id or ""
    return EpochRow(cluster_id, epoch, None, None, False, None, None, None, None, "describe")


def _with_reports(row: EpochRow, outputs: Sequence[Observation]) -> EpochRow:
    """An epoch with its leader, unless its LEADER_CHANGE names it or reports contradict one another."""
    observed_by = min(output.observed_to for output in outputs)
    if row.leader_source != "record":
        named = {output.node_id for output in outputs} | ({row.leader_id} - {None})
        leader = next(iter(named)) if len(named) == 1 else None
        row = replace(row, leader_id=leader, leader_source=None if leader is None else "describe")
    earliest = observed_by if row.known_from is None else min(row.known_from, observed_by)
    return replace(
        row,
        known_from=earliest if row.elected_at is None else row.elected_at,
        observed_from=min(output.observed_from for output in outputs),
        observed_to=max(output.observed_to for output in outputs),
    )


# --- voter sets ---


def observed_voter_sets(
    known: Conclusions, proven: Sequence[VoterSetRow], observations: Iterable[Observation]
) -> list[VoterSetRow]:
    """The sets that describe outputs and quorum-state files report where no proven set explains them.

    A row for each run of outputs of one epoch that report the same voters. Its offset is the lowest at which
    the record of the set can lie: above the record of the set reported before, and not below the high
    watermark reported with that.
    """
    outputs = sorted(
        (o for o in set(observations) if o.kind == "status" and o.leader_epoch is not None and o.voters),
        key=lambda o: (o.leader_epoch, o.observed_from, o.observed_to, o.source),
    )
    rows = [*_of_quorum_states(known, proven), *_of_outputs(known.facts.cluster_id, proven, outputs)]
    begins = [
        row.in_force_from
        for row in (*proven, *rows)
        if row.in_force_from is not None and row.commit_status != "truncated"
    ]
    ends = [_end(row, begins, outputs) for row in rows]
    return [
        row if end is None else replace(row, in_force_to=end, in_force_to_exact=False)
        for row, end in zip(rows, ends, strict=True)
    ]


def _end(row: VoterSetRow, begins: Iterable[int], outputs: Iterable[Observation]) -> int | None:
    """When a set is next known to be in force that is not this one; None if none is."""
    since = row.in_force_from
    if since is None:
        return None
    others = [o.observed_to for o in outputs if not _same_voters(row, o.voters)]
    return min((at for at in (*begins, *others) if at > since), default=None)


def _of_outputs(
    cluster_id: str, proven: Sequence[VoterSetRow], outputs: Sequence[Observation]
) -> Iterator[VoterSetRow]:
    for epoch, of_epoch in groupby(outputs, lambda output: output.leader_epoch or 0):
        lowest = NOTHING_BOUNDS_IT
        for voters, run in groupby(of_epoch, lambda output: output.voters):
            reports = list(run)
            unexplained = [output for output in reports if not any(_explains(row, output) for row in proven)]
            if unexplained:
                yield _observed_set(cluster_id, lowest, epoch, voters, unexplained)
            lowest = max(lowest + 1, *(output.high_watermark or 0 for output in reports))


def _explains(row: VoterSetRow, output: Observation) -> bool:
    """Whether a proven set has the voters reported, and was in force when they were."""
    begun = row.source == "bootstrap" or (
        row.in_force_from is not None and row.in_force_from <= output.observed_to
    )
    lasted = row.in_force_to is None or row.in_force_to >= output.observed_from
    return begun and lasted and _same_voters(row, output.voters)


def _same_voters(row: VoterSetRow, voters: Sequence[Holder]) -> bool:
    """By id, and by directory id where both know it."""
    held = {voter.voter_id: voter.directory_id for voter in row.voters}
    return len(held) == len(voters) and all(
        node in held and (directory in (ZERO_UUID, held[node]) or held[node] == ZERO_UUID)
        for node, directory in voters
    )


def _observed_set(
    cluster_id: str, offset: int, epoch: int, voters: Sequence[Holder], outputs: Sequence[Observation]
) -> VoterSetRow:
    first, last = outputs[0], outputs[-1]
    others = "" if first is last else f" to {last.source}"
    return _row(
        cluster_id,
        offset,
        epoch,
        "describe",
        voters,
        f"reported by leader {first.node_id} of epoch {epoch} in {first.source}{others}; not proven",
        min(output.observed_to for output in outputs),
        (first.observed_from, max(output.observed_to for output in outputs)),
    )


def _of_quorum_states(known: Conclusions, proven: Sequence[VoterSetRow]) -> Iterator[VoterSetRow]:
    """The static voters in quorum-state files (kraft.version 0); of an epoch's those of the last capture."""
    newest: dict[int, Capture] = {}
    # Those of two histories cannot be distinguished.
    captures = () if known.lineage.contested_epochs else known.facts.captures
    for capture in captures:
        if capture.current_voters and capture.quorum_state_epoch is not None:
            newest[capture.quorum_state_epoch] = capture
    shown = {row.voter_ids for row in proven if row.source in ("static", "record")}
    for epoch, capture in newest.items():
        voters = tuple((node, ZERO_UUID) for node in _configured(capture))
        if tuple(node for node, _ in voters) not in shown:
            words = f"quorum-state of {label(capture.replica)}; not proven"
            times = (capture.captured_from, capture.captured_until)
            yield _row(
                known.facts.cluster_id,
                NOTHING_BOUNDS_IT,
                epoch,
                "quorum-state",
                voters,
                words,
                times[1],
                times,
            )


def static_voters_stay(view: ClusterView) -> Iterator[Breach]:
    """Rule 50, a warning: voters may be reconfigured with care, but which of two sets counts is not known."""
    if any(node.source == "record" for node in view.sets):
        return
    for capture in view.known.reconfigured:
        yield Breach(
            of_rule(50),
            "warning",
            (capture.node_id, capture.directory_id, *_configured(capture)),
            f"{label(capture.replica)} is configured with other voters than the quorum: its "
            f"{_other_voters(view.known, capture)}.",
            "controller.quorum.voters, as quorum-state of version 0 keeps it",
            leader_epochs=tuple(epoch for epoch in (capture.quorum_state_epoch,) if epoch is not None),
            replicas=(capture.replica,),
            captures=(capture,),
        )


def static_voters_differ(known: Conclusions) -> str | None:
    """Which others one of static voters is configured with, in words; None where all agree."""
    for capture in known.reconfigured[:1]:
        return (
            f"{label(capture.replica)} is configured with other voters: its {_other_voters(known, capture)}"
        )
    return None


def _other_voters(known: Conclusions, capture: Capture) -> str:
    election = newest_static_election(known.elections, known.in_force)
    named = f", and the newest election {{{','.join(map(str, election.voters))}}}" if election else ""
    ids = ",".join(map(str, _configured(capture)))
    told = f"the static voters {{{ids}}}" if ids else "no static voters"
    return f"quorum-state of epoch {capture.quorum_state_epoch} names {told}{named}"


def _configured(capture: Capture) -> tuple[int, ...]:
    return tuple(sorted(set(capture.current_voters or ())))


def static_voters_reported(known: Conclusions) -> str | None:
    """Which static voters the newest quorum-state of version 0 names, in words; None where none does."""
    rows = list(_of_quorum_states(known, ()))
    if not rows:
        return None
    newest = max(rows, key=lambda row: row.leader_epoch)
    ids = ",".join(map(str, newest.voter_ids))
    file = newest.evidence.partition(";")[0]
    return f"the {file} names the static voters {{{ids}}} of epoch {newest.leader_epoch}"


def _row(
    cluster_id: str,
    offset: int,
    epoch: int,
    source: ObservedSource,
    voters: Sequence[Holder],
    evidence: str,
    in_force_from: int | None,
    observed: tuple[int | None, int | None],
) -> VoterSetRow:
    return VoterSetRow(
        cluster_id=cluster_id,
        offset=offset,
        leader_epoch=epoch,
        source=source,
        voters=tuple(VoterRow(node, directory, (), None, None) for node, directory in voters),
        voter_ids=tuple(node for node, _ in voters),
        majority=len(voters) // 2 + 1,
        commit_status="undecided",
        evidence=evidence,
        as_of=None,
        appended_at=None,
        in_force_from_offset=None,
        in_force_to_offset=None,
        in_force_from=in_force_from,
        in_force_to=None,
        in_force_from_exact=False,
        in_force_to_exact=None,
        truncated_by_epoch=None,
        observed_from=observed[0],
        observed_to=observed[1],
    )
