"""New random lives of clusters, replayed by Kafka's own shell and by us. Needs `make kafka`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import METADATA_RECORDS
from tests.kafka import RELEASE, SCRIPTS, needs_kafka
from tests.kraft_core.image.kafka_shell import SECRETS, as_meant, our_tree
from tests.kraft_core.image.worlds import Life, Row, random_steps, replay

pytestmark = [pytest.mark.long, needs_kafka]

MESSAGES = {message.type_name: message for message in METADATA_RECORDS}
# 4.3.1 reads nothing newer; and its snapshot writer refuses what an older metadata.version cannot hold.
VERSIONS = {"REGISTER_BROKER_RECORD": 4, "PARTITION_RECORD": 2, "PARTITION_CHANGE_RECORD": 2}
VERSIONS["BROKER_REGISTRATION_CHANGE_RECORD"] = 3
METADATA_VERSION_4_3 = ("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 30})
TIMEOUT_S = 60
ATTEMPTS = 5


def life_for_kafka(seed: int) -> list[Row]:
    """A life of what 4.3.1 replays and prints in full; an open transaction at its end would make it wait.

    Within a transaction no topic is removed: Kafka's image may keep its configs, the controller does not.
    """
    lived = Life()
    lived.add(*METADATA_VERSION_4_3)
    for action, number in random_steps(seed, 500, without=("unregister controller", "zk migration")):
        made = None if action == "remove topic" and lived.in_transaction else lived.made(action, number)
        if made is not None and not _unfit(*made):
            lived.add(*made)
    lived.step("end", 0)
    lived.step("no op", 0)
    return lived.records


def _unfit(type_: str, value: dict) -> bool:
    if type_ == "CLIENT_QUOTA_RECORD":
        return any(part["entityName"] is None for part in value["entity"])
    return type_ == "FEATURE_LEVEL_RECORD" and value["name"] == "metadata.version"


def as_log(records: list[Row]) -> bytes:
    """A batch for each record: Kafka then publishes an image after each, as it does on a live quorum."""
    log = bytearray()
    for record in records:
        value = write_metadata_value(MESSAGES[record.type], VERSIONS.get(record.type, 0), record.value)
        raw = RawRecord(record.offset, record.timestamp, None, value)
        log += write_batch(record.offset, record.leader_epoch, [raw])
    return bytes(log)


def kafkas_tree(log: Path) -> list[str]:
    """`tree /image` by Kafka's shell, which sometimes answers before it has read the log."""
    for _ in range(ATTEMPTS):
        command = [SCRIPTS / "bin" / "k", RELEASE, "metadata-shell", "-s", log, "tree", "/image"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        if "offset -1," not in done.stdout:
            return done.stdout.splitlines()
    raise AssertionError(f"the shell never read {log}: {done.stderr}")


@pytest.mark.parametrize("seed", range(100, 120))
def test_a_random_life(seed: int, tmp_path: Path):
    records = life_for_kafka(seed)
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(as_log(records))
    image = replay(records)
    assert image.refusals == []
    meant, _ = as_meant(kafkas_tree(log), image, SECRETS)
    assert our_tree(image) == meant
