"""Numba behind three decorators, with an optional cache of machine code that processes share.

Numba's own cache supports neither wheels nor changes in another module, and fails where it cannot write: here
it is in the folder of code_cache. Without one, or if it fails, each process compiles the functions again
(about twelve seconds).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core import caching, codegen, compiler

from kraft_core.columnar.code_cache import cache_folder, sources_digest

_njit = cast(Any, numba).njit
_types = cast(Any, types)
_caching = cast(Any, caching)
_codegen = cast(Any, codegen)
_compiler = cast(Any, compiler)

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


class _Locator(_caching._CacheLocator):  # pyright: ignore[reportUntypedBaseClass]
    def __init__(self, line: int) -> None:
        self._line = line

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return sources_digest()

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
