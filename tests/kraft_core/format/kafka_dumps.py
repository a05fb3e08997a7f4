"""What kafka-dump-log printed, held against what kafka_dump prints of the same file."""

from __future__ import annotations

import re
from pathlib import Path

from kraft_core.format.kafka_dump import DumpOptions, DumpStopped, FileDump
from kraft_core.format.mapped_file import mapped

# What follows in the dump of a tool that stopped, and in that of one that did not.
_STOPPED = re.compile(r"(\[exception\]\n|Exception in thread)")
_WARNED = re.compile(
    r"Non-consecutive offsets in .*\n((?:  -?\d+ is followed by -?\d+\n)*)(\[exit code 0\]\n)?"
)


def difference(
    file: Path, name: str, printed: str, skip_metadata: bool = False, kind: type[FileDump] = FileDump
) -> str | None:
    """What differs from stdout and stderr of a dump of one file, after their first line; None if nothing.

    name: the name under which Kafka's tool read the file. kind: what prints it here.
    """
    expected = printed.partition("\n")[2]
    dump = kind(DumpOptions(skip_metadata=skip_metadata, show_secrets=True))
    text, stopped = "", False
    try:
        with mapped(file) as buf:
            for piece in dump.texts(buf, name):
                text += piece
    except DumpStopped as stop:
        text, stopped = text + stop.text, True
    if not expected.startswith(text):
        same = next((i for i, pair in enumerate(zip(expected, text, strict=False)) if len(set(pair)) == 2), 0)
        theirs, ours = (part[max(same - 40, 0) : same + 40] for part in (expected, text))
        return f"{same}: kafka-dump-log {theirs!r}, here {ours!r}"
    rest = expected[len(text) :]
    if stopped:
        return None if _STOPPED.match(rest) else f"stopped before {rest[:80]!r}"
    jumps = "".join(f"  {before} is followed by {offset}\n" for before, offset in sorted(dump.jumps.items()))
    warned = _WARNED.fullmatch(rest)
    if warned is not None:
        return None if warned[1] == jumps else f"warned of {warned[1]!r}, here {jumps!r}"
    return None if rest in ("", "[exit code 0]\n") and not jumps else f"then {rest[:80]!r}, here {jumps!r}"
