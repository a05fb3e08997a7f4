"""Rule 49: records of the log or of a checkpoint that Kafka refuses to replay.

The replay of the histories finds them (transforms.histories), where nothing below them is missing. Here the
path of that replay is compared with the captured logs: a refusal counts only if all that was replayed is one
log, by Raft's log matching. Records that were truncated are on no path: only the leader that wrote such a
record replayed it, before it appended it. A checkpoint holds all that its records refer to: its own suffices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kraft_core.evidence.facts import SnapshotFacts
from kraft_core.findings.cluster_view import ClusterView, replicas_of
from kraft_core.findings.facts import ReplayRefusal
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.findings.snapshot_replays import CheckpointKey, Log, LogsBelow, digest_of, lies_on, log_from
from kraft_core.findings.snapshot_rules import checkpoint_breach, checkpoint_name
from kraft_core.image.refusals import NO_TRANSACTION, UNKNOWN_CREDENTIAL
from kraft_core.wording import count

RELEASE = "4.3.1"
# A checkpoint may lack a credential by a known defect (rule 22), and is not known to lie outside of a
# transaction.
_NOT_ONTO_CHECKPOINTS = (NO_TRANSACTION, UNKNOWN_CREDENTIAL)


class _Classes(NamedTuple):
    """The class that throws on a controller, and the one in the metadata loader of every node."""

    controller: str
    loader: str


_OF_TOPICS = _Classes("ReplicationControlManager", "TopicsDelta")
_OF_BROKERS = _Classes("ClusterControlManager", "ClusterDelta")
_OF_TRANSACTIONS = _Classes("OffsetControlManager", "MetadataBatchLoader")
_CLASSES = {
    "TOPIC_RECORD": _OF_TOPICS,
    "REMOVE_TOPIC_RECORD": _OF_TOPICS,
    "PARTITION_RECORD": _OF_TOPICS,
    "PARTITION_CHANGE_RECORD": _OF_TOPICS,
    "CLEAR_ELR_RECORD": _OF_TOPICS,
    "FENCE_BROKER_RECORD": _OF_BROKERS,
    "UNFENCE_BROKER_RECORD": _OF_BROKERS,
    "BROKER_REGISTRATION_CHANGE_RECORD": _OF_BROKERS,
    "UNREGISTER_BROKER_RECORD": _OF_BROKERS,
    "UNREGISTER_CONTROLLER_RECORD": _OF_BROKERS,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _Classes("AclControlManager", "AclsDelta"),
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _Classes("ScramControlManager", "ScramDelta"),
    "PRODUCER_IDS_RECORD": _Classes("ProducerIdControlManager", "ProducerIdsDelta"),
    "BEGIN_TRANSACTION_RECORD": _OF_TRANSACTIONS,
    "END_TRANSACTION_RECORD": _OF_TRANSACTIONS,
    "ABORT_TRANSACTION_RECORD": _OF_TRANSACTIONS,
}


def records_can_be_replayed(view: ClusterView) -> Iterator[Breach]:
    """Rule 49: one breach for all records of an epoch that are refused for one cause, of one subject; one for
    each checkpoint.
    """
    logs = LogsBelow(view.known.lineage)
    by_fault: defaultdict[tuple[int, str, str], list[ReplayRefusal]] = defaultdict(list)
    by_checkpoint: defaultdict[tuple[int, str], list[ReplayRefusal]] = defaultdict(list)
    for refusal in view.facts.replay_refusals:
        if not refusal.is_in_checkpoint:
            if _is_of_one_log(view, logs, refusal):
                by_fault[refusal.leader_epoch, refusal.cause, refusal.subject].append(refusal)
        elif refusal.cause not in _NOT_ONTO_CHECKPOINTS:
            by_checkpoint[refusal.base_end_offset, refusal.base_content_digest].append(refusal)
    for fault in sorted(by_fault):
        yield _breach(view, fault, sorted(by_fault[fault]))
    for snapshot in view.known.facts.snapshots:
        refused = by_checkpoint.get((snapshot.end_offset, snapshot.content_digest))
        if refused and snapshot.proves:
            yield _breach_by_checkpoint(view, snapshot, sorted(refused))


def _is_of_one_log(view: ClusterView, logs: LogsBelow, refusal: ReplayRefusal) -> bool:
    """Whether what was replayed up to the record is the log that ends with it, and of its checkpoint.

    Not where a batch may have been replayed at wrong offsets.
    """
    below = logs.log(refusal.leader_epoch, refusal.offset + 1)
    base = refusal.base_end_offset
    if not below or below[0].first_offset > base:
        return False
    if any(first <= refusal.offset and base < end for first, end in view.held_twice):
        return False
    if digest_of(log_from(below, base)) != refusal.log_digest:
        return False
    if not refusal.base_content_digest:
        return base == 0
    return refusal.cause not in _NOT_ONTO_CHECKPOINTS and _goes_on_from(view, below, refusal)


def _goes_on_from(view: ClusterView, below: Log, refusal: ReplayRefusal) -> bool:
    """Whether a log continues from the checkpoint: it holds its last record, or a replica held both."""
    base, digest = refusal.base_end_offset, refusal.base_content_digest
    first = log_from(below, base)[0]
    for snapshot in view.known.facts.snapshots:
        key = CheckpointKey(snapshot.end_offset, snapshot.leader_epoch, snapshot.content_digest)
        if (key.end_offset, key.content_digest) == (base, digest) and lies_on(key, below):
            if below[0].first_offset < base:
                return True
            holders = {(c.node_id, c.directory_id) for c in view.holding(first.leader_epoch, base)}
            if holders & set(snapshot.held_by):
                return True
    return False


def _breach(view: ClusterView, fault: tuple[int, str, str], refused: Sequence[ReplayRefusal]) -> Breach:
    first, last = refused[0], refused[-1]
    captures = view.holding(first.leader_epoch, first.offset)
    base = (
        f"checkpoint {first.base_end_offset} and the log from there on"
        if first.base_content_digest
        else "the log from offset 0 on"
    )
    return Breach(
        of_rule(49),
        "error",
        fault,
        f"{_what(first, refused)} {_effect(first)}",
        f"replayed from {base}, of which nothing is missing; the record is {first.commit_status}",
        first_offset=first.offset,
        end_offset=last.offset + 1,
        leader_epochs=(first.leader_epoch,),
        replicas=replicas_of(captures),
        captures=captures,
    )


def _breach_by_checkpoint(
    view: ClusterView, snapshot: SnapshotFacts, refused: Sequence[ReplayRefusal]
) -> Breach:
    first = refused[0]
    more = f", and {_others(refused)}" if len(refused) > 1 else ""
    name = checkpoint_name(snapshot)
    what = f"{name} holds a {first.type} that cannot be replayed{more}: {first.reason}."
    evidence = "the checkpoint is whole, and all of its records were read"
    return checkpoint_breach(view, 49, "error", snapshot, f"{what} {_effect(first)}", evidence)


def _what(first: ReplayRefusal, refused: Sequence[ReplayRefusal]) -> str:
    where = f"{first.type} at offset {first.offset} of epoch {first.leader_epoch}"
    more = f", as {_others(refused)} up to offset {refused[-1].offset}" if len(refused) > 1 else ""
    return f"{where} cannot be replayed{more}: {first.reason}."


def _others(refused: Sequence[ReplayRefusal]) -> str:
    return count(len(refused) - 1, "more record")


def _effect(first: ReplayRefusal) -> str:
    """What Kafka does: on a controller the fault ends the process, on a broker alone it is logged."""
    classes = _CLASSES[first.type]
    verb = "loads" if first.is_in_checkpoint else "replays"
    when = "" if first.commit_status == "committed" else " once it is committed"
    controllers = (
        f"Every controller of Kafka {RELEASE} that {verb} it terminates{when} ({classes.controller})"
    )
    if first.by_controllers_only:
        return f"{controllers}; brokers apply it ({classes.loader})."
    return f"{controllers}; a broker skips it and continues with other metadata ({classes.loader})."
