"""The task, which Python and the kernel share: int64 words at byte offsets, inputs and results."""

from __future__ import annotations

TASK_WORDS = 42

(
    # The program, the addresses of its machine code by number, the table of nodes and their number, and
    # frames for what is nested.
    PROGRAM,
    CODE,
    NODES,
    NODE_COUNT,
    STACK,
    # Where each record type's program begins: a table, its rows and its columns.
    METADATA,
    METADATA_KEYS,
    METADATA_VERSIONS,
    CONTROL,
    CONTROL_TYPES,
    CONTROL_VERSIONS,
    # By number of the record type, in a byte: whether its records are written. Others are passed over.
    WANTED,
    # The address of the next batch, and the address at which to stop.
    AT,
    STOP,
    # The batch at AT while its records are read: its size, 0 before; the rows written of it; the next
    # record's index and address, and the offset delta of the one before it.
    BATCH_BYTES,
    BATCH_ROWS,
    RECORD_INDEX,
    RECORD_AT,
    LAST_DELTA,
    # Rows written; rows written or left to the reference codec, and their maximum; the bytes of their
    # batches, and the number of bytes after which no batch is begun. A record passed over is no row.
    ROWS,
    PENDING_ROWS,
    ROW_CAPACITY,
    BYTES,
    BYTE_CAPACITY,
    # Batches left to the reference codec: address, size in bytes, and the rows written before it.
    LEFT,
    LEFT_COUNT,
    LEFT_CAPACITY,
    # The node that needs memory, and for how many elements or bytes; 0: the column has no memory yet.
    NODE,
    NEEDED,
    # Columns of the envelope, an item a row: int64, int32, int16 or bytes, as the schema has them. Those of
    # KEY_SIZE, UNKNOWN_TAGGED_FIELDS and WAS_REDACTED are filled in before: NO_KEY and zeros.
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

# The size of a key that is null.
NO_KEY = -1
# Outcomes of reading a value: not as declared, or no memory left for it (NODE, NEEDED).
MALFORMED = -1
NO_ROOM = -2
# Outcomes of a call: everything up to STOP is read, the capacity is reached, NO_ROOM, or the bytes at AT are
# no good batch.
DONE, FULL, DAMAGED = range(3)
READABLE = 3
