"""A copy of a broker's log directory without messages: whose it is, and which partitions it holds.

Of each partition its partition.metadata (the topic id) and leader-epoch-checkpoint are copied; of a folder
with which no broker starts the name; and the file that a broker leaves as it shuts down. The broker may run:
what it creates or deletes meanwhile is in the copy or not. capture.json states when the copy was made.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.captures.copying import COPYING, CopyError, copy_if_there, write_capture_json
from jobs.runtime.outcome import reason_of
from kraft_core.format.log_dirs import CLEAN_SHUTDOWN, LOG_DIR_NAME, is_folder_name, is_log_folder
from kraft_core.format.side_files import (
    InvalidSideFileError,
    MetaProperties,
    read_meta_properties,
    side_file_text,
)

PARTITION_FILES = ("partition.metadata", "leader-epoch-checkpoint")
_PARTITION = re.compile(r".+-\d+(\..+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CopiedBrokerDir:
    """A finished copy: its folder, and how many partitions it names."""

    path: Path
    broker_id: int
    partitions: int


def copy_broker_dir(source: Path, target: Path, moment: datetime, host: str) -> CopiedBrokerDir:
    """Copy a log directory to target/CLUSTER/broker-N/TIME/DIRECTORY_ID, or its own name without such an id.

    moment: TIME, of all directories of a broker. host: the broker's, for capture.json.

    Raises CopyError, OSError.
    """
    meta = _meta(source)
    if meta.cluster_id is None or meta.node_id is None:
        raise CopyError("its meta.properties names no cluster or no node")
    name = meta.directory_id or source.resolve().name
    if not is_folder_name(meta.cluster_id) or not is_folder_name(name):
        raise CopyError(f"its ids cannot be folder names: {meta.cluster_id[:80]!r}, {name[:80]!r}")
    home = target / meta.cluster_id / f"broker-{meta.node_id}" / f"{moment:%Y%m%dT%H%M%S.%fZ}"
    partial = home / f"{COPYING}{name}"
    partial.mkdir(parents=True)
    try:
        for file in ("meta.properties", CLEAN_SHUTDOWN):
            copy_if_there(source / file, partial)
        partitions = [folder for folder in sorted(source.iterdir()) if _is_partition(folder)]
        for folder in partitions:
            held = partial / folder.name
            held.mkdir()
            for file in PARTITION_FILES:
                copy_if_there(folder / file, held)
        for folder in source.iterdir():
            if folder.is_dir() and folder not in partitions and not is_log_folder(folder.name):
                (partial / folder.name).mkdir()
        has_log = (source / LOG_DIR_NAME).is_dir()
        write_capture_json(partial, datetime.now(UTC), host, source, metadata_log=has_log)
        return CopiedBrokerDir(partial.rename(home / name), meta.node_id, len(partitions))
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _meta(source: Path) -> MetaProperties:
    try:
        return read_meta_properties(side_file_text(source / "meta.properties"))
    except (OSError, ValueError, InvalidSideFileError) as error:
        raise CopyError(f"its meta.properties cannot be read: {reason_of(error)}") from None


def _is_partition(folder: Path) -> bool:
    return folder.name != LOG_DIR_NAME and _PARTITION.fullmatch(folder.name) is not None and folder.is_dir()
