"""The table of rules leads to functions that exist, and no rule that is judged is missing from it."""

from __future__ import annotations

import importlib
import inspect

import pytest

from kraft_core.findings.judge import LOG_RULES_OF, RULES_OF
from kraft_core.raft import invariants, quorum_invariants
from kraft_core.raft.rules import ORDERED, READABLE, RULES, Rule

EVERY = (READABLE, ORDERED, *RULES.values())


def resolved(name: str) -> object:
    """What a dotted name below kraft_core stands for."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(["kraft_core", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module of {name}")


def dotted(function: object) -> str:
    return f"{inspect.getmodule(function).__name__}.{function.__qualname__}".removeprefix("kraft_core.")


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: f"{rule.number}-{rule.name}")
def test_every_name_stands_for_a_function(rule: Rule) -> None:
    for name in (*rule.engine, *rule.finding):
        found = resolved(name)
        assert inspect.isfunction(found) or isinstance(found, property), name
        assert name.split(".")[0] in ("raft", "protocol", "findings")
    assert all(name.startswith("findings.") for name in rule.finding)
    assert not any(name.startswith("findings.") for name in rule.engine)


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: f"{rule.number}-{rule.name}")
def test_a_rule_without_engine_or_finding_says_why(rule: Rule) -> None:
    assert bool(rule.note) == (not rule.engine or not rule.finding)
    assert rule.engine or rule.finding


def test_numbers_and_names_are_unique() -> None:
    assert list(RULES) == list(range(1, len(RULES) + 1))
    assert len({rule.name for rule in EVERY}) == len(EVERY)


def test_the_judge_runs_the_functions_of_the_table() -> None:
    judged = {number: {dotted(one) for one in functions} for number, functions in RULES_OF.items()}
    for number, function in LOG_RULES_OF.items():
        judged.setdefault(number, set()).add(dotted(function))
    table: dict[int, set[str]] = {}
    for rule in EVERY:
        if rule.reported_as is None and rule.finding:
            table.setdefault(rule.number, set()).update(rule.finding)
    assert judged == table
    for rule in EVERY:
        if rule.reported_as is not None:
            assert set(rule.finding) <= judged[rule.reported_as]


def test_every_invariant_is_in_the_table() -> None:
    named = {name for rule in EVERY for name in rule.engine}
    shared = {"judged_election", "leader_change_of", "leader_key", "leaders_agree"}
    for module in (invariants, quorum_invariants):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_") and name not in shared:
                assert dotted(function) in named, name
