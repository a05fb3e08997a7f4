"""What LLVM alone can do: load any object file, and describe the processor. It takes long to import."""

from __future__ import annotations

from typing import Any, cast

import llvmlite.binding

llvm = cast(Any, llvmlite.binding)


class LlvmCode:
    """The code of an object file that the caller has checked: a damaged one can end the process."""

    def __init__(self, content: bytes) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        # The code is there for as long as the engine is.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function."""
        return self._engine.get_function_address(name)


def host_processor() -> str:
    """The name and the features of this processor: code for another one may end the process."""
    return f"{llvm.get_host_cpu_name()}\n{llvm.get_host_cpu_features().flatten()}"
