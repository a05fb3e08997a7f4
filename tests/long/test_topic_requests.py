"""Answers about topics against the ReplicationControlManager of the released jars, on drawn requests.

Needs the releases of tests/kafka and a JDK. KRAFTLAKE_SEED draws other cases.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.kafka.java_programs import ask
from tests.kraft_core.topic_control.asked import answer_of, told
from tests.long.topic_drawing import ASKS

pytestmark = pytest.mark.long

CASES = 3000


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
@pytest.mark.parametrize("which", ASKS)
def test_the_controller_answers_the_same(which: str, version: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(f"{seed} {which}")
    lines = [json.dumps(ASKS[which](rng)) for _ in range(CASES)]
    source = Path(__file__).with_name("TopicRequests.java")
    done = ask(source, "org.apache.kafka.controller.TopicRequests", version, lines, tmp_path)
    answers = [line[2:] for line in done.stdout.splitlines() if line.startswith("= ")]
    assert len(answers) == len(lines), done.stderr[-2000:]
    wrong: list[str] = []
    seen = Counter[str]()
    for line, answer in zip(lines, answers, strict=True):
        theirs, ours = told(json.loads(answer)), answer_of(json.loads(line), version[:3])
        seen.update([theirs["error"]] if "error" in theirs else [each[1] for each in theirs["results"]])
        if theirs != ours:
            wrong.append(f"{line}\n  Kafka: {theirs}\n  here:  {ours}")
    print(dict(seen))
    assert not wrong, f"seed {seed}, {len(wrong)} of {len(lines)}:\n" + "\n".join(wrong[:5])
    assert seen["NONE"] > len(lines) // 10
    assert len(seen) > 1
