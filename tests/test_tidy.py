"""Rules of the house that no linter knows. Each exception is listed with its reason."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import needs_spark
from tests.file_access import all_accesses, lake_accesses

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("jobs", "dashboards", "transforms", "kraft_core")
LONGEST_FUNCTION = 70
LONGEST_FILE = 400
# The wing in which every file is a lake's, and its package that alone may touch them.
LAKE_WING, STORAGE = "transforms/lake/", "transforms/lake/storage/"

# Class names that stand for the same thing on both sides.
SHARED_NAMES: dict[str, str] = {}
LONG_FILES: dict[str, str] = {
    "dashboards/view_columns.py": "declarations: the columns of every view",
    "kraft_core/raft/rules.py": "declarations: the table of rules",
    "transforms/quality/expectation_suites.py": "declarations: the expectations of every table",
}
LONG_FUNCTIONS: dict[str, str] = {}
OWN_OUTPUT = {
    "jobs/dump_records.py": "JSON in ASCII",
    "jobs/metrics.py": "labels are escaped",
    "jobs/questions/row_text.py": "cells are escaped",
    "jobs/runtime/output.py": "the module itself",
    "jobs/runtime/progress.py": "the line that it overwrites",
}
# Files and folders that may name places outside the checkout.
OTHER_PLACES = {
    "tests/golden/": "output of a real Kafka, with the paths of the machine that recorded it",
    "tests/jobs/run/test_archives.py": "places where no archive may write",
    "tests/test_tidy.py": "the pattern itself",
}


@cache
def tracked() -> tuple[str, ...]:
    """The files that git tracks."""
    command = ["git", "-C", str(CHECKOUT), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(name for name in listed.stdout.split("\0") if name and (CHECKOUT / name).is_file())


def product_files() -> list[str]:
    return [name for name in tracked() if name.endswith(".py") and name.split("/")[0] in PACKAGES]


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse((CHECKOUT / name).read_text())


def functions(name: str) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function and method of a file."""
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name in product_files():
        for node in parsed(name).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    twice = {class_: where for class_, where in places.items() if len(where) > 1}
    assert {class_: where for class_, where in twice.items() if class_ not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(twice)


def test_a_function_fits_a_screen() -> None:
    long = {
        f"{name}:{function}": lines
        for name in product_files()
        for function, lines in functions(name)
        if lines > LONGEST_FUNCTION
    }
    assert {where: lines for where, lines in long.items() if where not in LONG_FUNCTIONS} == {}
    assert set(LONG_FUNCTIONS) <= set(long)


def test_a_module_is_short() -> None:
    lengths = {name: len((CHECKOUT / name).read_text().splitlines()) for name in product_files()}
    long = {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE}
    assert {name: lines for name, lines in long.items() if name not in LONG_FILES} == {}
    assert set(LONG_FILES) <= set(long)


def test_no_third_process_opens_a_session(request: pytest.FixtureRequest) -> None:
    """`make test` gives the modules that use Spark to two processes; make test-long is run by one."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    using = {item.nodeid.partition("::")[0] for item in items if "spark" in item.fixturenames}
    assert [name for name in using if not needs_spark(name) and not name.startswith("tests/long/")] == []


def test_a_module_is_named_after_its_job() -> None:
    vague = re.compile(r"(^|_)(utils?|managers?|helpers?|misc|common)$")
    assert [name for name in product_files() if vague.search(Path(name).stem)] == []


def test_verbs_print_through_the_module_that_escapes() -> None:
    """A name from a capture could act on a terminal; these modules escape what they print by themselves."""
    prints = re.compile(r"(?<![\w.])print\(|sys\.std(out|err)\.write\(")
    found = {name for name in product_files() if prints.search((CHECKOUT / name).read_text())}
    assert {name for name in found if name.startswith("jobs/")} == set(OWN_OUTPUT)


def test_only_storage_touches_files_of_a_lake() -> None:
    found = []
    for name in product_files():
        if not name.startswith(STORAGE):
            source = (CHECKOUT / name).read_text()
            found += [f"{name}:{line}" for line in file_accesses(name, source)]
    assert found == []


def file_accesses(name: str, source: str) -> list[int]:
    """The lines of a module that touch files of a lake."""
    return (all_accesses if name.startswith(LAKE_WING) else lake_accesses)(source)


PLANTED = (
    ("transforms/lake/delta_rs.py", "any((folder / '_delta_log').glob('*.json'))"),
    ("transforms/lake/delta_rs.py", "if folder.exists(): held = DeltaTable(folder)"),
    ("transforms/lake/table_files.py", "pq.ParquetWriter(file, schema)"),
    ("transforms/lake/lake.py", "os.replace(begun, file)"),
    ("transforms/ingest/unchanged.py", "(lake.path / 'runs').rename(lake.path / 'old')"),
    ("dashboards/published.py", "open(shown.lake + '/lake.json')"),
    ("jobs/maintain.py", "for path in unneeded_files(lake.path, table, 1): path.unlink()"),
    ("jobs/maintain.py", "log = job.lake.path / '_delta_log'; log.mkdir(parents=True)"),
    ("jobs/report.py", "pq.write_table(rows, args.lake / 'a.parquet')"),
    ("jobs/report.py", "folder = args.lake; shutil.rmtree(folder)"),
    ("jobs/report.py", "sizes = [file.stat().st_size for file in [args.lake / 'lake.json']]"),
    ("jobs/report.py", "while (file := args.lake / 'a') and not file.open().read(): pass"),
)


@pytest.mark.parametrize(("name", "line"), PLANTED)
def test_a_planted_line_touches_files_of_a_lake(name: str, line: str) -> None:
    source = (CHECKOUT / name).read_text()
    planted = f"{source}\n\ndef planted(args, lake, job, folder, file, begun, shown):\n    {line}\n"
    assert file_accesses(name, source) == []
    assert file_accesses(name, planted) == [len(planted.splitlines())]


@pytest.mark.parametrize(
    "line",
    [
        "lake.exists(table)",
        "text = str(lake.path).replace('a', 'b')",
        "when = read(lake).replace(tzinfo=UTC)",
        "args.captures.stat()",
        "tables.open(BATCHES)",
        "for row in rows_with(lake): args.out.write_text(row)",
    ],
)
def test_other_calls_touch_no_file_of_a_lake(line: str) -> None:
    assert lake_accesses(line) == []


def test_type_checked_files_import_nothing_that_only_tests_install() -> None:
    """make lint installs its own tools alone, so that pyright would not find the rest."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    pyright = project["tool"]["pyright"]
    packages = project["project"]["optional-dependencies"]["test"]
    modules = {re.split(r"[><=\s]", package)[0].replace("-", "_") for package in packages}
    excluded = {path for pattern in pyright["exclude"] for path in CHECKOUT.glob(pattern)}
    checked = [
        name
        for name in tracked()
        if name.endswith(".py")
        and name.startswith(tuple(pyright["include"]))
        and CHECKOUT / name not in excluded
    ]
    assert "tests/soundness/checker.py" in checked
    assert "pytest" in modules
    found = [(name, module) for name in checked for module in imported(name) if module in modules]
    assert found == []


def imported(name: str) -> Iterator[str]:
    """The top-level packages that a file imports anywhere."""
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module.split(".")[0]


def test_nothing_leads_out_of_the_checkout() -> None:
    """Neither a folder beside it nor one of the machine where it was written."""
    outside = re.compile(r"\.\./shared|(?<![\w./-])/(?:work|root)/|(?<![\w./-])/tmp/\w")
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in tracked()
        if not name.startswith(tuple(OTHER_PLACES))
        for number, line in enumerate(_lines(name), 1)
        if outside.search(line)
    ]
    assert found == []


def _lines(name: str) -> list[str]:
    try:
        return (CHECKOUT / name).read_text().splitlines()
    except UnicodeDecodeError:  # an archive, a picture
        return []


PAGES = [name for name in tracked() if name.endswith(".md") and not name.startswith("tests/golden/corrupt")]


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_resolve(name: str) -> None:
    """Files are there; an anchor is a heading of the page it leads to."""
    broken = []
    text = re.sub(r"```.*?```", "", (CHECKOUT / name).read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (CHECKOUT / name).parent / path if path else CHECKOUT / name
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
