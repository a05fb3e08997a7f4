"""plan finish-migration: may a migration from ZooKeeper be finished now, and was it?

A controller that becomes active without zookeeper.metadata.migration.enable finishes a migration at once,
whether or not brokers still run in ZooKeeper mode; Kafka never goes back. Source: ActivationRecordsGenerator
and ClusterControlManager of release 3.9, the last that knows ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kraft_core.image.image import Image
from kraft_core.image.names import ZK_MIGRATION_STATES
from kraft_core.image.tables import BROKERS, CONTROLLERS, ZK_MIGRATION
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.risks import Risk
from kraft_core.plan.states_between import not_proven, of_kinds
from kraft_core.plan.steps import CAPTURE_MORE, PlanStep

QUESTION = "finish the migration from ZooKeeper"
_NONE, _MIGRATION, _PRE_MIGRATION, _POST_MIGRATION = 0, 1, 2, 3
_SETTING = "zookeeper.metadata.migration.enable"


@dataclass(frozen=True, slots=True)
class MigrationState:
    """state: of the last ZkMigrationStateRecord. migrating: brokers registered as in ZooKeeper mode.

    not_ready: controllers that registered without being ready for a migration.
    """

    state: int
    migrating: tuple[int, ...]
    not_ready: tuple[int, ...]

    @property
    def is_finished(self) -> bool:
        return self.state == _POST_MIGRATION

    @property
    def name(self) -> str:
        return ZK_MIGRATION_STATES.get(self.state, f"unknown ({self.state})")


def migration_of(image: Image) -> MigrationState:
    """The state at an image."""
    state = next((each.state for _, each in image.tables.items(ZK_MIGRATION)), _NONE)
    migrating = [key[0] for key, broker in image.tables.items(BROKERS) if broker.is_migrating_zk_broker]
    not_ready = [key[0] for key, node in image.tables.items(CONTROLLERS) if not node.zk_migration_ready]
    return MigrationState(state, tuple(sorted(migrating)), tuple(sorted(not_ready)))


def plan_migration(metadata: CapturedMetadata) -> Answer:
    """The verdict, if the leader's log, its committed part and what lies between say the same."""
    if metadata.image is None:
        missing = metadata.gaps or ("no captured log of the leader can be replayed",)
        return Answer(QUESTION, "not_known", missing[0], missing=missing)
    state = migration_of(metadata.image)
    made = answer_in(state)
    concerns = of_kinds(ZK_MIGRATION, BROKERS, CONTROLLERS)
    doubts = not_proven(metadata, made.verdict, concerns, lambda image: migration_of(image) == state)
    open_questions = [*metadata.gaps, *doubts]
    if not open_questions or made.verdict == "not_known":
        return made
    reason = f"{open_questions[0]}; otherwise, by the captures: {made.verdict}, {made.reason}"
    return replace(
        made, verdict="not_known", reason=reason, missing=tuple(open_questions), steps=(CAPTURE_MORE,)
    )


def answer_in(found: MigrationState) -> Answer:
    """The verdict in a state that is known and committed."""
    evidence = tuple(_evidence(found))
    risks = tuple(_risks(found))
    if found.state == _NONE and not found.migrating:
        return Answer(QUESTION, "safe", "there is no migration: the log is in state NONE", evidence)
    if found.state == _POST_MIGRATION and not found.migrating:
        return Answer(QUESTION, "safe", "it is finished, and no broker is left in ZooKeeper mode", evidence)
    if found.state not in (_MIGRATION, _PRE_MIGRATION, _POST_MIGRATION):
        reason = f"what Kafka does in state {found.name} with migrating brokers is not known"
        return Answer(QUESTION, "not_known", reason, evidence, missing=(reason,))
    return Answer(QUESTION, "risky", risks[0].sentence, evidence, risks=risks, steps=tuple(_steps(found)))


def _evidence(found: MigrationState) -> Iterator[str]:
    yield f"ZkMigrationState {found.name}"
    yield f"brokers registered in ZooKeeper mode: {_ids(found.migrating)}"
    if found.state in (_MIGRATION, _PRE_MIGRATION):
        yield f"controllers registered as not ready for a migration: {_ids(found.not_ready)}"


def _risks(found: MigrationState) -> Iterator[Risk]:
    brokers = _ids(found.migrating)
    if found.state == _POST_MIGRATION:
        yield Risk(
            "finished_early",
            f"it was finished while brokers {brokers} were registered in ZooKeeper mode: controllers without "
            f"{_SETTING} accept no such registration",
        )
        return
    if found.state == _PRE_MIGRATION:
        yield Risk(
            "partly_copied",
            "ZooKeeper's metadata is being copied: what a controller finds now may be a part of it",
        )
    elif found.migrating:
        yield Risk(
            "brokers_in_zookeeper_mode",
            f"brokers {brokers} still run in ZooKeeper mode: if it is finished now, they cannot register "
            f"again",
        )
    if found.state == _MIGRATION:
        yield Risk("irreversible", "once it is finished, Kafka cannot return to ZooKeeper")
        yield Risk(
            "needs_3_9", "releases from 4.0 on do not support the migration: finish it before that upgrade"
        )


def _steps(found: MigrationState) -> Iterator[PlanStep]:
    if found.migrating:
        yield PlanStep(
            f"restart brokers {_ids(found.migrating)} in KRaft mode, one after another: with "
            f"process.roles=broker, and neither zookeeper.connect nor {_SETTING}",
            expect="plan again: none of them is registered in ZooKeeper mode",
        )
    if found.state == _PRE_MIGRATION:
        yield PlanStep("wait until the metadata is copied", expect="plan again: the state is MIGRATION")
    elif found.state == _MIGRATION:
        yield PlanStep(
            f"restart the controllers one after another, the leader last, without {_SETTING} and "
            "zookeeper.connect",
            expect="the new leader appends a ZkMigrationStateRecord POST_MIGRATION",
        )


def _ids(ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, ids)) or "none"
