"""Expectations of the tables, a suite a table: conditions in SQL on the rows of a relation.

The rows that fail a condition are counted by cluster, and can be listed (see expectations). An expectation
with a `measure` instead compares its largest value with the allowed one. Relations name tables in braces;
{now} is the reference time. new_batches, new_records and new_snapshot_records are the new rows of the large
tables: those from offset `scope_from` of the cluster on, 0 if all rows are validated. {scopes} has scope_from
for each cluster with new rows, {new_snapshots} the snapshots of new_snapshot_records. The histories are
limited to versions from that offset on. {derived_rows} is what derived_counts.counted_rows returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from transforms.lake import tables
from transforms.lake.tables import Table

ERROR = "error"
WARNING = "warning"
SEVERITIES = (ERROR, WARNING)
# Stands for the cluster of rows that belong to none.
WHOLE_LAKE = "*"
STATUSES = "('committed', 'truncated', 'uncommitted', 'undecided')"


class UnknownExpectationError(ValueError):
    """A setting of an unknown expectation, or an invalid setting; the message names it."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """`holds` is a condition on a row, and `allowed` the number of rows that may fail it; or `measure` is a
    number of each row, and `allowed` its largest valid value.
    """

    name: str
    sentence: str
    holds: str | None = None
    measure: str | None = None
    severity: str = ERROR
    allowed: float = 0


@dataclass(frozen=True, slots=True)
class Check:
    """Expectations of the rows of one relation; without a relation, those of every table (COMMON).

    every_cluster: evaluated for every cluster of the lake, also without new rows: all captures age.
    names: the columns that identify a row; without any the table's key, or all columns where that is missing.
    own: a user's own; its relation names tables and views of the session's catalog, and may lack cluster_id.
    """

    rows: str | None
    expectations: tuple[Expectation, ...]
    every_cluster: bool = False
    names: tuple[str, ...] = ()
    own: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """The expectations of a table."""

    table: Table
    checks: tuple[Check, ...]

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        return tuple(e for check in self.checks for e in check.expectations)


def suites() -> tuple[Suite, ...]:
    """A suite for every table except the one with the results."""
    validated = [table for table in tables.TABLES if table.name != tables.EXPECTATION_RESULTS.name]
    return tuple(Suite(table, SPECIAL.get(table.name, (COMMON,))) for table in validated)


def check(*expectations: Expectation, table: Table, columns: Iterable[str] = (), joins: str = "") -> Check:
    """Expectations of a table's rows, with further `columns` from `joins`."""
    owner = [] if "cluster_id" in table.names else [f"'{WHOLE_LAKE}' AS cluster_id"]
    more = "".join(f", {column}" for column in (*owner, *columns))
    return Check(f"SELECT t.*{more} FROM {{{table.name}}} t {joins}", expectations)


def unique(holds: str) -> Expectation:
    return Expectation("key_is_unique", "No two rows have the same key", holds)


def filled(holds: str) -> Expectation:
    return Expectation("required_columns_not_null", "No required column is null", holds)


# One row a key of any table: `copies`, its number of rows, and whether all their required columns are filled.
COMMON = Check(None, (unique("copies = 1"), filled("is_filled")))


def columns_of(alias: str, names: Iterable[str]) -> str:
    return ", ".join(f"{alias}.`{name}`" for name in names)


def all_filled(alias: str, table: Table) -> str:
    """The condition that no required column is null."""
    dot = f"{alias}." if alias else ""
    return " AND ".join(f"{dot}`{c.name}` IS NOT NULL" for c in table.columns if not c.nullable)


def left_join(table: str, on: str, columns: str) -> str:
    """A left join with the distinct `columns` of a table, as `holder`."""
    return f"LEFT JOIN (SELECT DISTINCT {columns} FROM {{{table}}}) holder ON {on}"


