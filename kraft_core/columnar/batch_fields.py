"""Where the fields of a batch are, in bytes from its start, for compiled code (format.batch).

The checksum covers everything from the attributes on.
"""

from __future__ import annotations

LENGTH_AT, EPOCH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT = 8, 12, 16, 17, 21, 23
BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT = 27, 35
PRODUCER_ID_AT, PRODUCER_EPOCH_AT, BASE_SEQUENCE_AT, COUNT_AT = 43, 51, 53, 57
HEADER_BYTES = 61
