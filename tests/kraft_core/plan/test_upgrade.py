"""Upgrades of features: who refuses, what cannot be undone, and what the captures must show to say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from kraft_core.format.batch import BatchHeader
from kraft_core.format.segment import scan
from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change, RefusedRecord
from kraft_core.image.configs import Config
from kraft_core.image.controllers import Controller
from kraft_core.image.endpoints import SupportedFeature
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, CONFIGS, CONTROLLERS, FEATURES
from kraft_core.messages.releases import METADATA_VERSION, RELEASES, Levels
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import CapturedMetadata, gap_of
from kraft_core.plan.feature_control import FeatureState, refusal
from kraft_core.plan.standings import Standing
from kraft_core.plan.upgrade import FeatureUpgrade, plan_upgrade, release_upgrade
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import ReplicaKey
from tests.kraft_core.plan.captured import GOLDEN, metadata, metadata_below

PREFIX = "The update failed for all features since the following feature had an error: "
TO_4_4 = FeatureUpgrade({METADATA_VERSION: 33})


def supports(release: str) -> tuple[SupportedFeature, ...]:
    levels = RELEASES[release].supported
    return tuple(SupportedFeature(name, levels[name].low, levels[name].high) for name in sorted(levels))


def controller(node_id: int, release: str) -> Change:
    return Change(CONTROLLERS, (node_id,), Controller(node_id, "i", False, (), supports(release)))


def broker(node_id: int, release: str, *, fenced: bool) -> Change:
    node = Broker(node_id, 9, "i", (), supports(release), None, fenced, False, False, (), ())
    return Change(BROKERS, (node_id,), node)


def cluster(*changes: Change, level: int = 30) -> CapturedMetadata:
    """Three voters of Kafka 4.4 that follow each other, as if changed so long ago that all is committed."""
    found = metadata("disk-failure/before-wipe")
    assert found.image is not None
    made = [
        *(controller(n, "4.4") for n in (1, 2, 3)),
        Change(FEATURES, (METADATA_VERSION,), level_of(level)),
    ]
    for image in (found.image, found.committed):
        assert image is not None
        for change in (*made, *changes):
            image.tables.put(change)
    return found


def level_of(level: int) -> Feature:
    return Feature(METADATA_VERSION, level)


def test_an_upgrade_that_cannot_be_undone_is_risky_and_says_what_it_brings() -> None:
    made = plan_upgrade(cluster(), TO_4_4)
    assert made.verdict == "risky"
    (risk,) = made.risks
    assert risk.name == "irreversible"
    assert "never goes back below metadata.version 33: 4.4-IV1, 4.4-IV2" in risk.sentence
    assert "UnregisterControllerRecord version 0" in risk.sentence
    assert "upgrade --feature metadata.version=33" in (made.steps[1].command or "")


def test_an_upgrade_that_can_be_undone_is_safe() -> None:
    made = plan_upgrade(cluster(level=25), FeatureUpgrade({METADATA_VERSION: 29}))
    assert (made.verdict, made.risks) == ("safe", ())
    made = plan_upgrade(cluster(level=29), FeatureUpgrade({METADATA_VERSION: 25}))
    assert made.verdict == "safe"
    assert "downgrade --feature metadata.version=25" in (made.steps[1].command or "")


def test_kafka_does_not_go_back_over_a_level_that_changed_the_metadata() -> None:
    made = plan_upgrade(cluster(level=30), FeatureUpgrade({METADATA_VERSION: 29}))
    assert (made.verdict, made.error) == ("refused", ErrorCode.INVALID_UPDATE_VERSION)
    assert made.error_text == (
        PREFIX + "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested "
        "downgrade because it might delete metadata information."
    )
    assert made.evidence[-1] == (
        "4.3-IV0 changed the records, and the log may hold them: RegisterBrokerRecord version 4, "
        "BrokerRegistrationChangeRecord version 3"
    )
    made = plan_upgrade(cluster(level=30), FeatureUpgrade({METADATA_VERSION: 20}))
    assert made.evidence[-1].startswith("4.0-IV1, 4.3-IV0 changed the records, and the log may hold them: ")


def test_levels_without_records_of_their_own_take_no_evidence() -> None:
    refused = plan_upgrade(cluster(broker(12, "4.0", fenced=False), level=27), TO_4_4)
    assert refused.verdict == "refused"
    assert all("changed the records" not in words for words in refused.evidence)


def test_a_ghost_blocks_and_the_command_that_removes_it_is_given() -> None:
    made = plan_upgrade(cluster(broker(12, "3.9", fenced=True)), TO_4_4)
    assert made.verdict == "refused"
    assert made.error_text == (
        PREFIX
        + "Invalid update version 33 for feature metadata.version. Broker 12 only supports versions 1-21"
    )
    assert "broker 12 (Kafka 3.9), which looks gone: supports metadata.version 1-21, not 33" in made.evidence
    assert "kafka-cluster.sh unregister" in (made.steps[0].command or "")
    assert (made.steps[0].command or "").endswith("--id 12")


def test_a_broker_that_runs_is_upgraded_not_removed() -> None:
    made = plan_upgrade(cluster(broker(12, "3.9", fenced=False)), TO_4_4)
    assert made.steps[0].what == "upgrade the software of broker 12 to 4.4 or later, and restart it"
    assert all("unregister" not in (step.command or "") for step in made.steps)


def test_the_registration_of_a_dead_controller_blocks() -> None:
    made = plan_upgrade(cluster(controller(9, "4.3")), TO_4_4)
    assert "Controller 9 only supports versions 7-30" in (made.error_text or "")
    assert made.steps[0].what == "start a controller with id 9 to 4.4 or later until it has registered"


def test_the_leader_is_asked_first_and_all_blockers_are_listed() -> None:
    nodes = [controller(n, "4.3") for n in (1, 2, 3)]
    made = plan_upgrade(cluster(broker(12, "4.3", fenced=False), *nodes), release_upgrade(RELEASES["4.4"]))
    leader = metadata("disk-failure/before-wipe").quorum.leader
    assert leader is not None
    assert f"Local controller {leader.id} only supports versions" in (made.error_text or "")
    assert sum("supports metadata.version 7-30, not 33" in words for words in made.evidence) == 4


def test_a_feature_needs_the_level_that_it_depends_on() -> None:
    bare = cluster(Change(FEATURES, ("eligible.leader.replicas.version",), None), level=22)
    made = plan_upgrade(bare, FeatureUpgrade({"eligible.leader.replicas.version": 1}))
    assert made.error_text == (
        PREFIX + "Invalid update version 1 for feature eligible.leader.replicas.version. eligible.leader."
        "replicas.version could not be set to 1 because it depends on metadata.version level 23"
    )
    both = {"eligible.leader.replicas.version": 1, METADATA_VERSION: 23}
    assert plan_upgrade(bare, FeatureUpgrade(both)).verdict == "risky"


def test_eligible_leader_replicas_change_configs() -> None:
    elr = "eligible.leader.replicas.version"
    held = [
        Change(CONFIGS, (4, name, "min.insync.replicas"), Config(4, name, "min.insync.replicas", "2"))
        for name in ("12", "9", "")
    ]
    made = plan_upgrade(cluster(Change(FEATURES, (elr,), None), *held), FeatureUpgrade({elr: 1}))
    assert [(risk.name, risk.sentence) for risk in made.risks] == [
        (
            "configs_change",
            "Kafka sets min.insync.replicas for the whole cluster, and removes it from the configs of single "
            "brokers (9, 12 have one)",
        )
    ]
    assert plan_upgrade(cluster(), FeatureUpgrade({elr: 1})).verdict == "safe"  # it has the level already


def test_a_level_that_is_given_up_is_a_risk() -> None:
    made = plan_upgrade(cluster(), FeatureUpgrade({"group.version": 0}))
    assert (made.verdict, [risk.name for risk in made.risks]) == ("risky", ["feature_lost"])


def test_a_static_quorum_must_have_registered() -> None:
    state = FeatureState(1, RELEASES["4.3"].supported, {}, {1: RELEASES["4.3"].supported}, (1, 2), {}, 25, 0)
    text = refusal(state, {METADATA_VERSION: 29})
    assert text is not None
    assert text.endswith("controller 2 has not registered, and may not support this feature")
    assert refusal(replace(state, must_register=(1,)), {METADATA_VERSION: 29}) is None


def test_release_3_9_words_its_refusals_otherwise() -> None:
    of_3_9 = RELEASES["3.9"].supported
    state = FeatureState(1, of_3_9, {}, {1: of_3_9}, (1,), {}, 17, 0, zk_migration_state=1)
    assert refusal(state, {METADATA_VERSION: 21}) == (
        "Invalid metadata.version 21. Unable to modify metadata.version while a ZK migration is in progress."
    )
    done = replace(state, zk_migration_state=3)
    assert refusal(done, {METADATA_VERSION: 21}) is None
    assert refusal(replace(done, brokers={2: {METADATA_VERSION: Levels(1, 20)}}), {METADATA_VERSION: 21}) == (
        "Invalid update version 21 for feature metadata.version. Broker 2 only supports versions 1-20"
    )


# --- evidence taken away piece by piece


def lacking() -> Iterator[tuple[str, CapturedMetadata]]:
    """The cluster with one piece of evidence less each time, and what then is missing."""
    whole = cluster()
    quorum = whole.quorum
    yield "replayed", replace(whole, image=None, gap="cannot be replayed")
    yield "do not prove this metadata committed", replace(whole, committed=None)
    yield "offset 7 cannot be read", replace(whole, gap="offset 7 cannot be read")
    without = tuple(member for member in quorum.members if member.key != quorum.leader)
    yield "was not captured", replace(whole, quorum=replace(quorum, members=without))
    yield "no leader of epoch", replace(whole, quorum=replace(quorum, leader=None))
    unread = replace(whole, quorum=replace(quorum, superseded_by="a describe output shows leader 2"))
    yield "shows leader 2", unread
    unproven = tuple(
        m if m.key == quorum.leader else replace(m, standing=Standing.NOT_KNOWN, gap="not captured")
        for m in quorum.members
    )
    yield "voter 1: not captured", replace(whole, quorum=replace(quorum, members=unproven))
    unregistered = cluster()
    leader = quorum.leader
    assert unregistered.image is not None
    assert leader is not None
    unregistered.image.tables.put(Change(CONTROLLERS, (leader.id,), None))
    yield "what leader 3 supports", unregistered
    later = (SupportedFeature(METADATA_VERSION, 7, 40), SupportedFeature("kraft.version", 0, 1))
    yield (
        "a release that Kraftlake does not know",
        cluster(Change(CONTROLLERS, (leader.id,), Controller(leader.id, "i", False, (), later))),
    )
    levelless = cluster()
    assert levelless.image is not None
    levelless.image.tables.put(Change(FEATURES, (METADATA_VERSION,), None))
    yield "does not show metadata.version", levelless


@pytest.mark.parametrize("nth", range(10))
def test_without_a_piece_of_the_evidence_nothing_is_safe(nth: int) -> None:
    words, captured = list(lacking())[nth]
    made = plan_upgrade(captured, FeatureUpgrade({METADATA_VERSION: 31}))
    assert made.verdict == "not_known", made.reason
    assert words in " ".join((made.reason, *made.missing))


def test_a_record_that_cannot_be_replayed_leaves_a_gap() -> None:
    image = Image()
    assert gap_of(image, ()) is None
    assert gap_of(image, ["offset 3 is missing"]) == "offset 3 is missing"
    refused = RefusedRecord(5, 1, "FENCE_BROKER_RECORD", "unknown_broker", "broker 7", "there is none")
    for list_of_refused in (image.refusals, image.controller_refusals):
        list_of_refused.append(refused)
        words = gap_of(image, ())
        assert words == "FENCE_BROKER_RECORD at offset 5 cannot be replayed: there is none"
        list_of_refused.clear()


def test_with_all_of_it_the_verdict_is_known() -> None:
    assert plan_upgrade(cluster(), FeatureUpgrade({METADATA_VERSION: 31})).verdict == "safe"


def test_a_registration_that_is_not_proven_committed_decides_nothing() -> None:
    found = cluster()
    assert isinstance(found.committed, Image)
    found.committed.tables.put(broker(12, "3.9", fenced=False))
    made: Answer = plan_upgrade(found, TO_4_4)
    assert made.verdict == "not_known"
    assert "not proven committed" in made.reason


def test_a_voter_whose_registration_is_not_proven_committed_may_be_unregistered() -> None:
    """It was SAFE, though the same log without that record is risky."""
    found, upgrade = cluster(), FeatureUpgrade({METADATA_VERSION: 31})
    assert found.committed is not None
    found.committed.tables.put(Change(CONTROLLERS, (1,), None))
    made = plan_upgrade(found, upgrade)
    assert made.verdict == "not_known"
    assert "not proven committed" in made.reason
    risky = plan_upgrade(replace(found, image=found.committed), upgrade)
    assert [risk.name for risk in risky.risks] == ["voter_not_registered"]


def with_observer(found: CapturedMetadata, node_id: int) -> CapturedMetadata:
    """As if the directory of another node had been captured, too."""
    members = found.quorum.members
    observer = replace(members[0], key=ReplicaKey(node_id, "o" * 21 + "A"), is_voter=False)
    return replace(found, quorum=replace(found.quorum, members=(*members, observer)))


def test_a_captured_controller_that_nobody_knows_of_is_a_risk() -> None:
    """It was SAFE: only voters and registrations counted."""
    upgrade = FeatureUpgrade({METADATA_VERSION: 31})
    assert plan_upgrade(cluster(), upgrade).verdict == "safe"
    made = plan_upgrade(with_observer(cluster(), 9), upgrade)
    assert (made.verdict, [risk.name for risk in made.risks]) == ("risky", ["controller_not_registered"])
    assert "nodes 9 were captured, and are neither voters nor registered" in made.reason
    for registered in (controller(9, "4.4"), broker(9, "4.4", fenced=False)):
        seen = with_observer(cluster(registered), 9)
        assert plan_upgrade(seen, upgrade).verdict == "safe"
        assert seen.committed is not None
        seen.committed.tables.put(Change(registered.kind, registered.key, None))
        assert plan_upgrade(seen, upgrade).verdict == "not_known"


def test_an_upgrade_that_nobody_commits_is_risky() -> None:
    found = cluster()
    members = tuple(
        m if m.key == found.quorum.leader else replace(m, standing=Standing.LOST)
        for m in found.quorum.members
    )
    made = plan_upgrade(
        replace(found, quorum=replace(found.quorum, members=members)), FeatureUpgrade({METADATA_VERSION: 31})
    )
    assert (made.verdict, made.reason) == (
        "risky",
        "Kafka accepts it, but nothing commits: too few voters are in sync",
    )


def test_the_records_that_a_downgrade_would_lose_are_shown() -> None:
    refused = plan_upgrade(metadata("uncommitted-truncation/before"), FeatureUpgrade({METADATA_VERSION: 29}))
    assert refused.verdict == "refused"
    assert refused.evidence[-2:] == tuple(
        f"the captured log holds {kind}: 1 record, the first at offset {offset}"
        for kind, offset in (
            ("BROKER_REGISTRATION_CHANGE_RECORD version 3", 40),
            ("REGISTER_BROKER_RECORD version 4", 38),
        )
    )


KRAFT_VERSION_AT = 658
"""Of the upgrade in static-upgrade: leader 1 of epoch 10 writes it with the voters, in one batch."""


@pytest.mark.parametrize(
    ("followers", "verdict", "words"),
    [
        (
            KRAFT_VERSION_AT,
            "not_known",
            "it depends on records at the log's end that are not proven committed",
        ),
        (672, "safe", "already in effect"),
    ],
)
def test_a_kraft_version_that_is_not_committed_is_not_in_effect(
    tmp_path: Path, followers: int, verdict: str, words: str
) -> None:
    """The followers lag by 5.5 s: the next leader may not have it. It was SAFE."""
    for node, end in ((1, 672), (2, followers), (3, followers)):
        cut(tmp_path / f"node-{node}", GOLDEN / f"static-upgrade/node-{node}", end)
    found = metadata_below(tmp_path)
    assert found.quorum.kraft_version == 1
    assert found.committed_kraft_version == (verdict == "safe")
    made = plan_upgrade(found, FeatureUpgrade({"kraft.version": 1}))
    assert made.verdict == verdict
    assert made.reason.startswith(words)
    if verdict != "safe":
        assert "risky, kraft.version 1: the leader's log already has this change" in made.reason


def cut(copy: Path, captured: Path, end: int) -> None:
    """A copy of a capture as it was in epoch 10, its log without what is at or above an offset."""
    log = copytree(captured, copy) / "__cluster_metadata-0"
    for segment in log.glob("*.log"):
        buf = segment.read_bytes()
        headers = [each for each in scan(buf, next_offset=int(segment.stem)) if isinstance(each, BatchHeader)]
        segment.write_bytes(buf[: min((h.position for h in headers if h.base_offset >= end), default=None)])
        if int(segment.stem) >= end:
            segment.unlink()
    for producers in log.glob("*.snapshot"):
        producers.unlink()
    (log / "leader-epoch-checkpoint").write_text("0\n3\n6 0\n8 272\n10 529\n")
    voters = ",".join(f'{{"voterId":{node}}}' for node in (1, 2, 3))
    (log / "quorum-state").write_text(
        '{"clusterId":"","leaderId":1,"leaderEpoch":10,"votedId":-1,"appliedOffset":0,'
        f'"currentVoters":[{voters}],"data_version":0}}'
    )
    (copy / "capture.json").write_text('{"captured_at": "2026-11-21T09:38:33.900Z"}')
