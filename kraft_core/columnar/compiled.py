"""Numba behind three decorators, with an optional cache of machine code that processes share.

Numba's own cache supports neither wheels nor changes in another module, and fails where it cannot write. Here
the key is a digest of the sources of this package and of those that it imports, and the cache is the first
directory that can be written: $NUMBA_CACHE_DIR, the package's __pycache__, the user's cache directory, a
private temporary directory.
Without one, or if it fails, each process compiles the functions again (about twelve seconds).
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import caching, codegen, compiler

_njit = cast(Any, numba).njit
_types = cast(Any, types)
_caching = cast(Any, caching)
_codegen = cast(Any, codegen)
_compiler = cast(Any, compiler)

# The packages that machine code is made from: messages are declared outside this one.
_SOURCES = ("kraft_core.messages", "kraft_core.format", "kraft_core.columnar")

Function = TypeVar("Function", bound=Callable[..., Any])


class _Part(_codegen.JITCodeLibrary):  # pyright: ignore[reportUntypedBaseClass]
    """A function's code as part of an entry's: optimised and turned into machine code there, and only there.

    Numba does both for every function with all that it calls, and again for its callers.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Nothing here runs that could use it."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalized = True


class _PartCompiler(_compiler.Compiler):  # pyright: ignore[reportUntypedBaseClass]
    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        library = library or _Part(target_context.codegen(), "part")
        super().__init__(typing_context, target_context, library, *rest)


_OF_PARTS = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _PartCompiler,
}


def compiled(function: Function) -> Function:
    """A function that compiled functions call; Python cannot."""
    return _njit(**_OF_PARTS)(function)


def inlined(function: Function) -> Function:
    """A compiled function that is inlined wherever it is called."""
    return _njit(forceinline=True, **_OF_PARTS)(function)


def entry(function: Function) -> Function:
    """A compiled function that Python calls: compiled at the first call or loaded from the cache."""
    dispatcher = _njit(error_model="numpy", no_cfunc_wrapper=True)(function)
    if cache_folder() is not None:
        dispatcher._cache = _Cache(function)
    return dispatcher


@cache
def cache_folder() -> Path | None:
    """The directory of the current sources' machine code; None where none can be written."""
    name = f"kraftlake-{_sources_digest()[:16]}"
    for parent in _parents():
        try:
            folder = parent() / name
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def _parents() -> Iterator[Callable[[], Path]]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield lambda: Path(chosen)
    yield lambda: Path(__file__).parent / "__pycache__"
    yield lambda: Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    yield _private_temporary


def _private_temporary() -> Path:
    """A temporary directory. OSError unless only this user can access it: its content is executed."""
    folder = Path(tempfile.gettempdir(), f"kraftlake-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256()
    for package in _SOURCES:
        for source in sorted(resources.files(package).iterdir(), key=lambda found: found.name):
            if source.name.endswith(".py"):
                digest.update(source.read_bytes())
    return digest.hexdigest()


class _Locator(_caching._CacheLocator):  # pyright: ignore[reportUntypedBaseClass]
    def __init__(self, line: int) -> None:
        self._line = line

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return _sources_digest()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator:  # noqa: ARG003 (Numba's signature)
        return cls(py_func.__code__.co_firstlineno)


class _CacheImpl(_caching.CompileResultCacheImpl):  # pyright: ignore[reportUntypedBaseClass]
    _locator_classes = (_Locator,)


class _Cache(_caching.FunctionCache):  # pyright: ignore[reportUntypedBaseClass]
    """Numba's cache, but a failure to read or write it only costs the compilation."""

    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # pyright: ignore[reportUnknownVariableType]
        except Exception:  # a damaged file can raise anything when it is unpickled
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)
