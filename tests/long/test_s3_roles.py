"""Credentials of a role: asked of a container's or an instance's address, here a server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.long.s3proxy import KEY, SECRET, S3Server, use
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage import prepare_lake
from transforms.lake.storage.location import StoreUrl
from transforms.lake.table_damage import damaged_tables
from transforms.lake.tables import CLUSTER_NAMES

pytestmark = pytest.mark.long
LAKE = StoreUrl("bucket", "lake")
ROW = {"cluster_id": "c", "name": "n", "environment": None, "owner": None}
CREDENTIALS = {
    "Code": "Success",
    "Type": "AWS-HMAC",
    "LastUpdated": "2026-11-21T00:00:00Z",
    "AccessKeyId": KEY,
    "SecretAccessKey": SECRET,
    "Token": "of a session",
    "Expiration": "2999-11-21T00:00:00Z",
}


class Metadata(BaseHTTPRequestHandler):
    """The addresses that give credentials: /container with a token, and those of an instance."""

    def do_GET(self) -> None:
        if self.path == "/container" and self.headers.get("Authorization") != "sesame":
            self.send_error(403)
            return
        is_list = self.path.endswith("security-credentials/")
        self._answer(b"role" if is_list else json.dumps(CREDENTIALS).encode())

    def do_PUT(self) -> None:
        self._answer(b"token of the instance")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def metadata() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Metadata) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("of", ["container", "instance"])
def test_a_role_writes_and_reads(
    of: str, s3: S3Server, metadata: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("sesame")
    given = {name: value for name, value in s3.environment.items() if "KEY" not in name}
    if of == "container":
        given["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = f"{metadata}/container"
        given["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(token)
    else:
        del given["AWS_EC2_METADATA_DISABLED"]
        given |= {"AWS_METADATA_ENDPOINT": metadata, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    use(given, monkeypatch)
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    writer.append(CLUSTER_NAMES, [ROW])
    assert rows_with(LAKE, CLUSTER_NAMES) == [ROW]
    assert damaged_tables(LAKE, open_files=True) == {}
