"""The Prometheus file: read by Prometheus' own parser, its values those of the captures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs.cli import main
from jobs.metrics import HELP, lines, named, put
from jobs.quorum.lake_samples import STATES, samples
from jobs.quorum.quorum_samples import (
    ClusterRows,
    _of_high_watermark,
    _of_voters,
    lag_ms,
    lag_records,
    log_samples,
)
from jobs.quorum.reported_samples import reported_samples
from jobs.quorum.sample import Sample
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import (
    CAPTURES,
    CLUSTER_NAMES,
    DERIVATIONS,
    EPOCHS,
    EXPECTATION_RESULTS,
    FINDINGS,
    OBSERVATIONS,
    RUNS,
)

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]
FOUND = "kraftlake_findings"
DISK_FAILURE = "cdUcB7OYQSW2BEWmIRzmkg"
NEW_DISK = {"node_id": "2", "directory_id": "wfavhryGu77Wkav-fwENNQ"}


def parsed(text: str) -> Found:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Found, name: str, **labels: str) -> float:
    """Of a cluster that has no name."""
    if "cluster_id" in labels:
        labels = {"cluster": labels["cluster_id"], **labels}
    return found[f"kraftlake_{name}", frozenset(labels.items())]


@pytest.fixture(scope="module")
def written(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Found:
    out = tmp_path_factory.mktemp("metrics") / "kraftlake.prom"
    assert (
        main(["metrics", "--lake", str(lake.path), "--out", str(out), "--now", "2027-01-01T00:00:00Z"]) == 0
    )
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    return parsed(out.read_text())


def test_a_leader_that_is_only_reported() -> None:
    """The captured log ends in epoch 5; a describe output shows the leader of epoch 14."""
    last = {"leader_epoch": 5, "leader_id": 3, "leaderless_ms": None, "leader_source": "record"}
    reported = last | {"leader_epoch": 14, "leader_id": 2, "leader_source": "describe"}
    for epochs, leader, proven in (([last], 3, 1), ([reported, last], 2, 0)):
        samples = {s.name: s.value for s in log_samples(ClusterRows("c", {EPOCHS.name: epochs}))}
        assert samples["kraftlake_current_leader"] == leader
        assert samples["kraftlake_current_leader_epoch"] == epochs[0]["leader_epoch"]
        assert samples["kraftlake_current_leader_is_proven"] == proven


def test_a_quorum_with_a_replaced_disk(written: Found) -> None:
    """EXPECTED.md: at most 140, committed up to 140, node 1 lacks the last record; the last describe: 132."""
    of = {"cluster_id": DISK_FAILURE}
    assert value(written, "current_leader", **of) == 3
    assert value(written, "current_leader_epoch", **of) == value(written, "voters_epoch", **of) == 1
    assert value(written, "current_leader_is_proven", **of) == 1
    assert value(written, "number_of_voters", **of) == 3
    assert value(written, "number_of_observers", **of) == 1  # the failed disk, captured before
    assert value(written, "number_of_uncaptured_voters", **of) == 0
    assert value(written, "uncommitted_voter_change", **of) == 0
    assert value(written, "high_watermark", **of, bound="at_least") == 132
    assert value(written, "high_watermark", **of, bound="at_most") == 140
    assert value(written, "committed_end_offset", **of) == 140
    assert value(written, "log_end_offset", **of, **NEW_DISK) == 140
    assert value(written, "is_observer", **of, **NEW_DISK) == 0
    first = {"node_id": "1", "directory_id": "d5efUia_RsKg158_0afzxQ"}
    assert value(written, "lag_records", **of, **first) == 1
    assert value(written, "lag_seconds", **of, **first) == 0.501
    assert value(written, "current_vote", **of, **first) == 3
    assert value(written, "current_state", **of, **first, state="follower") == 1


def test_every_cluster_and_the_last_run_are_there(written: Found, lake: Any) -> None:
    clusters = {row["cluster_id"] for row in rows_with(lake.path, CAPTURES, ["cluster_id"])}
    named = {
        dict(labels).get("cluster_id") for name, labels in written if name == "kraftlake_number_of_voters"
    }
    assert named == clusters
    run = max(rows_with(lake.path, RUNS, ["finished_at"]), key=lambda row: row["finished_at"])
    ended = value(written, "last_good_run_timestamp_seconds")
    assert ended == pytest.approx(run["finished_at"].timestamp(), abs=0.001)
    age = datetime(2027, 1, 1, tzinfo=UTC).timestamp() - ended
    assert value(written, "last_good_run_age_seconds") == pytest.approx(age, abs=0.01)
    assert value(written, "last_run_exit_code") == 0


def test_an_age_is_never_negative(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The clock of the machine that ran may be ahead."""
    assert main(["metrics", "--lake", str(lake.path), "--now", "2020-01-01T00:00:00Z"]) == 0
    assert value(parsed(capsys.readouterr().out), "last_good_run_age_seconds") == 0


