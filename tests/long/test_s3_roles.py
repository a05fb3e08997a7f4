"""Credentials of a role: asked of a container, an instance or STS, each a server on loopback here."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.long.processes import CHECKOUT
from tests.long.s3proxy import KEY, SECRET, S3Server, use
from tests.long.web_identity import in_own_network, make_certificates
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


@pytest.mark.parametrize("of", ["container", "instance", "profile"])
def test_a_role_writes_and_reads(
    of: str, s3: S3Server, metadata: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, keys = tmp_path / "token", tmp_path / "keys"
    token.write_text("sesame")
    keys.write_text(f"[night]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    given = {name: value for name, value in s3.environment.items() if "KEY" not in name}
    if of == "container":
        given["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = f"{metadata}/container"
        given["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(token)
    elif of == "profile":
        given |= {"AWS_PROFILE": "night", "AWS_SHARED_CREDENTIALS_FILE": str(keys)}
    else:
        del given["AWS_EC2_METADATA_DISABLED"]
        given |= {"AWS_METADATA_ENDPOINT": metadata, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):  # which a profile sets
        monkeypatch.setenv(name, "")
    use(given, monkeypatch)
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    writer.append(CLUSTER_NAMES, [ROW])
    assert rows_with(LAKE, CLUSTER_NAMES) == [ROW]
    assert damaged_tables(LAKE, open_files=True) == {}


def test_a_web_identity(s3proxy_jar: Path, golden: Path, tmp_path: Path) -> None:
    """A run and a question of Spark in a network of their own; each process ends."""
    make_certificates(tmp_path / "certificates")
    script = tmp_path / "script"
    kraftlake = f"timeout 300 {sys.executable} -m jobs.cli"
    script.write_text(
        f"{kraftlake} run --captures {golden}/v4.4.0-mini --lake s3://bucket/lake --fail-on never\n"
        f"{kraftlake} check --lake s3://bucket/lake\n"
        f"{kraftlake} sql 'SELECT count(*) AS n FROM captures' --lake s3://bucket/lake --format json\n"
    )
    command = [sys.executable, "-m", "tests.long.web_identity", s3proxy_jar, tmp_path, "sh", "-e", script]
    done = subprocess.run(
        [*in_own_network(tmp_path / "certificates"), *map(str, command)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, answer = done.stdout.splitlines()
    assert json.loads(answer)["n"] > 0
