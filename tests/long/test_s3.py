"""Captures on S3, read from a server of its protocol on loopback: the tables are those of local captures.

The server has an environment of its own, since it holds back versions that Kraftlake's own pins have left.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from tests.long.processes import run, tables

REQUIREMENTS = Path(__file__).with_name("s3-server.txt")
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "anyone",
    "AWS_SECRET_ACCESS_KEY": "anything",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Its address, and the file of the requests that it answered."""
    folder = tmp_path_factory.mktemp("s3")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv/bin/python", "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]
    subprocess.run(pip, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "requests"
    with log.open("wb") as out:
        command = [folder / "venv/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=out, stderr=out)
    give_up = time.monotonic() + 120
    while not answers(port):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < give_up
        time.sleep(0.2)
    yield f"127.0.0.1:{port}", log
    process.kill()
    process.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.long
def test_captures_on_s3(
    server: tuple[str, Path], golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree with segments that are fetched only when they are read, and an archive beside it."""
    address, requests = server
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://{address}"}.items():
        monkeypatch.setenv(name, value)
    # The server takes files of any time: what capture.json says counts.
    trees = [golden / "stale-split/healed/node-2", golden / "v4.4.0-mini/node-1"]
    packed = tmp_path / "node-2.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(golden / "v4.4.0-mini/node-2", "node-2")
    s3 = fs.S3FileSystem(endpoint_override=address, scheme="http", allow_bucket_creation=True)
    s3.create_dir("captures")
    for number, tree in enumerate(trees):
        fs.copy_files(str(tree), f"captures/nightly/{number}", destination_filesystem=s3)
    fs.copy_files(str(tmp_path), "captures/archives", destination_filesystem=s3)

    remote = ["s3://captures/nightly", "s3a://captures/archives/node-2.tar.gz"]
    lake, scratch = tmp_path / "lake", tmp_path / "scratch"
    scratch.mkdir()
    first = run(tmp_path / "first", lake, remote, "--scratch", scratch)
    assert first.ended() == 0, first.err.read_text()
    assert not any(scratch.iterdir())
    local = run(tmp_path / "local", tmp_path / "here", [*trees, packed])
    assert local.ended() == 0, local.err.read_text()
    assert tables(lake) == tables(tmp_path / "here")

    # What is known is not fetched again: of a large segment only the first and last 64 KiB.
    before = len(requests.read_text().splitlines())
    again = run(tmp_path / "again", lake, remote, "--scratch", scratch)
    assert again.ended() == 0, again.err.read_text()
    assert "nothing new" in again.out.read_text()
    asked = requests.read_text().splitlines()[before:]
    large = "captures/nightly/0/__cluster_metadata-0/00000000000000000000.log"
    of_large = [line for line in asked if f"GET /{large}" in line]
    assert len(of_large) == 2, of_large
    assert all(" 206 " in line for line in of_large)


@pytest.mark.long
def test_a_wrong_bucket(server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://{server[0]}"}.items():
        monkeypatch.setenv(name, value)
    refused = run(tmp_path / "refused", tmp_path / "lake", ["s3://no-such-bucket/x"])
    assert refused.ended() == 2
    said = refused.err.read_text()
    assert "s3://no-such-bucket/x" in said
    assert "Traceback" not in said
    assert not (tmp_path / "lake").exists()
