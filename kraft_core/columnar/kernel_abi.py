"""The kernel's own table: what it is given and what it gives back, int64 words at byte offsets."""

from __future__ import annotations

TASK_WORDS = 42

(
    # The program, the table of nodes and how many there are, and frames for what is nested.
    PROGRAM,
    NODES,
    NODE_COUNT,
    STACK,
    # Where a record's piece of the program begins: a table, its rows and its columns.
    METADATA,
    METADATA_KEYS,
    METADATA_VERSIONS,
    CONTROL,
    CONTROL_TYPES,
    CONTROL_VERSIONS,
    # The address of the next batch, and that at which to stop.
    AT,
    STOP,
    # The batch at AT while its records are read: its size, 0 before; the next record's index and address, and
    # the offset delta of the one before it.
    BATCH_BYTES,
    RECORD_INDEX,
    RECORD_AT,
    LAST_DELTA,
    # Rows written; rows written or left to the reference codec; how many of these there may be. The bytes of
    # their batches; after how many no other batch is begun.
    ROWS,
    PENDING_ROWS,
    ROW_CAPACITY,
    BYTES,
    BYTE_CAPACITY,
    # Batches left to the reference codec: address, size in bytes, and the rows written before it.
    LEFT,
    LEFT_COUNT,
    LEFT_CAPACITY,
    # The node that needs memory, and for how many elements or bytes; 0 for a column without any.
    NODE,
    NEEDED,
    # Of the record at hand: its type's number, whether secrets were skipped, tagged fields nobody declared.
    TYPE,
    REDACTED,
    UNKNOWN_TAGS,
    # Columns of the envelope, an item a row: int64, int32, int16 or bytes, as the schema has them.
    OFFSET,
    LEADER_EPOCH,
    BATCH_CRC,
    POSITION_IN_BATCH,
    APPENDED_AT,
    TYPES,
    VERSION,
    IS_CONTROL,
    BATCH_BASE_OFFSET,
    KEY_SIZE,
    VALUE_SIZE,
    UNKNOWN_TAGGED_FIELDS,
    WAS_REDACTED,
) = range(0, 8 * TASK_WORDS, 8)

# What reading a value can come to: not as declared, or no memory left for it (NODE, NEEDED).
MALFORMED = -1
NO_ROOM = -2
# What a run of the kernel can come to: everything up to STOP read, as many rows as it may write, NO_ROOM,
# or bytes at AT that are no good batch.
DONE, FULL, DAMAGED = range(3)
READABLE = 3
