"""Writes the directories of a restored quorum: all of them, or nothing that anyone could take for one.

Everything is written below a hidden folder beside the target, where log directories do not bear their name
yet, and forced to disk. It is read again as any capture is, compared with what was planned, and only then
renamed: first the log directories, last the whole. A kill before that leaves no directory of that name.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from kraft_core.format.controller_dir import read_controller_dir
from kraft_core.format.log_dirs import LOG_DIR_NAME, is_log_dir
from kraft_core.format.side_file_texts import meta_properties_text
from kraft_core.image.differences import differences
from kraft_core.restore.replay import UnusableLogError, replayed
from kraft_core.restore.request import NewVoter
from kraft_core.restore.restoration import Restored

REPORT_NAME = "restore.json"
_UNFINISHED_LOG_DIR = "unfinished"
_META_PROPERTIES = "meta.properties"
_OWNER_ONLY_DIR, _OWNER_ONLY_FILE = 0o700, 0o600


class TargetError(ValueError):
    """The target cannot be written, or was written wrongly; the message says why."""


def check_target(target: Path) -> None:
    """Raises TargetError unless the target is new, and apart from every log directory of Kafka."""
    if os.path.lexists(target):
        raise TargetError(f"{target} exists: a restoration is written only to a new folder")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise TargetError(f"{parent} is not a folder")
    for folder in (parent.resolve(), *parent.resolve().parents):
        if (folder / "meta.properties").exists() or is_log_dir(folder) or (folder / LOG_DIR_NAME).exists():
            raise TargetError(f"{target} is inside {folder}, a log directory of Kafka or a capture of one")


def check_apart(target: Path, sources: list[Path]) -> None:
    """Raises TargetError where the target is inside a source."""
    for source in sources:
        if target.absolute().parent.resolve().is_relative_to(source.resolve()):
            raise TargetError(f"{target} is inside {source}: captures are never written to")


def write_restoration(made: Restored, cluster_id: str, report: bytes, target: Path) -> list[Path]:
    """Write target/node-N for each voter, and the report. Returns their log directories' parents.

    Raises TargetError, OSError.
    """
    check_target(target)
    partial = target.absolute().parent / f".{target.name}.unfinished-{secrets.token_hex(4)}"
    _make_dir(partial)
    try:
        _write_all(made, cluster_id, report, partial)
        check_target(target)
        partial.rename(target)
    except BaseException as error:
        # It holds secrets, and fills a disk that is full.
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(target)  # a write names no file
        raise
    _sync_dir(target.absolute().parent)
    return [target / f"node-{voter.id}" for voter in made.voters]


def _write_all(made: Restored, cluster_id: str, report: bytes, partial: Path) -> None:
    """Write and read again all that belongs into the target. Raises TargetError, OSError."""
    for voter in made.voters:
        _write_voter(made, cluster_id, voter, partial / f"node-{voter.id}")
    _write_file(partial / REPORT_NAME, report)
    _sync_dir(partial)
    for voter in made.voters:
        check_written(made, partial / f"node-{voter.id}" / _UNFINISHED_LOG_DIR)
    for voter in made.voters:
        home = partial / f"node-{voter.id}"
        (home / _UNFINISHED_LOG_DIR).rename(home / LOG_DIR_NAME)
        _sync_dir(home)


def check_written(made: Restored, log_dir: Path) -> None:
    """Raises TargetError unless a log directory holds just what was planned, read as any capture."""
    try:
        log = replayed(read_controller_dir(log_dir))
    except (UnusableLogError, OSError) as error:
        raise TargetError(f"{log_dir} was not written as planned: {error}") from None
    found = next(differences(made.image, log.image), None)
    place = (log.end_offset, log.leader_epoch, log.kraft_version)
    planned = (made.horizon.new_end, made.horizon.new_epoch, made.kraft_version)
    if found is not None or place != planned:
        raise TargetError(f"{log_dir} differs from the plan in {found.kind if found else 'its location'}")
    checkpoint = log_dir / made.checkpoint_name
    if checkpoint.read_bytes() != made.checkpoint:
        raise TargetError(f"{checkpoint} differs from the plan")


def check_identity(made: Restored, cluster_id: str, voter: NewVoter, home: Path) -> None:
    """Raises TargetError unless a directory bears the voter's identity, holds no file beside those that are
    planned, and its owner alone can read it.
    """
    planned = {home, *(home / name for name in (_META_PROPERTIES, LOG_DIR_NAME))}
    planned.add(home / LOG_DIR_NAME / made.checkpoint_name)
    found = {home, *home.rglob("*")}
    for path in sorted(found - planned):
        raise TargetError(f"{path} is not planned: something else has written to the directory")
    for path in sorted(found):
        if path.is_symlink():
            raise TargetError(f"{path} is a symbolic link: copy what was written, not links to it")
    meta = home / _META_PROPERTIES
    if not meta.is_file() or meta.read_bytes() != _meta_properties(cluster_id, voter):
        raise TargetError(
            f"{home} is not the directory of node {voter.id}@{voter.directory_id} of cluster {cluster_id}"
        )
    for path in sorted(found):
        if path.stat().st_mode & 0o077:
            raise TargetError(f"{path} contains secrets, and is accessible to others than its owner")


def _write_voter(made: Restored, cluster_id: str, voter: NewVoter, home: Path) -> None:
    """A voter's directory; its log directory does not have its final name yet."""
    log_dir = home / _UNFINISHED_LOG_DIR
    for folder in (home, log_dir):
        _make_dir(folder)
    _write_file(home / _META_PROPERTIES, _meta_properties(cluster_id, voter))
    _write_file(log_dir / made.checkpoint_name, made.checkpoint)
    _sync_dir(log_dir)
    _sync_dir(home)


def _meta_properties(cluster_id: str, voter: NewVoter) -> bytes:
    return meta_properties_text(cluster_id, voter.id, voter.directory_id).encode()


def _make_dir(path: Path) -> None:
    path.mkdir(mode=_OWNER_ONLY_DIR)
    path.chmod(_OWNER_ONLY_DIR)


def _write_file(path: Path, content: bytes) -> None:
    """A new file, on disk, that its owner alone can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY_FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_dir(path: Path) -> None:
    """Force the names in a folder to disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
