"""Registration, heartbeats, fencing and removal of brokers, as the active controller answers them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_core.broker_control.controller import BrokerAnswer, BrokerControl
from kraft_core.broker_control.requests import (
    BrokerHeartbeatReply,
    BrokerHeartbeatRequest,
    BrokerRefusedError,
    BrokerRegistrationRequest,
)
from kraft_core.image.names import LOST_DIRECTORY
from kraft_core.protocol.errors import ErrorCode

FEATURES = {"metadata.version": (7, 30), "group.version": (0, 1)}
FIRST = BrokerRegistrationRequest(11, "cluster", "first", FEATURES, ("d1", "d2"))
SECOND = replace(FIRST, incarnation_id="second")


class Cluster:
    """A controller whose log grows by ten offsets with each request."""

    def __init__(self) -> None:
        self.control = BrokerControl("cluster", {"metadata.version": 30, "group.version": 1}, 9_000)
        self.offset = 100
        self.leads = False

    def register(self, request: BrokerRegistrationRequest, now: int = 0) -> BrokerAnswer:
        return self._appended(self.control.register(request, self.offset, now))

    def heartbeat(self, metadata_offset: int, now: int = 0, **wants: Any) -> BrokerAnswer:
        broker = self.control.broker(11)
        epoch = broker.broker_epoch if broker is not None else 0
        request = BrokerHeartbeatRequest(11, epoch, metadata_offset, **wants)
        answer = self._appended(self.control.heartbeat(request, now, lambda: self.leads))
        if answer.reply is not None and answer.reply.in_controlled_shutdown:
            self.control.shutting_down(11, self.offset - 1)
        return answer

    def _appended(self, answer: BrokerAnswer) -> BrokerAnswer:
        for record in answer.records:
            self.control.replay(record, self.offset)
        self.offset += 10
        return answer


@pytest.fixture
def cluster() -> Cluster:
    """Broker 11 is registered at offset 100 and unfenced."""
    made = Cluster()
    assert made.register(FIRST).broker_epoch == 100
    made.heartbeat(100)
    return made


def test_a_broker_is_fenced_until_it_has_caught_up() -> None:
    made = Cluster()
    made.register(FIRST)
    assert made.heartbeat(99).reply == BrokerHeartbeatReply(False, True, False, False)
    answer = made.heartbeat(100)
    assert answer.reply == BrokerHeartbeatReply(True, False, False, False)
    assert [record.value for record in answer.records] == [{"brokerId": 11, "brokerEpoch": 100, "fenced": -1}]


def test_another_process_waits_until_the_session_of_the_first_ends(cluster: Cluster) -> None:
    with pytest.raises(BrokerRefusedError, match="Another broker is registered") as refused:
        cluster.register(SECOND, now=9_000)
    assert refused.value.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.register(SECOND, now=9_001).broker_epoch == cluster.offset - 10
    broker = cluster.control.broker(11)
    assert broker is not None
    assert broker.fenced


def test_the_same_process_keeps_its_epoch_and_state(cluster: Cluster) -> None:
    assert cluster.register(replace(FIRST, rack="r")).broker_epoch == 100
    broker = cluster.control.broker(11)
    assert broker is not None
    assert (broker.fenced, broker.rack) == (False, "r")


def test_a_broker_that_leads_shuts_down_when_the_others_know(cluster: Cluster) -> None:
    cluster.control.register(replace(FIRST, broker_id=12, log_dirs=("e",)), 90, 0)
    cluster.leads = True
    answer = cluster.heartbeat(120, want_shut_down=True)
    assert answer.reply == BrokerHeartbeatReply(True, False, True, False)
    assert answer.records[0].value["inControlledShutdown"] == 1
    assert cluster.heartbeat(130, want_shut_down=True).records == ()
    cluster.leads = False
    answer = cluster.heartbeat(140, want_shut_down=True)
    assert answer.reply == BrokerHeartbeatReply(True, True, False, True)
    assert answer.records[0].value["fenced"] == 1


def test_a_broker_that_leads_nothing_goes_at_once(cluster: Cluster) -> None:
    assert cluster.heartbeat(120, want_shut_down=True).reply == BrokerHeartbeatReply(True, True, False, True)


def test_a_broker_that_is_silent_is_fenced(cluster: Cluster) -> None:
    assert cluster.control.fence_stale(9_000) is None
    answer = cluster.control.fence_stale(9_001)
    assert answer is not None
    assert answer.records[0].value == {"brokerId": 11, "brokerEpoch": 100, "fenced": 1}
    assert cluster.control.fence_stale(9_001) is None


def test_directories_that_go_offline_are_recorded(cluster: Cluster) -> None:
    answer = cluster.heartbeat(120, offline_log_dirs=("d1", "unknown"))
    assert answer.records[-1].value["logDirs"] == ["d2"]
    assert cluster.heartbeat(130, offline_log_dirs=("d1",)).records == ()


def test_a_broker_is_unregistered_once(cluster: Cluster) -> None:
    (record,) = cluster.control.unregister(11).records
    cluster.control.replay(record, 200)
    with pytest.raises(BrokerRefusedError, match="Broker ID 11 is not currently registered") as refused:
        cluster.control.unregister(11)
    assert refused.value.error is ErrorCode.BROKER_ID_NOT_REGISTERED
    with pytest.raises(BrokerRefusedError, match="from broker 11 before registration"):
        cluster.heartbeat(200)


def test_the_epoch_of_an_earlier_registration_is_stale(cluster: Cluster) -> None:
    with pytest.raises(
        BrokerRefusedError, match="Expected broker epoch 100, but got broker epoch 3"
    ) as refused:
        cluster.control.heartbeat(BrokerHeartbeatRequest(11, 3, 100), 0, lambda: False)
    assert refused.value.error is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("different", "error", "text"),
    [
        (
            {"cluster_id": "x"},
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            "Expected cluster ID cluster, but got cluster ID x",
        ),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION, "No directories specified in request"),
        ({"log_dirs": (LOST_DIRECTORY,)}, ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request"),
        ({"log_dirs": ("d", "d")}, ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request"),
        (
            {"broker_id": 12},
            ErrorCode.INVALID_REGISTRATION,
            "Broker 11 is already registered with directory d1",
        ),
        (
            {"features": {"metadata.version": (7, 30)}},
            ErrorCode.UNSUPPORTED_VERSION,
            "Unable to register because the broker does not support finalized version 1 of group.version. "
            "The broker wants a version between 0 and 0, inclusive.",
        ),
        (
            {"features": {"group.version": (0, 1)}},
            ErrorCode.INVALID_REGISTRATION,
            "Request features do not contain 'metadata.version'",
        ),
        (
            {"is_migrating_zk_broker": True},
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        ),
    ],
)
def test_registrations_that_are_refused(
    cluster: Cluster, different: dict[str, Any], error: ErrorCode, text: str
) -> None:
    with pytest.raises(BrokerRefusedError) as refused:
        cluster.register(replace(FIRST, **different))
    assert (refused.value.error, refused.value.text) == (error, text)
