"""ARCHITECTURE.md: every file and class that it names exists, and it names every package and wing."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PAGE = (CHECKOUT / "ARCHITECTURE.md").read_text()
LAYERS = ("jobs", "dashboards", "transforms", "kraft_core")
NAMED = re.findall(r"`([\w./-]+)`", PAGE)
# The steps of the walk.
STEPS = re.findall(r"^\d+\. (.*(?:\n   .*)*)", PAGE, re.MULTILINE)


def test_files_exist() -> None:
    paths = [name for name in NAMED if "/" in name]
    assert len(paths) > 40
    # A wing or package is named by itself, below its layer.
    roots = [CHECKOUT, *(CHECKOUT / layer for layer in LAYERS)]
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert [link for link in links if not (CHECKOUT / link).is_file()] == []


def test_every_package_is_described() -> None:
    packages = [f"`{layer}/`" for layer in LAYERS]
    for layer in ("transforms", "kraft_core"):
        packages += [f"`{init.parent.name}/`" for init in (CHECKOUT / layer).glob("*/__init__.py")]
    assert len(packages) >= 4 + 5 + 10
    assert [package for package in packages if package not in PAGE] == []


def test_the_walk_names_functions_of_its_files() -> None:
    """`name()` in a step is defined in the file named last before it."""
    walk = [step for step in STEPS if step.startswith("**")]
    assert len(walk) >= 15
    missing: list[str] = []
    calls = 0
    for text in walk:
        path = ""
        for name, call in re.findall(r"`([\w./]+\.py)`|`([\w.]+)\(\)`", text):
            path = name or path
            if call:
                calls += 1
                if not re.search(rf"def {call.rpartition('.')[2]}\b", (CHECKOUT / path).read_text()):
                    missing.append(f"{path}: {call}")
    assert calls >= 25
    assert missing == []


def test_the_glossary_names_classes_of_the_code() -> None:
    glossary = PAGE.partition("## Glossary")[2]
    rows = re.findall(r"^\| [^|]+ \| (.*) \|$", glossary, re.MULTILINE)
    assert len(rows) >= 40
    named = {name for row in rows for name in re.findall(r"`([A-Z][a-z]\w+)`", row)}
    code = "".join(path.read_text() for layer in LAYERS for path in (CHECKOUT / layer).rglob("*.py"))
    assert len(named) >= 20
    assert [name for name in sorted(named) if not re.search(rf"^class {name}\b", code, re.MULTILINE)] == []
