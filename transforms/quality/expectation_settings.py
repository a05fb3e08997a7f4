"""Thresholds and severities of expectations: as declared, then expectations.toml, then those of one lake."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any

from transforms.quality.expectation_suites import Suite, UnknownExpectationError
from transforms.quality.own_expectations import check_changes, is_own, own_check

# By suite and expectation, what differs from its declaration (allowed, severity), or what declares one's own.
Overrides = Mapping[str, Mapping[str, Mapping[str, Any]]]


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
