"""plan load against the classes of the released jars, over logs changed at random.

Needs the releases of tests/kafka and a JDK. KRAFTLAKE_SEED draws other logs, KRAFTLAKE_LOGS more.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import NamedTuple

import pytest

from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.log_dirs import BOOTSTRAP_NAME
from kraft_core.messages.releases import release_of
from kraft_core.plan.load_logs import ReplicaLoad, load_of
from tests.kafka.java_programs import ask
from tests.long.load_mutations import LOG, drawn

pytestmark = pytest.mark.long

VERSIONS = ("3.9.2", "4.3.1", "4.4.0")
GOLDEN = Path(__file__).parents[1] / "golden"


class Judged(NamedTuple):
    """What the raft layer, the controller and the metadata loader throw, OK if nothing."""

    raft: str
    controller: str
    loader: str


def judged(version: str, logs: list[Path], classes: Path) -> list[Judged]:
    """What the classes of a release make of each directory."""
    source = Path(__file__).with_name("LoadAnswers.java")
    done = ask(source, "LoadAnswers", version, (str(log / LOG) for log in logs), classes, "-Xmx1g")
    parts = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    words = [words for name, words in parts if name in Judged._fields]
    return [Judged(*words[at : at + 3]) for at in range(0, len(words), 3)]


def loaded(version: str, log: Path) -> ReplicaLoad:
    """What is found in the log alone, which is what Kafka's classes are asked about."""
    release = release_of(version)
    assert release is not None
    (directory,) = find_controller_dirs([log]).directories
    found = load_of(directory, "1", release)
    found.obstacles = [each for each in found.obstacles if each.file != BOOTSTRAP_NAME] + found.ends.obstacles
    return found


def disagreement(found: ReplicaLoad, kafka: Judged) -> str | None:
    """In words, None if both say the same of each part, and the first thing in the same words."""
    here = [(o.record, o.offset, o.ends, o.words, o.kafka) for o in found.obstacles]
    ends_nodes = any(o.ends == "nodes" for o in found.obstacles)
    if ends_nodes != (kafka.raft != "OK"):
        return f"raft: {kafka.raft}\n    here: {here}"
    if bool(found.obstacles) != any(words != "OK" for words in kafka):
        return f"{kafka}\n    here: {here}"
    first = next((o for o in found.obstacles if o.ends == "nodes"), next(iter(found.obstacles), None))
    words = "" if first is None else (first.kafka or "").replace(", caused by ", " <- ").split("...")[0]
    if not any(words in said for said in kafka):
        return f"{kafka}\n    here: {words}"
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_release_takes_the_logs_that_are_said_to_load(version: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    count = int(os.environ.get("KRAFTLAKE_LOGS", "200"))
    logs = list(drawn(GOLDEN, tmp_path, random.Random(seed), count))
    answers = judged(version, [log for _, log in logs], tmp_path)
    assert len(answers) == len(logs) >= count * 0.95
    wrong: list[str] = []
    refused = 0
    for (name, log), kafka in zip(logs, answers, strict=True):
        found = loaded(version, log)
        if found.gaps:  # not known, whatever Kafka does
            assert name in ("broken_crc", "control", "refused_between"), log.name
            continue
        if found.ends.doubts and not found.obstacles:
            continue
        assert name != "broken_crc", log.name
        refused += bool(found.obstacles)
        words = disagreement(found, kafka)
        if words is not None:
            wrong.append(f"{log.name}: {words}")
    assert not wrong, f"seed {seed}, {len(wrong)} of {len(logs)}:\n" + "\n".join(wrong)
    assert count // 5 < refused < count * 9 // 10, refused
