"""Work on clusters of which some fail."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest
from deltalake.exceptions import DeltaError

from transforms.lake.isolation import apart, described, place_of

CLUSTERS = [f"c{n}" for n in range(9)]


@pytest.mark.parametrize(
    "failing",
    [set[str](), {"c0"}, {"c4"}, {"c1", "c8"}, set(CLUSTERS)],
    ids=lambda c: ",".join(sorted(c)) or "none",
)
def test_those_that_fail_are_left_out_and_the_others_done(failing: set[str]) -> None:
    done: set[str] = set()

    def work(some: Sequence[str]) -> None:
        for cluster in some:
            if cluster in failing:
                raise KeyError(cluster)
        done.update(some)

    found = apart(CLUSTERS, work)
    assert found.keys() == failing
    assert all(reason.startswith(f"KeyError: '{cluster}' (work, line ") for cluster, reason in found.items())
    assert done == set(CLUSTERS) - failing


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "no space"), DeltaError("conflict"), KeyboardInterrupt()], ids=repr
)
def test_errors_of_the_run_stop_it(error: BaseException) -> None:
    calls: list[Sequence[str]] = []

    def work(some: Sequence[str]) -> None:
        calls.append(some)
        raise error

    with pytest.raises(type(error)):
        apart(CLUSTERS, work)
    assert calls == [CLUSTERS]


def test_a_reason_without_values() -> None:
    with pytest.raises(ValueError, match="hunter2") as raised:
        int("hunter2")
    assert "hunter2" in described(raised.value)
    assert place_of(raised.value).startswith("ValueError (test_a_reason_without_values, line ")
    assert "hunter2" not in place_of(raised.value)
