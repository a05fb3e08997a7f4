"""Loads from and stores to raw addresses, as the kernel's machine code does them: unchecked.

The caller has checked the bounds. Loads read big-endian numbers, as Kafka writes them; stores write
little-endian ones, as Arrow has them; `get`, `put` and `word` access the kernel's own tables. Every value is
an int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding
import numba.extending
from llvmlite import ir as llvm_ir
from numba import types as numba_types
from numba.core import cgutils as numba_cgutils
from numba.core import config as numba_config

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)
cgutils = cast(Any, numba_cgutils)
config = cast(Any, numba_config)
intrinsic = cast(Any, numba.extending).intrinsic

Load = Callable[[int], int]
Store = Callable[[int, int], None]

_INT64 = ir.IntType(64)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _loader(bits: int, signed: bool, swap: bool) -> Load:
    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        value = builder.load(_pointer(builder, arguments[0], bits), align=1)
        if swap and bits > 8:
            value = builder.bswap(value)
        if bits == 64:
            return value
        return builder.sext(value, _INT64) if signed else builder.zext(value, _INT64)

    @intrinsic
    def load(_typing: Any, _address: Any) -> Any:
        return types.int64(types.int64), codegen

    return load


def _storer(bits: int) -> Store:
    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, value = arguments
        if bits < 64:
            value = builder.trunc(value, ir.IntType(bits))
        builder.store(value, _pointer(builder, address, bits), align=1)
        return context.get_dummy_value()

    @intrinsic
    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        return types.void(types.int64, types.int64), codegen

    return store


load_u8 = _loader(8, signed=False, swap=False)
load_i16 = _loader(16, signed=True, swap=True)
load_u16 = _loader(16, signed=False, swap=True)
load_i32 = _loader(32, signed=True, swap=True)
load_u32 = _loader(32, signed=False, swap=True)
load_i64 = _loader(64, signed=True, swap=True)

get = _loader(64, signed=True, swap=False)
word = _loader(32, signed=True, swap=False)

store_8 = _storer(8)
store_16 = _storer(16)
store_32 = _storer(32)
put = _storer(64)


def _filler(bits: int) -> Callable[[int, int, int], None]:
    """Stores the same number `count` times in a row, vectorized.

    It indexes a pointer: a loop of stores to addresses would compile to a scatter, which is much slower.
    """

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, value, count = arguments
        first = _pointer(builder, address, bits)
        if bits < 64:
            value = builder.trunc(value, ir.IntType(bits))
        with cgutils.for_range(builder, count) as loop:
            builder.store(value, builder.gep(first, [loop.index]), align=1)
        return context.get_dummy_value()

    @intrinsic
    def fill(_typing: Any, _address: Any, _value: Any, _count: Any) -> Any:
        return types.void(types.int64, types.int64, types.int64), codegen

    return fill


fill_8 = _filler(8)
fill_32 = _filler(32)
fill_64 = _filler(64)


def _prefetcher(ahead: int, to_write: bool) -> Callable[[int], None]:
    """Asks for the memory so many bytes ahead of an address, which may be beyond what there is."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = _pointer(builder, builder.add(arguments[0], _INT64(ahead)), 8)
        how = [ir.Constant(ir.IntType(32), held) for held in (int(to_write), 3, 1)]
        signature = ir.FunctionType(ir.VoidType(), [pointer.type, *(held.type for held in how)])
        function = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, *how])
        return context.get_dummy_value()

    @intrinsic
    def ask(_typing: Any, _address: Any) -> Any:
        return types.void(types.int64), codegen

    return ask


# What is written soon if a column is filled: there are more columns than the processor follows by itself.
prefetch = _prefetcher(1024, to_write=True)
# What is read soon by a walk over batches, which reads little of each.
prefetch_batches = _prefetcher(4096, to_write=False)


@intrinsic
def call_routine(_typing: Any, _code: Any, _task: Any, _node: Any, _row: Any, _at: Any, _end: Any) -> Any:
    """Calls a routine of straight.py, which is at the address `code`."""
    signature = types.int64(*[types.int64] * 6)

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        code, *rest = arguments
        type_ = ir.FunctionType(_INT64, [_INT64] * len(rest))
        return builder.call(builder.inttoptr(code, type_.as_pointer()), rest)

    return signature, codegen


def _crc_step(name: str, value_bits: int, crc_bits: int) -> Callable[[int, int], int]:
    """The processor's CRC-32C instruction: (checksum, next bytes) -> checksum."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        crc, value = arguments
        crc_type, value_type = ir.IntType(crc_bits), ir.IntType(value_bits)
        if crc_bits < 64:
            crc = builder.trunc(crc, crc_type)
        if value_bits < 64:
            value = builder.trunc(value, value_type)
        signature = ir.FunctionType(crc_type, [crc_type, value_type])
        step = cgutils.get_or_insert_function(builder.module, signature, name)
        result = builder.call(step, [crc, value])
        return result if crc_bits == 64 else builder.zext(result, _INT64)

    @intrinsic
    def step(_typing: Any, _crc: Any, _value: Any) -> Any:
        return types.int64(types.int64, types.int64), codegen

    return step


crc_8_bytes = _crc_step("llvm.x86.sse42.crc32.64.64", 64, 64)
crc_4_bytes = _crc_step("llvm.x86.sse42.crc32.32.32", 32, 32)
crc_1_byte = _crc_step("llvm.x86.sse42.crc32.32.8", 8, 32)


def has_crc_instruction() -> bool:
    """Whether compiled code may use crc_8_bytes and its like: not for another processor than this one."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return False
    try:
        features: dict[str, bool] = cast(Any, llvmlite.binding).get_host_cpu_features()
    except RuntimeError:
        return False
    return features.get("sse4.2", False)
