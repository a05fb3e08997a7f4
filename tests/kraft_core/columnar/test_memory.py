"""Whose memory the columns are, how much there is of it, and what never gets there."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kraft_core.columnar import buffer_pool, chunk, fast
from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import NO_OP, no_op_batch, raw
from tests.kraft_core.columnar.comparing import assert_same, decoded, scanned

TOPIC, CONFIG, TOKEN, SCRAM = (by_api_key[key] for key in (2, 4, 10, 11))


def numbered(batch: bytes, records: int, times: int) -> bytes:
    """A batch again and again, each with the offset that follows: no checksum covers it."""
    return b"".join(struct.pack(">q", records * number) + batch[8:] for number in range(times))


def topics(records: int, name: str = "topic") -> bytes:
    value = {"name": name, "topicId": "A" * 22}
    return write_batch(0, 1, [raw(n, write_metadata_value(TOPIC, 0, value)) for n in range(records)])


def written_out(batch: pa.RecordBatch) -> bytes:
    """A copy of everything in a record batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def test_earlier_record_batches_stay_as_they_were(tmp_path):
    path = tmp_path / "long.log"
    names = ["a", "bb" * 30, "", "ccc"]
    path.write_bytes(b"".join(numbered(topics(40, name), 40, 2400) for name in names))
    kept, copies = [], []
    for batch in fast.decode(path):
        kept.append(batch)
        copies.append(written_out(batch))
    assert [len(batch) for batch in kept[:2]] == [chunk.ROWS // 40 * 40] * 2
    assert [written_out(batch) for batch in kept] == copies
    found = pa.Table.from_batches(kept)["topic"].combine_chunks().field("name")
    assert found.to_pylist() == [name for name in names for _ in range(40 * 2400)]


def test_memory_is_reused_once_it_is_freed():
    kept = buffer_pool.BufferPool()
    piece = kept.take(5000)
    address, held = piece.address, piece.buffer(8, 100)
    del piece
    assert kept.take(5000).address != address
    del held
    taken = [kept.take(5000), kept.take(8192)]
    assert address in [piece.address for piece in taken]
    assert held_bytes(kept) == 0


def test_not_all_memory_is_kept():
    kept = buffer_pool.BufferPool()
    taken = [kept.take(1 << 24) for _ in range(8)]
    assert held_bytes(kept) == 0
    taken.clear()
    assert held_bytes(kept) == 1 << 27
    kept.take(4096)
    assert held_bytes(kept) == 4096


def held_bytes(kept: buffer_pool.BufferPool) -> int:
    return sum(len(memory) for free in kept._free.values() for memory in free)


def test_columns_outlive_the_file(tmp_path):
    path = tmp_path / "short.log"
    path.write_bytes(topics(3))
    before = decoded(fast, path)
    path.unlink()
    assert before["topic"].to_pylist() == [{"name": "topic", "topic_id": "A" * 22}] * 3


def test_a_batch_of_more_records_than_a_chunk_has_rows(tmp_path):
    path = tmp_path / "wide.log"
    records = chunk.ROWS + 5
    wide = write_batch(3, 1, [raw(3 + n, NO_OP) for n in range(records)])
    path.write_bytes(no_op_batch(0, records=3) + wide + no_op_batch(3 + records))
    assert decoded(fast, path)["offset"].to_pylist() == list(range(records + 4))


def test_more_packed_batches_than_are_left_at_once(tmp_path):
    path = tmp_path / "packed.log"
    packed = no_op_batch(0, codec=1)
    path.write_bytes(no_op_batch(0) + numbered(packed, 1, 2500)[len(packed) :] + no_op_batch(2500))
    assert decoded(fast, path)["offset"].to_pylist() == list(range(2501))


def test_an_empty_batch(tmp_path):
    path = tmp_path / "empty-batch.log"
    covered = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 0)
    from google_crc32c import value as crc32c

    empty = struct.pack(">qiibI", 1, 49, 1, 2, crc32c(covered)) + covered
    path.write_bytes(no_op_batch(0) + empty + no_op_batch(1))
    assert assert_same(path).num_rows == 2


