"""format("kraft_quorum"): what captured controller directories contain about their quorum beside the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kraft_core.format.capture import captured_at
from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.wording import did_you_mean
from transforms.ingest.inputs import InputError, Inputs, opened_inputs
from transforms.lake.arrow_rows import Row, moment
from transforms.lake.spark_rows import arrow_schema
from transforms.source.columns import PLAIN, declared_schema
from transforms.source.errors import SourceError
from transforms.source.options import OF_QUORUM, FileOptions, file_options
from transforms.source.planning import PathPart, Unread, is_packed, nothing_found, selected, unread_of
from transforms.source.rows import Origin, shown

# Column: its type, its meaning.
QUORUM: dict[str, tuple[str, str]] = {
    **{name: PLAIN[name] for name in ("cluster_id", "node_id", "directory_id")},
    "directory": ("STRING", "The controller directory, below the path that was loaded"),
    "captured_at": ("TIMESTAMP", "When it was captured"),
    "captured_at_source": ("STRING", "capture.json, or file_time: the newest modification of its files"),
    "leader_id": ("INT", "Leader in quorum-state; -1 if none was known"),
    "leader_epoch": ("INT", "Epoch in quorum-state"),
    "voted_id": ("INT", "Candidate that it voted for in that epoch, from quorum-state; -1 for none"),
    "voted_directory_id": ("STRING", "The directory id of that candidate"),
    "applied_offset": ("BIGINT", "Field appliedOffset of quorum-state"),
    "current_voters": ("ARRAY<INT>", "Voters in quorum-state, for a static quorum"),
    "data_version": (
        "INT",
        "Version of quorum-state; null, like its other columns, if it is absent or unreadable",
    ),
    "epochs": (
        "ARRAY<STRUCT<leader_epoch: INT, start_offset: BIGINT>>",
        "The file leader-epoch-checkpoint; null if it is absent or unreadable",
    ),
    "segments": ("INT", "Segments in its log directory"),
    "checkpoints": ("INT", "Finished checkpoints in its log directory"),
    "size_bytes": ("BIGINT", "Bytes of these"),
    "log_readable": (
        "BOOLEAN",
        "Whether the log could be listed and its files opened; if not, absence proves nothing",
    ),
    "faults": (
        "ARRAY<STRUCT<file: STRING, reason: STRING>>",
        "Files and folders of it that are unreadable or invalid",
    ),
}


def quorum_schema() -> StructType:
    return declared_schema(QUORUM)


def checked_against(schema: StructType, declared: StructType) -> pa.Schema:
    """A user's schema as Arrow's. Raises SourceError for a column or a type that is not declared."""
    for field in schema.fields:
        if field.name not in declared.names:
            near = did_you_mean(field.name, declared.names)
            raise SourceError(f"schema: unknown column {field.name}{near}")
        if field.dataType != declared[field.name].dataType:
            raise SourceError(
                f"schema: {field.name} is {declared[field.name].dataType.simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
    return arrow_schema(schema)


class KraftQuorumDataSource(DataSource):
    """Options: path, clusterId, nodeId. Raises SourceError."""

    @classmethod
    def name(cls) -> str:
        return "kraft_quorum"

    def schema(self) -> StructType:
        file_options(self.options, OF_QUORUM)
        return quorum_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return KraftQuorumReader(self.options, schema)


class KraftQuorumReader(DataSourceReader):
    """Reads side files; a task a path."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._options = file_options(options, OF_QUORUM)
        self._schema = checked_against(schema, quorum_schema())

    def partitions(self) -> list[InputPartition]:
        names = self._options.paths
        for name in names:
            is_packed(name)  # raises where there is nothing
        return [PathPart(name, len(names) == 1) for name in names]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PathPart)
        try:
            with opened_inputs([partition.name], None) as inputs:
                rows = _rows(inputs, self._options, partition)
        except InputError as error:
            raise SourceError(str(error)) from None
        if rows:
            yield shown(rows, self._schema)


def _rows(inputs: Inputs, options: FileOptions, part: PathPart) -> list[Row]:
    found = find_controller_dirs(inputs.roots, inputs.unreadable)
    others = unread_of(found, inputs)
    if not found.directories and part.is_all:
        raise nothing_found([part.name], others)
    rows = [_fault_row(each) for each in others]
    for directory in found.directories:
        who = selected(directory, options, inputs)
        if isinstance(who, Unread):
            rows.append(_fault_row(who))
        elif who is not None:
            rows.append(_row(directory, who))
    return rows


def _row(directory: ControllerDir, who: Origin) -> Row:
    time, source = captured_at(directory)
    state = directory.quorum_state
    epochs = directory.leader_epoch_checkpoint
    files = (*directory.segments, *directory.checkpoints)
    row: Row = {
        "cluster_id": who.cluster_id,
        "node_id": who.node_id,
        "directory_id": who.directory_id,
        "directory": who.file,
        "captured_at": moment(time),
        "captured_at_source": source,
        "epochs": None if epochs is None else [dict(zip(_EPOCH, each, strict=True)) for each in epochs],
        "segments": len(directory.segments),
        "checkpoints": len(directory.checkpoints),
        "size_bytes": sum(file.size_bytes for file in files),
        "log_readable": directory.log_readable,
        "faults": [{"file": fault.file, "reason": fault.reason} for fault in directory.faults],
    }
    if state is not None:
        row |= {name: getattr(state, name) for name in _STATE}
        row["current_voters"] = None if state.current_voters is None else list(state.current_voters)
    return row


_EPOCH = ("leader_epoch", "start_offset")
_STATE = ("leader_id", "leader_epoch", "voted_id", "voted_directory_id", "applied_offset", "data_version")


def _fault_row(unread: Unread) -> Row:
    """A path of which nothing is known."""
    where = unread.origin
    return {
        "cluster_id": where.cluster_id,
        "node_id": where.node_id,
        "directory": where.file,
        "log_readable": False,
        "faults": [{"file": "", "reason": unread.reason}],
    }
