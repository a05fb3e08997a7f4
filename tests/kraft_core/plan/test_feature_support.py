"""The upgrade of kraft.version asks brokers and controllers: what they or the captures lack is never safe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.facts import Capture, EpochRange, SnapshotFacts
from kraft_core.plan.actions import UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.plan import plan
from kraft_core.plan.registrations import (
    REGISTER_BROKER,
    REGISTER_CONTROLLER,
    UNREGISTER_BROKER,
    UNREGISTER_CONTROLLER,
    Registered,
    Registration,
    record_of,
)
from kraft_core.plan.standings import FETCH_TIMEOUT_MS, Standing
from kraft_core.plan.verdicts import judge
from kraft_core.protocol.errors import ErrorCode
from tests.kraft_core.plan.captured import captured, facts_of

UPGRADE = UpgradeKRaftVersion(1)
REFUSED = "Invalid update version 1 for feature kraft.version. "


def static_quorum(**changes: object) -> CapturedQuorum:
    """Three static voters and broker 11, as if their software were Kafka 4.3 instead of 3.9."""
    quorum = captured("static-upgrade/at-3.9.2", running=True)
    found = quorum.registrations
    controllers = {n: replace(r, upgrades_kraft_version=True) for n, r in found.controllers.items()}
    return replace(quorum, registrations=replace(found, **{"controllers": controllers, **changes}))


def broker(node_id: int, versions: tuple[int, int] | None) -> Registration:
    return Registration(node_id, 400, (), versions, upgrades_kraft_version=True)


def test_all_support_it() -> None:
    assert judge(static_quorum(), UPGRADE).verdict.name == "safe"


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (None, "Broker 12 does not support this feature."),
        ((0, 0), "Broker 12 does not support this feature."),
        ((2, 2), "Broker 12 only supports versions 2"),
        ((2, 3), "Broker 12 only supports versions 2-3"),
        ((2, 32767), "Broker 12 only supports versions 2+"),
    ],
)
def test_a_broker_that_does_not_support_it_refuses(versions: tuple[int, int] | None, words: str) -> None:
    made = plan(static_quorum(brokers={11: broker(11, (0, 1)), 12: broker(12, versions)}), UPGRADE)
    verdict = made.judged.verdict
    assert (verdict.name, verdict.error) == ("refused", ErrorCode.INVALID_UPDATE_VERSION)
    assert verdict.error_text == REFUSED + words
    assert verdict.exception == "InvalidUpdateVersionException"
    assert "unregister" in made.steps[0].what


def test_a_controller_that_does_not_support_it_refuses() -> None:
    observer = {9: broker(9, None)}
    quorum = static_quorum(controllers={**static_quorum().registrations.controllers, **observer})
    assert (
        judge(quorum, UPGRADE).verdict.error_text == REFUSED + "Controller 9 does not support this feature."
    )


def test_a_voter_that_has_not_registered_refuses() -> None:
    controllers = dict(static_quorum().registrations.controllers)
    del controllers[3]
    text = judge(static_quorum(controllers=controllers), UPGRADE).verdict.error_text
    assert text == REFUSED + "controller 3 has not registered, and may not support this feature"


def test_registrations_that_are_not_known_are_not_safe() -> None:
    judged = judge(static_quorum(brokers={}, gap="the captured log of 1 lacks 0 to 9"), UPGRADE)
    assert judged.verdict.name == "not_known"
    assert "which brokers are registered is not known" in judged.verdict.reason
    assert "which brokers are registered is not known: the captured log of 1 lacks 0 to 9" in judged.missing
    judged = judge(replace(static_quorum(), metadata_version=None), UPGRADE)
    assert judged.verdict.name == "not_known"


def test_a_refusal_of_an_uncaptured_leaders_is_not_known() -> None:
    """Its log may have the broker's removal."""
    quorum = static_quorum(brokers={12: broker(12, None)})
    followers = tuple(member for member in quorum.members if member.key != quorum.leader)
    verdict = judge(replace(quorum, members=followers), UPGRADE).verdict
    assert verdict.name == "not_known"
    assert "leader 1 was not captured" in verdict.reason


def test_a_voter_that_is_down_has_not_told_this_leader() -> None:
    """Seen with Kafka 4.4.0: it answers that not all of the voters support it."""
    quorum = static_quorum()
    down = next(m for m in quorum.members if m.is_voter and m.key != quorum.leader)
    behind = replace(down, standing=Standing.BEHIND, words="was still in epoch 1")
    members = tuple(behind if member == down else member for member in quorum.members)
    judged = judge(replace(quorum, members=members), UPGRADE)
    assert judged.verdict.name == "not_known"
    gap = f"voter {down.key.id} may not have told the leader that it supports it: was still in epoch 1"
    assert gap in judged.missing


