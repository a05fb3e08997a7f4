"""docs/new-kafka-release.md: what it says to add is all that a new record type takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
DOCUMENT = CHECKOUT / "docs" / "new-kafka-release.md"
# Writes records of the new type with the reference codec and reads them with both.
PROGRAM = """
import sys
from pathlib import Path
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.columnar import fast
from kraft_core.messages.metadata import by_api_key

message = by_api_key[30]
values = [{"groupName": "g", "epochs": [1, 2]}, {"groupName": "h", "epochs": []}]
records = [
    RawRecord(offset, 1_760_000_000_000, None, write_metadata_value(message, 1, value))
    for offset, value in enumerate(values)
]
segment = Path(sys.argv[1])
segment.write_bytes(write_batch(0, 1, records))
for reader in (reference, fast):
    rows = [row for batch in reader.decode(segment) for row in batch.to_pylist()]
    assert [row["type"] for row in rows] == ["SHARE_GROUP_RECORD"] * 2, rows
    assert [row["share_group"] for row in rows] == [
        {"group_name": "g", "epochs": [1, 2]},
        {"group_name": "h", "epochs": []},
    ], rows
print(reader.__name__, "read them")
"""


def documented() -> list[str]:
    block = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert block is not None
    return block[1].splitlines(keepends=True)


def test_it_takes_under_ten_lines() -> None:
    assert 3 < len(documented()) < 10


@pytest.mark.long
def test_both_codecs_read_a_record_declared_so(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT / "kraft_core", tmp_path / "kraft_core")
    declarations = tmp_path / "kraft_core" / "messages" / "metadata.py"
    lines = declarations.read_text().splitlines(keepends=True)
    end = lines.index("by_api_key: dict[int, Message] = {\n") - 2
    assert lines[end] == ")\n"
    declarations.write_text("".join([*lines[:end], *documented(), *lines[end:]]))
    read = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "00000000000000000000.log")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    assert read.stdout == "kraft_core.columnar.fast read them\n"
