"""kraftlake follow, of simulated quorums on loopback: what it loads is what captures have."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.follow import alone, in_spool
from jobs.runtime.lease import take_lease
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from kraft_core.simulation.actions import Crash, Elapse, RemoveVoter, SnapshotLog, Write
from kraft_core.simulation.directories import write_directories
from kraft_core.wire.apis import FETCH, FETCH_SNAPSHOT
from tests.jobs.lakes import NOT_COMPARED, run
from tests.kraft_core.wire.test_follower import snapshotted, started
from tests.transforms.live.loopback import LoopbackQuorum, controllers, loopback
from tests.transforms.live.test_stream import expected
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import (
    BATCHES,
    CAPTURES,
    FINDINGS,
    HIGH_WATERMARKS,
    HISTORIES,
    LOG_RANGES,
    METADATA_TRANSACTIONS,
    OBSERVATIONS,
    RECORDS,
    REFUSED_RECORDS,
    RUNS,
    SEGMENTS,
    VOTER_CHANGES,
    Table,
)
from transforms.live.following import FollowedCluster
from transforms.live.options import live_options


def follow(held: LoopbackQuorum, lake: Path, *flags: str) -> int:
    return main(
        ["follow", "--bootstrap-controllers", controllers(held), "--lake", str(lake), "--for", "0s", *flags]
    )


def rows(lake: Path, table: Table) -> list[dict[str, Any]]:
    found = rows_with(lake, table)
    return sorted(found, key=lambda row: tuple(row[name] for name in table.key))


def compared(lake: Path, table: Table) -> list[dict[str, Any]]:
    """The rows without what is of their run or of the spool."""
    left_out = {*NOT_COMPARED, "directory_id"}
    return [{n: value for n, value in row.items() if n not in left_out} for row in rows(lake, table)]


def go_on(held: LoopbackQuorum) -> None:
    with held.lock:
        held.quorum.act(Write(3))
        held.quorum.act(Elapse(300))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("begin", [started, snapshotted])
def test_it_loads_what_captures_have(begin: Any, tmp_path: Path) -> None:
    """A capture of the directories changes no row of the log, and adds what only directories know."""
    lake, quorum = tmp_path / "lake", begin()
    with loopback(quorum) as held:
        assert follow(held, lake) == 0
        go_on(held)
        assert follow(held, lake) == 0
    followed = rows(lake, RECORDS)
    assert [row["offset"] for row in followed] == expected(quorum)
    (copy,) = rows(lake, CAPTURES)
    assert (copy["node_id"], copy["log_end_offset"]) == (-1, expected(quorum)[-1] + 1)
    assert {row["capture_id"] for row in rows(lake, SEGMENTS)} == {copy["capture_id"]}
    assert {row["commit_status"] for row in rows(lake, LOG_RANGES)} == {"committed"}
    quorum.act(Elapse(500))
    write_directories(quorum, tmp_path / "captures")
    batches = rows(lake, BATCHES)
    assert run(lake, tmp_path / "captures", flags=("--fail-on", "never")) == 0
    after = {row["offset"]: row for row in rows(lake, RECORDS)}
    assert [after[row["offset"]] for row in followed] == followed
    kept = rows(lake, BATCHES)
    assert all(batch in kept for batch in batches)
    assert {row["node_id"] for row in rows(lake, CAPTURES)} == {-1, *quorum.replicas}
    assert [row for row in rows(lake, FINDINGS) if row["severity"] == "error"] == []


@pytest.mark.usefixtures("spark")
def test_what_was_read_last_must_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where another run writes the lake until the end, the answer is not that of success."""
    lake, quorum = tmp_path / "lake", started()
    with loopback(quorum) as held:
        assert follow(held, lake) == 0
        go_on(held)
        record = RunRecord("run", Progress())
        other = take_lease(lake, record, "another-boot pid:[1] 1", 0, lambda _: None)
        assert follow(held, lake) == ExitCode.LAKE_BUSY
        assert f"run {record.run_id}" in capsys.readouterr().err
        other.end(0)
        assert follow(held, lake) == 0
    assert [row["offset"] for row in rows(lake, RECORDS)] == expected(quorum)


