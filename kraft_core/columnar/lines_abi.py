"""The task of write_lines, which Python and the kernel share: int64 words at byte offsets."""

from __future__ import annotations

# Lines are numbered by api key and version: room for those of Kafka's next releases, too.
API_KEYS, VERSIONS = 64, 16
LINES = API_KEYS * VERSIONS

# What may be written beyond the end of the text.
SPARE_BYTES = 64

TASK_WORDS = 16

(
    # The file's first byte; the next batch, and where to stop: addresses.
    FILE,
    AT,
    STOP,
    # Where the next text goes, and the end of that memory: addresses.
    OUT,
    OUT_END,
    # The addresses of the machine code of lines: a table by api key and version, int64; 0: there is none.
    CODE,
    # The offset of the last record, and the number of batches written.
    LAST_OFFSET,
    BATCHES,
    # Whether records are printed without their metadata.
    WITHOUT_METADATA,
    # Verdicts on configs (verdicts.py): the table, and how many are used; the entries still to be
    # judged, addresses, and how many there are.
    VERDICTS,
    VERDICT_COUNT,
    OPEN,
    OPEN_COUNT,
    # Of skip_batches: an address.
    SKIP_TO,
) = range(0, 8 * 14, 8)

# Outcomes: everything up to STOP is written; there is no room for the batch at AT; that batch is one for
# kafka_dump; configs must be judged first.
DONE, FULL, LEFT, TO_JUDGE = range(4)

# The functions of the compiled writer, as C names them.
WRITE_LINES, SKIP_BATCHES = "kraftlake_write_lines", "kraftlake_skip_batches"
WRITE_ADDRESSES = "kraftlake_write_line_addresses"
