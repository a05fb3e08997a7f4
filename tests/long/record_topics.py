"""Record what the controller of Kafka 4.3.1 answers to drawn requests about topics.

KAFKA_LAB=... python -m tests.long.record_topics SEED CASES tests/traces/topics.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
from pathlib import Path

from tests.kafka.java_programs import ask
from tests.kraft_core.topic_control.asked import told
from tests.long.topic_drawing import ASKS

# Longer ones are of thousands of partitions.
LONGEST = 8_000


def record(seed: str, cases: int, out: Path) -> None:
    rng = random.Random(seed)
    lines = [json.dumps(draw(rng)) for draw in ASKS.values() for _ in range(cases)]
    source = Path(__file__).with_name("TopicRequests.java")
    with tempfile.TemporaryDirectory() as folder:
        done = ask(source, "org.apache.kafka.controller.TopicRequests", "4.3.1", lines, Path(folder))
    answers = [line[2:] for line in done.stdout.splitlines() if line.startswith("= ")]
    # Without a time in its header, the same seed gives the same file.
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        for line, answer in zip(lines, answers, strict=True):
            if len(line) + len(answer) <= LONGEST:
                made = {"asked": json.loads(line), "answer": told(json.loads(answer))}
                file.write(json.dumps(made, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    record(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
