"""The histories in the lake of real captures."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from dashboards import embedded_sql
from jobs.time_travel.replica_source import open_replica
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.image.history import History, rows
from kraft_core.image.image import Image
from kraft_core.image.tables import KINDS
from tests.jobs.lakes import run
from transforms.histories.missing import INCOMPLETE
from transforms.histories.partition_shares import Share
from transforms.histories.replay_plan import replays
from transforms.histories.replay_tasks import RefusedInTasks, others_by_tasks, partitions_by_tasks
from transforms.lake.arrow_rows import moment
from transforms.lake.delta_rs import cluster_ids, rows_with
from transforms.lake.spark_rows import to_rows
from transforms.lake.table_files import writing
from transforms.lake.tables import (
    HISTORIES,
    METADATA_TRANSACTIONS,
    PARTITIONS,
    RECORDS,
    REFUSED_RECORDS,
    REPLAYS,
    SNAPSHOT_RECORDS,
    TOPICS,
    ZK_MIGRATION_STATES,
)

DYNAMIC = "rPoTXydvQsK3Nv6AA77Cqg"
# Replicas that hold the whole log of their cluster.
WHOLE_LOGS = {
    DYNAMIC: "dynamic-membership/node-3",
    "iWP35uOsShu1pFlBJh_E7w": "uncommitted-then-committed/after/node-1",
    "cdUcB7OYQSW2BEWmIRzmkg": "disk-failure/node-2",
    "6H0D77QjTmKI23eYS_Y-Kw": "election-storm/node-1",
    "roWi3HLRRCuDirielH5nnw": "v4.4.0-mini/node-1",
}
TIMES = ("valid_from_at", "valid_to_at", "earliest_from_at", "earliest_to_at", "appended_at")
KIND_OF = {ZK_MIGRATION_STATES: "zk_migration"}
# Columns that the core does not have.
OWN = {"cluster_id", "entity_name", "commit_status", "end_commit_status", *INCOMPLETE}


def by_core(directory: Path) -> dict[str, list[dict[str, Any]]]:
    history = History()
    for step in open_replica(directory).steps():
        if isinstance(step, Image):
            history.load(step)
        else:
            history.apply(step)
    return {kind: [with_times(row) for row in rows(history.versions(kind))] for kind in KINDS}


def with_times(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: None if row[name] == -1 else moment(row[name]) for name in TIMES}


@pytest.mark.parametrize("cluster", WHOLE_LOGS)
def test_every_history_equals_that_of_the_core(lake: Any, golden: Path, cluster: str) -> None:
    core = by_core(golden / WHOLE_LOGS[cluster])
    for table in HISTORIES:
        columns = [name for name in table.names if name not in OWN]
        held = rows_with(lake.path, table, cluster_id=[cluster])
        wanted = core[KIND_OF.get(table, table.name)]
        assert texts(held, columns) == texts(wanted, columns), table.name
        assert {row["commit_status"] for row in held} <= {"committed"}


def test_sparks_tasks_make_the_same(lake: Any, tmp_path: Path) -> None:
    """They take what is too much for the driver: here what was not, into a lake without histories."""
    clusters = cluster_ids(lake.path)
    plans = replays(lake.path, clusters, whole=clusters)
    for table in (RECORDS, SNAPSHOT_RECORDS):
        (tmp_path / table.name).symlink_to(lake.path / table.name)
    refused = RefusedInTasks(lake.spark)
    changed = others_by_tasks(lake.spark, tmp_path, [plans[:3], plans[3:]], refused).cache()
    for table in HISTORIES:
        if table is not PARTITIONS:
            made = to_rows(changed.where(F.col(table.name).isNotNull()).select(f"{table.name}.*"))
            held = rows_with(lake.path, table)
            assert texts(made, table.names) == texts(held, table.names), table.name
    (tmp_path / TOPICS.name).symlink_to(lake.path / TOPICS.name)
    write = partial(writing, folder=tmp_path, schema=PARTITIONS.arrow_schema, constants={})
    shares = [Share([plan], 1000, number, 3) for plan in plans for number in range(3)]
    files = to_rows(partitions_by_tasks(lake.spark, tmp_path, shares, refused, write))
    made = pq.ParquetDataset([tmp_path / file["path"] for file in files]).read().to_pylist()
    assert texts(made, PARTITIONS.names) == texts(rows_with(lake.path, PARTITIONS), PARTITIONS.names)
    assert not refused.found
    assert rows_with(lake.path, REFUSED_RECORDS) == []


def texts(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    return sorted(repr([plain(row[name]) for name in columns]) for row in rows)


def plain(value: Any) -> Any:
    return value.timestamp() if hasattr(value, "timestamp") else value


def test_the_replay_path(lake: Any) -> None:
    steps = sorted(rows_with(lake.path, REPLAYS, cluster_id=[DYNAMIC]), key=lambda row: row["step"])
    assert [(s["first_offset"], s["end_offset"], s["leader_epoch"], s["commit_status"]) for s in steps] == [
        (0, 1005, 1, "committed"),
        (1005, 1895, 3, "committed"),
        (1895, 2013, 4, "committed"),
        (2013, 2943, 6, "committed"),
        (2943, 2944, 7, "committed"),
        (2944, 3697, 9, "committed"),
        (3697, 3698, 9, "uncommitted"),
    ]


def test_the_bootstrap_transaction(lake: Any) -> None:
    (bootstrap,) = rows_with(lake.path, METADATA_TRANSACTIONS, cluster_id=[DYNAMIC])
    found = (bootstrap["name"], bootstrap["outcome"], bootstrap["commit_status"])
    assert found == ("Bootstrap records", "ended", "committed")


@pytest.fixture(scope="module")
def sql(ask: Callable[[str], Any]) -> Callable[[str], list[tuple[Any, ...]]]:
    """Asks the lake's views about dynamic-membership."""
    return lambda query: [
        tuple(row) for row in ask(query.replace("OURS", f"cluster_id = '{DYNAMIC}'")).collect()
    ]


