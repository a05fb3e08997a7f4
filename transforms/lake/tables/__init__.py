"""Every table of the lake, declared once, by wing: columns with types and comments, key.

Tables are the API: SQL, delta-rs and the pages read them, so names and types change only with the lake's
format version. Times are UTC. Offsets named first_ or *_offset are inclusive, end_ are exclusive.
"""

from __future__ import annotations

from transforms.lake.tables.columns import LOADED
from transforms.lake.tables.declaration import Column, Table
from transforms.lake.tables.evidence import (
    EPOCHS,
    HIGH_WATERMARKS,
    LOG_RANGES,
    RECOVERIES,
    REPLICA_RANGES,
    TRUNCATIONS,
    VOTER_CHANGES,
    VOTER_SETS,
)
from transforms.lake.tables.histories import (
    ACLS,
    BROKERS,
    CLIENT_QUOTAS,
    CONFIGS,
    CONTROLLERS,
    DELEGATION_TOKENS,
    FEATURES,
    HISTORIES,
    METADATA_TRANSACTIONS,
    PARTITIONS,
    PRODUCER_IDS,
    REFUSED_RECORDS,
    REPLAY_VERSION,
    REPLAYS,
    SCRAM_USERS,
    TOPICS,
    VERSION,
    ZK_MIGRATION_STATES,
)
from transforms.lake.tables.ingest import (
    BATCHES,
    BROKER_DIRECTORIES,
    CAPTURES,
    EXPIRED_CAPTURES,
    LIVES,
    OBSERVATIONS,
    PARSER_VERSION,
    QUARANTINE,
    RECORDS,
    SEGMENTS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
)
from transforms.lake.tables.lake import CLUSTER_NAMES, DERIVATIONS, RUNS
from transforms.lake.tables.quality import (
    ACKNOWLEDGEMENTS,
    BROKER_PARTITIONS,
    EXPECTATION_RESULTS,
    FINDINGS,
    REHEARSALS,
    SNAPSHOT_CHECKS,
)

TABLES: tuple[Table, ...] = (
    RUNS,
    CAPTURES,
    LIVES,
    EXPIRED_CAPTURES,
    SEGMENTS,
    BATCHES,
    RECORDS,
    SNAPSHOTS,
    SNAPSHOT_RECORDS,
    OBSERVATIONS,
    BROKER_DIRECTORIES,
    QUARANTINE,
    LOG_RANGES,
    REPLICA_RANGES,
    EPOCHS,
    VOTER_SETS,
    VOTER_CHANGES,
    HIGH_WATERMARKS,
    TRUNCATIONS,
    SNAPSHOT_CHECKS,
    DERIVATIONS,
    FINDINGS,
    ACKNOWLEDGEMENTS,
    RECOVERIES,
    BROKER_PARTITIONS,
    REHEARSALS,
    EXPECTATION_RESULTS,
    CLUSTER_NAMES,
    *HISTORIES,
    METADATA_TRANSACTIONS,
    REPLAYS,
    REFUSED_RECORDS,
)
