"""The compiled writer of lines is loaded without LLVM where that can be, and only as it was compiled."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import llvmlite.binding
import pytest

from kraft_core.columnar import code_cache, line_code, line_task, processor
from kraft_core.columnar.line_code import LineCode
from kraft_core.columnar.llvm_code import LlvmCode, host_processor
from kraft_core.columnar.object_code import NotLoadable, ObjectCode
from tests.kraft_core.batches import no_op_batch
from tests.kraft_core.columnar.test_kafka_text import HIDDEN, LOG, compared_file

llvm = cast(Any, llvmlite.binding)

CHECKOUT = Path(__file__).parents[3]
on_linux_x86_64 = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="LLVM loads the code elsewhere"
)

# Functions of an int64: alone, by a function of C, by what is written to memory, by another function.
ALONE = "define i64 @f(i64 %n) { %r = add i64 %n, 1 ret i64 %r }"
OF_C = """
declare i64 @labs(i64)
define i64 @f(i64 %n) { %r = call i64 @labs(i64 %n) ret i64 %r }
"""
COUNTING = """
@count = internal global i64 7
define i64 @f(i64 %n) {
  %old = load i64, i64* @count
  %new = add i64 %old, %n
  store i64 %new, i64* @count
  ret i64 %new
}
"""
CALLING = """
define internal i64 @g(i64 %n) noinline { %r = mul i64 %n, 3 ret i64 %r }
define i64 @f(i64 %n) { %r = call i64 @g(i64 %n) ret i64 %r }
"""
CALLING_WEAK = CALLING.replace("internal", "weak")


def object_file(source: str, **options: str) -> bytes:
    """What LLVM compiles; options: of create_target_machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(**options)
    return machine.emit_object(llvm.parse_assembly(source))


def called(code: line_code.Code, number: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("f"))(number)


def cached() -> bytes:
    """The object file of the writer."""
    line_code.line_code()
    place = line_code._place()
    assert place is not None
    content = code_cache.kept(place)
    assert content is not None
    return content


