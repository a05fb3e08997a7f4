"""The declared releases against the jars; upgrades of features against Kafka's FeatureControlManager.

Needs the releases of tests/kafka and a JDK. KRAFTLAKE_SEED draws other upgrades.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kraft_core.messages.feature_tool import UnknownFeatureError, feature_dependencies, version_mapping
from kraft_core.messages.releases import (
    CHANGES_METADATA,
    DEFAULT_SINCE,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_LEVELS,
    METADATA_VERSION,
    OTHER_FEATURES,
    RELEASES,
    Levels,
    release_of,
)
from kraft_core.plan.feature_control import FeatureState, Supported, refusal
from tests.kafka.java_programs import ask, jars
from tests.long.live_quorum import kafka_tools

pytestmark = pytest.mark.long

CASES = 400
_FOR_ALL = "The update failed for all features since the following feature had an error: "


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1", "4.4.0"])
def test_a_release_is_declared_as_its_jars_know_it(version: str) -> None:
    source = Path(__file__).with_name("ReleaseFacts.java")
    done = subprocess.run(
        ["java", "-cp", jars(version), str(source)], capture_output=True, text=True, check=True
    )
    release = release_of(version)
    assert release is not None
    facts = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert [int(fact[1]) for fact in facts if fact[0] == "testing"] == [release.testing]
    levels = [fact for fact in facts if fact[0] == "level"]
    assert {int(fact[1]): fact[2] for fact in levels} == {
        level: name
        for level, name in METADATA_LEVELS.items()
        if release.metadata_versions.low <= level <= release.testing
    }
    production = [fact for fact in levels if fact[3] != "preview"]
    assert len(production) > 20
    assert all((int(fact[1]) in CHANGES_METADATA) == (fact[3] == "true") for fact in production)
    supported = {fact[1]: fact[2] for fact in facts if fact[0] == "supports"}
    assert supported == {name: str(range_) for name, range_ in release.supported.items()}
    assert {int(f[1]): int(f[2]) for f in facts if f[0] == "record"} == dict(release.records)
    features = [fact for fact in facts if fact[0] == "feature"]
    if version.startswith("4."):
        assert {fact[1] for fact in features} == {
            f for f in OTHER_FEATURES if release.known_high(f) is not None
        }
    for _, name, level, rest in features:
        since, needs = rest.split(" ", 1)
        declared = release.dependencies.get((name, int(level)), {})
        assert needs == "{" + ", ".join(f"{k}={v}" for k, v in declared.items()) + "}"
        if int(level) and version.startswith("4."):
            assert DEFAULT_SINCE[name][int(level) - 1] == int(since)
    if version.startswith("4."):
        for _, name, level, given in (fact for fact in facts if fact[0] == "default"):
            assert release.default_level(name, int(level)) == int(given), (name, level)


# --- upgrades, drawn


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_upgrades_are_refused_in_kafkas_words(version: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    cases = list(drawn(random.Random(seed), version))
    source, asked = Path(__file__).with_name("FeatureAnswers.java"), (line for line, _, _, _ in cases)
    done = ask(source, "org.apache.kafka.controller.FeatureAnswers", version, asked, tmp_path)
    answers = [line for line in done.stdout.splitlines() if line.startswith(("NONE", "INVALID"))]
    assert len(answers) == len(cases)
    wrong: list[str] = []
    accepted = 0
    for answer, (line, state, updates, downgrade) in zip(answers, cases, strict=True):
        error, _, words = answer.partition(" ")
        text = refusal(state, updates, downgrade=downgrade)
        accepted += error == "NONE"
        expected = None if error == "NONE" else _FOR_ALL + words
        if text != expected:
            wrong.append(f"{line}\n  Kafka: {expected}\n  here:  {text}")
    assert not wrong, f"seed {seed}, {len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:5])
    assert CASES // 20 < accepted < CASES - CASES // 20, accepted


Case = tuple[str, FeatureState, Mapping[str, int], bool]


def drawn(rng: random.Random, version: str) -> Iterator[Case]:
    release = release_of(version)
    assert release is not None
    names = (METADATA_VERSION, *OTHER_FEATURES)
    for _ in range(CASES):
        local = release.supported
        controllers = {1: local, **{n: software(rng, version) for n in (2, 3) if rng.random() < 0.7}}
        brokers = {n: software(rng, version) for n in (11, 12) if rng.random() < 0.6}
        level = rng.choice([7, 14, 15, 21, 22, 23, 25, 29, 30, release.metadata_versions.high])
        level = min(level, release.metadata_versions.high)
        finalized = {
            name: rng.randint(1, local[name].high)
            for name in OTHER_FEATURES
            if name != KRAFT_VERSION and name in local and rng.random() < 0.3
        }
        must = tuple(n for n in (1, 2, 3) if rng.random() < 0.4)
        # The manager's own accessor of kraft.version begins with 1.
        state = FeatureState(1, local, brokers, controllers, must, finalized, level, 1)
        updates = {rng.choice(names): 0 for _ in range(rng.choice([1, 1, 2, 4]))}
        for name in updates:
            high = local[name].high if name in local else 1
            low = 7 if name == METADATA_VERSION else 0
            updates[name] = rng.choice([high, high, rng.randint(low, high), high + rng.randint(0, 2)])
        downgrade = rng.random() < 0.3
        yield line_of(state, updates, downgrade=downgrade), state, updates, downgrade


def software(rng: random.Random, version: str) -> Supported:
    """What a node supports: mostly the leader's release, else an older one, or an odd range."""
    drawn = rng.random()
    own = release_of(version)
    assert own is not None
    if drawn < 0.75:
        return own.supported
    if drawn < 0.9:
        return RELEASES[rng.choice(list(RELEASES))].supported
    odd = rng.choice([Levels(7, 0x7FFF), Levels(5, 5), Levels(0, 0), Levels(9, 24)])
    return {**own.supported, rng.choice([METADATA_VERSION, ELR_VERSION]): odd}


