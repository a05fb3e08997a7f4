"""plan format against kafka-storage of the released jars: drawn nodes, with what lies in their directories.

Compared are the exit code, the message, the class that is thrown, the printed lines, the names and the bytes
of all files, and what `kafka-storage info` prints before and after. Aside: the line of the time of writing in
meta.properties and the order of its lines (of a hash map), times in batches with the checksum over them, ids
and salts that the tool draws, the order of voters (of a hash map), and which of several directories or ids a
message names first. Messages that quote a secret are compared up to it. KRAFTLAKE_SEED draws others.
"""

from __future__ import annotations

import base64
import os
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from jobs.plan_format import read_log_dir
from kraft_core.format.record import Record, read_log
from kraft_core.format.side_files import read_properties
from kraft_core.messages.configs import CONFIG_TYPES
from kraft_core.messages.node_configs import ACCEPTED_FROM, FREE_TEXTS
from kraft_core.messages.releases import release_of
from kraft_core.raft.voters import VoterSet
from kraft_core.storage.formatter import (
    FIRST_CHECKPOINT,
    META_PROPERTIES,
    Formatted,
    FormattedDir,
    plan_files,
)
from kraft_core.storage.info import StorageInfo, storage_info
from kraft_core.storage.node_config import NodeConfig, read_node_config
from kraft_core.storage.tool_error import ToolError
from tests.kafka.java_programs import ask
from tests.kraft_core.storage.formatted_files import Drawn, file_bytes
from tests.long.drawn_nodes import DrawnNode, drawn_node

pytestmark = pytest.mark.long

CASES = 400
BY_PROCESS = 6
_BASE_TIMESTAMP, _END_OF_TIMES, _CRC = 27, 43, slice(17, 21)


@dataclass
class Answer:
    """thrown: "-" where the message alone is printed."""

    code: int
    thrown: str
    message: str
    printed: list[str]


