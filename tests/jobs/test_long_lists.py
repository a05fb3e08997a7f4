"""Long lists end with how many more there are and how to see them; what is piped is whole."""

from __future__ import annotations

import argparse
import io

import pytest

from jobs.findings import formatted
from jobs.runtime.long_lists import add_limit, first_of, limit_of
from tests.jobs.test_findings_text import lost


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_limit(parser, "rows", 1000)
    return parser.parse_args(words)


def test_a_terminal_shows_the_first_and_a_pipe_all() -> None:
    assert limit_of(parsed(), Terminal()) == 1000
    assert limit_of(parsed(), io.StringIO()) == 0
    assert limit_of(parsed("--limit", "5"), io.StringIO()) == 5
    assert limit_of(parsed("--limit", "0"), Terminal()) == 0


@pytest.mark.parametrize(("number", "limit"), [(0, 3), (2, 3), (3, 3), (5, 0)])
def test_what_fits_is_all(number: int, limit: int, capsys: pytest.CaptureFixture[str]) -> None:
    with first_of(range(number), limit, "rows", lambda: pytest.fail("was asked")) as shown:
        assert list(shown) == list(range(number))
    assert capsys.readouterr().err == ""


def test_how_many_more_there_are_is_said_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with first_of(range(5000), 3, "rows", lambda: 5000) as shown:
        assert list(shown) == [0, 1, 2]
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "... 4,997 more: --limit 0 shows all rows\n"


def test_findings_of_one_cause_count_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [lost(epoch, replicas=[str(epoch)]) for epoch in range(1, 6)]
    assert sum(line.startswith("ERROR") for line in formatted(rows, "text", 2)) == 2
    assert capsys.readouterr().err == "... 3 more: --limit 0 shows all findings\n"
    assert len(list(formatted(rows, "jsonl", 4))) == 4
    assert capsys.readouterr().err == "... 1 more: --limit 0 shows all findings\n"
