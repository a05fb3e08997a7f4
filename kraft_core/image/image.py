"""The cluster's metadata at one offset, made by replaying records (MetadataDelta, MetadataBatchLoader)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change, Key, MetadataRecord, RecordRefusedError, RefusedRecord
from kraft_core.image.kinds import BY_NAME, RULES
from kraft_core.image.tables import KINDS, Tables
from kraft_core.messages.control import CONTROL_RECORDS

_BEGIN = "BEGIN_TRANSACTION_RECORD"
_END = "END_TRANSACTION_RECORD"
_ABORT = "ABORT_TRANSACTION_RECORD"
_WITHOUT_EFFECT = frozenset({"NO_OP_RECORD", *(message.type_name for message in CONTROL_RECORDS.values())})


@dataclass(frozen=True, slots=True)
class Made:
    """A change that became visible: what stood there before, and the record that made it."""

    change: Change
    before: Any | None
    record: MetadataRecord


class Image:
    """Owns its tables; `apply` moves it on by one record.

    offset: that of the last record whose effect shows, -1 before any; leader_epoch and timestamp (ms) are
    that record's. While a metadata transaction is open (KIP-868) they stay at the record before it, and its
    records wait. A record that Kafka would reject changes nothing and is kept in `refusals`.
    """

    def __init__(self) -> None:
        self.tables = Tables()
        self.offset = -1
        self.leader_epoch = -1
        self.timestamp = -1
        self.refusals: list[RefusedRecord] = []
        self._transaction: list[MetadataRecord] | None = None

    @classmethod
    def of_snapshot(
        cls, records: Iterable[MetadataRecord], end_offset: int, leader_epoch: int, timestamp: int
    ) -> "Image":
        """The image that a checkpoint holds; end_offset is exclusive, timestamp its last contained one (ms).

        The records' own offsets number places in the file and mean nothing here.
        """
        image = cls()
        for record in records:
            image.apply(record)
        image._transaction = None
        image.offset = end_offset - 1
        image.leader_epoch = leader_epoch
        image.timestamp = timestamp
        return image

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def apply(self, record: MetadataRecord) -> list[Made]:
        """Replays the next record of the log and returns what became visible by it, one entry a thing."""
        if record.type == _BEGIN:
            made = self._begin(record)
        elif record.type in (_END, _ABORT):
            made = self._finish(record)
        elif self._transaction is not None:
            self._transaction.append(record)
            made = []
        else:
            made = self._replay(record)
        if self._transaction is None:
            self.offset, self.leader_epoch = record.offset, record.leader_epoch
            self.timestamp = record.timestamp
        return made

    def _begin(self, record: MetadataRecord) -> list[Made]:
        if self._transaction is not None:
            self._refuse(record, "a metadata transaction is open already")
        else:
            self._transaction = []
        return []

    def _finish(self, record: MetadataRecord) -> list[Made]:
        if self._transaction is None:
            self._refuse(record, "no metadata transaction is open")
            return []
        waiting, self._transaction = self._transaction, None
        if record.type == _ABORT:
            return []
        return _net(made for held in waiting for made in self._replay(held))

    def _replay(self, record: MetadataRecord) -> list[Made]:
        if record.type in _WITHOUT_EFFECT:
            return []
        rule = RULES.get(record.type)
        if rule is None or record.value is None:
            self._refuse(record, f"no rule to replay {record.type}" if rule is None else "unreadable value")
            return []
        try:
            # All changes are known before the first is made: a refused record changes nothing.
            changes = list(rule(self.tables, record.value))
        except RecordRefusedError as refused:
            self._refuse(record, str(refused))
            return []
        return [self._make(change, record) for change in changes if self._changes(change)]

    def _changes(self, change: Change) -> bool:
        return change.value is not None or self.tables.get(change.kind, change.key) is not None

    def _make(self, change: Change, record: MetadataRecord) -> Made:
        before = self.tables.get(change.kind, change.key)
        self.tables.put(change)
        return Made(change, before, record)

    def _refuse(self, record: MetadataRecord, reason: str) -> None:
        self.refusals.append(RefusedRecord(record.offset, record.type, reason))

    def to_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records that make this image: type, and fields of its newest version (ImageWriter)."""
        for kind in KINDS:
            for _, value in self.tables.items(kind):
                yield BY_NAME[kind].to_record(value)

    def copy(self) -> "Image":
        """A second image at the same offset, moved on by itself; an open transaction stays open in both."""
        twin = Image()
        twin.tables = self.tables.copy()
        twin.offset, twin.leader_epoch, twin.timestamp = self.offset, self.leader_epoch, self.timestamp
        twin.refusals = list(self.refusals)
        twin._transaction = None if self._transaction is None else list(self._transaction)
        return twin


def _net(steps: Iterable[Made]) -> list[Made]:
    """What a transaction did to each thing, as if at once; what it made and took away leaves no trace."""
    first: dict[tuple[str, Key], Any] = {}
    last: dict[tuple[str, Key], Made] = {}
    for made in steps:
        thing = (made.change.kind, made.change.key)
        first.setdefault(thing, made.before)
        last[thing] = made
    return [
        Made(made.change, first[thing], made.record)
        for thing, made in last.items()
        if made.change.value is not None or first[thing] is not None
    ]
