"""kafka-storage info: what the tool prints of a node's log directories (StorageTool.infoCommand)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_core.storage.log_dirs import (
    META_PROPERTIES,
    KnownMeta,
    LogDir,
    UnreadableMetaError,
    read_meta,
)


@dataclass(frozen=True, slots=True)
class StorageInfo:
    """What the tool prints, without stack traces, and its exit code."""

    lines: tuple[str, ...]
    exit_code: int


def storage_info(found: Mapping[str, LogDir]) -> StorageInfo:
    """found: the log directories of a node that runs KRaft, by path."""
    problems: list[str] = []
    first: KnownMeta | None = None
    directories = [path for path, log_dir in sorted(found.items()) if log_dir.is_directory and log_dir.exists]
    for path, log_dir in sorted(found.items()):
        try:
            meta = _meta_of(path, log_dir)
        except UnreadableMetaError as problem:
            problems.append(str(problem))
            continue
        if first is None:
            first = meta
        elif first.cluster_id != meta.cluster_id:
            problems.append("Mismatched cluster IDs between storage directories.")
        elif first.node_id != meta.node_id:
            problems.append("Mismatched node IDs between storage directories.")
    if first is not None and first.version == 0:
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are "
            "formatted for legacy mode."
        )
    lines = tuple(_lines(directories, first, problems))
    return StorageInfo(lines, 1 if problems else 0)


def _meta_of(path: str, log_dir: LogDir) -> KnownMeta:
    """Raises UnreadableMetaError with the problem."""
    if not log_dir.exists:
        raise UnreadableMetaError(f"{path} does not exist")
    if not log_dir.is_directory:
        raise UnreadableMetaError(f"{path} is not a directory")
    if log_dir.unreadable is not None:
        raise UnreadableMetaError(f"{path}/{META_PROPERTIES} cannot be read: {log_dir.unreadable}")
    if log_dir.meta is None:
        raise UnreadableMetaError(f"{path} is not formatted.")
    try:
        return read_meta(log_dir.meta)
    except UnreadableMetaError as error:
        raise UnreadableMetaError(f"Error loading {path}/{META_PROPERTIES}: {error}") from None


def _lines(directories: list[str], first: KnownMeta | None, problems: list[str]) -> Iterator[str]:
    if directories:
        yield "Found log directory:" if len(directories) == 1 else "Found log directories:"
        yield from (f"  {path}" for path in directories)
        yield ""
    if first is not None:
        entries = ", ".join(f"{name}={value}" for name, value in first.entries.items())
        yield f"Found metadata: {{{entries}}}"
        yield ""
    if problems:
        yield "Found problem:" if len(problems) == 1 else "Found problems:"
        yield from (f"  {problem}" for problem in problems)
        yield ""
