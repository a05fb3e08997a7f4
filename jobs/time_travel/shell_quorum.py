"""What the shell tells of the quorum itself, which the image leaves out: voter sets and leader epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.time_travel.moment import iso
from jobs.time_travel.source import Epoch, SetOfVoters
from kraft_core.image.replica import CapturedReplica
from kraft_core.messages.control import CONTROL_RECORDS, KRAFT_VOTERS, LEADER_CHANGE
from kraft_core.raft.voters import Voter, VoterSet, change_between

_VOTERS = CONTROL_RECORDS[KRAFT_VOTERS].type_name
_LEADER_CHANGE = CONTROL_RECORDS[LEADER_CHANGE].type_name


def voter_sets(replica: CapturedReplica) -> list[SetOfVoters]:
    """Every set that the log and its checkpoints name, by offset; committed or not is not said here."""
    records = [record for record in replica.control_records() if record.value is not None]
    sets = [
        SetOfVoters(record.offset, record.leader_epoch, record.timestamp, "record", voters, voters.ids)
        for record in records
        if record.type == _VOTERS and record.value is not None
        for voters in [VoterSet.from_record(record.value)]
    ]
    known = sorted(sets, key=lambda one: one.offset)
    for one in _of_checkpoints(replica):
        before = [earlier for earlier in known if earlier.offset <= one.offset]
        if not before or before[-1].voters != one.voters:
            known = sorted([*known, one], key=lambda each: each.offset)
    return known or list(_static(replica))


def _of_checkpoints(replica: CapturedReplica) -> Iterator[SetOfVoters]:
    for snapshot_id, record in replica.checkpoint_controls():
        if record.type == _VOTERS and record.value is not None:
            voters = VoterSet.from_record(record.value)
            source = "snapshot" if snapshot_id.end_offset else "bootstrap"
            yield SetOfVoters(
                snapshot_id.end_offset - 1, snapshot_id.leader_epoch, None, source, voters, voters.ids
            )


def _static(replica: CapturedReplica) -> Iterator[SetOfVoters]:
    ids: tuple[int, ...] = ()
    for epoch in epochs(replica):
        if epoch.voters != ids:
            ids = epoch.voters
            yield SetOfVoters(epoch.start_offset, epoch.leader_epoch, epoch.timestamp, "static", None, ids)


def epochs(replica: CapturedReplica) -> list[Epoch]:
    """The epochs whose LEADER_CHANGE the log still holds."""
    told: list[Epoch] = []
    for record in replica.control_records():
        if record.type == _LEADER_CHANGE and record.value is not None:
            before = replica.append_before(record.offset)
            waited = None if before is None else record.timestamp - before
            told.append(
                Epoch(
                    leader_epoch=record.leader_epoch,
                    start_offset=record.offset,
                    leader_id=record.value["leaderId"],
                    timestamp=record.timestamp,
                    voters=_ids(record.value["voters"]),
                    granting_voters=_ids(record.value["grantingVoters"]),
                    leaderless_ms=waited if waited is not None and waited >= 0 else None,
                )
            )
    return told


def voter_lines(sets: list[SetOfVoters], position: int) -> Iterator[str]:
    """A line a set; a star before the one in force at the position (an offset)."""
    in_force = max((one.offset for one in sets if one.offset <= position), default=None)
    before: SetOfVoters | None = None
    for one in sets:
        star = "*" if one.offset == in_force else " "
        head = f"{star} offset {one.offset}, epoch {one.leader_epoch}, {iso(one.timestamp)}, {one.source}"
        yield f"{head}: {', '.join(map(_voter, one.voters or ())) or _numbers(one.ids)}{_step(before, one)}"
        before = one


def epoch_lines(told: list[Epoch]) -> Iterator[str]:
    for epoch in told:
        waited = "" if epoch.leaderless_ms is None else f", {epoch.leaderless_ms} ms without a leader before"
        yield (
            f"epoch {epoch.leader_epoch}: leader {epoch.leader_id} from offset {epoch.start_offset}"
            f", {iso(epoch.timestamp)}, elected by {_numbers(epoch.granting_voters)}"
            f" of {_numbers(epoch.voters)}{waited}"
        )


def voter_data(sets: list[SetOfVoters]) -> list[dict[str, Any]]:
    return [
        {
            "offset": one.offset,
            "leader_epoch": one.leader_epoch,
            "timestamp": one.timestamp,
            "source": one.source,
            "voters": [_voter_data(voter) for voter in one.voters or ()] or [{"id": id_} for id_ in one.ids],
        }
        for one in sets
    ]


def epoch_data(told: list[Epoch]) -> list[dict[str, Any]]:
    return [
        {
            "leader_epoch": epoch.leader_epoch,
            "start_offset": epoch.start_offset,
            "leader_id": epoch.leader_id,
            "elected_at": epoch.timestamp,
            "voters": list(epoch.voters),
            "granting_voters": list(epoch.granting_voters),
            "leaderless_ms": epoch.leaderless_ms,
        }
        for epoch in told
    ]


def _ids(voters: list[dict[str, Any]]) -> tuple[int, ...]:
    return tuple(voter["voterId"] for voter in voters)


def _numbers(ids: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, ids)) + "}"


def _voter(voter: Voter) -> str:
    places = " ".join(f"{end.name}://{end.host}:{end.port}" for end in voter.endpoints)
    directory = f" ({voter.key.directory_id})" if voter.key.directory_id else ""
    return f"{voter.key.id}{directory} {places}".rstrip()


def _voter_data(voter: Voter) -> dict[str, Any]:
    return {
        "id": voter.key.id,
        "directory_id": voter.key.directory_id,
        "endpoints": [{"name": end.name, "host": end.host, "port": end.port} for end in voter.endpoints],
        "min_supported_kraft_version": voter.min_supported_version,
        "max_supported_kraft_version": voter.max_supported_version,
    }


def _step(before: SetOfVoters | None, after: SetOfVoters) -> str:
    if before is None or before.voters is None or after.voters is None:
        return ""
    change = change_between(before.voters, after.voters)
    steps = [
        f"{word} {', '.join(str(voter.key.id) for voter in voters)}"
        for word, voters in (
            ("added", change.added),
            ("removed", change.removed),
            ("updated", change.updated),
        )
        if voters
    ]
    return f" ({'; '.join(steps)})" if steps else ""