def test_what_is_counted_and_not_found_is_zero(written: Found, lake: Any) -> None:
    """An alert on it ends, and a graph of it has no gap."""
    for cluster in {row["cluster_id"] for row in rows_with(lake.path, CAPTURES, ["cluster_id"])}:
        for severity in ("error", "warning"):
            of = {"cluster_id": cluster, "severity": severity}
            found = rows_with(lake.path, FINDINGS, state=["open"], **{k: [v] for k, v in of.items()})
            assert value(written, "open_findings", **of) == len(found)
        assert value(written, "quarantined_bytes", cluster_id=cluster, reason="torn_tail") >= 0
        assert value(written, "derivation_failed", cluster_id=cluster) == 0
    assert value(written, "open_findings", cluster_id=DISK_FAILURE, severity="error") == 0
    of_rule = {labels - {("state", dict(labels)["state"])} for name, labels in written if name == FOUND}
    for labels in of_rule:
        assert [written[FOUND, labels | {("state", state)}] >= 0 for state in STATES] == [True] * 3


def test_only_what_is_documented_is_minus_one(written: Found) -> None:
    below = {name for (name, _), found in written.items() if found < 0}
    assert below <= {name for name, text in HELP.items() if "-1" in text}
    assert {name for name, text in HELP.items() if "-1" in text} == {
        "kraftlake_current_leader",
        "kraftlake_current_vote",
    }


def test_unmet_expectations_are_zero_once_they_are_met(tmp_path: Path) -> None:
    """Of each cluster that was validated, and of the lake as a whole; before that nothing is known."""
    prepare_lake(tmp_path)
    assert list(samples(tmp_path, datetime.now(UTC))) == []
    TableWriter(tmp_path, None).create(EXPECTATION_RESULTS)
    at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    values = {"suite": "captures", "expectation": "key_is_unique", "severity": "error"}
    for hour, success in enumerate((False, True)):
        late = {"run_id": str(hour), "loaded_at": at + timedelta(hours=hour), "success": success}
        row = a_row(EXPECTATION_RESULTS, cluster_id="c", **values, **late)
        TableWriter(tmp_path, None).append(EXPECTATION_RESULTS, [row])
        found = {tuple(s.labels.values()): s.value for s in samples(tmp_path, at)}
        assert found == {
            ("*", "error"): 0,
            ("*", "warning"): 0,
            ("c", "error"): 0 if success else 1,
            ("c", "warning"): 0,
        }


