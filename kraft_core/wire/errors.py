"""What can go wrong between an observer and a quorum: each message says what, where and what to do.

No message holds a password, a token or a record.
"""

from __future__ import annotations

from kraft_core.protocol.errors import ErrorCode


class WireError(Exception):
    """A request that has no answer yet; asking again, here or elsewhere, may help."""


class SilentError(WireError):
    """The node did not answer in time: it hangs, or is not reached."""


class ClosedError(WireError):
    """The node closed the connection: it ended, or the connection was idle (connections.max.idle.ms)."""


class NoClusterIdError(WireError):
    """A controller does not tell its cluster's id before it has read its metadata, nor below 3.7-IV0.

    Kafka's ControllerRegistrationsPublisher answers UNSUPPORTED_VERSION in both cases (KIP-919).
    """


class RefusedError(WireError):
    """An answer that asking again does not change: a person has to act."""


class LostHistoryError(RefusedError):
    """The quorum no longer has what was read from it as committed."""


class RecordsGoneError(RefusedError):
    """The log begins above the offset that is wanted. first_offset: wanted; end_offset: where it begins."""

    def __init__(self, first_offset: int, end_offset: int) -> None:
        super().__init__(
            f"the leader's log begins at {end_offset}: the records from {first_offset} to "
            f"{end_offset - 1} were replaced by a snapshot before they were read"
        )
        self.first_offset = first_offset
        self.end_offset = end_offset


def error_name(code: int) -> str:
    """Kafka's name of an error code, or the code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