@dataclass
class Case:
    node: DrawnNode
    file: Path
    config: NodeConfig | None = None
    outcome: Formatted | ToolError | None = None
    before: StorageInfo | None = None


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_nodes_are_formatted_and_refused_as_the_tool_does(version: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    rng = random.Random(seed)
    cases = [planned(rng, tmp_path / f"n{nth}", version) for nth in range(CASES)]
    lines = [line for case in cases for line in asked(case)]
    classes = tmp_path / "classes"
    classes.mkdir()
    source = Path(__file__).with_name("FormatAnswers.java")
    done = ask(source, "FormatAnswers", version, lines, classes)
    answers = [answer_of(line) for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert len(answers) == len(lines)
    wrong: list[str] = []
    formatted = 0
    for nth, case in enumerate(cases):
        before, answer, after = answers[3 * nth : 3 * nth + 3]
        found = [*differences(case, answer), *differing_info(case, before, after)]
        formatted += answer.code == 0
        wrong += [
            f"n{nth} {case.node.entries} {case.node.request} {case.node.metas}: {each}" for each in found
        ]
    assert not wrong, f"seed {seed}: {len(wrong)} of {CASES}\n" + "\n".join(wrong[:6])
    assert CASES // 5 < formatted < CASES * 4 // 5, (seed, formatted)
    print(f"seed {seed}: {formatted} of {CASES} nodes formatted, the others refused, by Kafka {version}")


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_what_is_declared_to_be_accepted_is(version: str, tmp_path: Path) -> None:
    """Every number of ACCEPTED_FROM at its least, alone and all together; then all of them high."""
    most = {"short": (1 << 15) - 1, "int": 1_000_000_000, "long": 1_000_000_000_000}
    base = {
        "process.roles": "broker",
        "node.id": "7",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "h:1",
        "log.dirs": str(tmp_path),
    }
    least = {name: str(number) for name, number in ACCEPTED_FROM.items()}
    above = {name: str(most[CONFIG_TYPES[name]]) for name in ACCEPTED_FROM}
    lines: list[str] = []
    texts = dict.fromkeys(sorted(FREE_TEXTS), "any text")
    alone = [{name: value} for name, value in (least | texts).items()]
    for nth, entries in enumerate([least | texts, above, *alone]):
        file = tmp_path / f"{nth}.properties"
        file.write_text("\n".join(f"{name}={value}" for name, value in (base | entries).items()))
        lines.append(f"info\t--config\t{file}")
    classes = tmp_path / "classes"
    classes.mkdir()
    source = Path(__file__).with_name("FormatAnswers.java")
    done = ask(source, "FormatAnswers", version, lines, classes)
    answers = [answer_of(line) for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert [answer.message for answer in answers] == [""] * len(lines)


def planned(rng: random.Random, folder: Path, version: str) -> Case:
    folder.mkdir()
    node = drawn_node(rng, folder)
    case = Case(node, folder / "server.properties")
    node.write(case.file)
    release = release_of(version)
    assert release is not None
    try:
        case.config = read_node_config(read_properties(case.file.read_text(encoding="latin-1")), release)
        found = {path: read_log_dir(Path(path)) for path in case.config.log_dirs}
        case.before = storage_info(found)
        case.outcome = plan_files(node.request, case.config, found, release)
    except ToolError as error:
        case.outcome = error
    return case


def asked(case: Case) -> list[str]:
    info = f"info\t--config\t{case.file}"
    return [info, "\t".join(case.node.arguments(case.file)), info]


def answer_of(line: str) -> Answer:
    _, code, thrown, message, printed = line.split(" ")
    texts = [base64.b64decode(text[:-1]).decode() for text in (message, printed)]
    return Answer(int(code), thrown, texts[0], texts[1].splitlines())


def differences(case: Case, answer: Answer) -> list[str]:
    outcome = case.outcome
    if isinstance(outcome, ToolError):
        ours = (1, outcome.thrown or "-", outcome.text)
        text = common(outcome.text, answer.message)
        same = ours[:2] == (answer.code, answer.thrown) and text
        return [] if same else [f"Kafka {answer}, here {ours}"]
    assert outcome is not None
    if answer.code or answer.thrown != "-" or answer.message:
        return [f"Kafka refuses: {answer}"]
    printed = [line for line in answer.printed if not line.startswith("Bootstrap metadata: ")]
    if sorted(printed) != sorted(outcome.lines):
        return [f"Kafka printed {printed}, here {outcome.lines}"]
    return [each for directory in outcome.directories for each in differing_files(outcome, directory)]


def common(ours: str, theirs: str) -> bool:
    """Whether two messages are one, as far as neither a secret nor the order of a hash map decides."""
    if ours.endswith(("...", "...'")):
        return theirs.startswith(ours.split("...")[0])
    if ours.startswith("Log directory "):
        return re.sub(r"/[abc] ", "/x ", ours) == re.sub(r"/[abc] ", "/x ", theirs)
    return re.sub(r"Set\(.*\)", "Set", ours) == re.sub(r"(Hash)?Set\(.*\)", "Set", theirs)


def differing_files(formatted: Formatted, directory: FormattedDir) -> list[str]:
    path = Path(directory.path)
    names = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    if names != sorted(directory.files):
        return [f"Kafka wrote {names} to {path}, here {directory.files}"]
    drawn = drawn_by_kafka(path)
    formatted = in_kafkas_order(formatted, path / FIRST_CHECKPOINT)
    return [
        f"{path / name} differs"
        for name in directory.files
        if comparable(file_bytes(formatted, directory, name, drawn), name)
        != comparable((path / name).read_bytes(), name)
    ]


def drawn_by_kafka(path: Path) -> Drawn:
    """The ids, salts and times that its files hold."""
    directory_id = read_properties((path / META_PROPERTIES).read_text())["directory.id"]
    salts: list[bytes] = []
    newest = 0
    for file in path.rglob("*.checkpoint"):
        held = values_of(file)
        salts = [value["salt"] for value in held if "salt" in value] or salts
        if file.name.startswith("0"):
            newest = held[0]["lastContainedLogTimestamp"]
    return Drawn(directory_id, last_contained_log_timestamp=newest, salts=tuple(salts))


def comparable(content: bytes, name: str) -> list[str] | bytes:
    if name == META_PROPERTIES:
        return sorted(line for line in content.decode().splitlines() if not line.startswith("#"))
    return without_times(content)


def without_times(content: bytes) -> bytes:
    """With the times of every batch, and the checksum over them, zero."""
    found: list[bytearray] = []
    position = 0
    while position < len(content):
        end = position + 12 + int.from_bytes(content[position + 8 : position + 12], "big")
        batch = bytearray(content[position:end])
        batch[_BASE_TIMESTAMP:_END_OF_TIMES] = bytes(_END_OF_TIMES - _BASE_TIMESTAMP)
        batch[_CRC] = bytes(4)
        found.append(batch)
        position = end
    return b"".join(found)


def values_of(checkpoint: Path) -> list[Any]:
    records = [item for item in read_log(checkpoint.read_bytes()) if isinstance(item, Record)]
    return [record.value for record in records if record.value is not None]


def in_kafkas_order(formatted: Formatted, checkpoint: Path) -> Formatted:
    """With the voters in the order of Kafka's VotersRecord."""
    if formatted.voters is None or not checkpoint.exists():
        return formatted
    values = values_of(checkpoint)
    order = [voter["voterId"] for value in values if "voters" in value for voter in value["voters"]]
    voters = sorted(formatted.voters, key=lambda voter: order.index(voter.key.id))
    return replace(formatted, voters=VoterSet(tuple(voters)))


def differing_info(case: Case, before: Answer, after: Answer) -> list[str]:
    """What info printed before, and prints of what was formatted."""
    if case.config is None:
        assert isinstance(case.outcome, ToolError)
        same = (before.thrown, before.message) == (after.thrown, after.message) and before.code == 1
        return [] if same else [f"info {before}"]
    found = [case.before, storage_info({path: read_log_dir(Path(path)) for path in case.config.log_dirs})]
    return [
        f"info printed {answer}, here {ours}"
        for answer, ours in zip((before, after), found, strict=True)
        if ours is not None and (answer.code, answer.printed) != (ours.exit_code, list(ours.lines))
    ]
