"""A large fleet is loaded in parts: the tables are the same, and so is what the run says of itself."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobs.captures import parts
from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from tests.jobs.lakes import content, opened, report, run
from transforms.lake.delta_rs import cluster_ids

CHECKOUT = Path(__file__).parents[3]
FLEET = ("born-on-3.4/node-1", "election-storm/node-1", "v4.4.0-mini/node-1")
COUNTED = (
    "clusters",
    "touched_clusters",
    "captures",
    "captures_read",
    "left_out",
    "records",
    "batches",
    "files",
)


class Whole(NamedTuple):
    """The lake that one run makes of the fleet, its exit code and its JSON line."""

    lake: Path
    code: int
    said: dict[str, Any]


@pytest.fixture(scope="module")
def whole(spark: Any, golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    assert spark is not None
    lake = tmp_path_factory.mktemp("parts") / "whole"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = run(lake, *(golden / name for name in FLEET))
    return Whole(lake, code, report(out.getvalue()))


def test_a_run_in_parts_makes_the_same_lake(
    spark: Any,
    golden: Path,
    whole: Whole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    captures = [golden / name for name in FLEET]
    divided, of_whole = tmp_path / "divided", whole.said
    capsys.readouterr()
    assert run_in_parts(divided, captures, monkeypatch, at_most=1) == whole.code
    said = capsys.readouterr()
    assert "part 3 of 3: 1 cluster" in said.err
    of_divided = report(said.out)
    assert {name: of_divided[name] for name in COUNTED} == {name: of_whole[name] for name in COUNTED}
    assert of_whole["touched_clusters"] == of_whole["clusters"] == len(FLEET)
    for cluster in cluster_ids(whole.lake):
        assert content(opened(spark, divided), cluster) == content(opened(spark, whole.lake), cluster)
    run_in_parts(divided, captures, monkeypatch, at_most=1)
    assert "nothing new: all 3 captures are known" in capsys.readouterr().out


def test_every_field_of_the_json_line_is_documented(whole: Whole) -> None:
    page = (CHECKOUT / "docs/running.md").read_text()
    section = page.partition("## The JSON line")[2].partition("\n## ")[0]
    names = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = {name.strip(" `") for cell in names for name in cell.split(",")}
    of_a_store = {name for name in documented if name.endswith("_requests")}
    assert whole.said.keys() == documented - of_a_store - {"error"}


def test_what_is_new_is_read_in_one_part(
    golden: Path,
    whole: Whole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """However many known captures lie beside it."""
    captures = [golden / name for name in FLEET]
    lake = Path(shutil.copytree(whole.lake, tmp_path / "lake"))
    assert main(["forget", "--lake", str(lake), "--cluster", cluster_ids(lake)[0]]) == ExitCode.FINE
    capsys.readouterr()
    run_in_parts(lake, captures, monkeypatch, at_most=1)
    said = capsys.readouterr()
    assert "part 1 of" not in said.err
    assert (report(said.out)["captures"], report(said.out)["captures_read"]) == (3, 1)


def run_in_parts(lake: Path, captures: list[Path], monkeypatch: pytest.MonkeyPatch, at_most: int) -> int:
    with monkeypatch.context() as patched:
        patched.setattr(parts, "MOST_CAPTURES", at_most)
        return run(lake, *captures)
