"""Thresholds and severities of expectations: as declared, then expectations.toml, then those of one lake.

Users also define expectations of their own, [expectations.SUITE.NAME] in kraftlake.toml: a query, or bounds
of a column. They are evaluated like the declared ones, by every validation and over all rows.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any

from transforms.lake.tables import Table
from transforms.quality.expectation_suites import (
    ERROR,
    SEVERITIES,
    Check,
    Expectation,
    Suite,
    UnknownExpectationError,
)

# By suite and expectation, what differs from its declaration (allowed, severity), or what declares one's own.
Overrides = Mapping[str, Mapping[str, Mapping[str, Any]]]


# Either makes a setting an expectation of one's own.
QUERY, COLUMN = "sql", "column"
BOUNDS = {"min": ">=", "max": "<="}
KEYS = {QUERY, COLUMN, *BOUNDS, "sentence", "severity", "allowed"}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
Changes = Mapping[str, Any]


def configured(chosen: Iterable[Suite], overrides: Overrides | None = None) -> list[Suite]:
    """The suites with the settings of expectations.toml and then `overrides`, and with the own ones of these.

    Raises UnknownExpectationError.
    """
    text = resources.files("transforms.quality").joinpath("expectations.toml").read_text()
    changed = list(chosen)
    for settings in (tomllib.loads(text), overrides or {}):
        _check_settings(changed, settings)
        changed = [_with_settings(suite, settings.get(suite.table.name, {})) for suite in changed]
    return changed


def _check_settings(chosen: Iterable[Suite], settings: Overrides) -> None:
    names = {suite.table.name: {e.name for e in suite.expectations} for suite in chosen}
    for suite, expectations in settings.items():
        if suite not in names:
            known = ", ".join(sorted(names))
            raise UnknownExpectationError(f"there is no suite {suite}; known suites: {known}")
        for name, changes in expectations.items():
            if is_own(changes):
                if name in names[suite]:
                    raise UnknownExpectationError(f"{suite}.{name} is built in: choose another name")
            elif name not in names[suite]:
                known = ", ".join(sorted(names[suite]))
                raise UnknownExpectationError(
                    f"suite {suite} has no expectation {name}; known expectations: {known}"
                )
            else:
                _check_override(f"{suite}.{name}", changes)


def _check_override(name: str, changes: Mapping[str, Any]) -> None:
    unknown = sorted(set(changes) - {"allowed", "severity"})
    if unknown:
        raise UnknownExpectationError(f"{name}: unknown setting {unknown[0]}; use allowed or severity")
    check_changes(name, changes)


def _with_settings(suite: Suite, settings: Mapping[str, Mapping[str, Any]]) -> Suite:
    changed = (
        replace(c, expectations=tuple(replace(e, **settings.get(e.name, {})) for e in c.expectations))
        for c in suite.checks
    )
    own = (own_check(suite.table, name, words) for name, words in settings.items() if is_own(words))
    return replace(suite, checks=(*changed, *own))


def is_own(changes: Changes) -> bool:
    """Whether a setting declares an expectation, and does not change a declared one."""
    return not {QUERY, COLUMN}.isdisjoint(changes)


def own_check(table: Table, name: str, changes: Changes) -> Check:
    """The check of an own expectation of a table's suite. Raises UnknownExpectationError."""
    shown = f"{table.name}.{name}"
    _check_words(shown, name, changes)
    if QUERY in changes:
        words = changes.get("sentence", f"The query of {shown} returns no row")
        rows, holds, names = f"SELECT * FROM (\n{changes[QUERY]}\n)", "FALSE", ()
    else:
        bounds = _bounds(shown, changes)
        words = changes.get("sentence", f"{changes[COLUMN]} is {' and '.join(bounds)}")
        rows = f"SELECT *, ({changes[COLUMN]}) AS measured FROM {table.name}"
        holds = " AND ".join(f"COALESCE(measured {bound}, TRUE)" for bound in bounds)
        names = (*table.key, "measured")
    severity, allowed = changes.get("severity", ERROR), changes.get("allowed", 0)
    expectation = Expectation(name, words, holds, severity=severity, allowed=allowed)
    return Check(rows, (expectation,), every_cluster=True, names=names, own=True)


def _bounds(shown: str, changes: Changes) -> list[str]:
    """The bounds of a column as conditions without it, such as `>= 3`."""
    given = [key for key in BOUNDS if key in changes]
    if not given:
        raise UnknownExpectationError(f"{shown}: {COLUMN} needs min or max")
    for key in given:
        if not _is_number(changes[key]):
            raise UnknownExpectationError(f"{shown}: {key} must be a number, not {changes[key]!r}")
    return [f"{BOUNDS[key]} {changes[key]}" for key in given]


def _check_words(shown: str, name: str, changes: Changes) -> None:
    """Raises UnknownExpectationError for unknown keys, and for values of a wrong kind."""
    if not _NAME.fullmatch(name):
        raise UnknownExpectationError(f"{shown}: a name consists of lower-case letters, digits and _")
    unknown = sorted(set(changes) - KEYS)
    if unknown:
        raise UnknownExpectationError(
            f"{shown}: unknown setting {unknown[0]}; known: {', '.join(sorted(KEYS))}"
        )
    if QUERY in changes and not {COLUMN, *BOUNDS}.isdisjoint(changes):
        raise UnknownExpectationError(f"{shown}: give either {QUERY}, or {COLUMN} with min or max")
    for key in (QUERY, COLUMN, "sentence"):
        if not isinstance(changes.get(key, "text"), str) or not changes.get(key, "text").strip():
            raise UnknownExpectationError(f"{shown}: {key} must be a string, not {changes[key]!r}")
    check_changes(shown, changes)


def check_changes(shown: str, changes: Changes) -> None:
    """Raises UnknownExpectationError unless severity and allowed are what they can be."""
    if changes.get("severity", ERROR) not in SEVERITIES:
        raise UnknownExpectationError(
            f"{shown}: severity must be error or warning, not {changes['severity']}"
        )
    allowed = changes.get("allowed", 0)
    if not _is_number(allowed):
        raise UnknownExpectationError(f"{shown}: allowed must be a number, not {allowed!r}")


def _is_number(value: object) -> bool:
    """Whether SQL has it as a number: TOML also knows inf and nan."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