def joined_ranges(ranges: str) -> str:
    """Ranges of offsets of a replica and epoch, joined where they touch or overlap."""
    of_log = f"OVER (PARTITION BY {EPOCH_OF_REPLICA} ORDER BY first_offset"
    return f"""(
    SELECT {EPOCH_OF_REPLICA}, MIN(first_offset) AS first_offset, MAX(end_offset) AS end_offset
    FROM (SELECT *, COUNT_IF(is_first) {of_log}) AS nth
          FROM (SELECT *, COALESCE(first_offset > MAX(end_offset) {of_log}
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), TRUE) AS is_first
                FROM (SELECT {EPOCH_OF_REPLICA}, first_offset, MAX(end_offset) AS end_offset
                      FROM ({ranges}) GROUP BY {EPOCH_OF_REPLICA}, first_offset)))
    GROUP BY {EPOCH_OF_REPLICA}, nth)"""


EPOCH_OF_REPLICA = "cluster_id, node_id, directory_id, leader_epoch"
SAME_EPOCH = " AND ".join(f"r.{name} = t.{name}" for name in EPOCH_OF_REPLICA.split(", "))
# What captures show of each replica's log. A segment may show more than its capture: of damaged copies of a
# capture the fullest is kept, but of each segment the fullest copy.
SHOWN_RANGES = joined_ranges("""
    SELECT cluster_id, node_id, directory_id, run.leader_epoch, run.first_offset, run.end_offset
    FROM {captures} LATERAL VIEW EXPLODE(epoch_ranges) e AS run
    UNION ALL
    SELECT s.cluster_id, s.node_id, s.directory_id, run.leader_epoch, run.first_offset, run.end_offset
    FROM {segments} s LEFT SEMI JOIN {captures} c
      ON c.cluster_id = s.cluster_id AND c.capture_id = s.capture_id
    LATERAL VIEW EXPLODE(s.epoch_ranges) e AS run""")

OF_CAPTURE = left_join(
    "captures",
    "holder.cluster_id = t.cluster_id AND holder.capture_id = t.capture_id",
    "cluster_id, capture_id",
)
FOUND = ("holder.cluster_id IS NOT NULL AS is_held",)
HAS_CAPTURE = Expectation("capture_is_known", "Its capture is in table captures", "is_held")
RANGE = Expectation(
    "range_is_not_empty", "The end offset is greater than the first offset", "end_offset > first_offset"
)
KNOWN_STATUS = Expectation(
    "status_is_known",
    "The commit status is one of committed, truncated, uncommitted, undecided",
    f"commit_status IN {STATUSES}",
)

CAPTURES = (
    COMMON,
    check(
        Expectation(
            "log_is_gapless",
            "Each epoch range of the log starts at the end of the previous one, or damage lies between",
            """NOT log_readable
               OR NOT EXISTS(TRANSFORM(epoch_ranges, (r, i) -> i > 0
                 AND r.first_offset <> GET(epoch_ranges, i - 1).end_offset
                 AND NOT EXISTS(damage, d -> d.lost_from_offset <= GET(epoch_ranges, i - 1).end_offset
                                         AND d.lost_to_offset >= r.first_offset)), gap -> gap)""",
        ),
        Expectation(
            "ends_match_the_log",
            "log_start_offset and log_end_offset are those of the first and the last epoch range",
            "NOT log_readable OR SIZE(epoch_ranges) = 0 "
            "OR (log_start_offset = GET(epoch_ranges, 0).first_offset "
            "AND log_end_offset = GET(epoch_ranges, SIZE(epoch_ranges) - 1).end_offset)",
        ),
        Expectation(
            "captured_at_is_recorded",
            "A flag or capture.json records the capture time; file times may be those of a later copy",
            "captured_at_source <> 'file_time'",
            severity=WARNING,
        ),
        Expectation(
            "captured_at_not_in_future",
            "The capture time is not in the future",
            "last_captured_at <= asked_at",
            severity=WARNING,
        ),
        Expectation(
            "side_files_are_readable",
            "quorum-state, leader-epoch-checkpoint and the other small files could be read",
            "SIZE(COALESCE(file_faults, ARRAY())) = 0",
            severity=WARNING,
        ),
        table=tables.CAPTURES,
        columns=("{now} AS asked_at",),
    ),
    Check(
        "SELECT cluster_id, TIMESTAMPDIFF(SECOND, MAX(last_captured_at), {now}) "
        "/ 3600D AS age_hours FROM {captures} WHERE COALESCE(log_readable, TRUE) GROUP BY cluster_id",
        (
            Expectation(
                "newest_capture_is_fresh",
                "Hours since the newest capture of the cluster whose log could be read",
                measure="age_hours",
                severity=WARNING,
                allowed=26,
            ),
        ),
        every_cluster=True,
    ),
)

