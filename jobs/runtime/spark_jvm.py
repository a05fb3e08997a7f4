"""Spark's JVM in local mode, started directly: PySpark would start three shells and another JVM for it.

Nothing but jars is on its class path, or it could not use the class archive (jobs.runtime.class_archive).
"""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jobs.runtime.outcome import ExitCode, Failure

# What Spark's launcher passes to every JVM (JavaModuleOptions of Spark 4.2), but for jdk.incubator.vector:
# MLlib uses it, and Java prints a warning that it does.
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
# MLlib registers functions of its vectors in every session, which takes half a second of Scala's reflection.
_LEFT_OUT = "spark-mllib_*.jar"
_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
# What only spark-submit and its scripts heed.
_VARIABLES = (
    "SPARK_CONF_DIR",
    "SPARK_HOME",
    "SPARK_DIST_CLASSPATH",
    "SPARK_PREPEND_CLASSES",
    "SPARK_SUBMIT_OPTS",
    "SPARK_TESTING",
    "SPARK_REMOTE",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
)
_SETTINGS = (
    "spark.jars",
    "spark.submit.",
    "spark.archives",
    "spark.kerberos.",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.driver.defaultJavaOptions",
    "spark.driver.userClassPathFirst",
)
_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class JavaCommand:
    """A JVM to start. options: for Java, in front of those of the class archive.

    more_jars: on the class path behind those that the archive belongs to: Java uses it for a path that begins
    like its own.
    """

    java: Path
    options: tuple[str, ...]
    class_path: tuple[Path, ...]
    more_jars: tuple[Path, ...] = ()

    def words(self, *more_options: str) -> list[str]:
        class_path = os.pathsep.join(map(str, (*self.class_path, *self.more_jars)))
        return [str(self.java), *self.options, *more_options, "-cp", class_path, _MAIN]


def needs_submit(master: str, own: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Why a session must be started by spark-submit, in a few words; None if it need not.

    own: the user's settings of Spark.
    """
    if not master.startswith("local"):
        return f"the master is {master}"
    for name in _VARIABLES:
        if name in environ:
            return f"{name} is set"
    for key in own:
        if key.startswith(_SETTINGS):
            return f"{key} is set"
    return None


def spark_home() -> Path:
    """The folder of PySpark, without importing it."""
    spec = find_spec("pyspark")
    assert spec is not None, "pyspark is a dependency"
    assert spec.origin is not None, "pyspark is a package"
    return Path(spec.origin).parent


def java_command(java: Path, settings: Mapping[str, str], jars: Sequence[Path], log4j: Path) -> JavaCommand:
    """The command for a session of these settings. jars: what Spark lacks. log4j: a file of its settings."""
    own_jars = sorted(jar for jar in (spark_home() / "jars").glob("*.jar") if not jar.match(_LEFT_OUT))
    # Without links: the archive belongs to these very paths.
    class_path = tuple(jar.resolve() for jar in (*own_jars, *jars))
    options = (
        f"-Xmx{settings.get('spark.driver.memory', '1g')}",
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        *MODULE_OPTIONS,
        *shlex.split(settings.get("spark.driver.extraJavaOptions", "")),
    )
    return JavaCommand(java, options, class_path)


class StartingJvm:
    """A JVM that has been started, until it accepts connections; it ends with this process."""

    def __init__(self, words: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kraftlake-jvm-")
        self._told = Path(self._folder.name) / "connection"
        variables = {
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONNECT_MODE": "0",
        }
        sys.stdout.flush()
        self._process = subprocess.Popen(
            words,
            # It ends when this pipe does. What Java prints is not a result.
            stdin=subprocess.PIPE,
            stdout=2,
            env=os.environ | variables,
            # Ctrl-C is for this process to handle.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    def gateway(self) -> Any:
        """The connection of PySpark to it. Raises Failure if Java ends instead."""
        try:
            return self._gateway()
        except BaseException:
            self._process.kill()
            raise

    def _gateway(self) -> Any:
        # The first call of the JVM imports it, and pandas with it: here the JVM is still starting.
        import pyspark.testing.utils  # noqa: F401
        from pyspark.java_gateway import launch_gateway

        while not self._told.is_file():
            if self._process.poll() is not None:
                raise Failure(
                    "Java exited before Spark could start: see its output above", ExitCode.ENVIRONMENT
                )
            time.sleep(_POLL_SECONDS)
        told = self._told.read_bytes()
        (port, length), secret = struct.unpack(">ii", told[:8]), told[8:]
        self._folder.cleanup()
        known = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret[:length].decode()}
        os.environ.update(known)
        try:
            gateway: Any = launch_gateway()
        finally:
            for name in known:
                del os.environ[name]
        gateway.proc = self._process
        return gateway
