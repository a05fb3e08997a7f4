"""The processor that machine code is for, as LLVM describes it, without importing LLVM each time.

/proc/cpuinfo alone does not tell: a kernel shows only the features that it knows.
"""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path

from kraft_core.columnar.code_cache import keep, kept

_NOTE = "processor"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PROCESSORS = Path("/proc/cpuinfo")
_DESCRIBED = (b"vendor_id", b"cpu family", b"model", b"stepping", b"flags")


def processor(folder: Path) -> str:
    """Its name and features. A note of them in the folder is valid for this machine until its next boot."""
    machine = _machine()
    noted = kept(folder / _NOTE)
    if machine is not None and noted is not None and noted.startswith(machine):
        return noted[len(machine) :].decode()
    from kraft_core.columnar.llvm_code import host_processor

    found = host_processor()
    if machine is not None:
        keep(folder / _NOTE, machine + found.encode())
    return found


def _machine() -> bytes | None:
    """What tells this machine, and its boot, from others; None where the kernel does not say.

    The id is different at each boot; the first processor is included in case a sandbox makes the id up.
    """
    try:
        boot_id = _BOOT_ID.read_bytes().strip()
        with _PROCESSORS.open("rb") as lines:
            first = [line for line in takewhile(bytes.strip, lines) if line.startswith(_DESCRIBED)]
    except OSError:
        return None
    if not boot_id or not first:
        return None
    return b"".join([boot_id, b"\n", *first, os.uname().machine.encode(), b"\n\n"])
