"""Names from captures reach a terminal, a spreadsheet and Prometheus as text that cannot act."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.metrics import _escaped  # pyright: ignore[reportPrivateUsage]
from jobs.questions.row_text import show_csv, show_json, show_safe_csv, show_table
from jobs.runtime.output import json_line, print_lines, printable
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import METADATA_RECORDS

# Clears the screen, forges a line, ends a C string, turns the text around, hides in it, is half a character.
HOSTILE = "a\x1b[2J\r\nrc 0\x00\u202e\u200b\x9b\ud800\U000e0001z"
SHOWN = r"a\u001b[2J\r\nrc 0\u0000\u202e\u200b\u009b\ud800\udb40\udc01z"
# As a name in Kafka's log, which is UTF-8.
NAME = HOSTILE.replace("\ud800", "")
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("x")')


def inert(text: str) -> None:
    """All of it is printable, line by line, and no line begins with what a name forged."""
    for line in text.split("\n"):
        assert line.isprintable(), repr(line)
        assert not line.startswith("rc 0")


def test_every_character_that_could_act_is_escaped() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("żółć 漢字 🎉") == "żółć 漢字 🎉"


def test_a_name_of_several_lines_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines([HOSTILE, "next"])
    assert capsys.readouterr().out == f"{SHOWN}\nnext\n"


def test_json_keeps_the_name() -> None:
    assert json.loads(json_line({NAME: HOSTILE})) == {NAME: HOSTILE}
    inert(json_line({NAME: HOSTILE}))


@pytest.mark.parametrize("show", [show_table, show_csv, show_safe_csv])
def test_cells_are_inert(show: Any) -> None:
    out = io.StringIO()
    show([HOSTILE], [(HOSTILE,), ([HOSTILE],), ({HOSTILE: HOSTILE},)], out)
    inert(out.getvalue())
    assert SHOWN in out.getvalue()


def test_a_json_row_keeps_the_name() -> None:
    out = io.StringIO()
    show_json([NAME], [(NAME,)], out)
    inert(out.getvalue())
    assert json.loads(out.getvalue()) == {NAME: NAME}


def test_safe_csv_has_no_formula() -> None:
    out = io.StringIO()
    show_safe_csv(FORMULAS, [(*FORMULAS[:3], -1, None), ("a", [1], True, -1.5, b"=")], out)
    header, first, second = csv.reader(io.StringIO(out.getvalue()))
    assert header == [f"'{name}" for name in FORMULAS]
    assert first == ["'=1+1", "'+1", "'-1", "-1", ""]
    assert second == ["a", "[1]", "true", "-1.5", "3d"]


def test_csv_keeps_its_cells_unless_asked() -> None:
    out = io.StringIO()
    show_csv(["a"], [(text,) for text in FORMULAS], out)
    assert [row[0] for row in csv.reader(io.StringIO(out.getvalue()))] == ["a", *FORMULAS]


def test_a_label_of_prometheus() -> None:
    """Its own escapes for quotation mark, backslash and line end; the rest as everywhere."""
    assert _escaped('a"\\\n\x1b\u202e') == r"a\"\\\n\\u001b\\u202e"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A controller directory with a topic and a config of that name."""
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    messages = {message.type_name: message for message in METADATA_RECORDS}
    topic = {"name": NAME, "topicId": TOPIC_ID}
    config = {"resourceType": 2, "resourceName": NAME, "name": "cleanup.policy", "value": NAME}
    values = [("TOPIC_RECORD", topic), ("CONFIG_RECORD", config)]
    (folder / f"{0:020d}.log").write_bytes(
        b"".join(
            write_batch(n, 1, [RawRecord(n, n, None, write_metadata_value(messages[kind], 0, value))])
            for n, (kind, value) in enumerate(values)
        )
    )
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("dump", "{}"),
        ("dump", "{}", "--format", "jsonl"),
        ("shell", "{}", "ls", "/image/topics/byName"),
        ("shell", "{}", "find", "/image"),
        ("shell", "{}", "log"),
        ("shell", "{}", "cat", "/image/topics/byName/*"),
        ("shell", "{}", "cat", "/image/configs/*/*", "--format", "json"),
        ("diff", "--from", "0", "--to", "end", "{}"),
        ("diff", "--from", "0", "--to", "end", "{}", "--format", "json"),
    ],
)
def test_verbs_over_a_directory(
    directory: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    main([word.replace("{}", str(directory)) for word in words])
    printed = capsys.readouterr()
    assert r"\u202e" in printed.out + printed.err
    inert(printed.out)
    inert(printed.err)


@pytest.mark.usefixtures("spark")
def test_verbs_over_a_lake(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster id may hold what meta.properties can escape."""
    captures = tmp_path / "captures"
    shutil.copytree(golden / "v4.4.0-mini" / "node-1", captures / "node-1")
    for file in captures.rglob("meta.properties"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("cluster.id")]
        file.write_text("\n".join([*lines, r"cluster.id=a\u001b[2J\nrc 0\u202ez", ""]))
    lake = str(tmp_path / "lake")
    shown = r"a\u001b[2J\nrc 0\u202ez"
    assert main(["run", "--captures", str(captures), "--lake", lake]) in (0, 1)
    printed = [capsys.readouterr()]
    assert f"cluster {shown}: " in printed[0].out
    for words in (
        ["run", "--captures", str(captures), "--dry-run"],
        ["clusters"],
        ["clusters", "--format", "csv"],
        ["findings", "list", "--state", "all"],
        ["explain", "--recovery"],
        ["explain", "--offset", "5"],
        ["plan", "remove", "1"],
        ["metrics"],
        ["sql", "SELECT * FROM captures"],
        ["sql", "SELECT nothing FROM captures"],
    ):
        main([*words, "--lake", lake])
        printed.append(capsys.readouterr())
    assert sum(shown in each.out for each in printed) >= 6
    for each in printed:
        inert(each.out)
        inert(each.err)
