"""Captured directories of small logs that a test writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import raw


def captured(captures: Path, cluster: str, log: bytes) -> None:
    """A directory of a cluster of that name."""
    log_dir = captures / cluster / LOG_DIR_NAME
    log_dir.mkdir(parents=True)
    (captures / cluster / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id=1\n")
    (log_dir / f"{0:020d}.log").write_bytes(log)


def metadata(first: int, values: Sequence[tuple[int, int, dict[str, Any]]], at: Sequence[int] = ()) -> bytes:
    """A batch of metadata records: api key, version and fields; at: their times in ms."""
    defaults = {(key, version): by_api_key[key].default(version) for key, version, _ in values}
    records = [
        raw(first + n, write_metadata_value(by_api_key[key], version, defaults[key, version] | held))
        for n, (key, version, held) in enumerate(values)
    ]
    times = at or [record.timestamp for record in records]
    return write_batch(first, 1, [r._replace(timestamp=t) for r, t in zip(records, times, strict=True)])