def by_the_pages_engine(lake: Any, view: str, query: str) -> list[tuple[Any, ...]]:
    """As `sql`, without Spark: both give all rows of the view alike (tests/jobs/test_both_engines.py)."""
    found = embedded_sql.query(lake.path, view, query.replace("OURS", f"cluster_id = '{DYNAMIC}'"))
    assert found
    return [tuple(row.values()) for row in found.to_pylist()]


# tests/golden/dynamic-membership/timeline.md: the operations in their order, but for spam and elections.
EVENTS = [
    ("register broker", "11", None, "epoch 105"),
    ("create topic", "t-small", None, "3 partitions, replication factor 1"),
    ("create topic", "t-rf2", None, "6 partitions, replication factor 2"),
    ("alter config", "t-rf2 cleanup.policy", None, "compact"),
    ("alter config", "t-rf2 min.insync.replicas", None, "1"),
    ("create topic", "t-wide", None, "200 partitions, replication factor 2"),
    ("create topic", "t-del", None, "50 partitions, replication factor 1"),
    ("create topic", "t-assign", None, "4 partitions, replication factor 1"),
    ("alter config", "t-small max.message.bytes", None, "200000"),
    ("alter config", " log.retention.ms", None, "123456"),
    ("alter config", "11 log.cleaner.threads", None, "1"),
    ("alter config", "sub1 interval.ms", None, "60000"),
    ("alter config", "sub1 metrics", None, "org.apache.kafka.consumer."),
    ("alter config", "g1 consumer.session.timeout.ms", None, "50000"),
    ("alter config", "t-small max.message.bytes", "200000", None),
    ("add partitions", "t-rf2", "6 partitions", "9 partitions"),
    ("create ACL", "t-small", None, "ALLOW User:alice READ LITERAL from *"),
    ("create ACL", "t-", None, "ALLOW User:bob WRITE PREFIXED from *"),
    ("create ACL", "*", None, "DENY User:eve ALL LITERAL from *"),
    ("create ACL", "kafka-cluster", None, "ALLOW User:carol DESCRIBE LITERAL from *"),
    ("delete ACL", "t-small", "ALLOW User:alice READ LITERAL from *", None),
    ("alter SCRAM credential", "alice SCRAM-SHA-256", None, "set"),
    ("alter SCRAM credential", "alice SCRAM-SHA-512", None, "set"),
    ("alter SCRAM credential", "bob SCRAM-SHA-512", None, "set"),
    ("delete SCRAM credential", "bob SCRAM-SHA-512", "set", None),
    ("alter client quota", "user=alice producer_byte_rate", None, "1048576.0"),
    ("alter client quota", "client-id=c1,user=alice consumer_byte_rate", None, "2048.0"),
    ("alter client quota", "user=<default> request_percentage", None, "55.5"),
    ("alter client quota", "ip=127.0.0.9 connection_creation_rate", None, "10.0"),
    ("alter client quota", "user=alice producer_byte_rate", "1048576.0", None),
    ("create delegation token", "User:admin", None, "2026-11-22 09:41:30.203"),
    ("renew delegation token", "User:admin", "2026-11-22 09:41:30.203", "2026-11-21 11:41:31.878"),
    ("expire delegation token", "User:admin", "2026-11-21 11:41:31.878", None),
    ("create delegation token", "User:admin", None, "2026-11-22 09:41:33.606"),
    ("reassign partition", "t-assign-0", "[11]", "[12]"),
    ("reassign partition", "t-rf2-0", "[11,12]", "[12]"),
    ("delete topic", "t-del", "mf9ynDEcSCS-OdM4bCzU6w", None),
    ("update feature", "metadata.version", "25", "26"),
    ("update feature", "group.version", "1", "1"),
    ("update feature", "transaction.version", "2", "2"),
    ("alter config", " min.insync.replicas", None, "1"),
    ("update feature", "eligible.leader.replicas.version", None, "1"),
    ("alter config", " min.insync.replicas", "1", "1"),
    ("alter config", "t-rf2 min.insync.replicas", "1", "2"),
    ("create topic", "t-after-kill1", None, "30 partitions, replication factor 2"),
    ("register broker", "12", "epoch 99", "epoch 1484"),
    ("update feature", "metadata.version", "26", "30"),
    ("update feature", "share.version", None, "1"),
    ("update feature", "streams.version", None, "1"),
    ("create topic", "t-x", None, "20 partitions, replication factor 1"),
    ("controlled shutdown", "12", None, "in controlled shutdown"),
    ("unregister broker", "12", "epoch 1484", None),
    ("delete topic", "t-assign", "f52yz4_QQrmYu0LQpHTdjA", None),
    ("create topic", "t-last", None, "100 partitions, replication factor 1"),
    ("update feature", "streams.version", "1", None),
    ("controlled shutdown", "11", None, "in controlled shutdown"),
    ("register broker", "11", "epoch 105", "epoch 2949"),
    ("controlled shutdown", "11", None, "in controlled shutdown"),
]


