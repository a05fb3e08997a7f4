"""Answers about topics that Kafka 4.3.1 gave (tests/long/record_topics.py), and the engine's."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from tests.kraft_core.topic_control.asked import answer_of

TRACES = Path(__file__).parents[2] / "traces" / "topics.jsonl.gz"


def test_every_recorded_answer_is_given() -> None:
    seen = Counter[str]()
    with gzip.open(TRACES, "rt", encoding="utf-8") as lines:
        for line in lines:
            recorded = json.loads(line)
            asked, answer = recorded["asked"], recorded["answer"]
            assert answer_of(asked) == answer, asked
            seen.update(error for _, error, _ in answer.get("results", ()))
    assert seen["NONE"] > 50
    assert len(seen) > 5
