"""kraftlake serve, asked by beeline over JDBC and by a Python client."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from jobs.cli import main
from tests.long.venvs import installed

CHECKOUT = Path(__file__).parents[3]
BEELINE = Path(pyspark.__file__).parent / "bin" / "beeline"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def url(lake: Any) -> Iterator[str]:
    """The address of a server in a process of its own; it ends well when it is told to."""
    command = [
        sys.executable,
        "-m",
        "jobs.cli",
        "serve",
        "--lake",
        str(lake.path),
        "--port",
        str(free_port()),
    ]
    server = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield json.loads(server.stdout.readline())["url"]
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0


def asked(url: str, query: str) -> list[str]:
    """The lines that beeline prints as CSV, without its prompt."""
    command = [
        str(BEELINE),
        "-u",
        url,
        "--outputformat=csv2",
        "--silent=true",
        "--showHeader=false",
        "-e",
        query,
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    lines = (line.split("> ", 1)[-1].strip() for line in answer.stdout.splitlines())
    return [line for line in lines if line]


@pytest.mark.long
def test_tables_and_views_answer(url: str) -> None:
    query = (
        "SELECT `offset`, commit_status, truncated_by_epoch FROM voter_history WHERE `offset` IN (355, 790)"
    )
    assert asked(url, query) == ["355,truncated,3", "790,truncated,7"]
    assert asked(url, "SELECT current_database(), COUNT(*) FROM captures") == ["kraft,55"]


@pytest.mark.long
def test_nothing_is_left_where_it_was_started(url: str) -> None:
    assert asked(url, "SELECT 1") == ["1"]
    assert not (CHECKOUT / "derby.log").exists()
    assert not (CHECKOUT / "metastore_db").exists()


@pytest.mark.long
def test_only_loopback_is_listened_on(url: str) -> None:
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    local = f"0100007F:{port:04X}"
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening += [line.split()[1] for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    of_port = [address for address in listening if address.endswith(f":{port:04X}")]
    assert of_port
    assert all(a in (local, f"0000000000000000FFFF0000{local}") for a in of_port)


# Types as a program sees them, a parameter, and an error that leaves the connection usable.
CLIENT = """
import json, sys
from impala.dbapi import connect
from impala.error import OperationalError

port = int(sys.argv[1].rsplit(":", 1)[1].split("/")[0])
whoever = {"auth_mechanism": "PLAIN", "user": "any", "password": "any"}
cursor = connect("127.0.0.1", port, database="kraft", **whoever).cursor()
question = "SELECT `offset`, commit_status, in_force_from FROM voter_history WHERE `offset` = %(n)s"
cursor.execute(question, {"n": 355})
((offset, status, since),) = cursor.fetchall()
try:
    cursor.execute("SELECT nothing FROM captures")
    error = None
except OperationalError as refused:
    error = str(refused)
cursor.execute("SELECT COUNT(*) FROM captures")
print(json.dumps([offset, status, since.isoformat(), "UNRESOLVED_COLUMN" in error, cursor.fetchall()]))
"""


@pytest.mark.long
def test_a_python_client_is_answered(url: str, tmp_path: Path) -> None:
    ask = installed(tmp_path / "venv", "impyla==0.24.0")
    assert ask(CLIENT, url) == [355, "truncated", "2026-11-21T09:15:16.632000", True, [[55]]]


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said at once, before Spark starts."""
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--lake", str(tmp_path), "--port", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
    assert time.monotonic() - began < 2