def test_the_timeline_by_sql(lake: Any) -> None:
    found = by_the_pages_engine(
        lake,
        "admin_events",
        "SELECT operation, subject, `before`, `after` FROM admin_events WHERE OURS AND `offset` > 100 "
        "AND operation NOT LIKE 'elect %' AND operation NOT LIKE '%fence broker' "
        "AND subject NOT LIKE '% retention.ms' ORDER BY `offset`",
    )
    assert found == EVENTS


def test_reassignments_by_sql(sql: Any) -> None:
    """Offset 977 drops a replica at once; the other waits until the added one is in sync."""
    names = "topic_name, state, begun_offset, done_offset, replicas_before, replicas_after"
    assert sql(f"SELECT {names} FROM reassignments WHERE OURS ORDER BY begun_offset") == [
        ("t-assign", "completed", 976, 979, [11], [12]),
        ("t-rf2", "immediate", 977, 977, [11, 12], [12]),
    ]


def test_brokers_that_were_fenced_and_what_it_did(sql: Any) -> None:
    times = sql("SELECT broker_id, from_offset, to_offset FROM fenced_times WHERE OURS ORDER BY from_offset")
    # Registered; killed and back; stopped and unregistered; the restart of all; the end.
    assert times == [
        (12, 99, 102),
        (11, 105, 107),
        (12, 1430, 1496),
        (12, 2309, 2316),
        (11, 2940, 2955),
        (11, 3692, None),
    ]
    moved = sql(
        "SELECT cause, caused_by_broker, COUNT(*) FROM leader_changes "
        "WHERE OURS AND caused_by_broker IS NOT NULL GROUP BY ALL ORDER BY 2, 1"
    )
    assert moved == [
        ("controlled shutdown", 11, 698),
        ("controlled shutdown", 12, 135),
        ("fenced", 12, 125),
    ]


def test_no_cause_without_the_registration_of_the_former_leader(golden: Path, tmp_path: Path) -> None:
    """A log without its beginning, and no checkpoint: broker 12 registers again at 1490, 11 at 2949."""
    target = tmp_path / "node-3"
    shutil.copytree(golden / "dynamic-membership/node-3", target)
    for path in (target / LOG_DIR_NAME).iterdir():
        if path.suffix == ".checkpoint" or path.name == f"{0:020d}.log":
            path.unlink()
    run(tmp_path / "lake", target, flags=("--fail-on", "never"))
    found = embedded_sql.query(
        tmp_path / "lake",
        "leader_changes",
        "SELECT leader_before, cause, MIN(`offset`) FROM leader_changes WHERE leader_before <> -1 "
        "GROUP BY 1, 2 ORDER BY 3",
    )
    assert found is not None
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (12, None, 1187),
        (11, None, 1852),
        (12, "controlled shutdown", 2054),
        (11, "controlled shutdown", 3343),
    ]


def test_the_life_of_broker_12(sql: Any) -> None:
    """Killed and back as another process; then stopped and unregistered."""
    life = sql(
        "SELECT state, began_as, ended_as, from_offset, to_offset, incarnation_before, state_ms > 0 "
        "FROM broker_lifecycles WHERE OURS AND broker_id = 12 ORDER BY from_offset"
    )
    first, second = "5Xl9oO-aT8aOarN_g2Qx_g", "_e8WALsQRbGlG_0Lo5F4Wg"
    assert life == [
        ("fenced", "registered", "unfenced", 99, 102, None, True),
        ("active", "unfenced", "fenced", 102, 1430, None, True),
        ("fenced", "fenced", "registered again", 1430, 1490, None, True),
        ("fenced", "registered again", "unfenced", 1490, 1496, first, True),
        ("active", "unfenced", "controlled shutdown", 1496, 2051, None, True),
        ("controlled shutdown", "controlled shutdown", "fenced", 2051, 2309, None, True),
        ("fenced", "fenced", "unregistered", 2309, 2316, None, True),
        ("unregistered", "unregistered", None, 2316, None, second, None),
    ]


