"""Footers of a large table's data files: read once, not for each of a run's lookups in it.

Those of a year's history of ten thousand clusters take a fifth of a second each time, and a store sends them.
As data files stay what they are, their fragments are kept, in which Arrow holds the footers that it has read:
of the large table that was opened last, for these take memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.dataset as ds

from transforms.lake.storage.location import Location

# A smaller table's footers are read as fast as they are found.
LARGE_BYTES = 16 * 1024 * 1024

_kept: tuple[Location, Mapping[str, ds.Fragment]] | None = None


def with_footers(found: ds.FileSystemDataset, table: Location, size_bytes: int) -> ds.FileSystemDataset:
    """The same files of a table, with the footers that this process has read. size_bytes: of all files."""
    global _kept
    if size_bytes < LARGE_BYTES:
        return found
    known = _kept[1] if _kept is not None and _kept[0] == table else {}
    fragments: list[ds.Fragment] = []
    for fragment in found.get_fragments():
        held = known.get(fragment.path, fragment)
        # A store's file system is another one once its credentials are.
        fragments.append(held if held.filesystem.equals(fragment.filesystem) else fragment)
    _kept = table, {fragment.path: fragment for fragment in fragments}
    return ds.FileSystemDataset(fragments, found.schema, found.format, found.filesystem)