def test_an_empty_file(tmp_path):
    path = tmp_path / "empty.log"
    path.write_bytes(b"")
    assert decoded(fast, path).num_rows == 0
    assert scanned(fast, path).num_rows == 0


def test_a_file_that_is_not_there(tmp_path):
    for read in (fast.decode, fast.scan_headers):
        with pytest.raises(FileNotFoundError):
            next(read(tmp_path / "nothing.log"))


def test_ranges_are_read_in_turn(tmp_path):
    path = tmp_path / "ranges.log"
    one = no_op_batch(0, records=2)
    path.write_bytes(numbered(one, 2, 9))
    size = len(one)
    ranges = [(size * 6, size * 7), (0, size), (size * 8, None), (size * 2, size * 2)]
    assert decoded(fast, path, ranges=ranges)["offset"].to_pylist() == [12, 13, 0, 1, 16, 17]


def buffers(array: pa.Array) -> Iterator[bytes]:
    yield from (bytes(held) for held in array.buffers() if held is not None)


def test_secrets_reach_no_buffer(tmp_path):
    path = tmp_path / "secret.log"
    secret = "hunter2hunter2"
    hidden = secret.encode()
    scram = SCRAM.default(0) | dict.fromkeys(("salt", "storedKey", "serverKey"), hidden) | {"name": "alice"}
    config = {"resourceType": 4, "resourceName": "1", "name": "ssl.keystore.password", "value": secret}
    plain = config | {"name": "ssl.keystore.type", "value": "PKCS12"}
    removed = config | {"value": None}
    token = TOKEN.default(0) | {"owner": "User:a", "tokenId": secret}
    held = [(SCRAM, scram), (CONFIG, config), (CONFIG, plain), (CONFIG, removed), (TOKEN, token)]
    *records, token_record = [
        raw(n, write_metadata_value(message, 0, value)) for n, (message, value) in enumerate(held)
    ]
    # The batch of the token is not the kernel's.
    path.write_bytes(write_batch(0, 1, records) + write_batch(len(records), 1, [token_record]))
    (batch,) = fast.decode(path)
    assert batch["redacted"].to_pylist() == [True, True, False, False, True]
    assert batch["config"].field("value").to_pylist() == [None, None, "PKCS12", None, None]
    assert not any(hidden in held for column in batch.columns for held in buffers(column))
    (shown,) = fast.decode(path, redact=False)
    assert any(hidden in held for column in shown.columns for held in buffers(column))
    assert_same(path)


PEAK = """
import re, sys
from pathlib import Path
from kraft_core.columnar.fast import decode, scan_headers
rows = sum(batch.num_rows for batch in decode(sys.argv[1]))
batches = sum(batch.num_rows for batch in scan_headers(sys.argv[1]))
# Not ru_maxrss: that is at least what the parent had when it made this process.
kib = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(rows, batches, kib)
"""


def peak(path: Path) -> list[int]:
    """Records, batches, and the most memory that reading them took, in KiB."""
    done = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.long
@pytest.mark.parametrize("records", [1, 40, 20_000])
def test_a_segment_of_a_gibibyte_takes_little_memory(tmp_path, records):
    path = tmp_path / "large.log"
    batch = topics(records, "a-topic-with-a-name-of-usual-length")
    times = (1 << 30) // len(batch)
    with path.open("wb") as file:
        for number in range(times):
            file.write(struct.pack(">q", records * number) + batch[8:])
    rows, batches, kib = peak(path)
    print(kib // 1024, "MiB")
    assert (rows, batches) == (times * records, times)
    assert kib < 600 * 1024


def test_a_compressed_batch_of_many_records_comes_in_pieces(tmp_path):
    path = tmp_path / "packed.log"
    many = 3 * 8192 + 5
    path.write_bytes(no_op_batch(0) + no_op_batch(1, records=many, codec=4) + no_op_batch(1 + many))
    assert_same(path)
    batches = list(fast.decode(path))
    assert max(len(batch) for batch in batches) == 8192
    assert [n for batch in batches for n in batch["offset"].to_pylist()] == list(range(many + 2))