def test_clusters_carry_their_names(tmp_path: Path) -> None:
    """Of the settings, else of table cluster_names, else their id; what is of no cluster has none."""
    prepare_lake(tmp_path)
    writer = TableWriter(tmp_path, None)
    writer.create(DERIVATIONS)
    writer.append(DERIVATIONS, [a_row(DERIVATIONS, cluster_id=c, derived_rows=[]) for c in "abc"])
    writer.create(CLUSTER_NAMES)
    names = [{"cluster_id": c, "name": f"{c} in the lake", "environment": None, "owner": None} for c in "ab"]
    writer.append(CLUSTER_NAMES, names)
    (tmp_path.parent / "names.toml").write_text('[clusters."b in the settings"]\nid = "b"\n')
    out = tmp_path.parent / "kraftlake.prom"
    config = str(tmp_path.parent / "names.toml")
    assert main(["metrics", "--lake", str(tmp_path), "--out", str(out), "--config", config]) == 0
    failed = {labels for name, labels in parsed(out.read_text()) if name == "kraftlake_derivation_failed"}
    assert {(dict(labels)["cluster_id"], dict(labels)["cluster"]) for labels in failed} == {
        ("a", "a in the lake"),
        ("b", "b in the settings"),
        ("c", "c"),
    }
    (plain,) = named([Sample("kraftlake_failed_clusters", 0)], {})
    assert plain.labels == {}


def test_no_sample_where_nothing_is_proven() -> None:
    """An undecided set is neither committed nor not; a lag without a log is none."""
    voters = [{"voter_id": node, "directory_id": f"disk-{node}"} for node in (1, 2, 3)]
    newest = {
        "offset": 9,
        "leader_epoch": 2,
        "voters": voters,
        "in_force_from_offset": 2,
        "in_force_to_offset": None,
        "source": "record",
    }

    def samples(status: str) -> dict[str, float]:
        rows = {"voter_sets": [newest | {"commit_status": status}]}
        return {sample.name: sample.value for sample in _of_voters(ClusterRows("c", rows))}

    assert samples("uncommitted")["kraftlake_uncommitted_voter_change"] == 1
    assert samples("committed")["kraftlake_uncommitted_voter_change"] == 0
    assert "kraftlake_uncommitted_voter_change" not in samples("undecided")
    assert samples("undecided")["kraftlake_number_of_uncaptured_voters"] == 3


def test_the_bounds_of_the_high_watermark_are_those_of_one_moment() -> None:
    """At least 1,222 is proven three seconds after at most 1,230: then at least 1,215 was."""
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def proof(lower: int | None, upper: int | None, seconds: int) -> dict[str, Any]:
        return {"as_of": noon + timedelta(seconds=seconds), "lower_bound": lower, "upper_bound": upper}

    rows = [proof(1215, None, 30), proof(None, 1230, 39), proof(1222, None, 42)]
    assert [
        (sample.name.removeprefix("kraftlake_high_watermark"), sample.labels.get("bound"), sample.value)
        for sample in _of_high_watermark(ClusterRows("c", {"high_watermarks": rows}))
    ] == [
        ("", "at_least", 1215),
        ("", "at_most", 1230),
        ("_timestamp_seconds", None, noon.timestamp() + 39),
    ]
    assert list(_of_high_watermark(ClusterRows("c", {}))) == []


def test_a_replica_that_stands_still_lags_by_the_leaders_clock() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def capture(end: int, appended_after: int, epoch: int = 2) -> dict[str, Any]:
        appended_at = noon + timedelta(seconds=appended_after)
        return {
            "log_end_offset": end,
            "last_leader_epoch": epoch,
            "captured_at": noon + timedelta(seconds=60),
            "epoch_ranges": [{"last_appended_at": appended_at}],
        }

    assert lag_ms(capture(90, 20), capture(100, 50)) == 30_000
    assert lag_ms(capture(100, 20), capture(100, 50)) == 0
    assert lag_ms(capture(120, 20, epoch=1), capture(100, 50)) is None
    assert lag_records(capture(120, 20, epoch=1), capture(100, 50)) is None
    assert lag_ms(capture(0, 0) | {"epoch_ranges": []}, capture(100, 50)) is None


