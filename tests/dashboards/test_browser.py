"""The page in a real browser: offline, by mouse and keyboard, on a phone, in the dark, on paper."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from dashboards.report.page import page
from tests.dashboards.browser import Visit, launched
from tests.dashboards.test_lanes import storm
from tests.dashboards.worlds import NOW, capture, few_of, states, told

# On how many lines the text after each :// of an element is, as far as the next space.
LINES_OF_ENDPOINTS = """element => {
  const texts = [...element.childNodes].filter(node => node.nodeType === Node.TEXT_NODE);
  return texts.slice(1).filter(node => node.data !== "://").map(node => {
    const range = document.createRange();
    range.setStart(node, 0);
    range.setEnd(node, (node.data + " ").indexOf(" "));
    return new Set([...range.getClientRects()].map(box => box.top)).size;
  });
}"""
HOSTILE = "<img src=x onerror=document.title='hacked'><script>document.title='hacked'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as started:
        yield started


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Opens a page. After the test nothing may have gone wrong in it, and nothing else been asked for."""
    visits: list[Visit] = []

    def opened(text: str, **context: Any) -> Page:
        file = tmp_path / f"page-{len(visits)}.html"
        file.write_bytes(text.encode())
        visits.append(Visit(browser, file, **context))
        return visits[-1].page

    yield opened
    for each in visits:
        each.end()


def one_cluster(text: str = "a majority stored it") -> str:
    return page(states("cluster-a"), {"cluster-a": told(text)}, NOW, "lake").text