SEGMENTS = check(
    HAS_CAPTURE,
    Expectation(
        "bytes_read_within_size", "No more bytes were read than the file has", "bytes_read <= size_bytes"
    ),
    table=tables.SEGMENTS,
    columns=FOUND,
    joins=OF_CAPTURE,
)

BATCHES = Check(
    f"""
    SELECT t.*, r.first_offset AS range_from
    FROM (SELECT {columns_of("b", tables.BATCHES.key)}, COUNT(*) AS copies, MIN(b.last_offset) AS last_offset,
                 MIN(b.record_count) AS record_count,
                 BOOL_AND({all_filled("b", tables.BATCHES)}) AS is_filled
          FROM {{new_batches}} b
          GROUP BY {columns_of("b", tables.BATCHES.key)}) t
    LEFT JOIN {SHOWN_RANGES} r
      ON {SAME_EPOCH} AND t.base_offset >= r.first_offset AND t.last_offset < r.end_offset""",
    (
        unique("copies = 1"),
        filled("is_filled"),
        Expectation(
            "capture_is_known",
            "A capture of the replica has an epoch range that contains the batch",
            "range_from IS NOT NULL",
        ),
        Expectation(
            "offsets_match_the_count",
            "The batch spans as many offsets as its header counts records",
            "last_offset - base_offset + 1 = record_count",
        ),
    ),
)

# One row an epoch range that captures show, from scope_from on; up to held_to batches hold it.
CAPTURED_RANGES = Check(
    f"""
    SELECT t.*, COALESCE(r.end_offset, t.first_offset) AS held_to
    FROM (SELECT shown.{EPOCH_OF_REPLICA.replace(", ", ", shown.")},
                 GREATEST(shown.first_offset, scope_from) AS first_offset, shown.end_offset
          FROM {SHOWN_RANGES} shown
          JOIN {{scopes}} scopes ON scopes.cluster_id = shown.cluster_id
          WHERE shown.end_offset > scope_from) t
    LEFT JOIN {
        joined_ranges(
            f"SELECT {EPOCH_OF_REPLICA}, base_offset AS first_offset, last_offset + 1 AS end_offset "
            "FROM {new_batches}"
        )
    } r ON {SAME_EPOCH} AND r.first_offset <= t.first_offset AND r.end_offset > t.first_offset""",
    (
        Expectation(
            "range_is_complete",
            "Batches hold every offset of an epoch range that captures of the replica show",
            "held_to >= end_offset",
        ),
    ),
)

RECORDS = Check(
    f"""
    SELECT COALESCE(r.cluster_id, b.cluster_id) AS cluster_id,
           COALESCE(r.batch_base_offset, b.base_offset) AS batch_base_offset,
           COALESCE(r.leader_epoch, b.leader_epoch) AS leader_epoch,
           COALESCE(r.batch_crc, b.crc) AS batch_crc,
           b.record_count, COALESCE(r.rows, 0) AS rows, r.offsets, r.is_filled, r.unread
    FROM (SELECT cluster_id, batch_base_offset, leader_epoch, batch_crc, COUNT(*) AS rows,
                 COUNT(DISTINCT `offset`) AS offsets, COUNT(unread_reason) AS unread,
                 BOOL_AND({all_filled("", tables.RECORDS)}) AS is_filled
          FROM {{new_records}}
          GROUP BY cluster_id, batch_base_offset, leader_epoch, batch_crc) r
    FULL OUTER JOIN (SELECT DISTINCT cluster_id, base_offset, leader_epoch, crc, record_count
                     FROM {{new_batches}}
                     WHERE base_offset >= scope_from) b
      ON b.cluster_id = r.cluster_id AND b.base_offset = r.batch_base_offset
     AND b.leader_epoch = r.leader_epoch AND b.crc = r.batch_crc""",
    (
        unique("rows = COALESCE(offsets, 0)"),
        filled("COALESCE(is_filled, TRUE)"),
        Expectation("batch_is_known", "Its batch is in table batches", "record_count IS NOT NULL"),
        Expectation(
            "batch_is_complete",
            "The batch has as many records, decoded or not, as its header counts",
            "record_count IS NULL OR rows = record_count",
        ),
        Expectation(
            "values_are_decoded",
            "Every value could be decoded: none is damaged or from a newer Kafka release",
            "COALESCE(unread, 0) = 0",
            severity=WARNING,
        ),
    ),
)

