"""kafka-storage info of directories in every state."""

from __future__ import annotations

import pytest

from kraft_core.storage.info import storage_info
from kraft_core.storage.log_dirs import LogDir

OWN = b"version=1\nnode.id=1\ncluster.id=c\n"


def test_a_formatted_directory() -> None:
    info = storage_info({"/a": LogDir(meta=OWN)})
    assert info.exit_code == 0
    assert info.lines == (
        "Found log directory:",
        "  /a",
        "",
        "Found metadata: {cluster.id=c, node.id=1, version=1}",
        "",
    )


@pytest.mark.parametrize(
    ("log_dir", "problem"),
    [
        (LogDir(exists=False, is_directory=False), "/b does not exist"),
        (LogDir(is_directory=False), "/b is not a directory"),
        (LogDir(), "/b is not formatted."),
        (LogDir(meta=OWN.replace(b"id=c", b"id=d")), "Mismatched cluster IDs between storage directories."),
        (LogDir(meta=OWN.replace(b"id=1", b"id=2")), "Mismatched node IDs between storage directories."),
        (
            LogDir(meta=b"version=2\n"),
            "Error loading /b/meta.properties: Unknown meta.properties version number 2",
        ),
        (
            LogDir(meta=OWN + b"directory.id=AAAA\n"),
            "Error loading /b/meta.properties: Unable to read directory.id as a Uuid: Input string `AAAA` "
            "decoded as 3 bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID",
        ),
    ],
)
def test_problems(log_dir: LogDir, problem: str) -> None:
    info = storage_info({"/a": LogDir(meta=OWN), "/b": log_dir})
    assert (info.exit_code, info.lines[-3:]) == (1, ("Found problem:", f"  {problem}", ""))


def test_a_directory_of_the_time_of_zookeeper() -> None:
    info = storage_info({"/a": LogDir(meta=b"version=0\nbroker.id=1\n")})
    assert "formatted for legacy mode" in info.lines[-2]
