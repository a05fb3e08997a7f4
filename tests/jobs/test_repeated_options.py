"""Options of several values: given at once, or one by one, none is lost."""

from __future__ import annotations

import pytest

from jobs.cli import full_parser
from jobs.runtime.settings import read_settings

PLAN = ("restore", "plan", "--captures", "c")
VOTERS = ("--voters", "4@a:1")


@pytest.mark.parametrize(
    ("words", "option", "values"),
    [
        ((*PLAN, *VOTERS), "--gone", ["2", "3"]),
        ((*PLAN, *VOTERS), "--lost-brokers", ["11", "12"]),
        ((*PLAN, *VOTERS), "--brokers-back", ["11", "12"]),
        (PLAN, "--voters", ["4@a:1", "5@b:1"]),
        (("restore", "apply", "plan", "--to", "new"), "--accept-loss", ["unseen-records", "other-line"]),
        (("explain", "--lake", "lake", "--recovery"), "--without", ["2", "3"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_repeated_or_at_once(words: tuple[str, ...], option: str, values: list[str]) -> None:
    parser = full_parser(read_settings(None))
    name = option.removeprefix("--").replace("-", "_")
    one_by_one = [word for value in values for word in (option, value)]
    given = [getattr(parser.parse_args([*words, *more]), name) for more in ([option, *values], one_by_one)]
    assert given[0] == given[1]
    assert len(given[0]) == len(values)
