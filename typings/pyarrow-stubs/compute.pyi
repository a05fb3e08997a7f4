"""pyarrow makes its compute functions at import, from a registry of C++, where pyright cannot see them."""

from typing import Any

def __getattr__(name: str) -> Any: ...