def test_why_brokers_were_fenced_and_what_it_cost(sql: Any) -> None:
    found = sql(
        "SELECT broker_id, from_offset, cause, state_before, leaders_moved FROM why_fenced WHERE OURS "
        "ORDER BY from_offset"
    )
    assert [row[:4] for row in found] == [
        (12, 99, "new process", None),
        (11, 105, "new process", None),
        (12, 1430, "no heartbeat", "active"),
        (12, 1490, "new process", "fenced"),
        (12, 2309, "controlled shutdown", "controlled shutdown"),
        (11, 2940, "controlled shutdown", "controlled shutdown"),
        (11, 2949, "new process", "fenced"),
        (11, 3692, "controlled shutdown", "controlled shutdown"),
    ]
    moved = {row[1]: row[4] for row in found}
    assert (moved[1430], moved[2309], moved[2940] + moved[3692]) == (125, 135, 698)


def test_the_registration_that_blocks_an_upgrade(sql: Any) -> None:
    """Controller 1 is still of 3.9, where the others are of 4.3."""
    columns = (
        "kind, node_id, fenced, finalized_level, blocked_level, min_supported_version, max_supported_version"
    )
    blocked = (
        "SELECT feature, " + columns + " FROM upgrade_blockers WHERE cluster_id = 'Bx2MjFelQgGlBMGk_SRRIQ'"
    )
    found = {row[0]: row[1:] for row in sql(blocked)}
    assert found["metadata.version"] == ("controller", 1, None, 21, 30, 1, 21)
    assert found["share.version"] == ("controller", 1, None, None, 1, 0, 0)
    assert "kraft.version" not in found
    assert sql("SELECT * FROM upgrade_blockers WHERE OURS") == []


@pytest.mark.parametrize(
    ("cluster", "formatted"),
    [
        (DYNAMIC, [(1, "only voter", 1), (2, None, None), (3, None, None)]),
        (
            "cdUcB7OYQSW2BEWmIRzmkg",
            [
                (1, "initial voter", 3),
                (2, "initial voter", 3),
                (2, "no voter", None),
                (3, "initial voter", 3),
            ],
        ),
        (
            "Bx2MjFelQgGlBMGk_SRRIQ",
            [(1, "no voter", None), (2, None, None), (3, None, None), (4, None, None)],
        ),
    ],
    ids=["dynamic-membership", "disk-failure", "old-mv"],
)
def test_directories_were_formatted_as_the_scenario_says(sql: Any, cluster: str, formatted: Any) -> None:
    """By the options of kafka-storage in tests/kafka/scenarios; null where a later snapshot replaced 0-0."""
    found = sql(
        "SELECT node_id, formatted_as, initial_voters FROM formatted_directories "
        f"WHERE cluster_id = '{cluster}' ORDER BY node_id, formatted_as"
    )
    assert found == formatted


def test_under_min_isr_while_broker_12_was_away(lake: Any) -> None:
    (found,) = by_the_pages_engine(
        lake,
        "under_min_isr",
        "SELECT COUNT(*), MIN(from_offset) > 1100, MAX(to_offset) < 1900, MIN(min_isr), MIN(least_isr), "
        "MIN(under_ms) > 10000, MAX(under_ms) < 20000 FROM under_min_isr "
        "WHERE OURS AND topic_name = 't-rf2' AND min_isr = 2 AND to_at < '2026-11-21 09:43:00'",
    )
    assert found == (8, True, True, 2, 1, True, True)


def test_as_of_an_offset_and_at_a_time(sql: Any) -> None:
    names = f"SELECT topic_name FROM topics_as_of('{DYNAMIC}', 983) ORDER BY topic_name"
    assert [name for (name,) in sql(names)] == ["t-assign", "t-del", "t-rf2", "t-small", "t-wide"]
    then = f"topics_at('{DYNAMIC}', TIMESTAMP'2026-11-21 09:41:37')"
    assert sql(f"SELECT COUNT(*) FROM {then} WHERE topic_name = 't-del'") == [(0,)]
    assert sql("SELECT COUNT(*), COUNT(valid_to_offset) FROM topics_committed WHERE OURS") == [(8, 2)]
    assert sql("SELECT topic_name FROM topics_now WHERE OURS AND topic_name LIKE 't-d%'") == []
