"""The replica behind a path on the command line: a controller directory, a segment or a checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from jobs.runtime.outcome import ExitCode, Failure
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.image.image import Image
from kraft_core.image.replica import CapturedReplica

_LISTED = 5


def open_replica(path: Path) -> CapturedReplica:
    """What a path holds. Raises Failure where it names nothing, several directories, or nothing readable."""
    try:
        replica = CapturedReplica.of_file(path) if path.is_file() else _of_tree(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from None
    if replica.is_empty:
        why = "; ".join(replica.notes[:_LISTED]) or "no batch, no checkpoint"
        raise Failure(f"nothing readable in {path}: {why}", ExitCode.NOTHING_READABLE)
    return replica


def _of_tree(path: Path) -> CapturedReplica:
    if not path.exists():
        raise Failure(f"no such file or directory: {path}")
    found = find_controller_dirs([path])
    if not found.directories:
        why = "; ".join(f"{refusal.path}: {refusal.reason}" for refusal in found.refused[:_LISTED])
        raise Failure(
            f"no controller directory in {path}" + (f": {why}" if why else ""), ExitCode.NOTHING_READABLE
        )
    directory, *others = found.directories
    if others:
        names = [str(each.path) for each in found.directories]
        listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        raise Failure(f"{len(names)} controller directories in {path}; choose one: {listed}")
    return CapturedReplica.of_directory(directory)


def warn(notes: Sequence[str], image: Image) -> None:
    """What could not be read or replayed, on stderr."""
    refused = [f"offset {refusal.offset}, {refusal.type}: {refusal.reason}" for refusal in image.refusals]
    for note in [*notes, *refused[:_LISTED]]:
        print(f"warning: {note}", file=sys.stderr)
    if len(refused) > _LISTED:
        print(f"warning: {len(refused)} records could not be replayed", file=sys.stderr)
