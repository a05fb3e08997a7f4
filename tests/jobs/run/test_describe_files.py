"""Outputs of describe beside captures: which files they are, when they were true, and of which cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

from jobs.captures.describe_files import find_describe_files

STATUS = "1795256883490-status.txt"
REPLICATION = "1795256884000-1795256885000-replication.txt"


def outputs(golden: Path, folder: Path) -> Path:
    """A status and a --replication output of one cluster, the second named with its end."""
    folder.mkdir(parents=True)
    kept = golden / "stale-split/quorum"
    shutil.copy(next(kept.glob("*-status-steady.txt")), folder / STATUS)
    shutil.copy(next(kept.glob("*-replication-steady.txt")), folder / REPLICATION)
    return folder


def test_every_bundled_output_is_found_and_dated_by_its_name(golden: Path) -> None:
    found = find_describe_files([golden, golden / "stale-split"])
    names = {path.name for path in golden.rglob("quorum/*.txt")}
    assert found.left_out == ()
    assert {o.source for f in found.files for o in f.observations} == names
    assert len(found.files) == len(names) == 214
    for file in found.files:
        for seen in file.observations:
            assert seen.cluster_id == file.cluster_id
            assert (seen.observed_from, seen.observed_to - seen.observed_from) == (
                int(seen.source[:13]),
                10_000,
            )


def test_replication_is_of_the_cluster_that_the_status_beside_it_names(golden: Path, tmp_path: Path) -> None:
    outputs(golden, tmp_path / "a/quorum")
    found = find_describe_files([tmp_path]).files
    assert {f.cluster_id for f in found} == {"W2JPl0IXSia8pSNJSDCaUw"}
    told = {o.source: (o.kind, o.observed_from, o.observed_to) for f in found for o in f.observations}
    assert told == {
        STATUS: ("status", 1795256883490, 1795256893490),
        REPLICATION: ("replication", 1795256884000, 1795256885000),
    }


def test_a_copy_elsewhere_is_the_same_observation(golden: Path, tmp_path: Path) -> None:
    outputs(golden, tmp_path / "a")
    outputs(golden, tmp_path / "b/c")
    assert find_describe_files([tmp_path / "a"]) == find_describe_files([tmp_path])


def test_folders_that_links_lead_to_are_searched(golden: Path, tmp_path: Path) -> None:
    """As for captures, of which those outputs may contradict what they prove; each folder once."""
    outputs(golden, tmp_path / "elsewhere/quorum")
    (tmp_path / "captures/day").mkdir(parents=True)
    (tmp_path / "captures/day/1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/back").symlink_to(tmp_path / "captures")
    assert find_describe_files([tmp_path / "captures"]) == find_describe_files([tmp_path / "elsewhere"])
    assert len(find_describe_files([tmp_path / "captures"]).files) == 2


def test_what_cannot_be_used_is_left_out_and_said(golden: Path, tmp_path: Path) -> None:
    undated = outputs(golden, tmp_path / "a")
    (undated / STATUS).rename(undated / "no-time-in-its-name.txt")
    half = tmp_path / "b"
    half.mkdir()
    (half / "1795256883491-half.txt").write_text("ClusterId:  c\nLeaderId:  1\n")
    (half / "1795256883492-letter.txt").write_text("Dear reader")
    status = (golden / "stale-split/quorum/1795256817519-status-steady.txt").read_text()
    (half / "1795256883493-lie.txt").write_text(
        status.replace("LeaderId:               1", f"LeaderId: {2**40}")
    )
    found = find_describe_files([tmp_path])
    assert found.files == ()
    first, second, third = map(str, found.left_out)
    assert "replication.txt: no --status output beside it" in first
    assert "1795256883491-half.txt: no LeaderEpoch" in second
    assert "1795256883493-lie.txt: a number is out of range for Kafka" in third


def test_only_named_clusters(golden: Path, tmp_path: Path) -> None:
    outputs(golden, tmp_path / "x")
    assert find_describe_files([tmp_path], frozenset({"another"})).files == ()


def test_no_output_vanishes(golden: Path, tmp_path: Path) -> None:
    """Whatever part of one is left, it is observed or left out with a reason."""
    status = (golden / "stale-split/quorum/1795256817519-status-steady.txt").read_text()
    kept = status.splitlines()
    table = "NodeId\tLogEndOffset\tLag\tStatus\n1\t5\t0\tLeader\n"
    texts = {
        **{
            f"no {line.split(':')[0]}": status.replace(line, "")
            for line in kept
            if not line.startswith(("Max", "ClusterId"))
        },
        "only the cluster": kept[0],
        "no rows": table.split("1")[0],
        "another header": table.replace("NodeId", "NoteId"),
        "too large": status + " " * 256 * 1024,
    }
    for number, text in enumerate(texts.values()):
        (tmp_path / f"{1750000000000 + number}.txt").write_text(text)
    found = find_describe_files([tmp_path])
    assert found.files == ()
    assert len(found.left_out) == len(texts)


def test_a_link_that_leads_nowhere_costs_itself(golden: Path, tmp_path: Path) -> None:
    """Also one to a name that no file can have."""
    outputs(golden, tmp_path / "a")
    (tmp_path / "a/1750000000000.txt").symlink_to("n" * 256)
    (tmp_path / "a/1750000000001.txt").symlink_to("1750000000001.txt")
    found = find_describe_files([tmp_path])
    assert len(found.files) == 2
    (line,) = map(str, found.left_out)
    assert "1750000000000.txt: " in line
    assert "File name too long" in line
