"""The configs that are shown against the types in Kafka's own ConfigDefs.

Runs the published jars, with everything they need, of an old and of the newest releases; needs mvn and java.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from kraft_core.format.secrets import is_secret_name
from kraft_core.messages.configs import CONFIG_TYPES

RELEASES = ("3.9.2", "4.3.1", "4.4.0")
# Whoever defines what can stand in a ConfigRecord: brokers, topics, groups, client metrics, quotas.
HOLDERS = (
    "kafka.server.KafkaConfig",
    "org.apache.kafka.server.config.AbstractKafkaConfig",
    "org.apache.kafka.server.config.QuotaConfig",
    "org.apache.kafka.server.log.remote.storage.RemoteLogManagerConfig",
    "org.apache.kafka.server.metrics.ClientMetricsConfigs",
    "org.apache.kafka.storage.internals.log.LogConfig",
    "org.apache.kafka.coordinator.group.GroupConfig",
)
# kafka-tools-api of 4.4.0 was not published; nothing here needs it.
POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>config</groupId><artifactId>types</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{release}</version>
    <exclusions><exclusion>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools-api</artifactId>
    </exclusion></exclusions>
  </dependency></dependencies>
</project>"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("java")), reason="mvn or java is missing"),
]


@pytest.fixture(scope="module", params=RELEASES)
def types(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Configuration name -> type, of a release."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "pom.xml").write_text(POM.format(release=request.param))
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    subprocess.run(fetch, cwd=folder, check=True, timeout=600)
    source = Path(__file__).with_name("ConfigTypes.java")
    listed = subprocess.run(
        ["java", "-cp", f"{folder}/jars/*", source, *HOLDERS], capture_output=True, text=True, check=True
    )
    return {name: type_ for type_, name in (line.split(" ", 1) for line in listed.stdout.splitlines())}


def test_what_kafka_types_as_a_password_is_secret_and_nothing_else(types):
    assert len(types) > 300
    passwords = {name for name, type_ in types.items() if type_ == "PASSWORD"}
    assert len(passwords) >= 8
    assert {name for name in types if CONFIG_TYPES.get(name) == "password"} == passwords
    assert {name for name in types if is_secret_name(name)} == passwords
