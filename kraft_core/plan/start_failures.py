"""What keeps a broker from starting with its log directories, whatever the metadata says of them.

Source: MetaPropertiesEnsemble.verify, KafkaRaftServer.initializeLogDirs and LogManager.loadLogs of release
4.3, in the order in which a broker comes to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.restore.broker_dirs import BrokerLogDir, of_one_id

_KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"


@dataclass(frozen=True, slots=True)
class StartFailure:
    """exception: the class that the broker ends with; text: its message. step: what to do about it."""

    exception: str
    text: str
    step: str


def copied_twice(own: Mapping[str, BrokerLogDir]) -> Iterator[str]:
    """Copies of one directory, in words: they show it at two moments, and no broker has both."""
    for first, second in of_one_id(own):
        if own[first].copied_at is not None or own[second].copied_at is not None:
            yield (
                f"{first} and {second} have directory id {own[first].directory_id}: give the newest copy of "
                "each directory alone"
            )


def start_failures(own: Mapping[str, BrokerLogDir]) -> Iterator[StartFailure]:
    """own: the broker's log directories by their paths."""
    for first, second in of_one_id(own):
        yield StartFailure(
            "java.lang.RuntimeException",
            f"Duplicate directory ID Optional[{own[first].directory_id}] found. It was the ID of {first}, "
            f"but also of {second}",
            "give the broker only one of the two directories: one is a copy of the other",
        )
    logs = [path for path, log_dir in own.items() if log_dir.has_metadata_log]
    if len(logs) > 1:
        yield StartFailure(
            _KAFKA_EXCEPTION,
            f"Found unexpected metadata location in data directory `{_in(logs[1], LOG_DIR_NAME)}` (the "
            f"configured metadata directory is {logs[0]}).",
            f"keep a copy of each {LOG_DIR_NAME}, and leave it only in metadata.log.dir",
        )
    for path, log_dir in own.items():
        for name in log_dir.foreign:
            yield StartFailure(
                _KAFKA_EXCEPTION,
                f"Found directory {_in(path, name)}, '{name}' is not in the form of topic-partition or "
                "topic-partition.uniqueId-delete (if marked for deletion).\nKafka's log directories (and "
                "children) should only contain Kafka topic data.",
                f"move {_in(path, name)} to another place",
            )


def _in(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"
