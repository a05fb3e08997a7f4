"""The voters and kraft.version that differ between two moments, for kraftlake diff.

They are in control records, which are not part of the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.diff_ways import counted_ways, difference_data, way_of
from jobs.time_travel.opened_moment import OpenedMoment
from jobs.time_travel.shell_quorum import endpoint_words, one_voter_data
from jobs.time_travel.source import SourcedVoterSet, voters_at
from kraft_core.messages.releases import KRAFT_VERSION
from kraft_core.raft.voters import ReplicaKey, Voter


@dataclass(frozen=True, slots=True)
class VoterDifference:
    """A voter in the first set and in the second; None: it is in none. columns: in which the two differ."""

    before: Voter | None
    after: Voter | None
    columns: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        voter = self.after or self.before
        assert voter is not None
        directory = f" ({voter.key.directory_id})" if voter.key.directory_id else ""
        return f"voter {voter.key.id}{directory}"


@dataclass(frozen=True, slots=True)
class QuorumDifferences:
    """levels: kraft.version before and after, if it differs. unknown: moments whose voters are not known."""

    voters: tuple[VoterDifference, ...] = ()
    levels: tuple[int, int] | None = None
    unknown: tuple[OpenedMoment, ...] = ()

    def lines(self, most: int) -> Iterator[str]:
        """most: how many voters are listed, 0: all. All are counted."""
        yield from dict.fromkeys(f"voters: {unknown_words(at)} of {at.path}" for at in self.unknown)
        if self.levels is not None:
            yield f"{KRAFT_VERSION}: {self.levels[0]} -> {self.levels[1]}"
        if self.voters:
            yield f"voters: {counted_ways(way_of(each.before, each.after) for each in self.voters)}"
        for each in self.voters[: most or None]:
            yield f"  {each.subject}: {_change_words(each)}"

    @property
    def data(self) -> Iterator[dict[str, Any]]:
        """As those of the image in the JSON."""
        if self.levels is not None:
            before, after = ({"level": level} for level in self.levels)
            yield difference_data("kraft_version", KRAFT_VERSION, ["level"], before, after)
        for each in self.voters:
            before, after = (None if v is None else one_voter_data(v) for v in (each.before, each.after))
            yield difference_data("voters", each.subject, list(each.columns) or None, before, after)


def quorum_differences(before: OpenedMoment, after: OpenedMoment) -> QuorumDifferences:
    """How the voter sets in force at two moments differ. Of a static set, only the ids are in the log."""
    old, new = (voters_at(at.source, at.image.offset) for at in (before, after))
    if old is None or new is None:
        both = ((before, old), (after, new))
        return QuorumDifferences(unknown=tuple(at for at, found in both if found is None))
    is_static = old.voters is None or new.voters is None
    pairs = _pairs(_voters(old), _voters(new))
    found = (VoterDifference(a, b, _columns(a, b, is_static)) for a, b in pairs)
    levels = (0 if old.voters is None else 1, 0 if new.voters is None else 1)
    return QuorumDifferences(
        tuple(each for each in found if each.columns or None in (each.before, each.after)),
        None if levels[0] == levels[1] else levels,
    )


def unknown_words(at: OpenedMoment) -> str:
    return f"not known who could vote at offset {at.image.offset}"


def _voters(one: SourcedVoterSet) -> Sequence[Voter]:
    return tuple(one.voters) if one.voters is not None else [Voter(ReplicaKey(id_)) for id_ in one.ids]


def _pairs(before: Sequence[Voter], after: Sequence[Voter]) -> list[tuple[Voter | None, Voter | None]]:
    """Each voter with itself in the other set, by id: of two directories of an id, each is a voter.

    An entry without a directory id matches any of that id.
    """
    old, new = {v.key: v for v in before}, {v.key: v for v in after}
    pairs: list[tuple[Voter | None, Voter | None]] = [(old.pop(k), new.pop(k)) for k in {*old} & {*new}]
    for key in list(old):
        matching = (k for k in new if k.id == key.id and None in (k.directory_id, key.directory_id))
        if (other := next(matching, None)) is not None:
            pairs.append((old.pop(key), new.pop(other)))
    pairs += [(voter, None) for voter in old.values()]
    pairs += [(None, voter) for voter in new.values()]
    return sorted(pairs, key=lambda pair: next(v.key for v in pair if v is not None))


def _columns(before: Voter | None, after: Voter | None, is_static: bool) -> tuple[str, ...]:
    if before is None or after is None:
        return ()
    old, new = one_voter_data(before), one_voter_data(after)
    names = ["directory_id"] if is_static else list(old)
    return tuple(name for name in names if old[name] != new[name])


def _change_words(each: VoterDifference) -> str:
    way = way_of(each.before, each.after)
    if each.after is None or (each.before is None and not each.after.endpoints):
        return way
    if each.before is None:
        return f"{way}: {_words('endpoints', each.after)}, {_words('versions', each.after)}"
    names = list(dict.fromkeys("versions" if "version" in column else column for column in each.columns))
    return ", ".join(_step(name, each.before, each.after) for name in names)


def _step(name: str, before: Voter, after: Voter) -> str:
    label = "directory id " if name == "directory_id" else ""
    return f"{label}{_words(name, before) or 'none'} -> {_words(name, after) or 'none'}"


def _words(name: str, voter: Voter) -> str:
    if name == "directory_id":
        return voter.key.directory_id or ""
    if name == "endpoints":
        return endpoint_words(voter)
    return f"{KRAFT_VERSION} {voter.min_supported_version} to {voter.max_supported_version}"
