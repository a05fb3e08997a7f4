"""Thresholds and severities of expectations: as declared, then expectations.toml, then those of one lake."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any

from transforms.quality.expectation_suites import Suite

# By suite and expectation, what differs from its declaration: allowed, severity.
Overrides = Mapping[str, Mapping[str, Mapping[str, Any]]]
SEVERITIES = ("error", "warning")


class UnknownExpectationError(ValueError):
    """A setting of an unknown expectation, or an invalid setting; the message names it."""


def configured(chosen: Iterable[Suite], overrides: Overrides | None = None) -> list[Suite]:
    """The suites with the settings of expectations.toml and then `overrides`.

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
            if name not in names[suite]:
                known = ", ".join(sorted(names[suite]))
                raise UnknownExpectationError(f"suite {suite} has no expectation {name}; it has: {known}")
            _check_changes(f"{suite}.{name}", changes)


def _check_changes(name: str, changes: Mapping[str, Any]) -> None:
    unknown = sorted(set(changes) - {"allowed", "severity"})
    if unknown:
        raise UnknownExpectationError(f"{name}: unknown setting {unknown[0]}; use allowed or severity")
    if changes.get("severity", "error") not in SEVERITIES:
        raise UnknownExpectationError(f"{name}: severity is error or warning, not {changes['severity']}")
    allowed = changes.get("allowed", 0)
    if isinstance(allowed, bool) or not isinstance(allowed, int | float):
        raise UnknownExpectationError(f"{name}: allowed is a number, not {allowed!r}")


def _with_settings(suite: Suite, settings: Mapping[str, Mapping[str, Any]]) -> Suite:
    return replace(
        suite,
        checks=tuple(
            replace(c, expectations=tuple(replace(e, **settings.get(e.name, {})) for e in c.expectations))
            for c in suite.checks
        ),
    )