OF_SNAPSHOT = "cluster_id, end_offset, leader_epoch, content_digest"
SAME_SNAPSHOT = " AND ".join(f"holder.{name} = t.{name}" for name in OF_SNAPSHOT.split(", "))
EITHER_SNAPSHOT = ", ".join(f"COALESCE(t.{n}, holder.{n}) AS {n}" for n in OF_SNAPSHOT.split(", "))
SNAPSHOTS = Check(
    f"""
    SELECT {EITHER_SNAPSHOT}, t.complete,
           t.cluster_id IS NOT NULL AS is_stored, holder.cluster_id IS NOT NULL AS is_held
    FROM {{snapshots}} t
    FULL OUTER JOIN (SELECT DISTINCT cluster_id, held.*
                     FROM {{captures}} LATERAL VIEW EXPLODE(snapshots) e AS held) holder
      ON {SAME_SNAPSHOT}""",
    (
        Expectation("capture_is_known", "A capture of the cluster contains the snapshot", "is_held"),
        Expectation(
            "captured_snapshot_is_known",
            "A snapshot that a capture contains is in table snapshots",
            "is_stored",
        ),
        Expectation(
            "snapshot_is_complete",
            "The header comes first, the footer last, and every byte could be read",
            "NOT is_stored OR complete",
            severity=WARNING,
        ),
    ),
)

SNAPSHOT_RECORDS = Check(
    f"""
    SELECT {EITHER_SNAPSHOT}, t.rows, t.positions, t.end_position, t.first_type, t.last_type, t.is_filled,
           holder.complete
    FROM (SELECT {OF_SNAPSHOT}, COUNT(*) AS rows, COUNT(DISTINCT position) AS positions,
                 MAX(position) + 1 AS end_position,
                 MIN_BY(type, position) AS first_type, MAX_BY(type, position) AS last_type,
                 BOOL_AND({all_filled("", tables.SNAPSHOT_RECORDS)}) AS is_filled
          FROM {{new_snapshot_records}}
          GROUP BY {OF_SNAPSHOT}) t
    FULL OUTER JOIN {{new_snapshots}} holder ON {SAME_SNAPSHOT}""",
    (
        unique("COALESCE(rows = positions, TRUE)"),
        filled("COALESCE(is_filled, TRUE)"),
        Expectation("snapshot_is_known", "Its snapshot is in table snapshots", "complete IS NOT NULL"),
        Expectation(
            "positions_are_gapless",
            "A complete snapshot has all its records, from the header to the footer",
            "NOT COALESCE(complete, FALSE) OR (positions = end_position "
            "AND first_type = 'SnapshotHeader' AND last_type = 'SnapshotFooter')",
        ),
    ),
)

QUARANTINE = (
    COMMON,
    check(HAS_CAPTURE, table=tables.QUARANTINE, columns=FOUND, joins=OF_CAPTURE),
    Check(
        "SELECT cluster_id, SUM(IF(reason = 'torn_tail', 0, size_bytes)) AS lost_bytes "
        "FROM {quarantine} GROUP BY cluster_id",
        (
            Expectation(
                "lost_bytes_within_limit",
                "Bytes of the cluster that no copy supplied, except incomplete last batches of running nodes",
                measure="lost_bytes",
            ),
        ),
    ),
)

LOG_RANGES = check(
    RANGE,
    KNOWN_STATUS,
    Expectation(
        "committed_ranges_do_not_overlap",
        "No offset is committed in two epochs",
        "commit_status <> 'committed' OR committed_before IS NULL OR committed_before <= first_offset",
    ),
    Expectation(
        "truncation_names_its_epoch",
        "Truncated ranges, and only those, name the epoch that truncated them",
        "(commit_status = 'truncated') = (truncated_by_epoch IS NOT NULL)",
    ),
    table=tables.LOG_RANGES,
    columns=(
        "MAX(end_offset) OVER (PARTITION BY t.cluster_id, t.commit_status ORDER BY t.first_offset "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS committed_before",
    ),
)

