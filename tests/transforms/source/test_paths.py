"""What the source makes of paths: archives, stores, what cannot be read, and names of any kind."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kraft_core.format.log_dirs import LOG_DIR_NAME
from tests.transforms.source.test_reading import in_order, read
from transforms.source import planning
from transforms.source.columns import checked, default_schema
from transforms.source.errors import SourceError
from transforms.source.filters import Wanted
from transforms.source.options import FileOptions
from transforms.source.quorum import KraftQuorumDataSource, quorum_schema
from transforms.source.reading import Reading


def test_wrong_paths(tmp_path: Path) -> None:
    for paths, said in (
        ([], "no path is given"),
        ([tmp_path / "missing"], "missing does not exist: give a folder"),
        ([tmp_path / ("a" * 300)], "cannot be read: File name too long"),
        ([tmp_path], "no controller directory (one that contains __cluster_metadata-0) under "),
    ):
        with pytest.raises(SourceError, match=re.escape(said)):
            read(*paths)
    (tmp_path / "meta.properties").write_text("version=1\nbroker.id=1\ncluster.id=x\n")
    with pytest.raises(SourceError, match="a log directory of Kafka, perhaps a broker's"):
        read(tmp_path)


@pytest.mark.parametrize("suffix", ["tar.gz", "zip"])
def test_an_archive_is_read_as_its_folder(golden: Path, tmp_path: Path, suffix: str) -> None:
    root = golden / "v4.4.0-mini"
    kind = {"tar.gz": "gztar", "zip": "zip"}[suffix]
    archive = Path(shutil.make_archive(str(tmp_path / "captures"), kind, root))
    rows = [row | {"file": row["file"].replace(str(archive), str(root))} for row in read(archive)]
    assert in_order(rows) == in_order(read(root))
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(SourceError, match=r"no controller directory .* damaged, or not an archive"):
        read(archive)
    (row,) = [row for row in read(archive, root) if row["file"] == str(archive)]
    assert row["_corrupt_range"]["reason"].startswith("unreadable: ")


def test_a_store_is_read_as_its_folder(golden: Path, tmp_path: Path) -> None:
    """By pyarrow.fs: each file is fetched by the task that reads it, and must be what was listed."""
    root = Path(shutil.copytree(golden / "v4.4.0-mini", tmp_path / "v"))
    options, schema = FileOptions((root.as_uri(),)), checked(default_schema())
    reading = Reading(options, Wanted(), schema)
    parts = planning.partitions(options, Wanted())

    def rows() -> list[dict[str, Any]]:
        return [row for part in parts for batch in reading.rows(part) for row in batch.to_pylist()]

    found = [row | {"file": row["file"].removeprefix("file://")} for row in rows()]
    assert in_order(found) == in_order(read(root))
    log = min(root.rglob("*.log"))
    log.write_bytes(log.read_bytes() + b"x")
    (lost,) = [row for row in rows() if row["_corrupt_range"]]
    assert lost["file"] == log.as_uri()
    assert lost["_corrupt_range"]["reason"] == "unreadable: it changed or was deleted after it was listed"


def test_what_cannot_be_read_is_told(golden: Path, tmp_path: Path) -> None:
    """A segment that is a folder; a directory that does not say whose it is."""
    root = Path(shutil.copytree(golden / "v4.4.0-mini", tmp_path / "v"))
    log = min(root.rglob("*.log"))
    log.unlink()
    log.mkdir()
    (lost,) = [row for row in read(root) if row["_corrupt_range"]]
    assert lost["file"] == str(log)
    assert lost["_corrupt_range"]["reason"].startswith("unreadable: ")
    for meta in root.rglob("meta.properties"):
        meta.unlink()
    rows = read(root)
    assert {row["cluster_id"] for row in rows} == {None}
    told = read(root, clusterId="x")
    assert {row["_corrupt_range"]["reason"] for row in told} == {planning.NO_IDS}
    assert len(told) == len(list(root.rglob(LOG_DIR_NAME)))


NAMES = ["a b", "a'b\"c", "a\nb", "ä€😀", "a%20b", "a*b?[c]", "a${HOME}`x`"]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_of_folders(golden: Path, tmp_path: Path, name: str) -> None:
    root = Path(shutil.copytree(golden / "v4.4.0-mini", tmp_path / name))
    rows = read(root)
    assert len(rows) == len(read(golden / "v4.4.0-mini"))
    assert all(row["file"].startswith(str(root)) for row in rows)


def test_a_name_that_is_not_text_is_escaped(golden: Path, tmp_path: Path) -> None:
    """To a file system a name is bytes; the folder beside it is read, too."""
    nodes = golden / "v4.4.0-mini"
    shutil.copytree(nodes / "node-1", os.fsdecode(os.fsencode(tmp_path / "node-") + b"\xff"))
    shutil.copytree(nodes / "node-2", tmp_path / "node-2")
    rows = read(tmp_path)
    assert len(rows) == len(read(nodes))
    assert {Path(row["file"]).parts[-3] for row in rows} == {"node-\\udcff", "node-2"}
    reader: Any = KraftQuorumDataSource({"path": str(tmp_path)}).reader(quorum_schema())
    directories = [
        row["directory"]
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    assert sorted(Path(each).name for each in directories) == ["node-2", "node-\\udcff"]
