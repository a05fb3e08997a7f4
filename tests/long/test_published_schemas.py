"""Our declarations against the message definitions inside Kafka's published jars, field by field.

Every definition of a release must be declared with at least its versions, and equally in each of them. The
newest release must have all that is declared as today's. Needs mvn, which fetches the jars.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import METADATA_RECORDS, by_api_key
from kraft_core.messages.schema import ZERO_VALUES, Field, Message, Versions
from tests.kraft_core.messages.quorum_state import QUORUM_STATE

pytestmark = pytest.mark.long

RELEASES = ("3.9.2", "4.3.1", "4.4.0")
NEWEST = RELEASES[-1]
# The last patch of the releases that former layouts name.
LAST_PATCH = {"3.2": "3.2.3", "3.4": "3.4.1", "3.5": "3.5.2"}
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"

FORMER = [
    layout
    for message in METADATA_RECORDS
    for layout in (message, *message.older)
    if layout.layout is not None
]
CONTROL_MESSAGES = {message.name: message for message in CONTROL_RECORDS.values()}


@dataclass(frozen=True)
class Shape:
    """What a definition says of a field in one version. type: of the elements of an array."""

    name: str
    type: str
    array: bool
    tag: int | None
    nullable: bool
    default: Any
    fields: tuple[Shape, ...]


# What we declare


def declared_shapes(fields: tuple[Field, ...], version: int) -> tuple[Shape, ...]:
    return tuple(declared_shape(field, version) for field in fields if version in field.versions)


def declared_shape(field: Field, version: int) -> Shape:
    return Shape(
        name=field.name,
        type=field.type,
        array=field.array,
        tag=field.tag if field.is_tagged(version) else None,
        nullable=field.is_nullable(version),
        default=field.default_value(version),
        fields=declared_shapes(field.fields, version),
    )


# What Kafka publishes


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory):
    """Fetches a jar of Kafka: jars(artifact, release) is its path."""
    mvn = shutil.which("mvn")
    if mvn is None:
        pytest.skip("mvn is not installed")
    folder = tmp_path_factory.mktemp("jars")

    def fetch(artifact: str, release: str) -> Path:
        jar = folder / f"{artifact}-{release}.jar"
        if not jar.exists():
            coordinates = f"org.apache.kafka:{artifact}:{release}:jar"
            command = [mvn, "-B", "-q", COPY, f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        return jar

    return fetch


def definitions(jar: Path, folder: str) -> dict[str, dict[str, Any]]:
    """The message definitions in a folder of a jar, by name."""
    with ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(f"{folder}/[^/]+[.]json", name)]
        found = [without_comments(archive.read(name).decode()) for name in names]
    return {definition["name"]: definition for definition in found}


def without_comments(text: str) -> dict[str, Any]:
    return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda match: match[1] or "", text))


def versions(text: str | None) -> Versions | None:
    """A range as definitions write it: "2", "0-4", "1+", "none"."""
    if text is None or text == "none":
        return None
    if text.endswith("+"):
        return Versions(int(text[:-1]))
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


def published_shapes(
    fields: list[dict[str, Any]], version: int, common: dict[str, list[dict[str, Any]]]
) -> tuple[Shape, ...]:
    return tuple(
        published_shape(field, version, common) for field in fields if covers(field, "versions", version)
    )


def covers(field: dict[str, Any], key: str, version: int) -> bool:
    named = versions(field.get(key))
    return named is not None and version in named


def published_shape(field: dict[str, Any], version: int, common: dict[str, list[dict[str, Any]]]) -> Shape:
    type_ = field["type"].removeprefix("[]")
    inner = field.get("fields", common.get(type_, []))
    array = field["type"].startswith("[]")
    is_struct = type_ not in ZERO_VALUES
    fields = published_shapes(inner, version, common)
    return Shape(
        name=field["name"][0].lower() + field["name"][1:],
        type="struct" if is_struct else type_,
        array=array,
        tag=int(field["tag"]) if covers(field, "taggedVersions", version) else None,
        nullable=covers(field, "nullableVersions", version),
        default=published_default(field.get("default"), type_, array, fields),
        fields=fields,
    )


def published_default(text: Any, type_: str, array: bool, fields: tuple[Shape, ...]) -> Any:
    """The default in Python's terms; definitions write it as text or as JSON of the right type."""
    if text == "null":
        return None
    if array:
        return []
    if type_ not in ZERO_VALUES:
        return {field.name: field.default for field in fields}
    if text is None:
        return ZERO_VALUES[type_]
    if type_ == "bool":
        return str(text).lower() == "true"
    return int(str(text), 0) if "int" in type_ else text


# The comparison


