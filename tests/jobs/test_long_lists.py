"""Long lists end with how many more there are and how to see them; what is piped is whole."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from jobs import dump
from jobs.cli import main
from jobs.findings import formatted
from jobs.runtime.long_lists import add_limit, first_of, limit_of
from jobs.runtime.outcome import Failure
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


NODE = Path(__file__).parents[1] / "golden" / "dynamic-membership" / "node-1"


def ended(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, and stderr."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(code), out.splitlines(), err


def test_records_beyond_the_limit_are_still_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = NODE / "__cluster_metadata-0" / "00000000000000000000.log"
    assert ended(capsys, "dump", segment, "--limit", 700)[2] == ""
    code, lines, err = ended(capsys, "dump", segment, "--limit", 5)
    assert (code, len(lines)) == (0, 5)
    assert err == "... 692 more: --limit 0 shows all records\n"
    broken = tmp_path / segment.name
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    broken.write_bytes(content)
    code, lines, err = ended(capsys, "dump", broken, "--limit", 5)
    assert (code, len(lines)) == (1, 5)
    assert '"kind": "damage"' in err
    with pytest.raises(Failure, match="does not apply to --format kafka"):
        dump.run(argparse.Namespace(paths=[segment], files=None, max_bytes=None, format="kafka", limit=5))


def test_differences_beyond_the_limit_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("diff", "--from", "1000", "--to", "end", NODE)
    code, whole, err = ended(capsys, *words)
    assert (code, err) == (0, "")
    listed = [line for line in whole if line.startswith("  ")]
    code, first, err = ended(capsys, *words, "--limit", 2)
    assert code == 0
    assert [line for line in first if line.startswith("  ")] == listed[:2]
    assert [line for line in first if line[0] != " "] == [line for line in whole if line[0] != " "]
    assert err == f"... {len(listed) - 2} more: --limit 0 shows all differences\n"