@pytest.mark.usefixtures("spark")
def test_high_watermarks_are_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each sample bounds it from both sides within the milliseconds of the answer; describe shows it.

    The newest one does so from below alone: another leader may have been elected meanwhile.
    """
    lake, quorum = tmp_path / "lake", started()
    ends: list[int] = []
    with loopback(quorum) as held:
        for nth in range(3):
            if nth:
                go_on(held)
            assert follow(held, lake) == 0
            ends.append(expected(quorum)[-1] + 1)
    end = ends[-1]
    live = [row for row in rows(lake, HIGH_WATERMARKS) if row["evidence"] == "live"]
    assert {row["lower_bound"] for row in live if row["lower_bound"]} >= {end}
    assert {row["upper_bound"] for row in live if row["upper_bound"]} == set(ends[:-1])
    assert {row["kind"] for row in rows(lake, OBSERVATIONS)} == {"status", "replication"}

    out, said = described(lake, capsys)
    status = {name: value.strip() for name, value in (line.split(":", 1) for line in out)}
    assert (status["HighWatermark"], status["MaxFollowerLag"]) == (str(end), "0")
    assert re.fullmatch(r'\[\{"id": 4, "directoryId": ".{22}"\}\]', status["CurrentObservers"])
    assert status["MaxFollowerLagTimeMs"] == "not known"
    assert "is the leader's answer to kraftlake follow at " in said
    replicas = [line.split("\t") for line in described(lake, capsys, "--replication")[0][1:]]
    assert [[cell.strip() for cell in replica[2:4]] for replica in replicas] == [[str(end), "0"]] * 4
    assert [replica[6].strip() for replica in replicas] == ["Leader", "Follower", "Follower", "Observer"]
    # No answer is of the moment before: it names the one that can be described.
    out, said = described(lake, capsys, "--at", str(end - 2))
    assert "HighWatermark:          not known" in out
    assert f"has the high watermark {end}: --at {end - 1}" in said


def described(lake: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """The lines of describe quorum by a lake, and what is noted."""
    capsys.readouterr()
    assert main(["describe", "quorum", "--lake", str(lake), *words]) == 0
    out, said = capsys.readouterr()
    return out.splitlines(), said


@pytest.mark.usefixtures("spark")
def test_a_voter_that_never_fetched_lags_as_kafka_prints_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its end is -1, so that it lacks one record more than the log has."""
    lake, quorum = tmp_path / "lake", started()
    former = quorum.leader().key.id
    quorum.act(Crash(former - 1, 100))
    quorum.act(Elapse(2_000))
    assert quorum.leader().key.id != former
    with loopback(quorum) as held:
        go_on(held)
        assert follow(held, lake) == 0
    end = expected(quorum)[-1] + 1
    status, _ = described(lake, capsys)
    assert f"MaxFollowerLag:         {end + 1}" in status
    lines, _ = described(lake, capsys, "--replication")
    (row,) = (line for line in lines if line.startswith(f"{former} "))
    assert [cell.strip() for cell in row.split("\t")[2:6]] == ["-1", str(end + 1), "-1", "-1"]


