"""Everything that Kraftlake makes of captures, as bytes by the artefact's name."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dashboards import embedded_sql
from jobs.cli import main
from jobs.runtime.settings import read_settings
from kraft_core.columnar import fast
from tests.kraft_core.columnar import reference

# The tables' own columns are read from their files.
_QUESTIONS = (
    "SELECT * FROM config_changes",
    "EXPLAIN EXTENDED SELECT * FROM configs WHERE value IS NOT NULL",
    "SELECT no_such_column FROM configs",
)


def said(*words: object) -> bytes:
    """What a verb prints to stdout and stderr."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        main([str(word) for word in words])
    return out.getvalue().encode("utf-8", "surrogateescape")


def of_captures(folder: Path, settings: Path) -> Iterator[tuple[str, bytes]]:
    """What verbs make of captures without a lake."""
    node, checkpoints = folder / "node-1", folder / "node-1/__cluster_metadata-0"
    config = ("--config", settings)
    for kind in ("jsonl", "text"):
        for number in (1, 2):
            yield f"dump {kind} {number}", said("dump", folder / f"node-{number}", "--format", kind, *config)
    sources = (node, *checkpoints.glob("*-0000000002.checkpoint"))
    for source in sources:
        for kind in ("text", "json"):
            of = ("shell", "--format", kind, *config, source)
            for command in (
                ("tree", "/"),
                ("log",),
                ("cat", "/image/configs/*/*"),
                ("find", "/"),
                ("voters",),
            ):
                yield f"{' '.join(command)} {kind} {source.name}", said(*of, *command)
    for kind in ("text", "json"):
        for end in ("end", sources[1], sources[2]):
            words = ("--from", "382", "--to", end, node, "--format", kind)
            yield f"diff {kind} {end}", said("diff", *words, *config)
        yield f"plan {kind}", said("plan", "remove", "2", "--captures", folder, "--format", kind, *config)
    yield "config", said("config", *config)
    yield "dry run", said("run", "--captures", folder, "--lake", folder / "none", "--dry-run", *config)
    yield "wrong path", said("shell", folder, *config)
    for file in (*checkpoints.glob("*.checkpoint"), *checkpoints.glob("*.log")):
        for codec in (fast, reference):
            for rows in codec.decode(file, allowed=read_settings(settings).shown_configs):
                for name in rows.schema.names:
                    yield f"{codec.__name__} {file.name}: {name}", _text(rows[name].to_pylist())


def of_lake(lake: Path, folder: Path, settings: Path, scratch: Path) -> Iterator[tuple[str, bytes]]:
    """What verbs make of a lake, which is made here, and its files."""
    page, log = scratch / "page.html", scratch / "log.jsonl"
    config = ("--config", settings)
    run = ("run", "--lake", lake, "--captures", folder, "--validate", "--report", page, "--log", log)
    yield "run", said(*run, *config)
    yield "page", page.read_bytes()
    yield "log of progress", log.read_bytes()
    for verb, *words in (
        ("findings", "list", "--state", "all"),
        ("findings", "list", "--state", "all", "--format", "json"),
        ("validate", "--full", "--rules-only"),
        ("explain", "--offset", "400"),
        ("explain", "--offset", "400", "--format", "json"),
        ("explain", "--recovery"),
        ("metrics",),
        ("check",),
        ("clusters",),
        ("shell", "tree", "/"),
        ("shell", "log"),
        ("shell", "--format", "json", "cat", "/image/configs/*/*"),
        ("diff", "--from", "382", "--to", "end"),
        ("diff", "--from", "382", "--to", "end", "--format", "json"),
        ("diff", "--from", "end", "--to", folder / "node-1", "--format", "json"),
        ("plan", "remove", "2"),
    ):
        of = (verb, words[0]) if verb == "findings" else (verb,)
        rest = words[len(of) - 1 :]
        with_config = () if verb == "shell" else config
        yield f"{verb} {words}", said(*of, "--lake", lake, *rest, *with_config)
    questions = scratch / "questions.sql"
    questions.write_text(";\n".join(_QUESTIONS))
    yield "sql", said("sql", "--lake", lake, "--format", "json", "--file", questions, *config)
    events = embedded_sql.query(lake, "admin_events", "SELECT * FROM admin_events")
    assert events
    yield "admin_events", _text(events.to_pylist())
    yield from of_files(lake)


def of_files(lake: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a lake as it is, and each column of its Parquet files as text."""
    for file in sorted(path for path in lake.rglob("*") if path.is_file()):
        name = str(file.relative_to(lake))
        yield name, file.read_bytes()
        if file.suffix == ".parquet":
            for column in (table := pq.read_table(file)).column_names:
                yield f"{name}: {column}", _text(table[column].to_pylist())


def _text(values: list[Any]) -> bytes:
    """Texts as they are: repr would escape what is not printable."""
    if all(isinstance(value, str) for value in values):
        return "\n".join(values).encode("utf-8", "replace")
    return repr(values).encode("utf-8", "replace")
