"""Our declarations of requests and responses against the definitions in Kafka's published jars."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraft_core.messages.schema import Message
from tests.kraft_core.wire.simulated import APIS
from tests.long.test_published_schemas import (
    RELEASES,
    declared_shapes,
    definitions,
    field_differences,
    jars,
    published_shapes,
    report,
    versions,
)

pytestmark = pytest.mark.long

__all__ = ["jars"]


def with_bytes(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The definition with batches as the bytes that they are on the wire."""
    return [
        field
        | ({"type": "bytes"} if field["type"] == "records" else {})
        | ({"fields": with_bytes(field["fields"])} if "fields" in field else {})
        for field in fields
    ]


def differences(message: Message, definition: dict[str, Any]) -> Iterator[str]:
    """Each difference in a line, in the versions that we send."""
    if definition["apiKey"] != message.api_key:
        yield f"{message.name}: api key {message.api_key} declared, {definition['apiKey']} published"
    valid, flexible = versions(definition["validVersions"]), versions(definition["flexibleVersions"])
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    for version in message.versions:
        where = f"{message.name} v{version}"
        if valid is None or version not in valid:
            yield f"{where}: not published"
            continue
        if (flexible is not None and version in flexible) != message.flexible:
            yield f"{where}: flexible {message.flexible} declared"
        published = published_shapes(with_bytes(definition["fields"]), version, common)
        yield from field_differences(where, declared_shapes(message.fields, version), published)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_requests_and_responses(jars, release, api):
    published = definitions(jars("kafka-clients", release), "common/message")
    lines = [
        line
        for message in (api.request, api.response)
        for line in differences(message, published[message.name])
    ]
    # 3.9 knows no later Fetch; one version of each API that every release serves is enough to ask it.
    unknown = {"FetchRequest v18: not published", "FetchResponse v18: not published"}
    report(line for line in lines if not (release.startswith("3.") and line in unknown))
