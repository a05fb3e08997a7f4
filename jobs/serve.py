"""kraftlake serve: answer questions about the lake over HiveServer2's protocol, for BI tools."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import threading
from collections.abc import Callable

from dashboards.databases import KRAFT
from jobs import arguments
from jobs.maintenance.publishing import add_catalog, database_of, open_lake
from jobs.questions.login import DEFAULT_FILE, Login, login_of, private_text
from jobs.runtime.interrupt import starting_spark
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure, reason_of
from jobs.runtime.output import json_line, print_line
from jobs.runtime.progress import Progress
from kraft_core.addresses import address_text

LOOPBACK = "127.0.0.1"
# How often the server looks whether its JVM still answers.
WATCH_SECONDS = 1.0
EXAMPLES = """examples:
  kraftlake serve --lake /data/lake
  kraftlake serve --lake /data/lake --port 10005 --login /etc/kraftlake/login
  kraftlake serve --lake /data/lake --host 0.0.0.0 --tls-cert server.pem --tls-key server.key
  beeline -u jdbc:hive2://127.0.0.1:10000/kraft -n kraftlake -p "$(cut -d: -f2- ~/.kraftlake_login)"
From Python (pip install impyla): impala.dbapi.connect("127.0.0.1", 10000, database="kraft",
  auth_mechanism="PLAIN", user="kraftlake", password=...)

Only statements that read are allowed: SELECT, WITH, SHOW, DESCRIBE, EXPLAIN over the lake's tables and views
(docs/security.md). Clients send the user and the password in ~/.kraftlake_login, which the
first start creates, readable only by its owner. The server listens on loopback; any other --host needs TLS.
Each query reads the tables as of its start. Stop the server with Ctrl-C or SIGTERM."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    add_catalog(parser)
    parser.add_argument("--port", type=int, default=10000, help="port to listen on (default: 10000)")
    parser.add_argument(
        "--login",
        type=local_path,
        default=DEFAULT_FILE,
        metavar="FILE",
        help="file with one line USER:PASSWORD, readable by its owner only (default: ~/.kraftlake_login)",
    )
    parser.add_argument(
        "--host", default=LOOPBACK, help=f"address to listen on (default: {LOOPBACK}); others need --tls-cert"
    )
    parser.add_argument("--tls-cert", type=local_path, metavar="FILE", help="certificate and its chain, PEM")
    parser.add_argument(
        "--tls-key",
        type=local_path,
        metavar="FILE",
        help="its private key, PEM (BEGIN PRIVATE KEY), not encrypted",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until a signal arrives. Raises Failure, also when the JVM ends."""
    must_be_lake(args.lake, up_to_date=True)
    certificates, key = _tls(args)
    _check_port(args.host, args.port)
    login = login_of(args.login)
    database = database_of(args)
    from jobs.questions.question_session import question_session
    from jobs.questions.server import Address, serving
    from jobs.runtime.session import jvm_has_ended, open_session

    progress = Progress(args.log)
    with progress.stage("session"), starting_spark():
        spark = open_session(args.master, say=progress.say, own=args.settings.spark, lake=args.lake)
        open_lake(spark, args.lake, database)
        # Clients share the session: what one sets, the others would get.
        session = question_session(spark, database, settings="")
    with serving(session, Address(args.host, args.port, certificates, key), login):
        progress.done()
        _print_address(args, login)
        stopped = _wait(jvm_has_ended)
    if not stopped:
        raise Failure("Spark's JVM has exited; the server has stopped", ExitCode.TRY_AGAIN)
    return ExitCode.FINE


def _print_address(args: argparse.Namespace, login: Login) -> None:
    """One JSON line: where clients connect, and as whom."""
    options = ";ssl=true" if args.tls_cert else ""
    url = f"jdbc:hive2://{address_text(args.host, args.port)}/{args.database or KRAFT}{options}"
    print_line(json_line({"url": url, "user": login.user, "login": str(args.login)}))
    sys.stdout.flush()


def _tls(args: argparse.Namespace) -> tuple[str | None, str | None]:
    """The PEM texts of certificate and key, if they are given. Raises Failure."""
    if (args.tls_cert is None) != (args.tls_key is None):
        raise Failure("give --tls-cert and --tls-key together")
    if args.tls_cert is None:
        if args.host not in (LOOPBACK, "localhost", "::1"):
            raise Failure(f"--host {args.host} needs --tls-cert and --tls-key: clients send passwords to it")
        return None, None
    try:
        certificates = args.tls_cert.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{args.tls_cert} cannot be read: {reason_of(error)}") from None
    return certificates, private_text(args.tls_key)


def _check_port(host: str, port: int) -> None:
    """Raises Failure if the port is not free, before Spark starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            pass
    except (OSError, OverflowError) as error:
        where = address_text(host, port)
        raise Failure(f"cannot listen on {where}: {reason_of(error)}; choose another --port") from None


def _wait(ended: Callable[[], bool]) -> bool:
    """Wait for SIGINT or SIGTERM. Returns whether one came; if not, the JVM has ended."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(WATCH_SECONDS):
        if ended():
            # A signal to all processes of a service ends the JVM, too, perhaps first.
            return stopped.wait(WATCH_SECONDS)
    return True
