"""What kafka-storage writes, against directories that Kafka 4.3.1 and 4.4.0 formatted; what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.record import Record, read_log
from kraft_core.format.side_files import read_properties
from kraft_core.messages.releases import RELEASES
from kraft_core.storage.formatter import (
    FIRST_CHECKPOINT,
    META_PROPERTIES,
    FormatRequest,
    Formatted,
    plan_files,
)
from kraft_core.storage.log_dirs import LogDir
from kraft_core.storage.node_config import read_node_config
from kraft_core.storage.tool_error import ToolError
from tests.kraft_core.storage.formatted_files import Drawn, file_bytes

ABSENT = LogDir(exists=False, is_directory=False)
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:29001",
    "controller.quorum.bootstrap.servers": "127.0.0.1:29001",
    "log.dirs": "/data",
}
STANDALONE = FormatRequest("c", standalone=True)


def planned(
    request: FormatRequest,
    entries: dict[str, str] | None = None,
    found: LogDir = ABSENT,
    release: str = "4.3",
) -> Formatted:
    config = read_node_config(CONTROLLER | (entries or {}), RELEASES[release])
    return plan_files(request, config, dict.fromkeys(config.log_dirs, found), RELEASES[release])


def values(content: bytes) -> list[Any]:
    return [item.value for item in read_log(content) if isinstance(item, Record)]


@pytest.mark.parametrize(
    ("scenario", "release", "request_"),
    [
        (
            "dynamic-membership",
            "4.3",
            replace(
                STANDALONE,
                release_version="4.0-IV3",
                add_scram=("SCRAM-SHA-256=[name=boot,password=boot-secret]",),
            ),
        ),
        ("v4.4.0-mini", "4.4", STANDALONE),
    ],
)
def test_the_bytes_are_kafkas(golden: Path, scenario: str, release: str, request_: FormatRequest) -> None:
    home = golden / scenario / "node-1"
    meta = read_properties((home / META_PROPERTIES).read_text())
    port = values((home / FIRST_CHECKPOINT).read_bytes())[2]["voters"][0]["endpoints"][0]["port"]
    formatted = planned(
        replace(request_, cluster_id=meta["cluster.id"]),
        {"listeners": f"CONTROLLER://127.0.0.1:{port}"},
        release=release,
    )
    (directory,) = formatted.directories
    assert directory.kind == "dynamic metadata voter directory"
    assert all((home / name).exists() for name in directory.files)
    for name in directory.files[1:]:
        content = (home / name).read_bytes()
        held = values(content)
        drawn = Drawn(
            meta["directory.id"],
            0,
            held[0]["lastContainedLogTimestamp"],
            tuple(value["salt"] for value in held if "salt" in value),
        )
        assert without_times(file_bytes(formatted, directory, name, drawn)) == without_times(content)
    ours = file_bytes(formatted, directory, META_PROPERTIES, Drawn(meta["directory.id"])).decode()
    assert read_properties(ours) == meta


def without_times(content: bytes) -> bytes:
    """A checkpoint, with the times of its batches and the checksums over them zero."""
    whole = bytearray(content)
    position = 0
    while position < len(whole):
        whole[position + 17 : position + 21] = bytes(4)
        whole[position + 27 : position + 43] = bytes(16)
        position += 12 + int.from_bytes(whole[position + 8 : position + 12], "big")
    return bytes(whole)


def test_a_cluster_id_is_escaped_as_java_does() -> None:
    formatted = planned(replace(STANDALONE, cluster_id=" a=b:\\c#!\t"))
    (directory,) = formatted.directories
    content = file_bytes(formatted, directory, META_PROPERTIES, Drawn("x")).decode()
    assert "cluster.id=\\ a\\=b\\:\\\\c\\#\\!\\t\n" in content
    assert read_properties(content)["cluster.id"] == " a=b:\\c#!\t"


def test_only_a_metadata_directory_gets_a_first_checkpoint() -> None:
    entries = {"log.dirs": "/a,/b", "metadata.log.dir": "/m"}
    kinds = {each.path: (each.kind, len(each.files)) for each in planned(STANDALONE, entries).directories}
    assert kinds == {
        "/a": ("data directory", 2),
        "/b": ("data directory", 2),
        "/m": ("dynamic metadata voter directory", 3),
    }
    of_4_4 = planned(STANDALONE, entries, release="4.4").directories
    assert [len(each.files) for each in of_4_4] == [1, 1, 2]


def test_an_observer_and_a_static_voter() -> None:
    (observer,) = planned(replace(STANDALONE, standalone=False, no_initial_controllers=True)).directories
    assert (observer.kind, observer.directory_id, len(observer.files)) == ("metadata directory", None, 2)
    static = {"controller.quorum.voters": "1@h:9093"}
    formatted = planned(FormatRequest("c"), static)
    assert formatted.levels["kraft.version"] == 0
    assert formatted.directories[0].kind == "metadata directory"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (FormatRequest("c"), "Because controller.quorum.voters is not set on this controller, you must "),
        (replace(STANDALONE, release_version="4.4"), "Unknown metadata.version '4.4'. Supported"),
        (replace(STANDALONE, release_version="4.3."), "Unknown metadata.version '4.3.'. Supported"),
        (
            replace(STANDALONE, features=("metadata.version=31",)),
            "metadata.version 4.4-IV0 is not yet stable.",
        ),
        (replace(STANDALONE, features=("x=1",)), "Unsupported feature: x. Supported features are: eligible."),
        (replace(STANDALONE, features=("kraft.version=0",)), "Cannot set kraft.version to 0 if controller."),
        (
            replace(STANDALONE, release_version="3.9", features=("eligible.leader.replicas.version=1",)),
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version "
            "level 23",
        ),
        (
            replace(STANDALONE, release_version="3.4", add_scram=("SCRAM-SHA-256=[name=a,password=b]",)),
            "SCRAM is only supported in metadata.version 3.5-IV2 or later.",
        ),
        (
            replace(STANDALONE, add_scram=("SCRAM-SHA-256=[name=a,password=b,salt=*]",)),
            "Failed to decode given salt: ...",
        ),
        (
            replace(STANDALONE, add_scram=("SCRAM-SHA-256=[name=a,password=b,c=d]",)),
            "Unknown SCRAM configurations: ...",
        ),
        (FormatRequest("c", initial_controllers="1@h:9093"), "No colon following port could be found."),
    ],
)
def test_refusals(request_: FormatRequest, text: str) -> None:
    with pytest.raises(ToolError) as refused:
        planned(request_)
    assert refused.value.text.startswith(text)


def test_a_standalone_controller_with_an_ipv6_address() -> None:
    """Kafka's tool builds a text without brackets, and cannot parse it."""
    with pytest.raises(ToolError, match=r"^Failed to parse port in dynamic voter string\.$"):
        planned(STANDALONE, {"listeners": "CONTROLLER://[::1]:29001"})


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ("version=1\nnode.id=1\ncluster.id=c\n", "Log directory /data is already formatted."),
        (
            "version=1\nnode.id=1\ncluster.id=d\n",
            "Invalid cluster.id in: /data/meta.properties. Expected c, ",
        ),
        ("version=1\nnode.id=2\ncluster.id=c\n", "Stored node id 2 doesn't match previous node id 1 in "),
        ("version=2\nnode.id=1\n", "No available log directories to format."),
    ],
)
def test_directories_that_are_not_formatted_again(meta: str, text: str) -> None:
    with pytest.raises(ToolError) as refused:
        planned(STANDALONE, found=LogDir(meta=meta.encode()))
    assert refused.value.text.startswith(text)


def test_formatted_directories_may_be_passed_over() -> None:
    own = LogDir(meta=b"version=1\nnode.id=1\ncluster.id=c\n")
    formatted = planned(replace(STANDALONE, ignore_formatted=True), found=own)
    assert formatted.lines == ("All of the log directories are already formatted.",)