@pytest.mark.usefixtures("spark")
def test_an_answer_by_later_voters_is_not_of_the_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A leader that removed itself is one of its observers, as soon as it has appended that."""
    lake, quorum = tmp_path / "lake", started()
    leader = quorum.leader().key.id
    down = next(id_ for id_ in quorum.leader().voters.ids if id_ != leader)
    with loopback(quorum) as held:
        assert follow(held, lake) == 0
        with held.lock:
            quorum.act(Crash(down - 1, 100))
            for action in (Write(1), Elapse(60), RemoveVoter(leader - 1), Elapse(60)):
                quorum.act(action)
            assert leader not in quorum.leader().voters.ids
        assert follow(held, lake) == 0
    status, said = described(lake, capsys)
    assert "CurrentObservers:       not known" in status
    assert "is by voters that it appended later" in said


@pytest.mark.usefixtures("spark")
def test_one_process_follows_the_clusters_of_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that refuses costs itself only; page and metrics name the others."""
    lake, one, other, broker = tmp_path / "lake", started(1), started(2), started(3)
    page, metrics, settings = tmp_path / "page.html", tmp_path / "m.prom", tmp_path / "kraftlake.toml"
    with loopback(one) as first, loopback(other) as second, loopback(broker) as refusing:
        refusing.without |= {FETCH.key, FETCH_SNAPSHOT.key}
        named = {"one": first, "other": second, "broker": refusing}
        settings.write_text(
            "".join(
                f'[clusters.{name}]\nid = "{held.quorum.setup.cluster_id}"\n'
                f'bootstrap_controllers = "{controllers(held)}"\n'
                for name, held in named.items()
            )
        )
        words = ["follow", "--config", str(settings), "--lake", str(lake), "--for", "0s"]
        shown = ["--report", str(page), "--metrics", str(metrics)]
        assert main([*words, *shown]) == ExitCode.FOUND
        assert main([*words, "--cluster", "one"]) == 0
        assert main([*words, "--cluster", "broker"]) == ExitCode.ENVIRONMENT
    said = capsys.readouterr().err
    assert "it is a broker, and brokers do not serve the metadata log" in said
    ids = {one.setup.cluster_id, other.setup.cluster_id}
    assert {row["cluster_id"] for row in rows(lake, RECORDS)} == ids
    text = metrics.read_text()
    assert all(f'kraftlake_committed_end_offset{{cluster="{name}"' in text for name in ("one", "other"))
    assert all(f'kraftlake_reported_lag_records{{cluster="{name}"' in text for name in ("one", "other"))
    assert 'node_id="-1"' not in text
    assert all(id_ in page.read_text() for id_ in ids)


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--lake", str(tmp_path / "lake"))
    assert main(["follow", *where]) == ExitCode.USAGE
    assert "give --bootstrap-controllers, or bootstrap_controllers in a section" in capsys.readouterr().err
    assert main(["follow", *where, "--cluster", "one"]) == ExitCode.USAGE
    assert main(["follow", "--lake", "s3://bucket/lake", "--bootstrap-controllers", "h:1"]) == ExitCode.USAGE
    assert "give --spool" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["follow", *where, "--bootstrap-controllers", "h:1", "--for", "1x"])
    assert not (tmp_path / "lake").exists()


def test_only_its_owner_opens_a_new_spool(tmp_path: Path) -> None:
    """It has the hashed passwords of SCRAM users and the values of secret configs."""
    given = tmp_path / "given"
    given.mkdir(mode=0o750)
    with alone(tmp_path / "with" / "new"), alone(given):
        assert (tmp_path / "with" / "new").stat().st_mode & 0o777 == 0o700
        assert given.stat().st_mode & 0o777 == 0o750


def test_nobody_else_writes_the_spool(tmp_path: Path) -> None:
    with (
        alone(tmp_path / "spool"),
        pytest.raises(Failure, match="another process is writing to"),
        alone(tmp_path / "spool"),
    ):
        pass


def test_a_spool_that_is_moved_away_says_what_to_do(tmp_path: Path) -> None:
    spool, quorum = tmp_path / "spool", started()
    with loopback(quorum) as held:
        (cluster,) = live_options({"bootstrap.controllers": controllers(held)}).clusters
        followed = FollowedCluster(cluster, spool)
        followed.read(20)
        (spool / quorum.setup.cluster_id).rename(tmp_path / "away")
        go_on(held)
        moved = pytest.raises(Failure, match="was moved or deleted while it was in use: start again")
        with moved as caught, in_spool(spool):
            followed.read(20)
        followed.close()
    assert caught.value.exit_code == ExitCode.TRY_AGAIN