REPLICA_RANGES = check(
    RANGE,
    Expectation("capture_is_known", "A capture of the replica is in table captures", "is_held"),
    Expectation(
        "times_are_ordered",
        "The first capture is not later than the last",
        "first_captured_at <= last_captured_at",
    ),
    table=tables.REPLICA_RANGES,
    columns=FOUND,
    joins=left_join(
        "captures",
        "holder.cluster_id = t.cluster_id AND holder.node_id = t.node_id "
        "AND holder.directory_id = t.directory_id",
        "cluster_id, node_id, directory_id",
    ),
)

EPOCHS = check(
    Expectation(
        "leader_is_a_voter",
        "The leader is one of the voters in its LEADER_CHANGE",
        "leader_id IS NULL OR voter_ids IS NULL OR ARRAY_CONTAINS(voter_ids, leader_id)",
        severity=WARNING,  # a removed voter may lead until its removal commits
    ),
    Expectation(
        "granting_voters_are_a_majority",
        "More than half of those voters granted their vote",
        "voter_ids IS NULL OR granting_voters IS NULL "
        "OR SIZE(ARRAY_INTERSECT(granting_voters, voter_ids)) > SIZE(voter_ids) / 2",
    ),
    Expectation(
        "start_offsets_do_not_decrease",
        "No epoch starts at a lower offset than an earlier one",
        "start_before IS NULL OR start_offset IS NULL OR start_before <= start_offset",
        severity=WARNING,  # it may, if batches of an earlier epoch were truncated
    ),
    Expectation(
        "leaderless_time_not_negative",
        "The time without a leader is not negative",
        "leaderless_ms IS NULL OR leaderless_ms >= 0",
    ),
    table=tables.EPOCHS,
    columns=(
        "MAX(start_offset) OVER (PARTITION BY t.cluster_id ORDER BY t.leader_epoch "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS start_before",
    ),
)

VOTER_SETS = check(
    Expectation(
        "source_is_known",
        "The source is a record, a snapshot, the static voter set, the bootstrap checkpoint or a report",
        "source IN ('record', 'snapshot', 'static', 'bootstrap', 'describe', 'quorum-state')",
    ),
    Expectation(
        "record_is_known",
        "The VotersRecord of a set from the log is in table records",
        "NOT is_new OR source <> 'record' OR is_held",
    ),
    Expectation(
        "status_is_known",
        "Sets from records and snapshots have a commit status, observed ones are undecided, others have none",
        f"CASE WHEN source IN ('describe', 'quorum-state') THEN COALESCE(commit_status = 'undecided', FALSE) "
        f"ELSE COALESCE(commit_status IN {STATUSES}, FALSE) = (source IN ('record', 'snapshot')) END",
    ),
    Expectation(
        "majority_is_more_than_half",
        "The majority is the smallest number greater than half of the voters",
        "majority = FLOOR(SIZE(voter_ids) / 2) + 1",
    ),
    Expectation(
        "voters_are_distinct",
        "voter_ids lists the id of each voter once",
        "SIZE(ARRAY_DISTINCT(voter_ids)) = SIZE(voters) "
        "AND FORALL(voters, v -> ARRAY_CONTAINS(voter_ids, v.voter_id))",
    ),
    Expectation(
        "in_force_range_is_ordered",
        "The set did not go out of force before it came into force",
        "COALESCE(in_force_from_offset <= in_force_to_offset, TRUE)",
    ),
    Expectation(
        "voters_are_captured",
        "Every voter of the newest set in force has been captured at least once",
        "in_force_to_offset IS NOT NULL OR in_force_from_offset IS NULL "
        "OR COALESCE(commit_status, '') = 'truncated' "
        "OR SIZE(ARRAY_EXCEPT(voter_ids, COALESCE(captured_ids, ARRAY()))) = 0",
        severity=WARNING,
    ),
    table=tables.VOTER_SETS,
    columns=(*FOUND, "known.ids AS captured_ids", "COALESCE(t.`offset` >= scope_from, FALSE) AS is_new"),
    joins="""
    LEFT JOIN {scopes} scopes ON scopes.cluster_id = t.cluster_id
    LEFT JOIN (SELECT DISTINCT cluster_id, `offset`, leader_epoch
               FROM {new_records} WHERE is_control AND type = 'KRaftVoters') holder
      ON holder.cluster_id = t.cluster_id AND holder.`offset` = t.`offset`
     AND holder.leader_epoch = t.leader_epoch
    LEFT JOIN (SELECT cluster_id, COLLECT_SET(node_id) AS ids FROM {captures} GROUP BY cluster_id) known
      ON known.cluster_id = t.cluster_id""",
)