def test_numba_is_imported_to_compile_only() -> None:
    line_code.line_code()
    script = (
        "import sys; from kraft_core.columnar import kafka_text, line_code; line_code.line_code();"
        "assert not {'numba', 'numpy', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@on_linux_x86_64
def test_llvm_is_not_imported_to_load_the_code() -> None:
    cached()
    script = (
        "import sys; from kraft_core.columnar import kafka_text, line_code; line_code.line_code();"
        "assert not {'llvmlite', 'hashlib', 'tempfile', 'concurrent.futures'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=CHECKOUT)


@on_linux_x86_64
@pytest.mark.parametrize(
    ("source", "result"),
    [(ALONE, 6), (CALLING, 15), (CALLING_WEAK, 15)],
    ids=["alone", "calling", "calling_weak"],
)
def test_code_that_needs_nothing_from_outside(source: str, result: int) -> None:
    code = line_code.loaded(object_file(source, codemodel="large", reloc="static"))
    assert isinstance(code, ObjectCode)
    assert called(code, 5) == result
    with pytest.raises(KeyError):
        code.address("other")


@on_linux_x86_64
@pytest.mark.parametrize(("source", "result"), [(OF_C, 5), (COUNTING, 2)], ids=["of_c", "counting"])
def test_llvm_loads_other_code(source: str, result: int) -> None:
    code = line_code.loaded(object_file(source, codemodel="large", reloc="static"))
    assert isinstance(code, LlvmCode)
    assert called(code, -5) == result


@on_linux_x86_64
@pytest.mark.parametrize(
    ("at", "kind"), [(18, 183), (16, 3)], ids=["of another processor", "of another kind"]
)
def test_files_that_are_no_object_files_for_this_processor(at: int, kind: int) -> None:
    content = bytearray(object_file(ALONE))
    content[at : at + 2] = kind.to_bytes(2, "little")
    with pytest.raises(NotLoadable):
        ObjectCode(bytes(content))


@on_linux_x86_64
def test_a_relocation_of_another_kind() -> None:
    with pytest.raises(NotLoadable, match="relocation"):
        ObjectCode(object_file(CALLING_WEAK, codemodel="small", reloc="pic"))


def test_llvm_s_code_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    by_llvm = LineCode(LlvmCode(cached()))
    monkeypatch.setattr(line_task, "line_code", lambda: by_llvm)
    compared_file(LOG, HIDDEN)


@on_linux_x86_64
def test_without_executable_memory_kafka_dump_writes_all(tmp_path: Path) -> None:
    """A kernel lets a process refuse itself that memory becomes executable, as systemd does for services."""
    cached()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(b"".join(no_op_batch(offset) for offset in range(5000)))
    dumped = f"sys.argv = ['kraftlake', 'dump', '--format', 'kafka', {str(path)!r}]; sys.exit(cli.main())"
    refused = "ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0 or sys.exit(99)"  # PR_SET_MDWE
    compiled, interpreted = (
        subprocess.run(
            [sys.executable, "-c", f"import ctypes, sys; from jobs import cli; {first}; {dumped}"],
            capture_output=True,
            cwd=CHECKOUT,
        )
        for first in ("pass", refused)
    )
    if interpreted.returncode == 99:
        pytest.skip("the kernel cannot refuse it")
    assert path.stat().st_size > 256 * 1024
    assert (interpreted.returncode, interpreted.stderr) == (0, b"")
    assert interpreted.stdout == compiled.stdout


def test_a_damaged_object_file_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = line_code._place()
    line_code.line_code()
    assert held is not None
    place = tmp_path / "lines.o"
    content = held.read_bytes()
    monkeypatch.setattr(line_code, "_place", lambda: place)
    for damage, is_whole in ((content, True), (content[:-1], False), (b"", False), (None, False)):
        line_code._cached.cache_clear()
        if damage is None:
            place.unlink()
        else:
            place.write_bytes(damage)
        assert line_code.is_compiled() == is_whole
    line_code._cached.cache_clear()


@pytest.mark.parametrize("at", [0, 15, 16, 100, -1])
def test_a_file_with_a_wrong_bit_is_not_used(tmp_path: Path, at: int) -> None:
    place = tmp_path / "lines.o"
    code_cache.keep(place, cached())
    assert code_cache.kept(place) == cached()
    held = bytearray(place.read_bytes())
    held[at] ^= 1
    place.write_bytes(held)
    assert code_cache.kept(place) is None


@on_linux_x86_64
class TestProcessor:
    """What LLVM calls the processor is noted, for one machine and until it is booted again."""

    @pytest.fixture(autouse=True)
    def noted(self, tmp_path: Path) -> bytes:
        """A note that says something else than LLVM."""
        assert processor.processor(tmp_path) == host_processor()
        note = code_cache.kept(tmp_path / "processor")
        assert note is not None
        assert note.endswith(host_processor().encode())
        other = note.replace(host_processor().encode(), b"noted")
        code_cache.keep(tmp_path / "processor", other)
        return other

    def test_the_note_is_read(self, tmp_path: Path) -> None:
        assert processor.processor(tmp_path) == "noted"

    def test_after_another_boot(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        boot_id = tmp_path / "boot_id"
        boot_id.write_text("1e3f1b0c-3f0f-4d5e-8a5c-0d6c9f1f2a3b\n")
        monkeypatch.setattr(processor, "_BOOT_ID", boot_id)
        self._assert_noted_again(tmp_path)

    def test_on_another_processor(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        processors = tmp_path / "cpuinfo"
        processors.write_bytes(Path("/proc/cpuinfo").read_bytes().replace(b" sse2 ", b" "))
        monkeypatch.setattr(processor, "_PROCESSORS", processors)
        self._assert_noted_again(tmp_path)

    @pytest.mark.parametrize(
        ("source", "content"),
        [("_BOOT_ID", None), ("_BOOT_ID", b"\n"), ("_PROCESSORS", None), ("_PROCESSORS", b"processor: 0\n")],
    )
    def test_where_the_kernel_does_not_tell(
        self,
        tmp_path: Path,
        noted: bytes,
        source: str,
        content: bytes | None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        place = tmp_path / "of_the_kernel"
        if content is not None:
            place.write_bytes(content)
        monkeypatch.setattr(processor, source, place)
        assert processor.processor(tmp_path) == host_processor()
        assert code_cache.kept(tmp_path / "processor") == noted

    def test_a_damaged_note(self, tmp_path: Path, noted: bytes) -> None:
        (tmp_path / "processor").write_bytes(noted)
        self._assert_noted_again(tmp_path)

    def test_a_folder_that_cannot_be_written(self, tmp_path: Path) -> None:
        assert processor.processor(tmp_path / "missing") == host_processor()

    def _assert_noted_again(self, folder: Path) -> None:
        for _ in range(2):
            assert processor.processor(folder) == host_processor()
        note = code_cache.kept(folder / "processor")
        assert note is not None
        assert note.endswith(host_processor().encode())
