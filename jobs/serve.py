"""kraftlake serve: serve the lake to BI tools by running Spark's Thrift Server in this process."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import threading
from typing import Any

from dashboards.databases import KRAFT
from jobs import arguments
from jobs.maintenance.publishing import add_catalog, database_of, open_lake
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.progress import Progress

HOST = "127.0.0.1"
EXAMPLES = """examples:
  kraftlake serve --lake /data/lake
  kraftlake serve --lake /data/lake --port 10005
  beeline -u jdbc:hive2://127.0.0.1:10000/kraft -e "SELECT * FROM voter_history"
From Python (pip install impyla): impala.dbapi.connect("127.0.0.1", 10000, database="kraft",
  auth_mechanism="PLAIN", user="any", password="any")

The server listens on loopback only and has no authentication: whoever can connect can also change tables. To
connect from another machine: ssh -L 10000:127.0.0.1:10000 HOST. Each query reads the tables as they are when
it starts. Stop the server with Ctrl-C or SIGTERM."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    add_catalog(parser)
    parser.add_argument("--port", type=int, default=10000, help="port on loopback (default: 10000)")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal arrives. Raises Failure."""
    must_be_lake(args.lake, up_to_date=True)
    _check_port(args.port)
    database = database_of(args)
    from jobs.runtime.session import open_session

    progress = Progress(args.log)
    with progress.stage("session"):
        spark = open_session(args.master, say=progress.say, own=args.settings.spark)
        open_lake(spark, args.lake, None, database)
    server = _start(spark, args.port)
    progress.done()
    print(json.dumps({"url": f"jdbc:hive2://{HOST}:{args.port}/{args.database or KRAFT}"}), flush=True)
    _wait_for_signal()
    server.stop()
    spark.stop()
    return ExitCode.FINE


def _check_port(port: int) -> None:
    """Raises Failure if the port is not free, before Spark starts."""
    try:
        with socket.create_server((HOST, port)):
            pass
    except (OSError, OverflowError) as error:
        raise Failure(f"cannot listen on {HOST}:{port}: {error}; choose another --port") from None


def _start(spark: Any, port: int) -> Any:
    """The running Thrift Server over the session.

    All clients share the session: a session per client would be created by a thread of Hive, whose class
    loader does not know Delta's jars.
    """
    settings = {
        "hive.server2.thrift.bind.host": HOST,
        "hive.server2.thrift.port": str(port),
        "hive.server2.transport.mode": "binary",
    }
    # The server starts Derby in memory without using it; its log would be in the current folder.
    spark._jvm.System.setProperty("derby.stream.error.file", os.devnull)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in settings.items():
        hadoop.set(key, value)
    session = spark._jsparkSession
    session.sessionState().conf().setConfString("spark.sql.hive.thriftServer.singleSession", "true")
    thrift = spark._jvm.org.apache.spark.sql.hive.thriftserver
    return thrift.HiveThriftServer2.startWithSparkSession(session, False)


def _wait_for_signal() -> None:
    """Returns on SIGINT or SIGTERM."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()
