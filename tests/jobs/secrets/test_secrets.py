"""No secret of captures reaches any artefact, and what may be shown does."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kraft_core.messages.metadata import METADATA_RECORDS
from tests.jobs.secrets.artefacts import of_captures, of_lake, said
from tests.jobs.secrets.planted import SETTINGS, Markers, forms, plant, secret_fields


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def markers(folder: Path, golden: Path) -> Markers:
    """Captures in folder/captures; the settings beside them allow two names of configs."""
    (folder / "kraftlake.toml").write_text(SETTINGS)
    return plant(golden, folder / "captures")


def held(
    markers: Markers, artefacts: Iterable[tuple[str, bytes]]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """By artefact, the kinds of which it holds a marker: those to be hidden, and those to be shown."""
    hidden: dict[str, set[str]] = {}
    shown: dict[str, set[str]] = {}
    for name, content in artefacts:
        for kinds, found in ((markers.hidden, hidden), (markers.shown, shown)):
            if there := markers.found(content, kinds):
                found[name] = there
    return hidden, shown


def test_no_secret_is_in_what_is_made_of_captures(markers: Markers, folder: Path) -> None:
    hidden, shown = held(markers, of_captures(folder / "captures", folder / "kraftlake.toml"))
    assert hidden == {}
    # The search finds what is shown where it is shown.
    for artefact, kind in (
        ("dump jsonl 1", "record"),
        ("dump text 1", "compressed"),
        ("log text node-1", "record"),
        ("cat /image/configs/*/* text node-1", "checkpoint"),
        ("diff json end", "checkpoint"),
        ("kraft_core.columnar.fast 00000000000000000000.log: config", "compressed"),
    ):
        assert shown[artefact] >= {f"{kind} of Kafka", f"{kind} of an allowed name"}, artefact


def test_no_secret_is_in_what_is_made_of_a_lake(spark: Any, markers: Markers, folder: Path) -> None:
    assert spark.sparkContext is not None
    captures, settings = folder / "captures", folder / "kraftlake.toml"
    hidden, shown = held(markers, of_lake(folder / "lake", captures, settings, folder))
    assert hidden == {}
    columns = {name.split("/")[0] for name in shown if name.endswith((": value", ": config"))}
    assert columns == {"records", "snapshot_records", "configs"}
    assert shown.keys() >= {"page", "shell ['log']", "sql", "admin_events"}
    assert set.union(*shown.values()) >= {
        f"{kind} of {whose}"
        for kind in ("record", "compressed", "checkpoint")
        for whose in ("Kafka", "an allowed name")
    }
    other = folder / "other.toml"
    other.write_text('shown_configs = ["cookie"]\n')
    refused = said("run", "--lake", folder / "lake", "--captures", captures, "--config", other).decode()
    assert 'was created with shown_configs = ["my.plugin.interval", "my.plugin.url"]' in refused
    assert 'the settings have ["cookie"]' in refused


def test_every_secret_field_of_the_facts_was_planted(markers: Markers) -> None:
    """Also those of layouts of former releases, which cannot stand in a checkpoint of these."""
    fields = {
        (message.name, message.layout or "", field.name)
        for record in METADATA_RECORDS
        for message in (record, *record.older)
        for field in message.fields
        if field.secret
    }
    assert fields == {(message.name, message.layout or "", name) for message, name in secret_fields()}
    for field in fields:
        assert any(kind.endswith(" ".join(field)) for kind in markers.hidden), field


@pytest.mark.parametrize("text", ["Zq0123456789abcdef01", "Zq012345678", "Zq0123456789"])
def test_the_search_knows_every_form(text: str) -> None:
    for before in range(4):
        encoded = b64encode(b"x" * before + text.encode() + b"yz")
        assert any(form in encoded for form in forms(text))
    for encoding in ("utf-16", "utf-16-be"):
        assert any(form in ("x" + text).encode(encoding) for form in forms(text))
    assert any(form in ("x" + text).encode().hex().encode() for form in forms(text))
