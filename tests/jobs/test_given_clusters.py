"""Captures that the settings file or --cluster-id give a cluster id by their path."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jobs.captures.given_clusters import GivenClusters, given_clusters
from jobs.captures.planning import Selection, plan
from jobs.cli import main
from jobs.runtime.outcome import Failure
from jobs.runtime.settings import read_settings

MINI = "roWi3HLRRCuDirielH5nnw"


def test_the_longest_path_decides(tmp_path: Path) -> None:
    (tmp_path / "backup" / "staging").mkdir(parents=True)
    backup = tmp_path / "backup"
    given = GivenClusters(((str(backup / "staging"), "staging"), (f"{backup}/", "all"), ("s3://b/x", "far")))
    assert given.of(backup / "staging" / "node-1") == "staging"
    assert given.of(backup / "staging") == "staging"
    assert given.of(backup / "staging-2") == "all"
    assert given.of(tmp_path) is None
    remote = GivenClusters(given.of_paths, lambda text: text.replace(str(tmp_path), "s3://b"))
    assert remote.of(tmp_path / "x" / "node-1") == "far"
    assert remote.of(tmp_path / "y") is None


def test_words_of_cluster_id(tmp_path: Path) -> None:
    plain, given = given_clusters(["ID", f"{tmp_path}=other"], [(str(tmp_path), "of-settings")], str)
    assert (plain, given.of(tmp_path / "node")) == ("ID", "other")
    assert given_clusters([], [(str(tmp_path), "of-settings")], str)[1].of(tmp_path) == "of-settings"
    assert given_clusters(["ab=="], [], str)[0] == "ab=="
    assert given_clusters([f"{tmp_path}=ab=="], [], str)[1].of(tmp_path) == "ab=="
    for words in (
        ["one", "two"],
        [f"{tmp_path}="],
        [f"{tmp_path}/nowhere=ID"],
        ["ID/life"],
        [f"{tmp_path}=ID/life"],
    ):
        with pytest.raises(Failure, match="--cluster-id"):
            given_clusters(words, [], str)


def test_a_capture_below_a_path_is_of_the_given_cluster(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "v4.4.0-mini", tmp_path / "staging")
    shutil.copytree(golden / "v4.4.0-mini" / "node-1", tmp_path / "prod" / "node-1")
    outputs = sorted((golden / "uncommitted-truncation" / "quorum").glob("*.txt"))
    assert outputs
    for output in outputs:
        shutil.copy(output, tmp_path / "staging" / "node-1")
    given = GivenClusters(((str(tmp_path / "staging"), "staging"),))
    planned = plan(Selection((tmp_path,), given=given))
    found = {(copy.who.cluster_id, copy.who.node_id) for copy in planned.captures}
    assert found == {("staging", 1), ("staging", 2), (MINI, 1)}
    assert {file.cluster_id for file in planned.described} == {"staging"}
    assert len({copy.capture_id for copy in planned.captures}) == 3


def test_settings_name_paths(tmp_path: Path, golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(golden / "v4.4.0-mini" / "node-1", tmp_path / "copy" / "node-1")
    file = tmp_path / "kraftlake.toml"
    file.write_text(f'[clusters.staging]\nid = "ID"\npaths = ["{tmp_path}/copy"]\n')
    assert read_settings(file).cluster_paths == [(f"{tmp_path}/copy", "ID")]
    flags = [
        "--captures",
        str(tmp_path),
        "--lake",
        str(tmp_path / "lake"),
        "--dry-run",
        "--config",
        str(file),
    ]
    assert main(["run", *flags]) == 0
    assert capsys.readouterr().out.startswith("ID  node 1 ")
    assert main(["run", *flags, "--cluster-id", f"{tmp_path}/copy/node-1=other"]) == 0
    assert capsys.readouterr().out.startswith("other  node 1 ")
    file.write_text('[clusters.staging]\nid = "ID"\n[clusters.prod]\nid = "PROD"\n')
    assert main(["run", *flags, "--cluster-id", f"{tmp_path}/copy=prod"]) == 0
    assert capsys.readouterr().out.startswith("PROD  node 1 ")
    file.write_text('[clusters.staging]\nid = "ID"\npaths = "copy"\n')
    with pytest.raises(Failure, match="paths of cluster staging must be a list"):
        read_settings(file)


def test_a_node_that_has_not_learnt_its_cluster_id_names_what_to_give(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """meta.properties of version 2 (KIP-1262) may lack it, and no record of 4.4.0 holds it."""
    shutil.copytree(golden / "v4.4.0-mini" / "node-1", tmp_path / "node-1")
    text = "node.id=1\ndirectory.id=U_Q1TYZXSbKi02BeFgFOEw\nversion=2\n"
    (tmp_path / "node-1" / "meta.properties").write_text(text)
    words = ["run", "--lake", str(tmp_path / "lake"), "--dry-run", "--captures", str(tmp_path / "node-1")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "node-1: no cluster id in meta.properties; give it with --cluster-id" in said
    assert "invalid" not in said
    assert main([*words, "--cluster-id", MINI]) == 0
    assert MINI in capsys.readouterr().out
