"""python -m kraft_core.columnar: compile the kernel ahead of the first job."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kraft_core.columnar.fast import decode, scan_headers
from kraft_core.columnar.line_code import line_code
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key


def main() -> None:
    """Reads records of every type, each in its own batch, which calls every compiled function."""
    values = [write_metadata_value(m, m.versions.low, m.default(m.versions.low)) for m in by_api_key.values()]
    records = [RawRecord(offset=n, timestamp=n, key=None, value=value) for n, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{0:020d}.log")
        path.write_bytes(b"".join(write_batch(record.offset, 1, [record]) for record in records))
        assert sum(len(batch) for batch in scan_headers(path)) == len(records)
        assert sum(len(batch) for batch in decode(path)) == len(records)
    line_code()


if __name__ == "__main__":
    main()
