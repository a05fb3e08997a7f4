"""The errors of reading and writing bytes, each with the byte position or field, and a reason."""

from __future__ import annotations

import errno
from pathlib import Path


class DecodeError(ValueError):
    """The bytes are invalid.

    position: in bytes from the start of the reader's buffer, where reading stopped. reason: as text.
    field: path of the field being read ("endPoints.host"), "" outside any field.
    """

    def __init__(self, position: int, reason: str, field: str = "") -> None:
        super().__init__(position, reason, field)
        self.position = position
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.reason} (byte {self.position})"

    def within(self, field: str) -> DecodeError:
        """The same error, with the path of the enclosing field."""
        return DecodeError(self.position, self.reason, f"{field}.{self.field}" if self.field else field)

    def shifted(self, by: int) -> DecodeError:
        """The same error, with the position `by` bytes later."""
        return DecodeError(self.position + by, self.reason, self.field)


class TrailingBytes(DecodeError):
    """The message was read completely, but bytes follow it."""

    def __init__(self, position: int, count: int) -> None:
        super().__init__(position, f"{count} bytes left over")
        self.count = count


class UnknownRecord(DecodeError):
    """A record of an undeclared type, version or frame: newer than this reader, or foreign.

    api_key: the metadata record's id or the control record's type; None if the frame is unknown, too.
    version, frame_version: None if not read, or not present in control records.
    """

    def __init__(
        self,
        position: int,
        reason: str,
        *,
        api_key: int | None,
        version: int | None,
        frame_version: int | None,
    ) -> None:
        super().__init__(position, reason)
        self.api_key = api_key
        self.version = version
        self.frame_version = frame_version


class FileChangedError(OSError):
    """A file no longer holds what it held when it was listed: it was truncated, rewritten or replaced."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(errno.ESTALE, "changed while it was read", str(path))


class EncodeError(ValueError):
    """A value that the message cannot hold. field: path of the offending field; reason: as text."""

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason

    def within(self, field: str) -> EncodeError:
        """The same error, with the path of the enclosing field."""
        return EncodeError(self.reason, f"{field}.{self.field}" if self.field else field)
