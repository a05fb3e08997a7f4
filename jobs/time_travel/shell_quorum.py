"""The output of the shell's commands voters and epochs, which are not part of the image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobs.time_travel.moment import iso
from jobs.time_travel.source import Epoch, SourcedVoterSet
from kraft_core.raft.voters import Voter, change_between


def voter_lines(
    sets: list[SourcedVoterSet], in_force: SourcedVoterSet | None, position: int
) -> Iterator[str]:
    """One line per set; a star marks the one in force at the offset `position`, None if that is not known.

    Sets that are only reported come last: their place in the log is not known.
    """
    reported = [one for one in sets if one.is_reported]
    sets = [one for one in sets if not one.is_reported]
    if in_force is None:
        yield f"undecided: the captures do not show who could vote at offset {position}; known elsewhere:"
    before: SourcedVoterSet | None = None
    for one in sets:
        star = "*" if one == in_force else " "
        since = "" if one.is_exact else "at or before "
        head = (
            f"{star} {since}offset {one.offset}, epoch {one.leader_epoch}, {iso(one.timestamp)}, {one.source}"
        )
        yield f"{head}: {', '.join(map(_voter, one.voters or ())) or _numbers(one.ids)}{_step(before, one)}"
        before = one
    for one in reported:
        when = "" if one.timestamp is None else f" at or before {iso(one.timestamp)}"
        yield f"  reported in epoch {one.leader_epoch}{when}, {one.source}, not proven: {_numbers(one.ids)}"


def epoch_lines(epochs: list[Epoch]) -> Iterator[str]:
    for epoch in epochs:
        if not epoch.is_exact:
            when = "" if epoch.timestamp is None else f" at or before {iso(epoch.timestamp)}"
            yield f"epoch {epoch.leader_epoch}: leader {epoch.leader_id}{when}, {epoch.source}, not proven"
            continue
        waited = (
            ""
            if epoch.leaderless_ms is None
            else f", at most {epoch.leaderless_ms} ms without a leader before"
        )
        yield (
            f"epoch {epoch.leader_epoch}: leader {epoch.leader_id} from offset {epoch.start_offset}"
            f", {iso(epoch.timestamp)}, elected by {_numbers(epoch.granting_voters)}"
            f" of {_numbers(epoch.voters)}{waited}"
        )


def voter_data(sets: list[SourcedVoterSet]) -> list[dict[str, Any]]:
    return [
        {
            "offset": one.offset,
            "leader_epoch": one.leader_epoch,
            "timestamp": one.timestamp,
            "is_exact": one.is_exact,
            "source": one.source,
            "voters": [one_voter_data(voter) for voter in one.voters or ()]
            or [{"id": id_} for id_ in one.ids],
        }
        for one in sets
    ]


def epoch_data(epochs: list[Epoch]) -> list[dict[str, Any]]:
    return [
        {
            "leader_epoch": epoch.leader_epoch,
            "start_offset": epoch.start_offset,
            "leader_id": epoch.leader_id,
            "source": epoch.source,
            "is_exact": epoch.is_exact,
            "elected_at": epoch.timestamp,
            "voters": list(epoch.voters),
            "granting_voters": list(epoch.granting_voters),
            "leaderless_ms": epoch.leaderless_ms,
        }
        for epoch in epochs
    ]


def _numbers(ids: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, ids)) + "}"


def endpoint_words(voter: Voter) -> str:
    return " ".join(map(str, voter.endpoints))


def _voter(voter: Voter) -> str:
    places = endpoint_words(voter)
    directory = f" ({voter.key.directory_id})" if voter.key.directory_id else ""
    return f"{voter.key.id}{directory} {places}".rstrip()


def one_voter_data(voter: Voter) -> dict[str, Any]:
    return {
        "id": voter.key.id,
        "directory_id": voter.key.directory_id,
        "endpoints": [{"name": end.name, "host": end.host, "port": end.port} for end in voter.endpoints],
        "min_supported_kraft_version": voter.min_supported_version,
        "max_supported_kraft_version": voter.max_supported_version,
    }


def _step(before: SourcedVoterSet | None, after: SourcedVoterSet) -> str:
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
