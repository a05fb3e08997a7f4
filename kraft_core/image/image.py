"""The cluster's metadata at one offset, by replaying records (MetadataDelta, MetadataBatchLoader)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change, Key, MetadataRecord, RecordRefusedError, Refusal, RefusedRecord
from kraft_core.image.kinds import BY_NAME, CONTROLLER_CHECKS, RULES
from kraft_core.image.refusals import NO_TRANSACTION, OPEN_TRANSACTION
from kraft_core.image.tables import KINDS, Tables
from kraft_core.messages.control import CONTROL_RECORDS

_BEGIN = "BEGIN_TRANSACTION_RECORD"
_END = "END_TRANSACTION_RECORD"
_ABORT = "ABORT_TRANSACTION_RECORD"
_MARKERS = frozenset({_BEGIN, _END, _ABORT})
_WITHOUT_EFFECT = frozenset({"NO_OP_RECORD", *(message.type_name for message in CONTROL_RECORDS.values())})


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change that became visible, the value before it, and its record."""

    change: Change
    before: Any | None
    record: MetadataRecord


class Image:
    """Owns its tables; `apply` replays one record.

    offset, leader_epoch, timestamp (ms): of the last record whose effect is visible; offset -1 before any.
    While a metadata transaction is open (KIP-868) they are those of the record before it, and its records are
    held back. A record that Kafka's brokers reject changes nothing and is added to `refusals`; one that takes
    effect on brokers, but that controllers refuse, is added to `controller_refusals`. tables: what there is
    before any record, by default nothing.
    """

    def __init__(self, tables: Tables | None = None) -> None:
        self.tables = Tables() if tables is None else tables
        self.offset = -1
        self.leader_epoch = -1
        self.timestamp = -1
        self.refusals: list[RefusedRecord] = []
        self.controller_refusals: list[RefusedRecord] = []
        self._transaction: list[MetadataRecord] | None = None

    @classmethod
    def of_snapshot(
        cls, records: Iterable[MetadataRecord], end_offset: int, leader_epoch: int, timestamp: int
    ) -> "Image":
        """The image in a checkpoint; end_offset is exclusive, timestamp its last contained one (ms).

        The records' own offsets are positions in the file and are ignored.
        """
        image = cls()
        for record in records:
            image.pass_over(record)
        image._transaction = None
        image.offset = end_offset - 1
        image.leader_epoch = leader_epoch
        image.timestamp = timestamp
        return image

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def leave_open(self) -> None:
        """States that a metadata transaction is open, of which nothing is visible or held."""
        self._transaction = []

    def apply(self, record: MetadataRecord) -> list[AppliedChange]:
        """Replays the next record of the log; returns the changes that became visible, one per thing."""
        if record.type in _MARKERS or self._transaction is not None:
            made = self._in_transaction(record)
        else:
            made = self._replay(record)
        self._reach(record)
        return made

    def pass_over(self, record: MetadataRecord) -> None:
        """As apply, for whoever does not ask for the changes: it takes less time."""
        if record.type in _MARKERS or self._transaction is not None:
            self._in_transaction(record)
        else:
            for change in self._changes_of(record):
                self.tables.put(change)
        self._reach(record)

    def _reach(self, record: MetadataRecord) -> None:
        if self._transaction is None:
            self.offset, self.leader_epoch = record.offset, record.leader_epoch
            self.timestamp = record.timestamp

    def _in_transaction(self, record: MetadataRecord) -> list[AppliedChange]:
        """Of a record that begins or ends a transaction, or waits in one, what became visible."""
        if record.type == _BEGIN:
            self._begin(record)
            return []
        if record.type in _MARKERS or self._transaction is None:
            return self._finish(record)
        self._transaction.append(record)
        return []

    def refused_in_open(self) -> tuple[list[RefusedRecord], list[RefusedRecord]]:
        """What is refused of the open transaction so far: as refusals and controller_refusals."""
        ahead = self.with_open()
        return ahead.refusals, ahead.controller_refusals

    def with_open(self) -> "Image":
        """The image with the effect of the open transaction so far, and what is refused of it.

        Kafka replays each record as it comes, whatever becomes of the transaction (QuorumController,
        MetadataBatchLoader).
        """
        ahead = self.copy()
        ahead.refusals, ahead.controller_refusals, ahead._transaction = [], [], None
        for held in self._transaction or ():
            ahead._replay(held)
        return ahead

    def _begin(self, record: MetadataRecord) -> None:
        if self._transaction is not None:
            reason = "a metadata transaction is already open"
            self._refuse(record, Refusal(OPEN_TRANSACTION, "transaction", reason))
        else:
            self._transaction = []

    def _finish(self, record: MetadataRecord) -> list[AppliedChange]:
        if self._transaction is None:
            self._refuse(record, Refusal(NO_TRANSACTION, "transaction", "no metadata transaction is open"))
            return []
        if record.type == _ABORT:
            refused, refused_by_controllers = self.refused_in_open()
            self.refusals += refused
            self.controller_refusals += refused_by_controllers
        waiting, self._transaction = self._transaction, None
        if record.type == _ABORT:
            return []
        return net(made for held in waiting for made in self._replay(held))

    def _replay(self, record: MetadataRecord) -> list[AppliedChange]:
        return [self._make(change, record) for change in self._changes_of(record) if self._changes(change)]

    def _changes_of(self, record: MetadataRecord) -> list[Change]:
        """What the record changes: nothing if it is refused."""
        if record.type in _WITHOUT_EFFECT:
            return []
        rule = RULES.get(record.type)
        if rule is None or record.value is None:
            reason = f"no rule to replay {record.type}" if rule is None else "unreadable value"
            self._refuse(record, Refusal(None, "", reason))
            return []
        check = CONTROLLER_CHECKS.get(record.type)
        objection = None if check is None else check(self.tables, record.value)
        if objection is not None:
            self._refuse(record, objection)
        try:
            # All changes are computed before the first is applied: a refused record changes nothing.
            return list(rule(self.tables, record.value))
        except RecordRefusedError as refused:
            self._refuse(record, refused.refusal)
            return []

    def _changes(self, change: Change) -> bool:
        return change.value is not None or self.tables.get(change.kind, change.key) is not None

    def _make(self, change: Change, record: MetadataRecord) -> AppliedChange:
        before = self.tables.get(change.kind, change.key)
        self.tables.put(change)
        return AppliedChange(change, before, record)

    def _refuse(self, record: MetadataRecord, why: Refusal) -> None:
        found = RefusedRecord.of(record.offset, record.leader_epoch, record.type, why)
        (self.controller_refusals if why.by_controllers_only else self.refusals).append(found)

    def to_records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records that produce this image: type, and fields at the newest version (ImageWriter)."""
        for kind in KINDS:
            for _, value in self.tables.items(kind):
                yield BY_NAME[kind].to_record(value)

    def copy(self) -> "Image":
        """An independent image at the same offset; an open transaction is open in both."""
        twin = Image(self.tables.copy())
        twin.offset, twin.leader_epoch, twin.timestamp = self.offset, self.leader_epoch, self.timestamp
        twin.refusals = list(self.refusals)
        twin.controller_refusals = list(self.controller_refusals)
        twin._transaction = None if self._transaction is None else list(self._transaction)
        return twin


def net(steps: Iterable[AppliedChange]) -> list[AppliedChange]:
    """The net effect of changes made at once; a thing that they create and remove is omitted."""
    first: dict[tuple[str, Key], Any] = {}
    last: dict[tuple[str, Key], AppliedChange] = {}
    for made in steps:
        thing = (made.change.kind, made.change.key)
        first.setdefault(thing, made.before)
        last[thing] = made
    return [
        AppliedChange(made.change, first[thing], made.record)
        for thing, made in last.items()
        if made.change.value is not None or first[thing] is not None
    ]
