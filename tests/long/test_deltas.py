"""Topics that are removed and records about them, replayed by Kafka's MetadataDelta and by the core's image.

A controller replays record by record (ReplicationControlManager), as the image does. The metadata loader of
every node collects records in a delta and applies them together: what was removed in a delta is still in the
image below it. The answers must be equal where a controller writes the records; where no controller does,
because it refuses them itself, the image refuses them, too, whatever a delta makes of them.
Needs the releases of tests/kafka and a JDK; releases that are not fetched are skipped.
"""

from __future__ import annotations

import shutil
from base64 import b64encode
from pathlib import Path

import pytest

from kraft_core.image.image import Image
from kraft_core.image.tables import PARTITIONS, TOPICS
from kraft_core.messages.metadata import METADATA_RECORDS
from tests.kafka.java_programs import ask
from tests.kraft_core.image.refused import OTHER, TOPIC, UNKNOWN
from tests.kraft_core.image.worlds import Made, change_fields, partition_fields, replay, rows, topic_fields
from tests.long.load_mutations import LOG, MutableLog, written
from tests.long.test_load import judged

pytestmark = pytest.mark.long

GOLDEN = Path(__file__).parents[1] / "golden"
API_KEYS = {message.type_name: message.api_key for message in METADATA_RECORDS}


def topic(name: str, topic_id: str) -> Made:
    return "TOPIC_RECORD", topic_fields(name, topic_id)


def partition(topic_id: str, *elr: int) -> Made:
    return "PARTITION_RECORD", partition_fields(topic_id, eligibleLeaderReplicas=list(elr) or None)


def change(topic_id: str, partition_id: int = 0) -> Made:
    return "PARTITION_CHANGE_RECORD", change_fields(topic_id, partition_id, isr=[1])


def removal(topic_id: str) -> Made:
    return "REMOVE_TOPIC_RECORD", {"topicId": topic_id}


def clearing(name: str) -> Made:
    return "CLEAR_ELR_RECORD", {"topicName": name}


# In the image, before any delta: topic t, whose partition has an ELR.
BEFORE = [topic("t", TOPIC), partition(TOPIC, 2)]
ALL = clearing("")
RETURNS = ("4.0.0",)  # KAFKA-19383
ENDS = ("4.0.1", "4.0.2", "4.1.0", "4.1.1", "4.1.2")  # KAFKA-19497
# What controllers write, and the releases that make something else of it in one delta.
LAWFUL: dict[str, tuple[list[Made], tuple[str, ...]]] = {
    "changed, removed": ([change(TOPIC), removal(TOPIC)], ()),
    "created anew": ([removal(TOPIC), topic("t", OTHER), partition(OTHER)], ()),
    "created anew, cleared": (
        [removal(TOPIC), topic("t", OTHER), clearing("t"), partition(OTHER, 2), clearing("t")],
        RETURNS,
    ),
    "created, cleared": ([topic("u", OTHER), partition(OTHER, 2), clearing("u")], ()),
    "removed, all cleared": ([removal(TOPIC), ALL], RETURNS),
    "changed, all cleared": ([change(TOPIC), ALL], ()),
    "created anew, all cleared": ([removal(TOPIC), topic("t", OTHER), partition(OTHER, 2), ALL], RETURNS),
    "created, all cleared": ([topic("u", OTHER), partition(OTHER, 2), ALL], RETURNS),
    "came and went, all cleared": ([topic("u", OTHER), partition(OTHER, 2), removal(OTHER), ALL], ENDS),
    "came, went and came, all cleared": (
        [topic("u", OTHER), removal(OTHER), topic("u", UNKNOWN), partition(UNKNOWN, 2), ALL],
        RETURNS,
    ),
}
# What no controller writes, as it refuses the last record, and whether the delta of 4.3.1 takes it.
UNLAWFUL: dict[str, tuple[list[Made], bool]] = {
    "partition of a removed topic": ([removal(TOPIC), partition(TOPIC)], True),
    "change of a removed topic": ([removal(TOPIC), change(TOPIC)], True),
    "change of a partition that it had not": ([removal(TOPIC), change(TOPIC, 7)], False),
    "partition of the former topic": ([removal(TOPIC), topic("t", OTHER), partition(TOPIC)], True),
    "removed twice": ([removal(TOPIC), removal(TOPIC)], True),
    "cleared of a removed topic": ([removal(TOPIC), clearing("t")], True),
    "partition of one that came and went": (
        [topic("u", OTHER), partition(OTHER), removal(OTHER), partition(OTHER)],
        False,
    ),
    "cleared of one that came and went": ([topic("u", OTHER), removal(OTHER), clearing("u")], False),
    "partition of an unknown topic": ([partition(OTHER)], False),
    "cleared of an unknown topic": ([clearing("u")], False),
}


