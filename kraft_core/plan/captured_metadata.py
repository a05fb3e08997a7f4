"""The cluster's metadata by the log of the captured leader: what its controller decides from.

A controller decides by its whole log, committed or not. What is not proven committed may be lost with the
leader, so each answer is also computed from the committed part and, where it is SAFE, from the states between
the two (kraft_core.plan.states_between).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kraft_core.format.controller_dir import ControllerDir
from kraft_core.image.change import Change
from kraft_core.image.image import Image
from kraft_core.image.replay_path import ReplayRange, Step
from kraft_core.image.replica import CapturedReplica, OutOfReachError
from kraft_core.plan.captured_quorum import CapturedQuorum

# A type of record, as kafka-dump-log names it, and a version.
RecordKind = tuple[str, int]


@dataclass(frozen=True, slots=True)
class WrittenRecords:
    """The records of one type and version that a log holds."""

    kind: RecordKind
    count: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class CapturedMetadata:
    """The image at the end of the leader's log, and at the end of what is proven committed of it.

    image: None if it is not known at all. committed: None if nothing shows it. gap: why the image may lack
    something that the leader knew, None if it does not. replay: of the log; None where none can be replayed.
    unproven: what each batch above the committed part changes, in the order of the log.
    """

    quorum: CapturedQuorum
    image: Image | None
    committed: Image | None
    gap: str | None
    replay: Replay | None = None
    unproven: Iterable[Sequence[Change]] = ()

    def written(self, kinds: Collection[RecordKind]) -> list[WrittenRecords]:
        """What the captured log holds of some kinds of records; a checkpoint does not show their offsets."""
        offsets: defaultdict[RecordKind, list[int]] = defaultdict(list)
        for kind, offset in self.replay.records_of(kinds) if self.replay is not None else ():
            offsets[kind].append(offset)
        return [WrittenRecords(kind, len(offsets[kind]), min(offsets[kind])) for kind in sorted(offsets)]

    @property
    def gaps(self) -> tuple[str, ...]:
        """Everything for which the leader's metadata is not known."""
        found = (self.quorum.leader_gap, self.gap)
        return tuple(dict.fromkeys(words for words in found if words is not None))

    @property
    def committed_kraft_version(self) -> int | None:
        """kraft.version at the end of what is proven committed; None where the captures do not show it."""
        end = proven_end(self.quorum) or 0
        epochs = [epoch for epoch, start in self.quorum.log_epochs.entries if start < end]
        return self.quorum.known.in_force.at(max(epochs), end - 1).kraft_version if epochs else None


class Replay(Protocol):
    """The metadata at an offset (inclusive), and what of it could not be read, in words.

    image_at raises OutOfReachError. changes_from: what each batch between two offsets (both inclusive)
    changes in the image before them. records_of: the records of some kinds in the log, each with its offset.
    """

    @property
    def notes(self) -> list[str]: ...
    def image_at(self, offset: int | None = None) -> Image: ...
    def changes_from(self, image: Image, first: int, last: int) -> Iterable[Sequence[Change]]: ...
    def records_of(self, kinds: Collection[RecordKind]) -> Iterable[tuple[RecordKind, int]]: ...


def metadata_of(quorum: CapturedQuorum, directories: Mapping[str, ControllerDir]) -> CapturedMetadata:
    """By the captured directories, by the ids of their captures."""
    directory = directories.get(_source_of(quorum) or "")
    if directory is None:
        return CapturedMetadata(quorum, None, None, "no captured log of the leader can be replayed")
    replica = CapturedReplica.of_directory(directory)
    return read_metadata(quorum, replica, replica.unused)


def read_metadata(quorum: CapturedQuorum, replay: Replay, unused: Collection[str] = ()) -> CapturedMetadata:
    """The metadata at the quorum's log end. unused: notes of the replay about files that it does not need."""
    image = _image_at(replay, quorum.log_end - 1)
    end = proven_end(quorum)
    committed = None if end is None else _image_at(replay, end - 1)
    unproven: Iterable[Sequence[Change]] = ()
    if committed is not None and end is not None:
        unproven = _ChangesAbove(replay, committed, end, quorum.log_end - 1)
    notes = (note for note in replay.notes if note not in unused)
    return CapturedMetadata(quorum, image, committed, gap_of(image, notes), replay, unproven)


@dataclass(frozen=True, slots=True)
class _ChangesAbove:
    """Read whenever they are asked for: there may be millions, and only what is SAFE depends on them."""

    replay: Replay
    image: Image
    first: int
    last: int

    def __iter__(self) -> Iterator[Sequence[Change]]:
        return iter(self.replay.changes_from(self.image, self.first, self.last))


def gap_of(image: Image | None, notes: Iterable[str]) -> str | None:
    """Why an image may lack something; notes: what could not be read, in words."""
    found = list(notes)
    if image is None:
        found.append("the metadata at the end of the leader's log cannot be replayed")
    elif image.in_transaction:
        found.append("the log ends inside a metadata transaction")
    elif (refused := _refused_in(image)) is not None:
        found.append(refused)
    return found[0] if found else None


def _refused_in(image: Image) -> str | None:
    """The first record that could not be replayed, in words, None if all could."""
    refused = next(iter(image.refusals + image.controller_refusals), None)
    if refused is None:
        return None
    return f"{refused.type} at offset {refused.offset} cannot be replayed: {refused.reason}"


def other_log(quorum: CapturedQuorum, steps: Iterable[Step]) -> str | None:
    """Why the metadata on a replay path is not that of the leader's log, in words; None where it is."""
    for step in steps:
        first, end = max(step.first_offset, quorum.log_start), min(step.end_offset, quorum.log_end)
        if isinstance(step, ReplayRange) and first < end:
            held = {quorum.log_epochs.epoch_at(offset) for offset in (first, end - 1)}
            if held != {step.leader_epoch}:
                return (
                    f"the metadata of epoch {step.leader_epoch} at offset {first} is not of the leader's log"
                )
    return None


def proven_end(quorum: CapturedQuorum) -> int | None:
    """Up to where (exclusive) the log is proven committed, None if nothing of it is."""
    for epoch in sorted(quorum.known.commit.prefixes, reverse=True):
        if epoch <= quorum.epoch:
            return min(quorum.known.commit.prefixes[epoch].end_offset, quorum.log_end)
    return None


def _image_at(replay: Replay, offset: int) -> Image | None:
    try:
        return replay.image_at(offset)
    except OutOfReachError:
        return None


def _source_of(quorum: CapturedQuorum) -> str | None:
    """The id of the capture whose log the quorum was read from."""
    newest = [captures[-1] for captures in quorum.known.holdings.captures.values()]
    ends = [c for c in newest if c.epoch_ranges and c.epoch_ranges[-1].end_offset == quorum.log_end]
    ends.sort(key=lambda c: (c.epoch_ranges[-1].leader_epoch, c.replica == quorum.leader))
    return ends[-1].capture_id if ends else None
