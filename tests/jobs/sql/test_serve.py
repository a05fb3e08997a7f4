"""kraftlake serve, asked by beeline over JDBC and by a Python client."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
import pytest

from dashboards.catalog import AskedLake
from jobs.cli import main
from jobs.questions import login
from jobs.questions.question_session import question_session
from jobs.questions.server import Address, serving
from tests.long.processes import jvms
from tests.long.venvs import installed
from transforms.lake.storage.location import Location

CHECKOUT = Path(__file__).parents[3]
BEELINE = Path(pyspark.__file__).parent / "bin" / "beeline"
# Of JVMs that are over before code that they optimize would pay off.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Server:
    """kraftlake serve in a process of its own, which beeline asks.

    java_options: None for those of the product.
    """

    def __init__(
        self, lake: Location, folder: Path, *flags: str, java_options: str | None = JAVA_OPTIONS
    ) -> None:
        self.login = folder / "login"
        self.login.write_text("reader:se:cret\n")
        self.login.chmod(0o600)
        self.errors = folder / "stderr"
        settings = folder / "kraftlake.toml"
        options = {} if java_options is None else {"spark.driver.extraJavaOptions": java_options}
        settings.write_text("[spark]\n" + "".join(f'"{name}" = "{text}"\n' for name, text in options.items()))
        words = ["serve", "--lake", str(lake), "--port", str(free_port()), "--login", str(self.login), *flags]
        command = [sys.executable, "-m", "jobs.cli", *words, "--config", str(settings)]
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, self.errors.read_text()
        self.url = json.loads(said)["url"]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].split("/")[0])

    def beeline(
        self, *words: str, password: str = "se:cret", options: str = ""
    ) -> subprocess.CompletedProcess[str]:
        command = [str(BEELINE), "-u", self.url + options, "-n", "reader", "-p", password]
        command += ["--outputformat=csv2", "--silent=true", "--showHeader=false", "--force=true", *words]
        variables = {"SPARK_LAUNCHER_OPTS": JAVA_OPTIONS, "SPARK_BEELINE_OPTS": JAVA_OPTIONS}
        return subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False
        )

    def asked(self, query: str) -> list[str]:
        """The lines that beeline prints as CSV, without its prompt."""
        answer = self.beeline("-e", query)
        assert answer.returncode == 0, answer.stderr
        return rows(answer.stdout)

    def jvm(self) -> int:
        """The process id of Spark's JVM, the child of the server that runs java."""
        (java,) = jvms(self.process.pid)
        return java

    def stopped(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        assert "Traceback" not in self.errors.read_text()
        return code


def rows(stdout: str) -> list[str]:
    lines = (line.split("> ", 1)[-1].strip() for line in stdout.splitlines())
    return [line for line in lines if line and not line.endswith(">")]


@pytest.fixture(scope="module")
def server(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It ends well when it is told to."""
    server = Server(lake.path, tmp_path_factory.mktemp("serve"))
    yield server
    assert server.stopped() == 0


# What one query of any local user could do, and SET, which would change the answers of others.
ATTACKS = (
    "DELETE FROM captures",
    "INSERT OVERWRITE DIRECTORY '{place}' USING csv SELECT 1",
    "CREATE TABLE delta.`{place}` AS SELECT 1 AS a",
    "SELECT * FROM csv.`/etc/passwd`",
    "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT java_method('java.lang.System', 'exit', 3)",
    "ADD JAR x.jar",
    "SET spark.sql.warehouse.dir=/tmp",
    "SET",
    "SET spark.sql.session.timeZone=Asia/Tokyo",
)


# As in QuestionServer.java, and how long a busy machine may take to notice.
LOGIN_SECONDS, MOST_CONNECTIONS, SLACK_SECONDS = 5, 64, 15
# The beginning of a message of SASL, status START, of 96 MB.
LONG_MESSAGE = b"\x01\x06\x00\x00\x00"


def until_closed(peer: socket.socket, began: float, drip: bytes = b"") -> float:
    """Seconds from `began` until the other side closes a connection, sent the bytes again and again."""
    peer.settimeout(0.5 if drip else LOGIN_SECONDS + SLACK_SECONDS)
    while time.monotonic() - began < LOGIN_SECONDS + SLACK_SECONDS:
        try:
            peer.sendall(drip)
            if not peer.recv(4096):
                break
        except TimeoutError:
            assert drip, "still open"
        except ConnectionError:
            break
    else:
        pytest.fail("still open")
    return time.monotonic() - began


def besiege(server: Server) -> None:
    """Anybody may connect: many, slow ones, and one with a long message."""
    with ExitStack() as stack:
        began = time.monotonic()
        peers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            for _ in range(MOST_CONNECTIONS + 10)
        ]
        peers[0].sendall(LONG_MESSAGE)
        until_closed(peers[0], began)
        # One of the ten too many may take the place of the first.
        while sum(is_closed(peer) for peer in peers[2:]) < 9:
            assert time.monotonic() - began < LOGIN_SECONDS + SLACK_SECONDS
            time.sleep(0.1)
        assert not is_closed(peers[1]), "closed by the time limit, which ends the oldest first"
        until_closed(peers[1], began, drip=b"\x01")
        for peer in peers[2:]:
            until_closed(peer, began)


def is_closed(peer: socket.socket) -> bool:
    """Whether a connection that is sent nothing is closed already."""
    peer.setblocking(False)
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    finally:
        peer.setblocking(True)


@pytest.mark.long
def test_a_server_answers_questions_of_those_who_may_ask(server: Server, tmp_path: Path) -> None:
    """Real clients: refused with a wrong password, and refused each attack; the server answers on.

    It does so after others who have not logged in: they took little.
    """
    before = len(server.errors.read_text())
    besiege(server)
    assert "Exception" not in server.errors.read_text()[before:]
    script = tmp_path / "attacks.sql"
    questions = ["SELECT current_database(), COUNT(*) FROM captures"]
    attacks = [sql.format(place=tmp_path / "made") for sql in ATTACKS]
    script.write_text("".join(f"{sql};\n" for sql in [*questions, *attacks, *questions]))
    answer = server.beeline("-f", str(script))
    assert answer.stdout.count("kraft,55") == len(questions) * 2
    assert "root:" not in answer.stdout
    assert str(Path.home()) not in answer.stdout
    assert answer.stderr.count("Error: refused: ") == answer.stderr.count("Error: ") == len(ATTACKS)
    assert "\tat " not in answer.stderr
    assert not (tmp_path / "made").exists()
    stranger = server.beeline("-e", "SELECT 1", password="guess")
    assert rows(stranger.stdout) == []
    assert "Error validating the login" in stranger.stderr
    assert "se:cret" not in server.errors.read_text()


def assert_tls(port: int, certificate: Path) -> None:
    """A port of this machine takes TLS, and waits for nobody's ClientHello."""
    trusted = ssl.create_default_context(cafile=certificate)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        trusted.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.version() in ("TLSv1.2", "TLSv1.3")
    with socket.create_connection(("127.0.0.1", port), timeout=30) as slow:
        # A ClientHello of 16 KB, byte by byte.
        slow.sendall(b"\x16\x03\x01\x40\x00\x01")
        until_closed(slow, time.monotonic(), drip=b"\x00")


def test_other_hosts_are_served_over_tls(lake: Any, tmp_path: Path) -> None:
    certified(tmp_path, "127.0.0.1")
    pem, key = ((tmp_path / name).read_text() for name in ("cert.pem", "key.pem"))
    address = Address("0.0.0.0", free_port(), pem, key)
    AskedLake(lake.spark, lake.path)  # its database, which no question is about here
    with serving(question_session(lake.spark, None), address, login.Login("reader", "se:cret")):
        assert_tls(address.port, tmp_path / "cert.pem")


@pytest.mark.long
def test_a_server_whose_jvm_has_ended_ends(lake: Any, tmp_path: Path) -> None:
    """With an error; until then, other hosts are served over TLS alone."""
    flags = certified(tmp_path, "127.0.0.1")
    server = Server(lake.path, tmp_path, "--host", "0.0.0.0", *flags, java_options=None)
    assert_tls(server.port, tmp_path / "cert.pem")
    os.kill(server.jvm(), signal.SIGKILL)
    assert server.process.wait(30) == 75
    said = server.errors.read_text()
    assert "kraftlake serve: Spark's JVM has exited; the server has stopped" in said
    assert "Traceback" not in said


def certified(folder: Path, host: str) -> list[str]:
    """The flags for a certificate of its own making."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=IP:{host}"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    key.chmod(0o600)
    return ["--tls-cert", str(certificate), "--tls-key", str(key)]


@pytest.mark.long
def test_tables_and_views_answer(server: Server) -> None:
    query = (
        "SELECT `offset`, commit_status, truncated_by_epoch FROM voter_history WHERE `offset` IN (355, 790)"
    )
    assert server.asked(query) == ["355,truncated,3", "790,truncated,7"]
    assert server.asked("SELECT current_database(), COUNT(*) FROM captures") == ["kraft,55"]


@pytest.mark.long
def test_nothing_is_left_where_it_was_started(server: Server) -> None:
    assert server.asked("SELECT 1") == ["1"]
    assert not (CHECKOUT / "derby.log").exists()
    assert not (CHECKOUT / "metastore_db").exists()


@pytest.mark.long
def test_only_loopback_is_listened_on(server: Server) -> None:
    port = server.port
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
whoever = {"auth_mechanism": "PLAIN", "user": "reader", "password": "se:cret"}
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
def test_a_python_client_is_answered(server: Server, tmp_path: Path) -> None:
    ask = installed(tmp_path / "venv", "impyla==0.24.0")
    assert ask(CLIENT, server.url) == [355, "truncated", "2026-11-21T09:15:16.632000", True, [[55]]]


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said at once, before Spark starts."""
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--lake", str(tmp_path), "--port", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
    assert time.monotonic() - began < 2


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """What passes for a lake until Spark would start."""
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0 needs --tls-cert and --tls-key"),
        (("--host", "::"), "--host :: needs --tls-cert and --tls-key"),
        (("--tls-cert", "{}/cert"), "--tls-cert and --tls-key together"),
        (("--tls-cert", "{}/cert", "--tls-key", "{}/key"), "cert cannot be read"),
        (("--login", "{}/nowhere"), "nowhere cannot be read"),
        (("--login", "{}/open"), "open can be read by others: chmod 600"),
        (("--login", "{}/empty"), "is not one line USER:PASSWORD"),
    ],
)
def test_who_could_connect_is_settled_before_spark_starts(
    small: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], said: str
) -> None:
    (small / "open").write_text("reader:secret\n")
    (small / "open").chmod(0o644)
    (small / "empty").touch(0o600)
    words = [word.format(small) for word in flags]
    assert main(["serve", "--lake", str(small), "--port", str(free_port()), *words]) == 2
    assert said in capsys.readouterr().err


def test_the_first_start_makes_a_private_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "DEFAULT_FILE", tmp_path / "login")
    made = login.login_of(tmp_path / "login")
    assert made == login.login_of(tmp_path / "login")
    assert made.user == "kraftlake"
    assert len(made.password) >= 32
    assert made.password not in repr(made)
    assert (tmp_path / "login").stat().st_mode & 0o077 == 0
