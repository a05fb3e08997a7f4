"""kraftlake dump --format kafka: stdout as kafka-dump-log writes it, and its stderr without stack traces."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import printable, warn_line
from kraft_core.format.kafka_dump import (
    CHECKPOINT_SUFFIX,
    LOG_SUFFIX,
    MAX_BYTES,
    DumpOptions,
    DumpStopped,
    FileDump,
    Piece,
)
from kraft_core.format.log_dirs import UnreadPath
from kraft_core.format.mapped_file import mapped
from kraft_core.wording import count

_OTHER_SUFFIXES = frozenset({".index", ".timeindex", ".snapshot", ".txnindex"})
_BUFFER_CHARACTERS = 1 << 16
_LARGE_BYTES = 256 * 1024
_WORTH_COMPILING_BYTES = 32 * 1024 * 1024


def dump_as_kafka(given: Sequence[str], args: argparse.Namespace) -> ExitCode:
    """Dump files, and what folders contain, as kafka-dump-log would be given them; returns the exit code."""
    options = _options(args)
    found = list(_found(given))
    dumps: dict[str, FileDump] = {}
    out = _Output()
    for file in (item for item in found if isinstance(item, str)):
        dumps[file] = _file_dump(file, options)
        try:
            _dump(file, dumps[file], out)
        except DumpStopped as stop:
            out.write(stop.text)
            out.flush()
            place = file if stop.position is None else f"{file} at position {stop.position}"
            warn_line(f"{place}: {stop}: kafka-dump-log stops here; --format jsonl continues")
            return ExitCode.FOUND
    out.flush()
    _report_jumps(dumps)
    faults = [line for file, dump in dumps.items() for line in _faults(file, dump)]
    faults += [f"{item.path}: not read: {item.reason}" for item in found if isinstance(item, UnreadPath)]
    for line in faults:
        warn_line(line)
    if not any(dump.batches or dump.is_empty_log for dump in dumps.values()):
        return ExitCode.NOTHING_READABLE
    return ExitCode.FOUND if faults else ExitCode.FINE


def _file_dump(file: str, options: DumpOptions) -> FileDump:
    """For a small file, the imports of the faster one take more time than it saves."""
    path = Path(file)
    size = path.stat().st_size if path.is_file() else 0
    if size < _LARGE_BYTES:
        return FileDump(options)
    from kraft_core.columnar.line_code import is_compiled, line_code

    if size < _WORTH_COMPILING_BYTES and not is_compiled():
        return FileDump(options)
    try:
        line_code()
    except OSError:  # no memory may become executable
        return FileDump(options)
    from kraft_core.columnar.kafka_text import CompiledDump

    return CompiledDump(options)


def _options(args: argparse.Namespace) -> DumpOptions:
    return DumpOptions(
        skip_metadata=args.skip_record_metadata,
        max_bytes=MAX_BYTES if args.max_bytes is None else args.max_bytes,
        show_secrets=args.show_secrets,
        allowed=args.settings.shown_configs,
    )


def _found(given: Iterable[str]) -> Iterator[str | UnreadPath]:
    """Each file as Java's File writes its path, or what is not read; Failure for Kafka's index files."""
    for path in given:
        if Path(path).is_dir():
            # It imports the decoder of records.
            from kraft_core.format.log_files import find_log_files

            for item in find_log_files(Path(path)):
                yield item if isinstance(item, UnreadPath) else str(item)
        elif Path(path).suffix in _OTHER_SUFFIXES:
            raise Failure(f"{path} is not a log: dump reads .log and .checkpoint files, not Kafka's indexes")
        else:
            yield re.sub("/+", "/", path)


def _dump(file: str, dump: FileDump, out: _Output) -> None:
    name = file.rpartition("/")[2]
    out.write(f"Dumping {file}\n")
    if not name.endswith((LOG_SUFFIX, CHECKPOINT_SUFFIX)):
        out.flush()
        warn_line(f"Ignoring unknown file {file}")
        return
    with ExitStack() as opened:
        try:
            buf = opened.enter_context(mapped(file))
        except OSError as error:
            raise DumpStopped(error.strerror or str(error)) from None
        for piece in opened.enter_context(closing(dump.pieces(buf, name))):
            out.write(piece)


class _Output:
    """Stdout in UTF-8, whatever the terminal's encoding.

    On a terminal, names cannot act: see runtime.output.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._on_terminal = sys.stdout.isatty()

    def write(self, text: Piece) -> None:
        if not isinstance(text, str):
            if not self._on_terminal:
                self.flush()
                sys.stdout.buffer.write(text)
                return
            text = str(text, "utf-8")
        self._pieces.append(text)
        self._size += len(text)
        if self._size >= _BUFFER_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        text = "".join(self._pieces)
        if self._on_terminal:
            text = "\n".join(map(printable, text.split("\n")))
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
        sys.stdout.buffer.flush()
        self._pieces, self._size = [], 0


def _faults(file: str, dump: FileDump) -> Iterator[str]:
    if dump.invalid:
        yield f"{file}: {count(dump.invalid, 'batch', 'batches')} with a wrong CRC; see --format jsonl"
    if dump.unread:
        yield f"{file}: {count(dump.unread, 'record')} cannot be read; see --format jsonl"


def _report_jumps(dumps: dict[str, FileDump]) -> None:
    """Kafka's warnings of offsets that do not follow one another, in the order of its HashMap."""
    jumps: dict[str, dict[int, int]] = {}
    for file, dump in dumps.items():
        if dump.jumps:
            jumps.setdefault(file if file.startswith("/") else f"{Path.cwd()}/{file}", {}).update(dump.jumps)
    for path in _hash_order(jumps):
        warn_line(f"Non-consecutive offsets in {path}")
        for before, offset in sorted(jumps[path].items()):
            warn_line(f"  {before} is followed by {offset}")


def _hash_order(jumps: dict[str, dict[int, int]]) -> list[str]:
    """The paths in the order of a HashMap that computeIfAbsent filled: by bucket, the newest first.

    A call grows the table when it finds it too full, before it adds to it.
    """
    newest_first = list(reversed(jumps))
    full = len(jumps) - (not jumps or len(jumps[newest_first[0]]) == 1)
    buckets = 16
    while full > buckets * 3 // 4:
        buckets *= 2
    return sorted(newest_first, key=lambda path: _java_hash(path) % buckets)


def _java_hash(text: str) -> int:
    """String.hashCode over UTF-16 units, spread as HashMap spreads it."""
    units = text.encode("utf-16-be", errors="surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return value ^ value >> 16
