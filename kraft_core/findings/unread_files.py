"""The files of captured directories that cannot be read, as the rules read them, without a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_core.findings.facts import UnreadableBytes
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import read_log
from kraft_core.format.segment import Damage
from kraft_core.format.snapshot import cut_off, read_snapshot


def unread_files(directories: Iterable[tuple[str, ControllerDir]]) -> Iterator[UnreadableBytes]:
    """Of directories, each with the id of its capture, which copies share: files that cannot be opened, and
    damage of checkpoints from formatting, values of their records that cannot be decoded among it, and what
    was cut off them.

    Other damage is in the facts of the captures: where logs end, and which checkpoints are complete.
    Values of other records are those of LogRecords.lost_values.
    """
    for capture_id, directory in directories:
        for fault in directory.unreadable:
            yield UnreadableBytes(capture_id, fault.file, 0, 0, f"unreadable: {fault.reason}", None, None)
        of_formatting = [c for c in directory.checkpoints if c.id is not None and c.id.end_offset == 0]
        for checkpoint in (*of_formatting, *([directory.bootstrap] if directory.bootstrap else [])):
            for damage in _damage(checkpoint):
                yield UnreadableBytes(
                    capture_id,
                    directory.relative(checkpoint.path),
                    damage.position,
                    damage.size_bytes,
                    damage.reason,
                    None,
                    None,
                )


def _damage(checkpoint: CheckpointFile) -> list[Damage]:
    """Of a file that is gone meanwhile none: it was listed before the others were read."""
    try:
        with mapped(checkpoint.path) as buf:
            items = list(read_log(buf, next_offset=0))
            missing = cut_off(read_snapshot(buf), len(buf))
    except OSError:
        return []
    lost = (item if isinstance(item, Damage) else item.damage if item.is_lost else None for item in items)
    return [damage for damage in (*lost, missing) if damage is not None]
