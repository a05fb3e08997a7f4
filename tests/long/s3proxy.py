"""S3Proxy, a server of S3's protocol that keeps objects in a folder and checks keys, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ARTIFACT = "org.gaul:s3proxy:4.1.0:jar:jar-with-dependencies"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
KEY, SECRET, REGION, BUCKET = "AKIAKRAFTLAKE", "not-a-secret", "us-east-1", "bucket"
GIVE_UP_SECONDS = 120.0


class S3Server:
    """A server with one bucket. data: the folder of its buckets; environment: what its users need.

    Tests never ask a cloud's address: the one for credentials is a port on loopback where nobody listens.
    """

    def __init__(self, jar: Path, folder: Path, authorization: str = "aws-v2-or-v4") -> None:
        self.data, self._log = folder / "data", folder / "s3proxy.log"
        (self.data / BUCKET).mkdir(parents=True)
        self.port = free_port()
        settings = {
            "s3proxy.endpoint": f"http://127.0.0.1:{self.port}",
            "s3proxy.authorization": authorization,
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            # That of a session's token, which the server does not check.
            "s3proxy.ignore-unknown-headers": "true",
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.data),
        }
        properties = folder / "s3proxy.conf"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._command = ["java", "-Xmx512m", "-jar", str(jar), "--properties", str(properties)]
        self.environment = environment(self.port)
        self.start()

    def start(self) -> None:
        """Also again, at the same port, after it has ended."""
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=out)

    def await_answer(self) -> None:
        give_up = time.monotonic() + GIVE_UP_SECONDS
        while not answers(self.port):
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < give_up
            time.sleep(0.2)

    def end(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def environment(port: int) -> dict[str, str]:
    """The variables with which clients reach a server."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def s3proxy_jar() -> Iterator[Path]:
    """The server's jar, by Maven."""
    with tempfile.TemporaryDirectory() as folder:
        jar = fetched_jar(Path(folder))
        if jar is None:
            pytest.skip("mvn is not installed")
        yield jar


def fetched_jar(folder: Path) -> Path | None:
    """The server's jar, fetched by Maven; None without Maven."""
    mvn = shutil.which("mvn")
    if mvn is None:
        return None
    command = [mvn, "-B", "-q", COPY, f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (jar,) = folder.glob("*.jar")
    return jar


@pytest.fixture(scope="session")
def s3_server(s3proxy_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with started(s3proxy_jar, tmp_path_factory.mktemp("server") / "s3") as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A server with an empty bucket, which this process and those that it starts reach."""
    for held in s3_server.data.iterdir():
        shutil.rmtree(held)
    (s3_server.data / BUCKET).mkdir()
    use(s3_server.environment, monkeypatch)
    return s3_server


@contextmanager
def started(jar: Path, folder: Path, authorization: str = "aws-v2-or-v4") -> Iterator[S3Server]:
    folder.mkdir()
    server = S3Server(jar, folder, authorization)
    try:
        server.await_answer()
        yield server
    finally:
        server.end()


def use(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, too, reach another server."""
    from transforms.lake.storage import conditions, objects, profile

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for cached in (objects._store, objects.arrow_files, conditions._check, profile.use_profile):
        cached.cache_clear()
    forget_all()


def forget_all() -> None:
    """What this process knows of stores, as one that begins knows nothing."""
    from transforms.lake.storage import lake_json, table_copies, table_folders

    for held in (table_folders._found, table_folders._copies, table_folders._written, lake_json._known):
        held.clear()
    table_copies._made.clear()


@contextmanager
def faulty(port: int, fault: str, left: Path) -> Iterator[int]:
    """A proxy of a server (tests.long.faulty_proxy), in a process of its own. Yields its port.

    left: the file that says how many requests still meet the fault, or that gets a line for each.
    """
    left.write_text("" if fault == "counted" else "0")
    command = [sys.executable, "-m", "tests.long.faulty_proxy", str(port), fault, str(left)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        assert proxy.stdout is not None
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.kill()
