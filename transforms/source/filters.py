"""The rows that a query selects: by options, and by the filters that Spark pushes down.

Spark evaluates pushed filters again, so only rows that certainly fail them are skipped here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kraft_core.format.record import BATCH_REASONS, UNKNOWN
from transforms.lake.arrow_rows import Row
from transforms.source.columns import ORIGIN
from transforms.source.options import FileOptions
from transforms.source.rows import Origin

_MOST = (1 << 63) - 1
_OFFSET, _TYPE = "offset", "type"
# Why a record without a type, or the rest of a batch, was not read that may be of any type.
OF_ANY_TYPE = BATCH_REASONS | {"empty_value", "malformed_key", "malformed_value", "unknown_frame"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """first inclusive, end exclusive, of column offset; types: values of column type, None for all.

    on_origin, on_type: pushed filters. without_damage: rows in which offset and type are null are not wanted.
    """

    first: int = -1
    end: int = _MOST
    types: frozenset[str] | None = None
    on_origin: tuple[Filter, ...] = ()
    on_type: tuple[Filter, ...] = ()
    without_damage: bool = False

    @classmethod
    def of(cls, options: FileOptions) -> Wanted:
        types = None if options.types is None else frozenset(m.type_name for m in options.types)
        first = -1 if options.starting_offset is None else options.starting_offset
        return cls(first, _MOST if options.ending_offset is None else options.ending_offset, types)

    def with_filters(self, filters: Iterable[Filter]) -> Wanted:
        """With those of the filters that are about a file, the offset or the type."""
        found = self
        for each in filters:
            name = _column(each)
            if name in ORIGIN:
                found = replace(found, on_origin=(*found.on_origin, each))
            elif name == _TYPE:
                found = replace(found, on_type=(*found.on_type, each))
            elif name == _OFFSET:
                first, end = _bounds(each)
                found = replace(found, first=max(found.first, first), end=min(found.end, end))
            if name in (_TYPE, _OFFSET) and not holds(each, None):
                found = replace(found, without_damage=True)
        return found

    def from_(self, origin: Origin) -> bool:
        """Whether anything may be wanted of a file."""
        inside = origin.last_offset is None or self.first <= origin.last_offset < self.end
        return inside and all(holds(f, getattr(origin, _column(f))) for f in self.on_origin)

    def batches(self, first_offsets: NDArray[Any], last_offsets: NDArray[Any]) -> NDArray[np.bool_]:
        """Which batches of a log may hold wanted offsets."""
        return (last_offsets >= self.first) & (first_offsets < self.end)

    def records(self, records: pa.RecordBatch, origin: Origin) -> NDArray[np.bool_] | None:
        """Which records are wanted, and which may be: their types could not be read; None for all."""
        masks = []
        if origin.last_offset is None and (self.first > -1 or self.end < _MOST):
            offsets = records[_OFFSET].to_numpy()
            # The rest of a batch has the first lost offset, but ends with the batch.
            masks.append(((offsets >= self.first) | _unread(records, BATCH_REASONS)) & (offsets < self.end))
        if self.types is not None or self.on_type:
            masks.append(self._of_types(records[_TYPE]) | _of_any_type(records))
        return None if not masks else np.logical_and.reduce(masks)

    def _of_types(self, types: pa.Array) -> NDArray[np.bool_]:
        named = pc.unique(types).to_pylist()
        kept = [t for t in named if self.types is None or t in self.types]
        kept = [t for t in kept if all(holds(f, t) for f in self.on_type)]
        return pc.is_in(types, pa.array(kept, pa.string())).to_numpy(zero_copy_only=False)

    def damage(self, row: Row, origin: Origin) -> bool:
        """Whether damage may have lost wanted offsets."""
        if self.without_damage:
            return False
        lost_from, lost_to = row["lost_from_offset"], row["lost_to_offset"]
        if origin.last_offset is not None or lost_from is None:
            return True
        return lost_from < self.end and (lost_to is None or lost_to > self.first)


def _unread(records: pa.RecordBatch, reasons: Collection[str]) -> NDArray[np.bool_]:
    """Which records were not read for one of the reasons."""
    found = pc.is_in(records["unread_reason"], pa.array(sorted(reasons)))
    return found.to_numpy(zero_copy_only=False)


def _of_any_type(records: pa.RecordBatch) -> NDArray[np.bool_]:
    is_untyped = pc.equal(records[_TYPE], UNKNOWN).to_numpy(zero_copy_only=False)
    return is_untyped & _unread(records, OF_ANY_TYPE)


def _column(filter_: Filter) -> str:
    """The column that a filter is about; that of a struct's field is not a column here."""
    inner: Any = filter_.child if isinstance(filter_, Not) else filter_
    path = getattr(inner, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _bounds(filter_: Filter) -> tuple[int, int]:
    """Between which offsets, first inclusive and end exclusive, a filter may hold."""
    value: Any = getattr(filter_, "value", None)
    if isinstance(filter_, In) and all(isinstance(each, int) for each in value):
        return min(value), max(value) + 1
    if not isinstance(value, int):
        return -1, _MOST
    match filter_:
        case EqualTo() | EqualNullSafe():
            return value, value + 1
        case GreaterThan():
            return value + 1, _MOST
        case GreaterThanOrEqual():
            return value, _MOST
        case LessThan():
            return -1, value
        case LessThanOrEqual():
            return -1, value + 1
        case _:
            return -1, _MOST


def holds(filter_: Filter, value: Any) -> bool:
    """Whether a filter on a column may hold for its value; what is not known here holds."""
    return _judged(filter_, value) is not False


def _judged(filter_: Filter, value: Any) -> bool | None:
    """False where the filter surely is not true, as SQL has it for null; None where it is not known here."""
    if isinstance(filter_, Not):
        inner = _judged(filter_.child, value)
        if value is None and not isinstance(filter_.child, IsNull | IsNotNull | EqualNullSafe):
            return False
        return None if inner is None else not inner
    if isinstance(filter_, IsNull):
        return value is None
    if isinstance(filter_, IsNotNull):
        return value is not None
    if isinstance(filter_, EqualNullSafe):
        return value == filter_.value
    if value is None:
        return False
    try:
        return _compared(filter_, value)
    except TypeError:  # a literal of another type
        return None


def _compared(filter_: Filter, value: Any) -> bool | None:
    match filter_:
        case EqualTo():
            return value == filter_.value
        case In():
            return value in filter_.value
        case GreaterThan():
            return value > filter_.value
        case GreaterThanOrEqual():
            return value >= filter_.value
        case LessThan():
            return value < filter_.value
        case LessThanOrEqual():
            return value <= filter_.value
        case StringStartsWith():
            return value.startswith(filter_.value)
        case StringEndsWith():
            return value.endswith(filter_.value)
        case StringContains():
            return filter_.value in value
        case _:
            return None
