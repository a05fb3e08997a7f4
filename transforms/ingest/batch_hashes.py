"""A hash of each batch, so that captured logs can be compared without their batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_SEED = np.uint64(42)
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = (np.uint64(prime) for prime in _PRIMES)


def batch_hashes(batches: pa.RecordBatch) -> NDArray[np.int64]:
    """The hash of each batch (rows of scanning.SCANNED without damage).

    The same as Spark's xxhash64(base_offset, leader_epoch, crc, size_bytes), of which lakes hold digests.
    """
    hashes = np.full(len(batches), _SEED)
    for name in ("base_offset", "leader_epoch", "crc", "size_bytes"):
        column = batches[name]
        values = column.to_numpy()
        if pa.types.is_int32(column.type):
            hashes = _with_32_bits(hashes, values.view(np.uint32).astype(np.uint64))
        else:
            hashes = _with_64_bits(hashes, values.view(np.uint64))
    return hashes.view(np.int64)


def _with_64_bits(seeds: Words, values: Words) -> Words:
    """XXH64 of one word of 64 bits, with a seed for each."""
    mixed = _rotated(values * _SECOND, 31) * _FIRST
    return _scattered(_rotated((seeds + _FIFTH + np.uint64(8)) ^ mixed, 27) * _FIRST + _FOURTH)


def _with_32_bits(seeds: Words, values: Words) -> Words:
    """The same of one word of 32 bits."""
    return _scattered(_rotated((seeds + _FIFTH + np.uint64(4)) ^ (values * _FIRST), 23) * _SECOND + _THIRD)


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _scattered(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(33))) * _SECOND
    words = (words ^ (words >> np.uint64(29))) * _THIRD
    return words ^ (words >> np.uint64(32))
