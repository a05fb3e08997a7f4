"""Lines as Kafka's tools print them."""

from __future__ import annotations

import pytest

from jobs.runtime.output import LINES_AT_ONCE, print_tabbed


@pytest.mark.parametrize("place", [0, LINES_AT_ONCE - 1, LINES_AT_ONCE, 2 * LINES_AT_ONCE])
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a\tb", "a\tb"),
        ("", ""),
        ("forged\nline", "forged\\nline"),
        ("\x1b[2J\tb", "\\u001b[2J\tb"),
        ("left\u202eright", "left\\u202eright"),
    ],
)
def test_a_line_among_many_is_printable(
    place: int, line: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"\tTopic: t\tPartition: {number}" for number in range(2 * LINES_AT_ONCE + 1)]
    lines[place] = line
    print_tabbed(iter(lines))
    lines[place] = shown
    assert capsys.readouterr().out == "".join(f"{each}\n" for each in lines)


def test_no_lines_are_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_tabbed([])
    assert capsys.readouterr().out == ""
