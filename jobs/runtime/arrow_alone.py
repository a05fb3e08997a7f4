"""Import pyarrow without pandas.

The first pyarrow.array looks for pandas, to know its objects when it is given one. The import takes 0.2 s of
every verb that opens a lake, and no verb gives pyarrow such objects. Great Expectations and Table.to_pandas,
which need pandas, import it later all the same.
"""

from __future__ import annotations

import sys


class _WithoutPandas:
    """On sys.meta_path: pandas is not found."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("hidden from pyarrow", name=name)


def import_pyarrow() -> None:
    """Import pyarrow, and let it look for pandas, in vain. Does nothing in a process that has either."""
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    without = _WithoutPandas()
    sys.meta_path.insert(0, without)
    try:
        import pyarrow

        pyarrow.array([0])
    finally:
        sys.meta_path.remove(without)
