"""serving: a question session behind HiveServer2's protocol, for clients with the login."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from jobs.questions.jvm import java_object
from jobs.questions.login import Login
from jobs.runtime.outcome import Failure
from kraft_core.addresses import address_text

# What drivers need to ask, and to list tables; not among them: delegation tokens, upload, download.
METHODS = (
    "CancelOperation CloseOperation CloseSession ExecuteStatement FetchResults GetCatalogs GetColumns "
    "GetCrossReference GetFunctions GetInfo GetOperationStatus GetPrimaryKeys GetQueryId "
    "GetResultSetMetadata GetSchemas GetTableTypes GetTables GetTypeInfo OpenSession SetClientInfo"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. certificates, key: text of PEM files, or None for a server without TLS."""

    host: str
    port: int
    certificates: str | None = None
    key: str | None = None


@contextmanager
def serving(session: SparkSession, address: Address, login: Login) -> Iterator[None]:
    """Listen and answer until the context ends. Raises Failure if that cannot begin.

    All clients share the session: one of each client's own would be made by a thread of Hive, whose class
    loader does not know Delta's jars.
    """
    jvm: Any = session._jvm  # pyright: ignore[reportPrivateUsage]
    java_session: Any = session._jsparkSession  # pyright: ignore[reportPrivateUsage]
    java_session.sessionState().conf().setConfString("spark.sql.hive.thriftServer.singleSession", "true")
    hive_settings = _hive_settings(jvm, java_session)
    thrift = jvm.org.apache.spark.sql.hive.thriftserver
    context = java_session.sparkContext()
    # Sessions report to it; a server of Spark's own would have made it.
    getattr(thrift.HiveThriftServer2, "eventManager_$eq")(thrift.ui.HiveThriftServer2EventManager(context))
    service = thrift.SparkSQLCLIService(None, java_session)
    service.init(hive_settings)
    try:
        server = java_object(
            session,
            "QuestionServer",
            service,
            METHODS,
            address.host,
            address.port,
            login.user,
            login.password,
            address.certificates,
            address.key,
        )
    except Py4JJavaError as error:
        cause = error.java_exception.getCause().getMessage()
        raise Failure(f"cannot listen on {address_text(address.host, address.port)}: {cause}") from None
    server.init(hive_settings)
    service.start()
    server.start()
    try:
        yield
    finally:
        # The JVM may be gone already.
        with suppress(Py4JError, OSError):
            server.stop()
            service.stop()


def _hive_settings(jvm: Any, java_session: Any) -> Any:
    """Hive's settings for the session."""
    hadoop = java_session.sessionState().newHadoopConf()
    settings = jvm.org.apache.hadoop.hive.conf.HiveConf(hadoop, hadoop.getClass())
    # Hive opens a metastore when a client leaves, which nothing uses: in memory, without files or a log.
    for entry in _entries(jvm.org.apache.spark.sql.hive.HiveUtils.newTemporaryConfiguration(True)):
        settings.set(entry._1(), entry._2())
    jvm.System.setProperty("derby.stream.error.file", os.devnull)
    settings.set("hive.server2.enable.doAs", "false")
    settings.set("hive.server2.authentication", "CUSTOM")
    settings.setClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    return settings


def _entries(mapping: Any) -> Iterator[Any]:
    """The pairs of a map of Scala."""
    each = mapping.iterator()
    while each.hasNext():
        yield each.next()