def in_words(image: Image) -> str:
    """As DeltaAnswers prints an image."""
    found: list[str] = []
    for _, each in image.tables.items(TOPICS):
        partitions = sorted(
            f"{p.partition_id}:{p.partition_epoch}:{_plain(p.isr)}:{_plain(p.eligible_leader_replicas)}"
            for p in image.tables.group(PARTITIONS, each.topic_id).values()
        )
        found.append(f"{each.topic_id}={each.name}[{' '.join(partitions)}]")
    return " ".join(sorted(found))


def _plain(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def value_of(made: Made) -> bytes:
    api_key = API_KEYS[made[0]]
    assert api_key is not None
    return written(api_key, **made[1])


def in_deltas(version: str, deltas: list[list[list[Made]]], classes: Path) -> list[str]:
    """What the classes of a release make of each list of deltas; "threw ..." where they throw."""
    lines = [
        " | ".join(" ".join(b64encode(value_of(made)).decode() for made in delta) for delta in each)
        for each in deltas
    ]
    done = ask(Path(__file__).with_name("DeltaAnswers.java"), "DeltaAnswers", version, lines, classes)
    return [line[2:].strip() for line in done.stdout.splitlines() if line.startswith("= ")]


def one_by_one(made: list[Made]) -> list[list[Made]]:
    return [BEFORE, *([each] for each in made)]


@pytest.mark.parametrize("version", [*RETURNS, *ENDS, "4.2.0", "4.2.1", "4.3.0", "4.3.1", "4.4.0"])
def test_an_image_is_that_of_kafkas_deltas(version: str, tmp_path: Path) -> None:
    """But for faults of 4.0 and 4.1. Where those bring a topic back or end a node, the answer of plan load is
    NOT KNOWN: tests/kraft_core/plan/test_load.py.
    """
    images = {name: replay(rows([*BEFORE, *made])) for name, (made, _) in LAWFUL.items()}
    assert not [name for name, image in images.items() if image.refusals or image.controller_refusals]
    together = in_deltas(version, [[BEFORE, made] for made, _ in LAWFUL.values()], tmp_path)
    apart = in_deltas(version, [one_by_one(made) for made, _ in LAWFUL.values()], tmp_path)
    wanted = [in_words(image) for image in images.values()]
    assert apart == wanted
    differing = {name for name, *each in zip(LAWFUL, together, wanted, strict=True) if each[0] != each[1]}
    assert differing == {name for name, (_, mistaken) in LAWFUL.items() if version in mistaken}
    threw = {name for name, answer in zip(LAWFUL, together, strict=True) if answer.startswith("threw")}
    assert threw == {name for name in differing if version in ENDS}


def test_what_controllers_refuse_changes_no_image(tmp_path: Path) -> None:
    """Nor would it change that of a node that reads it in a delta of its own: there it throws."""
    names = list(UNLAWFUL)
    apart = in_deltas("4.3.1", [one_by_one(made) for made, _ in UNLAWFUL.values()], tmp_path)
    assert [name for name, answer in zip(names, apart, strict=True) if not answer.startswith("threw")] == []
    together = in_deltas("4.3.1", [[BEFORE, made] for made, _ in UNLAWFUL.values()], tmp_path)
    taken = [not answer.startswith("threw") for answer in together]
    assert taken == [takes for _, takes in UNLAWFUL.values()]
    logs: list[Path] = []
    for number, (made, _) in enumerate(UNLAWFUL.values()):
        image = replay(rows([*BEFORE, *made]))
        assert [each.offset for each in image.refusals] == [len(BEFORE) + len(made) - 1]
        assert in_words(image) == in_words(replay(rows([*BEFORE, *made[:-1]])))
        logs.append(tmp_path / str(number))
        shutil.copytree(GOLDEN / "dynamic-membership/node-1", logs[-1])
        log = MutableLog.of(max((logs[-1] / LOG).glob("*.log")))
        log.path.chmod(0o644)
        log.append(*map(value_of, [*BEFORE, *made]))
        log.write()
    thrown = judged("4.3.1", logs, tmp_path)
    assert [name for name, each in zip(names, thrown, strict=True) if each.controller == "OK"] == []


def test_a_topic_id_that_is_given_again(tmp_path: Path) -> None:
    """No controller does that, as ids are random, nor refuses it: it clears the ELR, and so does the image. A
    delta takes the topic for the removed one, and leaves its ELR.
    """
    made = [removal(TOPIC), topic("t", TOPIC), partition(TOPIC, 2)]
    assert in_deltas("4.3.1", [[BEFORE, made]], tmp_path) == [in_words(replay(rows([*BEFORE, *made])))]
    for name in ("t", ""):
        cleared = [*made, clearing(name)]
        wanted = in_words(replay(rows([*BEFORE, *cleared])))
        together, apart = in_deltas("4.3.1", [[BEFORE, cleared], one_by_one(cleared)], tmp_path)
        assert apart == wanted == f"{TOPIC}=t[0:1:1,2:]"
        assert together == f"{TOPIC}=t[0:0:1,2:2]"
