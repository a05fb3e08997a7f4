"""Answers as files: text, Parquet or Arrow; a file is put in place whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from jobs.runtime.local_paths import put_in_place

PARQUET, ARROW = "parquet", "arrow"
BINARY = (PARQUET, ARROW)


@contextmanager
def text_file(out: Path) -> Iterator[TextIO]:
    """A text file that is put in place at the end. Raises OSError."""
    with put_in_place(out) as part, part.open("w") as file:
        yield file


def write_frame(frame: Any, form: str, out: Path) -> None:
    """Write Spark's answer as one file, its columns with their types. Raises OSError.

    The answer must fit into memory.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table: pa.Table = frame.toArrow()
    with put_in_place(out) as part:
        if form == PARQUET:
            pq.write_table(table, part)
        else:
            with pa.ipc.new_file(part, table.schema) as writer:
                writer.write_table(table)