VOTER_CHANGES = check(
    Expectation(
        "kind_is_known",
        "The kind is bootstrapped, added, removed or updated",
        "kind IN ('bootstrapped', 'added', 'removed', 'updated')",
    ),
    Expectation("set_is_known", "The voter set that made the change is in table voter_sets", "is_held"),
    table=tables.VOTER_CHANGES,
    columns=FOUND,
    joins=left_join(
        "voter_sets",
        "holder.cluster_id = t.cluster_id AND holder.`offset` = t.`offset` "
        "AND holder.leader_epoch = t.leader_epoch",
        "cluster_id, `offset`, leader_epoch",
    ),
)

HIGH_WATERMARKS = check(
    Expectation(
        "one_bound_per_proof",
        "A proof gives exactly one of a lower bound, an upper bound and a bound that a leader believed",
        "SIZE(FILTER(ARRAY(lower_bound, upper_bound, believed_bound), b -> b IS NOT NULL)) = 1",
    ),
    Expectation(
        "bounds_do_not_cross",
        "No upper bound is less than a lower bound proven by that time",
        "upper_bound IS NULL OR lower_before IS NULL OR lower_before <= upper_bound",
    ),
    table=tables.HIGH_WATERMARKS,
    columns=(
        "MAX(lower_bound) OVER (PARTITION BY t.cluster_id ORDER BY t.as_of RANGE UNBOUNDED PRECEDING) "
        "AS lower_before",
    ),
)

DERIVATIONS = Check(
    "SELECT * FROM {derived_rows}",
    (
        Expectation(
            "derived_rows_are_kept",
            "Each derived table has as many rows of the cluster as its last derivation left",
            "rows = expected",
        ),
    ),
    every_cluster=True,
    names=("cluster_id", "table", "rows", "expected"),
)

RUNS = check(
    Expectation(
        "end_not_before_start",
        "The run did not end before it started",
        "finished_at IS NULL OR finished_at >= started_at",
    ),
    Expectation(
        "newest_run_has_no_failed_clusters",
        "No cluster failed in the newest run",
        "started_at < newest OR COALESCE(CARDINALITY(failed_clusters), 0) = 0",
        severity=WARNING,
    ),
    Expectation(
        "newest_run_read_every_path",
        "The newest run over captures could list and read every path in them",
        "newest_over_captures IS NULL OR started_at < newest_over_captures "
        "OR COALESCE(counts['unreadable'], 0) = 0",
    ),
    table=tables.RUNS,
    columns=(
        "MAX(started_at) OVER () AS newest",
        "MAX(CASE WHEN job IN ('run', 'ingest') THEN started_at END) OVER () AS newest_over_captures",
    ),
)

SPECIAL: dict[str, tuple[Check, ...]] = {
    "captures": CAPTURES,
    "segments": (COMMON, SEGMENTS),
    "batches": (BATCHES, CAPTURED_RANGES),
    "records": (RECORDS,),
    "snapshots": (COMMON, SNAPSHOTS),
    "snapshot_records": (SNAPSHOT_RECORDS,),
    "quarantine": QUARANTINE,
    "log_ranges": (COMMON, LOG_RANGES),
    "replica_ranges": (COMMON, REPLICA_RANGES),
    "epochs": (COMMON, EPOCHS),
    "voter_sets": (COMMON, VOTER_SETS),
    "voter_changes": (COMMON, VOTER_CHANGES),
    "high_watermarks": (COMMON, HIGH_WATERMARKS),
    "runs": (COMMON, RUNS),
    "derivations": (COMMON, DERIVATIONS),
}