def test_voters_have_not_told_a_leader_that_was_just_elected() -> None:
    """Seen with Kafka 4.3.1, 0.7 s and 1 s after the election."""
    quorum = static_quorum()
    elected = quorum.known.elections[quorum.epoch].elected_at
    judged = judge(replace(quorum, as_of=elected + FETCH_TIMEOUT_MS), UPGRADE)
    assert judged.verdict.name == "not_known"
    assert "a voter tells it what it supports only after its fetch timeout" in judged.verdict.reason
    assert judge(replace(quorum, as_of=elected + FETCH_TIMEOUT_MS + 1), UPGRADE).verdict.name == "safe"


# --- which registrations a log puts in force

FEATURES = {"features": [{"name": "kraft.version", "minSupportedVersion": 0, "maxSupportedVersion": 1}]}
POINTS = {"endPoints": [{"name": "CONTROLLER", "host": "h", "port": 9093}]}


def log(*runs: tuple[int, int, int], start: int = 0) -> Capture:
    """runs: (epoch, first offset, end)."""
    ranges = tuple(EpochRange(epoch, first, end, "d", 0, 0) for epoch, first, end in runs)
    return Capture("c", 1, "d", 0, start, ranges[-1].end_offset, ranges)


def snapshot(end: int, epoch: int, *, complete: bool = True) -> SnapshotFacts:
    held = ((1, "d"),)
    return SnapshotFacts(end, epoch, "s", complete, False, 0, 0, 1, None, 30, None, held, 0, ("c",))


def registers(offset: int, epoch: int, broker_id: int, *, in_snapshot: bool = False):
    value = {"brokerId": broker_id, **FEATURES, **POINTS}
    return record_of(REGISTER_BROKER, value, offset, epoch, in_snapshot=in_snapshot)


def test_only_the_leaders_own_log_counts() -> None:
    truncated = registers(15, 1, 12)
    found = Registered.of([registers(5, 1, 11), truncated, registers(25, 2, 13)])
    in_force = found.along(log((1, 0, 10), (2, 10, 30)), ())
    assert sorted(in_force.brokers) == [11, 13]
    assert in_force.gap is None


def test_a_removed_broker_is_not_asked() -> None:
    gone = record_of(UNREGISTER_BROKER, {"brokerId": 11, "brokerEpoch": 5}, 9, 1)
    assert Registered.of([gone, registers(5, 1, 11)]).along(log((1, 0, 10)), ()).brokers == {}
    joined = record_of(REGISTER_CONTROLLER, {"controllerId": 4, **FEATURES, **POINTS}, 5, 1)
    left = record_of(UNREGISTER_CONTROLLER, {"controllerId": 4}, 9, 1)
    assert sorted(Registered.of([joined]).along(log((1, 0, 10)), ()).controllers) == [4]
    assert Registered.of([left, joined]).along(log((1, 0, 10)), ()).controllers == {}


def test_a_log_that_begins_above_0_needs_a_complete_snapshot() -> None:
    found = Registered.of([registers(49, 1, 11, in_snapshot=True), registers(60, 1, 12)])
    late = log((1, 50, 70), start=50)
    whole = found.along(late, [snapshot(50, 1)])
    assert (sorted(whole.brokers), whole.gap) == ([11, 12], None)
    assert found.along(late, []).gap is not None
    assert found.along(late, [snapshot(50, 1, complete=False)]).gap is not None
    assert found.along(log((1, 55, 70), start=55), [snapshot(50, 1)]).gap is not None
    assert found.along(log((1, 50, 60), (1, 62, 70), start=50), [snapshot(50, 1)]).gap is not None


def test_a_registration_that_cannot_be_read_is_not_known() -> None:
    found = Registered.of([record_of(REGISTER_BROKER, None, 5, 1)])
    assert found.along(log((1, 0, 10)), ()).gap == "a registration cannot be read"


def test_registrations_of_real_logs_are_read() -> None:
    _, found = facts_of("dynamic-membership")
    kinds = {record.kind for record in found.records}
    assert kinds == {"broker", "controller"}
    in_force = captured("dynamic-membership").registrations
    assert in_force.gap is None
    assert in_force.brokers[11].kraft_versions == (0, 1)
