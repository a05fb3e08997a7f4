"""The state of the migration from ZooKeeper (FeaturesDelta up to release 3.9; ignored from 4.0 on)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change
from kraft_core.image.names import ZK_MIGRATION_STATES, word
from kraft_core.image.tables import ZK_MIGRATION, Tables

_THE_ONE = ("zkMigrationState",)
_NONE = 0


@dataclass(frozen=True, slots=True)
class ZkMigration:
    state: int


def set_state(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """ZK_MIGRATION_STATE_RECORD. A log without any such record is in state NONE, too."""
    migration = ZkMigration(value["zkMigrationState"])
    yield Change(ZK_MIGRATION, _THE_ONE, None if migration.state == _NONE else migration)


def row(migration: ZkMigration) -> dict[str, Any]:
    return {"zk_migration_state": word(ZK_MIGRATION_STATES, migration.state)}


def to_record(migration: ZkMigration) -> tuple[str, dict[str, Any]]:
    return "ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": migration.state}


RULES = {"ZK_MIGRATION_STATE_RECORD": set_state}
