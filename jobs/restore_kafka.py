"""How an installed Kafka reads a written checkpoint: with its own kafka-dump-log and metadata shell.

Both print secrets. Their output is compared with the plan, and never shown.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from jobs.runtime.java import java_of
from jobs.runtime.outcome import ExitCode, Failure
from kraft_core.format.kafka_dump import DumpOptions, FileDump
from kraft_core.image import tree
from kraft_core.image.image import Image
from kraft_core.wording import count

# kafka-dump-log's class is the latter before Kafka 4.1.
_DUMP = ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments")
_SHELL = ("org.apache.kafka.shell.MetadataShell",)
_SETTINGS = ("-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dlog4j2.level=OFF")
_MOST_SECONDS = 300
_ATTEMPTS = 10
# By directory of the shell's tree: up to which depth names are compared. Below are contents, and secrets.
_NAMES = {"acls": 3, "cluster": 3, "configs": 3, "scram": 3, "topics": 4}
_NAME = re.compile(r"((?:  )*)(\S.*):")
_UNREAD = re.compile(r"^  offset -1,", re.MULTILINE)

_Record = tuple[int, str, Any]
_Path = tuple[str, ...]


def read_by_kafka(kafka: Path, checkpoint: Path, image: Image) -> Iterator[str]:
    """What kafka-dump-log and kafka-metadata-shell made of it, a line each. kafka: the folder that has libs.

    Raises Failure where they cannot be run, do not read it, or read it otherwise.
    """
    dump, shell = (_class(kafka, names) for names in (_DUMP, _SHELL))
    printed = _run(kafka, dump, "--cluster-metadata-decoder", "--files", str(checkpoint))
    records = list(_records(printed))
    planned = list(_records("".join(FileDump(DumpOptions(show_secrets=True)).texts(*_content(checkpoint)))))
    for theirs, ours in zip(records, planned, strict=False):
        if theirs != ours:
            raise _otherwise("kafka-dump-log", kafka, checkpoint, f"the record at offset {ours[0]}")
    if len(records) != len(planned):
        raise _otherwise(
            "kafka-dump-log", kafka, checkpoint, f"{count(len(records), 'record')}, not {len(planned)}"
        )
    yield f"kafka-dump-log of {kafka} reads the same {count(len(records), 'record')}"

    names = set(_printed_names(_tree(kafka, shell, checkpoint).split("\n")))
    expected = set(_names(tree.root(image)))
    if names != expected:
        path = min(names ^ expected)
        raise _otherwise("kafka-metadata-shell", kafka, checkpoint, "/image/" + "/".join(path))
    yield f"kafka-metadata-shell of {kafka} lists the same {count(len(names), 'name')}"


def _class(kafka: Path, names: tuple[str, ...]) -> str:
    """The first of the classes that a jar of Kafka has. Raises Failure without one."""
    for name in names:
        for jar in sorted((kafka / "libs").glob("kafka*.jar")):
            with ZipFile(jar) as opened:
                if name.replace(".", "/") + ".class" in opened.namelist():
                    return name
    raise Failure(f"--kafka {kafka}: no jar in {kafka / 'libs'} has {names[0]}")


def _run(kafka: Path, main: str, *words: str) -> str:
    """What a tool prints. Raises Failure unless it ends well; its own words may contain secrets."""
    tool = main.rpartition(".")[2]
    command = [java_of(), *_SETTINGS, "-cp", f"{kafka}/libs/*", main, *words]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Failure(
            f"{tool} of {kafka} did not finish within {_MOST_SECONDS} s: {' '.join(words)}", ExitCode.FOUND
        ) from None
    if done.returncode:
        raise Failure(
            f"{tool} of {kafka} failed with exit code {done.returncode}: {' '.join(words)}", ExitCode.FOUND
        )
    return done.stdout.decode(errors="replace")


def _tree(kafka: Path, shell: str, checkpoint: Path) -> str:
    """The shell's tree of the metadata. It sometimes answers before it has read the checkpoint."""
    for _ in range(_ATTEMPTS):
        printed = _run(kafka, shell, "--snapshot", str(checkpoint), "tree", "/image")
        if not _UNREAD.search(printed):
            return printed
    raise Failure(
        f"kafka-metadata-shell of {kafka} answered {_ATTEMPTS} times before it had read {checkpoint}",
        ExitCode.TRY_AGAIN,
    )


def _content(checkpoint: Path) -> tuple[bytes, str]:
    return checkpoint.read_bytes(), checkpoint.name


def _records(dump: str) -> Iterator[_Record]:
    """Of each record of a dump: offset, the name of a control record or `payload:`, content."""
    for line in dump.split("\n"):
        if line.startswith("| offset: "):
            name, brace, content = line.partition("headerKeys: [] ")[2].partition("{")
            try:
                yield int(line.split()[2]), name.strip(), json.loads(brace + content)
            except ValueError:
                yield int(line.split()[2]), name.strip(), None


def _printed_names(lines: Iterable[str]) -> Iterator[_Path]:
    path: list[str] = []
    for line in lines:
        matched = _NAME.fullmatch(line)
        depth = len(matched[1]) // 2 if matched else len(path) + 1
        if matched and depth <= len(path) and (depth == 0 or depth < _NAMES.get(path[0], 0)):
            path[depth:] = [matched[2]]
            if path[0] in _NAMES:
                yield tuple(path)


def _names(root: tree.Directory) -> Iterator[_Path]:
    ((_, image),) = tree.find(root, ("image",))
    assert isinstance(image, tree.Directory)
    for name, node in image.children():
        if name in _NAMES:
            yield from _below((name,), node)


def _below(path: _Path, node: tree.Node) -> Iterator[_Path]:
    yield path
    if isinstance(node, tree.Directory) and len(path) < _NAMES[path[0]]:
        for name, child in node.children():
            yield from _below((*path, name), child)


def _otherwise(tool: str, kafka: Path, checkpoint: Path, what: str) -> Failure:
    return Failure(
        f"{tool} of {kafka} reads {checkpoint} differently from the plan: {what}. Is its release as new as "
        f"the cluster's?",
        ExitCode.FOUND,
    )
