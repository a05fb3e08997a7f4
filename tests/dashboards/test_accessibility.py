"""The page by axe-core's rules (WCAG 2.2 A and AA, best practices): wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from dashboards.report.page import page
from tests.dashboards.browser import Visit, launched
from tests.dashboards.worlds import NOW, samples_told, states, story, told

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Shades at the edges of a table hide its background from axe; without them it can judge the contrast.
FLAT = ".scroll { background: none !important; max-height: none !important; }"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


def whole() -> str:
    """A page with something of everything: several clusters, one of which failed, and a fault of the lake."""
    names = tuple(f"cluster-{n}" for n in range(9))
    fleet = states(*names, findings={"errors": 1, "warnings": 0})
    return page(
        fleet,
        {names[0]: told() | samples_told()},
        NOW,
        "lake",
        story()["expectations"],
        {"broken": "KeyError"},
    ).text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_axe_finds_no_violation(browser: Browser, tmp_path: Path, width: int, scheme: Any) -> None:
    file = tmp_path / "page.html"
    file.write_text(whole())
    size = {"width": width, "height": 900}
    # The page's policy forbids other scripts, and so axe.
    visit = Visit(browser, file, viewport=size, color_scheme=scheme, bypass_csp=True)
    visit.page.add_style_tag(content=FLAT)
    visit.page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    visit.page.evaluate(AXE)
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    found = visit.page.evaluate("options => axe.run(document, options)", options)
    assert [f"{v['id']}: {n['html'][:200]}" for v in found["violations"] for n in v["nodes"]] == []
    assert len(found["passes"]) > 25
    visit.end()
