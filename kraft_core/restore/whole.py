"""Whether a copied log that ends between two batches is seen to have been cut: what lies beside can tell.

One that ends inside a batch does not count in any answer (Capture.ends_inside_batch).
"""

from __future__ import annotations

import re

from kraft_core.format.controller_dir import ControllerDir
from kraft_core.restore.replay import ReplayedLog

# Named after the first offset of a segment, or the end of a log that was closed.
_BESIDE = re.compile(r"(\d{20})\.snapshot", re.ASCII)


def why_cut(directory: ControllerDir, log: ReplayedLog) -> str | None:
    """What shows, in words that follow the node's name, that a copied log may have gone on; None for nothing.

    A controller that is killed may leave the first as well: which it was, the copy does not show.
    Raises OSError.
    """
    if directory.segments and not directory.segments[-1].size_bytes:
        return (
            f"has a log that ends with an empty segment ({directory.segments[-1].path.name}): the node was "
            "killed during a write, or the copy was cut off: compare the size of the file, or copy it again."
        )
    for path in sorted(directory.log_dir.iterdir(), reverse=True):
        named = _BESIDE.fullmatch(path.name)
        if named is not None and int(named[1]) > log.end_offset:
            return f"has a log that ends at {log.end_offset}, and {path.name} beside it: copy it again."
    return None