def overflow(shown: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_a_mark_tells_its_words_on_hover(visit: Any) -> None:
    shown = visit(one_cluster())
    mark = shown.locator(".chart .doubt.truncated")
    mark.scroll_into_view_if_needed()
    shown.wait_for_timeout(100)  # scrolling takes a tip away
    mark.hover()
    assert "truncated by epoch 3" in shown.locator("#tip").inner_text()
    box = shown.locator("#tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= shown.viewport_size["width"]
    shown.mouse.move(2, 2)
    assert shown.locator("#tip").is_hidden()


def test_arrow_keys_go_through_a_chart_in_the_order_of_time(visit: Any) -> None:
    shown = visit(one_cluster())
    chart = shown.locator("svg.chart").first
    chart.focus()
    places = []
    for _ in range(chart.locator(".m").count()):
        shown.keyboard.press("ArrowRight")
        assert shown.locator("#tip").inner_text() == shown.locator(".m.on").get_attribute("aria-label")
        places.append(shown.locator(".m.on").bounding_box()["x"])
    assert places == sorted(places)
    last = shown.locator("#tip").inner_text()
    shown.keyboard.press("Home")
    assert shown.locator("#tip").inner_text() != last
    shown.keyboard.press("End")
    assert shown.locator("#tip").inner_text() == last
    shown.keyboard.press("Escape")
    assert shown.locator("#tip").is_hidden()


def test_a_tip_by_key_stays_at_its_mark_when_the_page_scrolls(visit: Any) -> None:
    """Focus itself scrolls, and the browser tells of it later."""
    shown = visit(one_cluster(), viewport={"width": 900, "height": 400})
    shown.locator("svg.chart").first.focus()
    shown.keyboard.press("ArrowRight")
    before = shown.locator(".m.on").bounding_box()["y"]
    shown.evaluate("scrollBy(0, 30)")
    shown.wait_for_timeout(200)
    assert shown.locator(".m.on").bounding_box()["y"] == pytest.approx(before - 30, abs=1)
    assert shown.locator("#tip").is_visible()
    assert shown.locator("#tip").inner_text() == shown.locator(".m.on").get_attribute("aria-label")


def test_all_of_it_is_reached_by_tab(visit: Any) -> None:
    """Links, fields, charts and tables that scroll take the focus, in the order of the page."""
    shown = visit(one_cluster())
    wanted = shown.evaluate("document.querySelectorAll('a, input, summary, .chart, .scroll').length")
    reached = set()
    for _ in range(wanted + 5):
        shown.keyboard.press("Tab")
        ring = shown.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring != "none" or shown.evaluate("document.activeElement === document.body")
        reached.add(shown.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(reached - {-1}) >= wanted


def test_charts_have_names_for_a_screen_reader(visit: Any) -> None:
    shown = visit(one_cluster())
    names = [chart.get_attribute("aria-label") for chart in shown.locator("svg.chart").all()]
    assert [name.split(".")[0] for name in names] == [
        "Voters and leaders",
        "High watermark and log ends",
        "Partitions under min ISR",
    ]
    assert shown.locator(".m:not([aria-label])").count() == 0
    assert shown.locator("table:not(:has(caption))").count() == 0
    assert shown.locator(".scroll:not([aria-label])").count() == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1240])
def test_no_window_is_too_narrow(visit: Any, width: int) -> None:
    shown = visit(one_cluster("wfavhryGu77Wkav-fwENNQ" * 6), viewport={"width": width, "height": 800})
    assert overflow(shown) <= 0


@pytest.mark.parametrize("width", [1400, 400])
def test_no_column_is_off_the_screen_or_cut(visit: Any, width: int) -> None:
    """On a phone each row is a card whose cells bear the names of their columns."""
    shown = visit(one_cluster(), viewport={"width": width, "height": 900})
    for place in shown.locator(".scroll").all():
        assert place.evaluate("e => e.scrollWidth - e.clientWidth") <= 1
    label = "getComputedStyle(e, '::before').content"
    cell = shown.locator("section[id$=voters] td").last
    assert cell.evaluate(f"e => {label}") == ('"Proven by"' if width == 400 else "none")
    cut = "t => t.getBoundingClientRect().left < 0 || t.getBoundingClientRect().right > innerWidth"
    assert [tick.inner_text() for tick in shown.locator(".tick:visible").all() if tick.evaluate(cut)] == []


@pytest.mark.parametrize("width", [1400, 400, 320])
def test_labels_of_an_axis_can_be_told_apart(visit: Any, width: int) -> None:
    shown = visit(one_cluster(), viewport={"width": width, "height": 900})
    joined = """chart => {
        const boxes = [...chart.querySelectorAll(".tick:is(.start, .middle, .end)")]
            .map(tick => tick.getBoundingClientRect()).filter(box => box.width);
        const joined = (a, b) => a !== b && a.top === b.top && a.left <= b.left && a.right + 4 > b.left;
        return boxes.filter(a => boxes.some(b => joined(a, b)));
    }"""
    charts = shown.locator("svg.chart")
    assert charts.count() == 3
    assert [chart.evaluate(joined) for chart in charts.all()] == [[]] * 3


@pytest.mark.parametrize(("media", "width"), [("screen", 1400), ("screen", 400), ("print", 718)])
def test_the_longest_names_are_not_cut(visit: Any, media: Any, width: int) -> None:
    """Of a topic, a host, a file, a cluster, a lake: Kafka's longest names have no place to break."""
    name = "orders_v" * 31
    fleet = states("a", names={"name": name, "environment": None, "owner": None})
    shown = visit(page(fleet, {"a": told(name)}, NOW, name).text, viewport={"width": width, "height": 900})
    shown.emulate_media(media=media)
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert overflow(shown) <= 0
    for place in shown.locator(".scroll:visible").all():
        assert place.evaluate("e => e.scrollWidth - e.clientWidth") <= 1, place.get_attribute("aria-label")
    shown.evaluate("dispatchEvent(new Event('afterprint'))")


def test_no_word_of_a_column_s_name_is_broken_on_a_phone(visit: Any) -> None:
    shown = visit(one_cluster(), viewport={"width": 400, "height": 900})
    broken = """() => [...document.querySelectorAll(".scroll td")].flatMap(cell => {
        const style = getComputedStyle(cell, "::before");
        const canvas = document.createElement("canvas").getContext("2d");
        canvas.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        return cell.dataset.l.split(" ").filter(w => canvas.measureText(w).width > parseFloat(style.width));
    })"""
    assert shown.evaluate(broken) == []


def test_in_the_dark_the_page_is_dark_and_its_text_can_be_read(visit: Any) -> None:
    shown = visit(one_cluster(), color_scheme="dark")
    assert brightness(shown, "body", "backgroundColor") < 40
    for place in ("body", "small", ".status.truncated", ".badge", "th"):
        assert brightness(shown, place, "color") > 120, place
    light = visit(one_cluster(), color_scheme="light")
    assert brightness(light, "body", "backgroundColor") > 230


def brightness(shown: Page, place: str, what: str) -> float:
    """The mean of red, green and blue."""
    colour = shown.locator(place).first.evaluate(f"e => getComputedStyle(e).{what}")
    return sum(map(float, colour.removeprefix("rgb(").removesuffix(")").split(",")[:3])) / 3


def test_on_paper_tables_are_whole_and_navigation_is_gone(visit: Any) -> None:
    a4 = {"width": 718, "height": 1000}
    shown = visit(one_cluster(), color_scheme="dark", viewport=a4)
    shown.emulate_media(media="print", color_scheme="light")
    assert shown.locator(".cluster nav").first.is_hidden()
    assert brightness(shown, "body", "backgroundColor") > 230
    for place in shown.locator(".scroll").all():
        assert place.evaluate("e => e.scrollHeight - e.clientHeight") <= 1
        assert place.evaluate("e => e.scrollWidth - e.clientWidth") <= 1
    folded = shown.locator(".cluster details:not([open])")
    assert folded.count() > 0
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert folded.count() > 0


@pytest.mark.parametrize("name", [None, "orders-prod"])
def test_on_paper_a_cluster_id_is_on_one_line(visit: Any, name: str | None) -> None:
    """Also below a name."""
    named = {} if name is None else {"names": {"name": name, "environment": None, "owner": None}}
    fleet = states("rPoTXydvQsK3Nv6AA77Cqg", **named)
    shown = visit(page(fleet, {}, NOW, "lake").text, viewport={"width": 718, "height": 1000})
    shown.emulate_media(media="print")
    place = shown.locator(".fleet td:nth-child(2)").get_by_text("rPoTXydvQsK3Nv6AA77Cqg")
    lines = """e => {
        const range = document.createRange();
        range.selectNodeContents(e);
        return range.getClientRects().length;
    }"""
    assert place.evaluate(lines) == 1


def test_on_paper_addresses_of_endpoints_are_on_one_line(visit: Any) -> None:
    addresses = "192.168.200.101:29001", "192.168.200.101:29051"
    text = "endpoints " + " -> ".join(f"CONTROLLER://{address}" for address in addresses)
    shown = visit(one_cluster(text), viewport={"width": 718, "height": 1000})
    shown.emulate_media(media="print")
    lines = shown.locator(".scroll td > small").first.evaluate(LINES_OF_ENDPOINTS)
    assert lines == [1, 1]


@pytest.mark.parametrize("clusters", [1, 9])
def test_no_sheet_of_paper_is_blank(visit: Any, clusters: int) -> None:
    names = tuple(f"cluster-{n}" for n in range(clusters))
    shown = visit(page(states(*names), dict.fromkeys(names, told()), NOW, "lake").text)
    sheets = PdfReader(io.BytesIO(shown.pdf(format="A4"))).pages
    words = [len(sheet.extract_text().split()) for sheet in sheets]
    assert len(words) > 2 or clusters > 1
    assert min(words) > 10


def test_a_link_of_the_fleet_unfolds_its_cluster(visit: Any) -> None:
    names = tuple(f"cluster-{n}" for n in range(9))
    shown = visit(page(states(*names), {n: told() for n in names}, NOW, "lake").text)
    folded = shown.locator("details.cluster").nth(4)
    assert folded.get_attribute("open") is None
    shown.get_by_role("link", name="cluster-4").last.click()
    expect(folded).to_have_attribute("open", "")  # waits: the browser tells of a new fragment after the click
    shown.get_by_label("Find a cluster").fill("cluster-7")
    assert shown.locator(".fleet tbody tr:visible").count() == 1
    assert shown.locator("#found").inner_text() == "1 of 9"


def test_hostile_text_is_only_text(visit: Any) -> None:
    shown = visit(page(states(HOSTILE), {HOSTILE: told(HOSTILE)}, NOW, HOSTILE).text)
    shown.wait_for_timeout(100)
    assert "hacked" in shown.inner_text("body")
    assert not shown.evaluate("document.title").startswith("hacked")
    assert shown.locator("img").count() == 0
    assert shown.locator("script").count() == 1


def test_a_storm_of_epochs_opens_at_once(visit: Any) -> None:
    rows = few_of({"epochs": storm(10_000), "captures": [capture(1, NOW, 9)]})
    shown = visit(page(states("a"), {"a": rows}, NOW, "lake").text)
    ready = shown.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
    assert ready < 5_000
    assert shown.locator(".chart .led").count() <= 720