@pytest.mark.parametrize(
    ("lagging", "offline"),
    [
        ({"log_end_offset": None}, None),
        ({"log_end_offset": 0, "epoch_ranges": []}, None),
        ({"log_end_offset": 120, "last_leader_epoch": 1}, None),
        ({}, 0),
    ],
)
def test_no_voter_is_offline_only_if_every_lag_is_known(lagging: dict[str, Any], offline: int | None) -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    voters = [{"voter_id": node, "directory_id": f"disk-{node}"} for node in (1, 2)]
    voter_set = {
        "offset": 9,
        "leader_epoch": 2,
        "voters": voters,
        "in_force_from_offset": 2,
        "in_force_to_offset": None,
        "commit_status": "committed",
    }
    captures = [
        {
            "node_id": node,
            "directory_id": f"disk-{node}",
            "captured_at": noon,
            "log_end_offset": 100,
            "last_leader_epoch": 2,
            "epoch_ranges": [{"last_appended_at": noon}],
        }
        for node in (1, 2)
    ]
    rows = {"voter_sets": [voter_set], "captures": [captures[0], captures[1] | lagging]}
    found = {sample.name: sample.value for sample in _of_voters(ClusterRows("c", rows))}
    assert found.get("kraftlake_number_of_offline_voters") == offline


def test_the_newest_answer_to_follow_is_reported(tmp_path: Path) -> None:
    """Not an older one, and not a describe output that somebody captured."""
    prepare_lake(tmp_path)
    writer = TableWriter(tmp_path, None)
    writer.create(OBSERVATIONS)
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    voters = [{"node_id": 1, "directory_id": "a"}]

    def answer(minute: int, end: int, suffix: str) -> None:
        at = {"cluster_id": "c", "observed_to": noon + timedelta(minutes=minute)}
        status = {
            "node_id": 1,
            "leader_epoch": 3,
            "high_watermark": end,
            "voters": voters,
            "observers": voters,
        }
        replica = {
            "node_id": 2,
            "directory_id": "b",
            "status": "Observer",
            "log_end_offset": end,
            "lag_records": 4,
        }
        for kind, columns in (("status", status), ("replication", replica)):
            source = f"{minute}-{kind}{suffix}"
            writer.append(OBSERVATIONS, [a_row(OBSERVATIONS, **at, kind=kind, source=source, **columns)])

    answer(1, 70, "-live.txt")
    answer(2, 80, "-live.txt")
    answer(3, 90, ".txt")
    found = {sample.name: (sample.value, sample.labels) for sample in reported_samples(tmp_path)}
    of, replica = {"cluster_id": "c"}, {"cluster_id": "c", "node_id": "2", "directory_id": "b"}
    assert found["kraftlake_reported_timestamp_seconds"] == (noon.timestamp() + 120, of)
    assert found["kraftlake_reported_high_watermark"] == (80, of)
    assert found["kraftlake_reported_number_of_observers"] == (1, of)
    assert found["kraftlake_reported_log_end_offset"] == (80, replica)
    assert found["kraftlake_reported_lag_records"] == (4, replica)
    assert found["kraftlake_reported_is_observer"] == (1, replica)


def test_labels_are_escaped_and_every_metric_has_its_help() -> None:
    odd = 'a "b" \\ c\nd'
    text = "\n".join(lines([Sample("kraftlake_findings", 2, {"name": odd})])) + "\n"
    assert parsed(text) == {("kraftlake_findings", frozenset({("name", odd)})): 2}
    with pytest.raises(AssertionError, match="kraftlake_nothing"):
        list(lines([Sample("kraftlake_nothing", 1)]))
    assert all(name.startswith("kraftlake_") for name in HELP)


def test_no_lake_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--lake", str(tmp_path)]) == 2
    assert "is not a lake" in capsys.readouterr().err


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    device, link, file = tmp_path / "device", tmp_path / "link", tmp_path / "file"
    device.symlink_to("/dev/null")
    file.write_text("old")
    link.symlink_to(file)
    put(device, "x")
    put(link, "new")
    assert (device.readlink(), link.readlink()) == (Path("/dev/null"), file)
    assert file.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["device", "file", "link"]