def differences(message: Message, definition: dict[str, Any], skip: int = 0) -> Iterator[str]:
    """Each difference in a line; the versions that the definition calls valid are compared one by one.

    skip: how many of our first fields the definition leaves to its surroundings.
    """
    if definition.get("apiKey") != message.api_key:
        yield f"{message.name}: api key {message.api_key} declared, {definition.get('apiKey')} published"
    published_flexible = versions(definition["flexibleVersions"])
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    for version in versions(definition["validVersions"]) or ():
        where = f"{message.name} v{version}"
        if version not in message.versions:
            yield f"{where}: not declared"
            continue
        is_flexible = published_flexible is not None and version in published_flexible
        if is_flexible != message.flexible:
            yield f"{where}: flexible {message.flexible} declared, {is_flexible} published"
        declared = declared_shapes(message.fields[skip:], version)
        yield from field_differences(where, declared, published_shapes(definition["fields"], version, common))


def field_differences(where: str, declared: tuple[Shape, ...], published: tuple[Shape, ...]) -> Iterator[str]:
    names = [shape.name for shape in declared], [shape.name for shape in published]
    if names[0] != names[1]:
        yield f"{where}: fields {names[0]} declared, {names[1]} published"
        return
    for ours, theirs in zip(declared, published, strict=True):
        path = f"{where} {ours.name}"
        for fact in ("type", "array", "tag", "nullable", "default"):
            held = getattr(ours, fact), getattr(theirs, fact)
            if held[0] != held[1] or type(held[0]) is not type(held[1]):
                yield f"{path}: {fact} {held[0]!r} declared, {held[1]!r} published"
        yield from field_differences(path, ours.fields, theirs.fields)


def report(lines: Iterator[str]) -> None:
    found = list(lines)
    assert not found, "\n" + "\n".join(found)


# Tests


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_records(jars, release):
    published = definitions(jars("kafka-metadata", release), "common/metadata")
    assert len(published) >= 25

    def lines():
        for name, definition in sorted(published.items()):
            message = by_api_key.get(definition["apiKey"])
            if message is None or message.name != name:
                yield f"{name} ({definition['apiKey']}): not declared"
            else:
                yield from differences(message, definition)

    report(lines())


@pytest.mark.parametrize("release", RELEASES)
def test_control_records(jars, release):
    published = definitions(jars("kafka-clients", release), "common/message")
    # 3.9 has no definition of a transaction's marker; later ones leave out the version before it.
    undefined = {"EndTxnMarker"} if release.startswith("3.") else set()
    expected = CONTROL_MESSAGES.keys() - undefined
    assert expected <= published.keys()

    def lines():
        for name in sorted(expected):
            skip = 1 if name == "EndTxnMarker" else 0
            yield from differences(CONTROL_MESSAGES[name], published[name], skip)

    report(lines())


@pytest.mark.parametrize("release", RELEASES)
def test_quorum_state(jars, release):
    published = definitions(jars("kafka-raft", release), "common/message")
    report(differences(QUORUM_STATE, published[QUORUM_STATE.name]))


@pytest.mark.parametrize("message", FORMER, ids=lambda message: f"{message.name}-{message.layout}")
def test_former_layouts(jars, message):
    published = definitions(jars("kafka-metadata", LAST_PATCH[message.layout]), "common/metadata")
    report(differences(message, published[message.name]))


def test_the_newest_release_has_all_that_is_declared(jars):
    published = definitions(jars("kafka-metadata", NEWEST), "common/metadata")
    published |= definitions(jars("kafka-clients", NEWEST), "common/message")
    published |= definitions(jars("kafka-raft", NEWEST), "common/message")
    todays = [message for message in METADATA_RECORDS if message.layout is None]
    for message in (*todays, *CONTROL_MESSAGES.values(), QUORUM_STATE):
        assert versions(published[message.name]["validVersions"]) == message.versions, message.name


def test_a_difference_is_reported_by_field(jars):
    definition = definitions(jars("kafka-metadata", NEWEST), "common/metadata")["PartitionChangeRecord"]
    isr = next(field for field in definition["fields"] if field["name"] == "Isr")
    isr |= {"tag": 12, "type": "[]int64", "default": ""}
    del isr["nullableVersions"]
    definition["validVersions"] = "2-3"
    where = "PartitionChangeRecord v2 isr"
    assert list(differences(by_api_key[5], definition)) == [
        f"{where}: type 'int32' declared, 'int64' published",
        f"{where}: tag 0 declared, 12 published",
        f"{where}: nullable True declared, False published",
        f"{where}: default None declared, [] published",
        "PartitionChangeRecord v3: not declared",
    ]
