"""Requests to bytes and bytes to responses: Kafka's frames of a length, a header and a message.

Source: Kafka's protocol guide, RequestHeader and ResponseHeader. Without I/O: the owner of a socket sends
what `request_frame` returns and passes on what it received.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.format.codec import read_message, write_message
from kraft_core.format.errors import DecodeError
from kraft_core.wire.apis import Api
from kraft_core.wire.errors import WireError

LENGTH = struct.Struct(">i")
# More than any answer to a request of this package, whose sizes are asked for.
MAX_FRAME_BYTES = 128 * 1024 * 1024
_HEADER = struct.Struct(">hhih")
_CORRELATION_ID = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Request:
    """A message to send: absent fields take their default."""

    api: Api
    version: int
    body: Mapping[str, Any]


def request_frame(request: Request, correlation_id: int, client_id: str) -> bytes:
    """The bytes to send. Raises EncodeError for a body that the request cannot hold."""
    name = client_id.encode()
    header = _HEADER.pack(request.api.key, request.version, correlation_id, len(name)) + name
    tags = b"\0" if request.api.request.flexible else b""
    body = write_message(request.api.request, request.version, request.body)
    frame = header + tags + body
    return LENGTH.pack(len(frame)) + frame


def frame_length(prefix: bytes) -> int:
    """The length of the frame after these four bytes. Raises WireError for no length of Kafka's."""
    (length,) = LENGTH.unpack(prefix)
    if not _CORRELATION_ID.size <= length <= MAX_FRAME_BYTES:
        # 0x15 0x03: a TLS alert.
        tls = (
            "; its port speaks TLS: set security.protocol to SSL or SASL_SSL"
            if prefix[:2] == b"\x15\x03"
            else ""
        )
        raise WireError(f"the answer does not look like one of Kafka's{tls}")
    return length


def response_body(request: Request, correlation_id: int, frame: bytes) -> dict[str, Any]:
    """The response in a frame without its length. Raises WireError where it is not that request's."""
    api = request.api
    if len(frame) < _CORRELATION_ID.size or _CORRELATION_ID.unpack_from(frame)[0] != correlation_id:
        raise WireError(f"the answer to {api.name} belongs to another request")
    start = _CORRELATION_ID.size
    if api.response.flexible and not api.bare_header:
        if frame[start : start + 1] != b"\0":
            raise WireError(f"the answer to {api.name} has an unknown header")
        start += 1
    try:
        body, end = read_message(api.response, request.version, frame, start)
    except DecodeError as error:
        raise WireError(f"the answer to {api.name} {request.version} cannot be read: {error}") from None
    if end != len(frame):
        raise WireError(f"the answer to {api.name} {request.version} has {len(frame) - end} bytes too many")
    return body
