"""Machine code that writes the text of a record's value as kafka-dump-log's JSON, straight from its bytes.

One LLVM function for each version of each message, made of its declaration: names and punctuation are
constants, and the parts of line_values.py are compiled for each field. What they cannot write exactly as
kafka_json does is MALFORMED, and left to it: tagged fields that are unknown or hold their default, texts that
are not UTF-8, lengths beyond the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from llvmlite import ir as llvm_ir
from numba.core import cgutils as numba_cgutils

from kraft_core.columnar.config_values import write_config_value
from kraft_core.columnar.digits import write_number
from kraft_core.columnar.kernel_abi import MALFORMED
from kraft_core.columnar.line_values import (
    close_list,
    load_number,
    read_size,
    skip_secret,
    write_bool,
    write_double,
    write_int32_list,
    write_text,
    write_uuid_list,
    write_uuid_text,
)
from kraft_core.columnar.literals import write_constant
from kraft_core.columnar.machine_code import call_compiled
from kraft_core.columnar.program import FIXED_BYTES, UUID, VALUES
from kraft_core.columnar.tags import begin_tags, read_tag
from kraft_core.columnar.vectors import UUID_BYTES
from kraft_core.format.secrets import named_secret
from kraft_core.messages.schema import Field, FieldType, Message

ir = cast(Any, llvm_ir)
cgutils = cast(Any, numba_cgutils)

_INT64 = ir.IntType(64)
_BYTE = ir.IntType(8)
_PAIR = ir.ArrayType(_INT64, 2)
# A line: (task, at, end, out) to the address after the value, or MALFORMED, and that after the text.
LINE_TYPE = ir.FunctionType(_PAIR, [_INT64] * 4)
# By type, the instruction and the size on the wire.
NUMBERS: dict[FieldType, tuple[int, int]] = {
    type_: (opcode, FIXED_BYTES[opcode])
    for type_, opcode in VALUES.items()
    if opcode in FIXED_BYTES and opcode != UUID
}
_EMPTY_LIST = len("[]")


def write_line(context: Any, function: Any, message: Message, version: int, hide: bool) -> None:
    """Writes the body of an LLVM function of LINE_TYPE. hide: secrets become null."""
    builder = ir.IRBuilder(function.append_basic_block())
    _Writer(context, builder, *function.args).write(message, version, hide)


class _Writer:
    """Writes the code of one line. _at, _out: where the addresses read from and written to are held."""

    def __init__(self, context: Any, builder: Any, task: Any, at: Any, end: Any, out: Any) -> None:
        self._context = context
        self._builder = builder
        self._task, self._end = task, end
        self._at = cgutils.alloca_once_value(builder, at)
        self._out = cgutils.alloca_once_value(builder, out)
        self._pending = ""
        self._config_name: Any = None

    def write(self, message: Message, version: int, hide: bool) -> None:
        builder = self._builder
        self._version = version
        self._named = named_secret(message) if hide else None
        self._say(f'{{"type":"{message.type_name}","version":{version},"data":')
        self._struct(message.fields, message.flexible)
        self._say("}\n")
        self._flush()
        at = builder.load(self._at)
        self._malformed_if(builder.icmp_signed("!=", at, self._end))
        self._return(at)

    def _return(self, at: Any) -> None:
        result = self._builder.insert_value(ir.Constant(_PAIR, ir.Undefined), at, 0)
        self._builder.ret(self._builder.insert_value(result, self._builder.load(self._out), 1))

    def _malformed_if(self, condition: Any) -> None:
        with self._builder.if_then(condition, likely=False):
            self._return(_INT64(MALFORMED))

    def _call(self, function: Any, *arguments: Any) -> Any:
        return call_compiled(self._context, self._builder, function, *arguments)

    def _say(self, text: str) -> None:
        """Constant text, written with what follows it."""
        self._pending += text

    def _flush(self) -> Any:
        """Writes the pending text; the address after it."""
        out = write_constant(self._builder, self._builder.load(self._out), self._pending.encode())
        self._builder.store(out, self._out)
        self._pending = ""
        return out

    def _proceed(self, pair: Any) -> None:
        """Continues at the addresses that a part returned."""
        at = self._builder.extract_value(pair, 0)
        self._malformed_if(self._builder.icmp_signed("<", at, _INT64(0)))
        self._builder.store(at, self._at)
        self._builder.store(self._builder.extract_value(pair, 1), self._out)

    def _struct(self, fields: tuple[Field, ...], flexible: bool) -> None:
        present = [field for field in fields if self._version in field.versions]
        plain = [field for field in present if not field.is_tagged(self._version)]
        tagged = [field for field in present if field.is_tagged(self._version)]
        start = None
        if not plain and tagged:
            start = self._flush()
        elif not plain:
            self._say("{")
        for field in plain:
            self._say(f'{"{" if field is plain[0] else ","}"{field.name}":')
            self._value(field)
        if flexible and tagged:
            # Of those before another field, the text would have to be put in.
            last = present.index(plain[-1]) if plain else -1
            self._tags(tagged, {field for field in tagged if present.index(field) < last})
        elif flexible:
            self._no_tags()
        if start is not None:
            self._begin_struct(start)
        self._say("}")

    def _begin_struct(self, start: Any) -> None:
        """The brace of a struct without plain fields, in place of the comma before its first field."""
        builder = self._builder
        is_empty = builder.icmp_signed("==", self._flush(), start)
        builder.store(_BYTE(ord("{")), builder.inttoptr(start, _BYTE.as_pointer()))
        builder.store(builder.add(builder.load(self._out), builder.zext(is_empty, _INT64)), self._out)

    def _no_tags(self) -> None:
        """That there are none: unknown ones are left to kafka_json."""
        count, at = self._pair(self._call(begin_tags, self._builder.load(self._at), self._end))
        self._malformed_if(self._builder.icmp_signed("<", at, _INT64(0)))
        self._malformed_if(self._builder.icmp_signed("!=", count, _INT64(0)))
        self._builder.store(at, self._at)

    def _pair(self, pair: Any) -> tuple[Any, Any]:
        return self._builder.extract_value(pair, 0), self._builder.extract_value(pair, 1)

    def _tags(self, tagged: Sequence[Field], refused: set[Field]) -> None:
        """Tagged fields: first where each is, then their text in the order of the JSON."""
        builder = self._builder
        self._flush()
        size = max(field.tag or 0 for field in tagged) + 1
        begins, ends = (cgutils.alloca_once(builder, _INT64, size) for _ in range(2))
        for tag in range(size):
            builder.store(_INT64(0), builder.gep(begins, [_INT64(tag)]))
        self._find_tags(
            sum(1 << (field.tag or 0) for field in tagged if field not in refused), size, begins, ends
        )
        behind = builder.load(self._at)
        for field in tagged:
            if field in refused:
                continue
            place = _INT64(field.tag or 0)
            begin = builder.load(builder.gep(begins, [place]))
            with builder.if_then(builder.icmp_signed("!=", begin, _INT64(0))):
                builder.store(begin, self._at)
                self._tagged(field)
                tag_end = builder.load(builder.gep(ends, [place]))
                self._malformed_if(builder.icmp_signed("!=", builder.load(self._at), tag_end))
        builder.store(behind, self._at)

    def _find_tags(self, known: int, size: int, begins: Any, ends: Any) -> None:
        """Notes where the fields of the known tags begin and end, and proceeds after all of them."""
        builder = self._builder
        count, at = self._pair(self._call(begin_tags, builder.load(self._at), self._end))
        self._malformed_if(builder.icmp_signed("<", at, _INT64(0)))
        last, place = (cgutils.alloca_once_value(builder, held) for held in (_INT64(-1), at))
        with cgutils.for_range(builder, count):
            found = self._call(read_tag, builder.load(last), builder.load(place), self._end)
            tag, begin, after = (builder.extract_value(found, index) for index in range(3))
            self._malformed_if(builder.icmp_signed("<", begin, _INT64(0)))
            self._malformed_if(builder.icmp_unsigned(">=", tag, _INT64(size)))
            bit = builder.and_(builder.lshr(_INT64(known), tag), _INT64(1))
            self._malformed_if(builder.icmp_signed("==", bit, _INT64(0)))
            builder.store(begin, builder.gep(begins, [tag]))
            builder.store(after, builder.gep(ends, [tag]))
            builder.store(tag, last)
            builder.store(after, place)
        builder.store(builder.load(place), self._at)

    def _tagged(self, field: Field) -> None:
        """The name and value of a tagged field that differs from its default."""
        default = field.default_value(self._version)
        self._say(f',"{field.name}":')
        if field.type in NUMBERS and not field.array and default is not None:
            self._number(field, int(default))
            return
        begin = self._flush()
        self._value(field, nullable=False)
        if default is not None:
            assert default == []
            size = self._builder.sub(self._builder.load(self._out), begin)
            self._malformed_if(self._builder.icmp_signed("==", size, _INT64(_EMPTY_LIST)))

    def _value(self, field: Field, nullable: bool | None = None) -> None:
        """nullable: as declared, if None."""
        if nullable is None:
            nullable = field.is_nullable(self._version)
        if field.array:
            self._list(field, nullable)
        elif field.type in NUMBERS:
            self._number(field)
        elif field.type == "uuid":
            self._uuid()
        elif field.type == "struct":
            self._struct(field.fields, flexible=True)
        elif field.type == "bytes":
            self._proceed(self._call(skip_secret, int(nullable), *self._where(), self._flush()))
        else:
            self._string(field, nullable)

    def _fixed(self, size: int) -> Any:
        """The address of so many bytes, which are there; proceeds after them."""
        at = self._builder.load(self._at)
        after = self._builder.add(at, _INT64(size))
        self._malformed_if(self._builder.icmp_signed(">", after, self._end))
        self._builder.store(after, self._at)
        return at

    def _number(self, field: Field, default: int | None = None) -> None:
        builder = self._builder
        opcode, size = NUMBERS[field.type]
        value = self._call(load_number, opcode, self._fixed(size))
        if default is not None:
            self._malformed_if(builder.icmp_signed("==", value, _INT64(default)))
        write = {"bool": write_bool, "float64": write_double}.get(field.type, write_number)
        out = self._call(write, value, self._flush())
        if field.type == "float64":
            self._malformed_if(builder.icmp_signed("<", out, _INT64(0)))
        builder.store(out, self._out)

    def _uuid(self) -> None:
        at = self._fixed(UUID_BYTES)
        self._builder.store(self._call(write_uuid_text, at, self._flush()), self._out)

    def _where(self) -> tuple[Any, Any]:
        return self._builder.load(self._at), self._end

    def _string(self, field: Field, nullable: bool) -> None:
        if self._named is not None and field is self._named[0]:
            self._config_name = self._builder.load(self._at)
        if self._named is not None and field is self._named[1]:
            given = (self._task, self._config_name, int(nullable), *self._where(), self._flush())
            self._proceed(self._call(write_config_value, *given))
            return
        self._proceed(self._call(write_text, self._task, int(nullable), *self._where(), self._flush()))

    def _list(self, field: Field, nullable: bool) -> None:
        if field.type in ("int32", "uuid"):
            write = write_int32_list if field.type == "int32" else write_uuid_list
            self._proceed(self._call(write, int(nullable), *self._where(), self._flush()))
            return
        builder = self._builder
        count, at = self._pair(self._call(read_size, 0, *self._where()))
        self._malformed_if(builder.icmp_signed("<", at, _INT64(0)))
        builder.store(at, self._at)
        self._say("[")
        self._flush()
        with cgutils.for_range(builder, count):
            self._element(field)
            self._say(",")
            self._flush()
        builder.store(self._call(close_list, count, builder.load(self._out)), self._out)

    def _element(self, field: Field) -> None:
        if field.type == "struct":
            self._struct(field.fields, flexible=True)
        else:
            self._string(field, nullable=False)
