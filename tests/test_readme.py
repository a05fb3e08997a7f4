"""Pages: their links lead somewhere. README: its commands are understood, and some are run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from jobs.cli import build_parser, main
from jobs.runtime.settings import Settings

CHECKOUT = Path(__file__).parents[1]
PAGES = [*CHECKOUT.glob("*.md"), *sorted((CHECKOUT / "docs").glob("*.md")), CHECKOUT / "schedules/README.md"]
README = (CHECKOUT / "README.md").read_text()
COMMANDS = [
    shlex.split(line)[1:] for line in re.findall(r"^\.venv/bin/(kraftlake .*)$", README, re.MULTILINE)
]
WITHOUT_A_LAKE = [words for words in COMMANDS if any(w.startswith("tests/golden/") for w in words)]


def anchors(page: Path) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        name, _, fragment = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not fragment or fragment in anchors(target), link


def test_the_index_leads_to_every_page_and_each_says_for_whom_it_is() -> None:
    index = (CHECKOUT / "docs/README.md").read_text()
    for page in sorted((CHECKOUT / "docs").glob("*.md")):
        if page.name not in ("README.md", "cli.md"):
            assert re.match(r"# .*\n\n\*For [^\n]*\.\*\n\n", page.read_text()), page
        assert page.name == "README.md" or f"]({page.name}" in index, page


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_commands_are_understood(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their own parsers; a page is to be written where its folder is there."""
    monkeypatch.chdir(tmp_path)
    words = [w.replace("/data/quorum.html", "quorum.html") for w in words]
    assert build_parser(words[0], Settings()).parse_args(words).verb == words[0]


@pytest.mark.parametrize("words", WITHOUT_A_LAKE, ids=lambda words: words[0])
def test_commands_that_need_no_lake_answer(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """plan's answer there is a refusal, as its page says."""
    monkeypatch.chdir(CHECKOUT)
    assert main(words) == (1 if words[0] == "plan" else 0)
    assert capsys.readouterr().out


def test_it_names_every_verb_of_its_table() -> None:
    cells = re.findall(r"^\| (`.*?`) \|", README, re.MULTILINE)
    verbs = re.findall(r"`(\w+)`", " ".join(cells))
    listed = build_parser(None, Settings()).format_help()
    assert len(verbs) >= 14
    assert [verb for verb in verbs if f"    {verb} " not in listed] == []
