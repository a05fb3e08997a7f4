"""Where Kafka puts the replicas of new partitions: striped over racks and brokers (StripedReplicaPlacer).

The placer keeps one random generator for the life of a controller, seeded by nothing that is logged: a given
seed shows one placement that Kafka may choose, and every rule that all of them keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.java import Chooser, hash_map_order, string_hash
from kraft_core.topic_control.requests import RequestRefusedError

NO_MEMORY = 1 << 24
"""Partitions of one topic whose placement needs gigabytes: a controller of 4.3 gives up its leadership."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A registered broker that takes new replicas. rack None: it has none, which is a rack, too."""

    broker_id: int
    rack: str | None
    fenced: bool


class PlacementRefusedError(Exception):
    """Kafka's InvalidReplicationFactorException, with its text."""


def place(
    brokers: Sequence[UsableBroker],
    partitions: int,
    replicas: int,
    chooser: Chooser,
    most: int | None = None,
) -> list[tuple[int, ...]]:
    """The replicas of each partition, or of the first `most`; the leader that Kafka prefers comes first.

    The generator moves on even where this is refused. Raises PlacementRefusedError, and RequestRefusedError
    where Kafka, which then makes room for all partitions, has no memory for them.
    """
    racks = _Racks(brokers, chooser)
    if replicas <= 0:
        raise PlacementRefusedError(
            f"Invalid replication factor {replicas}: the replication factor must be positive."
        )
    if all(broker.fenced for broker in brokers):
        raise PlacementRefusedError(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replicas > len(brokers):
        raise PlacementRefusedError(
            f"The target replication factor of {replicas} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    if partitions > NO_MEMORY:
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return [
        racks.next_partition(replicas) for _ in range(partitions if most is None else min(partitions, most))
    ]


@dataclass(slots=True)
class _Ring:
    """Brokers of one rack and state. Each round begins one broker further than the round before."""

    brokers: list[int] = field(default_factory=list[int])
    start: int = 0
    taken: int = 0
    round: int = 0

    def begin(self, chooser: Chooser) -> None:
        if self.brokers:
            self.brokers.sort()
            self.start = chooser.next_int(len(self.brokers))

    def take(self, round_: int) -> int | None:
        """The next broker of the round, None if each was taken."""
        if not self.brokers:
            return None
        if round_ != self.round:
            self.round, self.taken = round_, 0
            self.start = (self.start + 1) % len(self.brokers)
        if self.taken == len(self.brokers):
            return None
        self.taken += 1
        return self.brokers[(self.start + self.taken - 1) % len(self.brokers)]


@dataclass(slots=True)
class _Rack:
    unfenced: _Ring = field(default_factory=_Ring)
    fenced: _Ring = field(default_factory=_Ring)

    def take(self, round_: int) -> int | None:
        found = self.unfenced.take(round_)
        return found if found is not None else self.fenced.take(round_)


class _Racks:
    """The racks of one request, in the order in which partitions visit them."""

    def __init__(self, brokers: Sequence[UsableBroker], chooser: Chooser) -> None:
        self._chooser = chooser
        self._racks: dict[str | None, _Rack] = {}
        for broker in brokers:
            rack = self._racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.broker_id)
        # The order in which the generator is asked is that of a HashMap.
        self._hashed = [self._racks[name] for name in hash_map_order(self._racks, _rack_hash)]
        for rack in self._hashed:
            rack.fenced.begin(chooser)
            rack.unfenced.begin(chooser)
        # Names compare by UTF-16 code units; no name comes first.
        self._names = sorted(
            self._racks, key=lambda name: (name is not None, (name or "").encode("utf-16-be"))
        )
        self._unfenced = sum(not broker.fenced for broker in brokers)
        self._round = 0
        self._start = chooser.next_int(len(self._names)) if self._names else 0

    def next_partition(self, replicas: int) -> tuple[int, ...]:
        if self._round == self._unfenced and self._unfenced > 1:
            self._shuffle()
        at = self._start % len(self._names)
        first, leader = self._leader(at)
        chosen = [leader]
        skips_first = True
        while len(chosen) < replicas:
            # The leader's rack has given its broker of the first turn.
            if skips_first and at == first:
                skips_first = False
            else:
                taken = self._racks[self._names[at]].take(self._round)
                chosen += [taken] if taken is not None else []
            at = (at + 1) % len(self._names)
        self._round += 1
        self._start = self._start % len(self._names) + 1
        return tuple(chosen)

    def _leader(self, at: int) -> tuple[int, int]:
        """The first rack from there on with an unfenced broker, and that broker."""
        while True:
            found = self._racks[self._names[at]].unfenced.take(self._round)
            if found is not None:
                return at, found
            at = (at + 1) % len(self._names)

    def _shuffle(self) -> None:
        self._round = 0
        self._chooser.shuffle(self._names)
        for rack in self._hashed:
            self._chooser.shuffle(rack.fenced.brokers)
            self._chooser.shuffle(rack.unfenced.brokers)


def _rack_hash(rack: str | None) -> int:
    """Optional.hashCode."""
    return 0 if rack is None else string_hash(rack)
