"""Directories that may have replaced a static voter's, after an upgrade of kraft.version (KIP-853).

A static voter is known by its id alone. The upgrade to kraft.version 1 names its directory; from then on a
disk that replaces it, formatted for a dynamic or a static quorum, is another replica, and its log may not
have reached the upgrade yet. So a directory is the static voter's only if the captured upgrade names it;
where none is captured, if its quorum-state has static voters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kraft_core.evidence.facts import Capture, CapturedControlRecord
from kraft_core.raft.voters import ReplicaKey, VoterSet


def upgraded_voters(records: Iterable[CapturedControlRecord]) -> frozenset[ReplicaKey]:
    """The voters that captured upgrades of kraft.version name.

    A leader that begins its epoch also writes the version and the voters, below its LEADER_CHANGE.
    """
    found = list(records)
    upgrades = {
        (record.leader_epoch, record.offset)
        for record in found
        if record.type == "KRaftVersion" and record.offset == record.batch_base_offset
    }
    return frozenset(
        key
        for record in found
        if record.type == "KRaftVoters"
        and record.value is not None
        and (record.leader_epoch, record.batch_base_offset) in upgrades
        for key in VoterSet.from_record(record.value).keys
    )


def on_new_disks(captures: Iterable[Capture], upgraded: frozenset[ReplicaKey]) -> frozenset[str]:
    """The ids of captures that may be of such a directory. upgraded: the voters that the upgrade names."""
    by_directory: defaultdict[tuple[ReplicaKey, str | None], list[Capture]] = defaultdict(list)
    for capture in captures:
        unnamed = capture.capture_id if capture.replica.directory_id is None else None
        by_directory[capture.replica, unnamed].append(capture)
    ids = {key.id for key in upgraded}
    return frozenset(
        capture.capture_id
        for (replica, _), copies in by_directory.items()
        if (replica not in upgraded if replica.id in ids else not any(map(_is_static, copies)))
        for capture in copies
    )


def _is_static(capture: Capture) -> bool:
    """Whether its quorum-state has static voters: version 1 has the directory voted for instead."""
    is_dynamic = capture.voted_directory_id is not None or capture.current_voters == ()
    return capture.quorum_state_epoch is not None and not is_dynamic
