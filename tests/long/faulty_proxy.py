"""A proxy on loopback of a server of S3's protocol that spoils commits: SERVER_PORT FAULT FILE.

"late": the commit takes effect long after the client has given up; "slow": and is answered.

Prints its port. FILE says how many commits still meet the fault, or gets a line for each request. It is a
process of its own because delta-rs waits for some answers with Python's lock held.
"""

from __future__ import annotations

import socket
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# What a commit meets: whether it takes effect, and the status of the answer; None: the connection ends.
FAULTS = {
    "lost": (True, 503),
    "lost by reset": (True, None),
    "not done": (False, 503),
    "reset": (False, None),
    "refused": (False, 412),
    "failed": (False, 500),
    "slow": (True, 200),
    "late": (True, None),
}
WAITS_SECONDS = {"slow": 2.0, "late": 8.0}
# Always: the server ignores conditions, or is as it should be and FILE is a log.
UNCONDITIONAL, COUNTED = "unconditional", "counted"
# Always: the server refuses to be changed; says as Amazon's that the bucket is in another region; or, where
# records are read, that credentials have expired.
REFUSALS = {
    "expired": (400, b"<Code>ExpiredToken</Code><Message>The provided token has expired.</Message>"),
    "read-only": (403, b"<Code>AccessDenied</Code><Message>Access Denied</Message>"),
    "elsewhere": (
        400,
        b"<Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; the "
        b"region 'us-east-1' is wrong; expecting 'eu-central-1'</Message><Region>eu-central-1</Region>",
    ),
}
# Headers that a proxy sets itself.
OF_A_HOP = {"transfer-encoding", "connection", "date", "server"}
SERVER_PORT, FAULT, LEFT = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self._body()
        if self._is_refused():
            status, reason = REFUSALS[FAULT]
            content = b'<?xml version="1.0"?><Error>' + reason + b"</Error>"
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        if FAULT == COUNTED:
            is_list = self.command == "GET" and "list-type=" in self.path
            with LEFT.open("a") as log:
                log.write(f"{'LIST' if is_list else self.command} {self.path}\n")
        if not self._is_spoilt():
            self._pass_on(*self._forward(body))
            return
        takes_effect, status = FAULTS[FAULT]
        time.sleep(WAITS_SECONDS.get(FAULT, 0))
        if takes_effect:
            answer = self._forward(body)
            if status == 200:
                self._pass_on(*answer)
                return
        if status is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _is_refused(self) -> bool:
        if FAULT == "expired":
            return self.command == "GET" and "/records/part-" in self.path
        is_change = self.command not in ("GET", "HEAD")
        return FAULT == "elsewhere" or (FAULT == "read-only" and is_change)

    def _is_spoilt(self) -> bool:
        if FAULT not in FAULTS:
            return False
        is_commit = self.command == "PUT" and "_delta_log/" in self.path and self.path.endswith(".json")
        left = int(LEFT.read_text()) if is_commit else 0
        if left:
            LEFT.write_text(str(left - 1))
        return left > 0

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _forward(self, body: bytes) -> tuple[HTTPResponse, bytes]:
        left_out = {"transfer-encoding"} | ({"if-none-match"} if FAULT == UNCONDITIONAL else set())
        headers = {name: value for name, value in self.headers.items() if name.lower() not in left_out}
        server = HTTPConnection("127.0.0.1", SERVER_PORT)
        server.request(self.command, self.path, body, headers)
        answer = server.getresponse()
        return answer, answer.read()

    def _pass_on(self, answer: HTTPResponse, content: bytes) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            is_length = name.lower() == "content-length" and self.command != "HEAD"
            if name.lower() not in OF_A_HOP and not is_length:
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    served = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    print(served.server_address[1], flush=True)
    served.serve_forever()