def line_of(state: FeatureState, updates: Mapping[str, int], *, downgrade: bool) -> str:
    nodes = [("L1", state.local)]
    nodes += [(f"B{n}", s) for n, s in state.brokers.items()]
    nodes += [(f"C{n}", s) for n, s in state.controllers.items()]
    words = " ".join(f"{who}={','.join(f'{f}:{r.low}:{r.high}' for f, r in s.items())}" for who, s in nodes)
    levels = {METADATA_VERSION: state.metadata_version, **state.finalized}
    told = [",".join(f"{f}:{n}" for f, n in each.items()) for each in (levels, updates)]
    must = " ".join(map(str, state.must_register))
    return ";".join(["1", must, words, *told, "downgrade" if downgrade else "upgrade"])


def test_tables_are_printed_as_the_tool_prints_them() -> None:
    """Kafka 4.3.1's kafka-features, which needs no cluster for these."""
    tool = [str(kafka_tools() / "k"), "4.3.1", "features"]
    release = RELEASES["4.3"]
    for text in (None, "3.5", "4.2-IV0", "9.9"):
        words = ["version-mapping", *(["--release-version", text] if text else [])]
        _agree([*tool, *words], lambda text=text: version_mapping(release, text))
    wanted = [(ELR_VERSION, 1), (METADATA_VERSION, 30), ("share.version", 1)]
    for features in (wanted, [("share.version", 2)], [("x", 1)], [(METADATA_VERSION, 99)]):
        words = [word for name, level in features for word in ("--feature", f"{name}={level}")]
        _agree(
            [*tool, "feature-dependencies", *words],
            lambda features=features: feature_dependencies(release, features),
        )


def _agree(command, ours) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    printed, refused = [], ""
    try:
        printed += ours()
    except UnknownFeatureError as unknown:
        refused = str(unknown)
    assert done.stdout.splitlines() == printed
    assert (done.returncode, refused in done.stderr) == (1 if refused else 0, True)