def test_an_error_of_the_lake_is_not_one_of_the_spool(tmp_path: Path) -> None:
    """The command line says which file of the lake is lost, or that the JVM has ended."""
    lost = FileNotFoundError(2, "No such file or directory", "lake/records/part.parquet")
    with pytest.raises(FileNotFoundError), alone(tmp_path / "spool"):
        raise lost


@pytest.mark.usefixtures("spark")
def test_a_log_in_many_copies_is_one_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is derived does not depend on how the spool divides the log, nor on what is removed from it."""
    whole, divided, quorum = tmp_path / "whole", tmp_path / "divided", started()
    with loopback(quorum) as held:
        with monkeypatch.context() as patched:
            patched.setattr("transforms.live.spool.SEGMENT_BYTES", 300)
            for _ in range(3):
                assert follow(held, divided) == 0
                go_on(held)
            assert follow(held, divided, "--keep-days", "0") == 0
        assert len(rows(divided, CAPTURES)) > 2
        assert len(list(divided.with_name("divided.spool").glob("*/copy-*"))) == 1
        go_on(held)
        assert follow(held, divided) == 0
        assert follow(held, whole) == 0
    for table in (
        RECORDS,
        BATCHES,
        *HISTORIES,
        METADATA_TRANSACTIONS,
        REFUSED_RECORDS,
        VOTER_CHANGES,
    ):
        assert compared(divided, table) == compared(whole, table), table.name
    ends = [[row["end_offset"] for row in rows(lake, LOG_RANGES)] for lake in (divided, whole)]
    assert ends[0] == ends[1]
    assert {row["commit_status"] for row in rows(divided, LOG_RANGES)} == {"committed"}
    assert [row for row in rows(divided, FINDINGS) if row["severity"] == "error"] == []


@pytest.mark.usefixtures("spark")
def test_what_was_deleted_before_it_was_read_leaves_one_life(tmp_path: Path) -> None:
    """The log goes on with the snapshot, in another copy of the same log."""
    lake, quorum = tmp_path / "lake", started()
    with loopback(quorum) as held:
        assert follow(held, lake) == 0
        end = expected(quorum)[-1] + 1
        go_on(held)
        with held.lock:
            leader = quorum.leader()
            assert leader is not None
            quorum.act(SnapshotLog(leader.key.id - 1, delete_older=True))
        go_on(held)
        assert follow(held, lake) == 0
    first, second = sorted(rows(lake, CAPTURES), key=lambda row: row["log_start_offset"])
    assert first["log_end_offset"] == end < second["log_start_offset"]
    assert first["directory_id"] == second["directory_id"]
    assert {row["cluster_id"] for row in rows(lake, RECORDS)} == {quorum.setup.cluster_id}
    assert {row["commit_status"] for row in rows(lake, LOG_RANGES)} == {"committed"}


@pytest.mark.usefixtures("spark")
def test_samples_and_passes_of_more_than_a_day_ago_are_thinned(tmp_path: Path) -> None:
    """One an hour stays, of which two may have begun meanwhile, with its row of runs; no more is lost."""
    lake, quorum = tmp_path / "lake", started()
    with loopback(quorum) as held:
        for _ in range(3):
            assert follow(held, lake) == 0
            go_on(held)
    records, taken = rows(lake, RECORDS), {row["observed_from"] for row in rows(lake, OBSERVATIONS)}
    now = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}"
    assert main(["maintain", "--lake", str(lake), "--now", now]) == 0
    left = {row["observed_from"] for row in rows(lake, OBSERVATIONS)}
    assert len(taken) == 3
    assert 1 <= len(left) <= 2
    points = [row for row in rows(lake, HIGH_WATERMARKS) if row["source"].endswith("reached by then")]
    assert len(points) == len(left)
    assert rows(lake, RECORDS) == records
    named = {row["run_id"] for table in (CAPTURES, OBSERVATIONS) for row in rows(lake, table)}
    assert {row["run_id"] for row in rows(lake, RUNS) if row["job"] == "follow"} == named
