"""Settings and flags that refer to expectations, checked before Spark starts."""

from __future__ import annotations

from collections.abc import Collection

from jobs.runtime.outcome import Failure
from jobs.runtime.settings import Settings
from kraft_core.wording import did_you_mean


def check_expectations(settings: Settings, failing: str | None = None) -> None:
    """Raises Failure where [expectations] of the settings is invalid, or `failing` (--failing) names none."""
    from transforms.quality.expectation_settings import UnknownExpectationError, configured
    from transforms.quality.expectation_suites import suites

    try:
        chosen = configured(suites(), settings.expectations)
    except UnknownExpectationError as error:
        raise Failure(f"{settings.file}: {error}") from None
    names = [f"{suite.table.name}.{e.name}" for suite in chosen for e in suite.expectations]
    if failing is not None and failing not in names:
        raise Failure(f"there is no expectation {failing}{_hint(failing, names)}")


def _hint(unknown: str, names: Collection[str]) -> str:
    """The name that was meant; the suite alone, which they share, makes none near."""
    suite, _, name = unknown.partition(".")
    of_suite = sorted(each for each in names if each.startswith(f"{suite}."))
    if of_suite and not did_you_mean(name, (each.partition(".")[2] for each in of_suite)):
        return f"; those of {suite} are {', '.join(of_suite)}"
    return did_you_mean(unknown, names) or "; a name is like captures.log_is_gapless"
