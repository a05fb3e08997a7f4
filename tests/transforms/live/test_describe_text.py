"""What follow writes of a leader's answer, for run to read."""

from __future__ import annotations

from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.wire.quorum import DescribedQuorum, DescribedReplica
from transforms.live.describe_text import replication_text, status_text


def test_a_leader_that_removed_itself() -> None:
    """It is an observer, and its log is the one that voters lack something of."""
    voter = DescribedReplica(2, ZERO_UUID, True, 5, 900, 900)
    leader = DescribedReplica(1, ZERO_UUID, False, 9, 1000, 1000)
    quorum = DescribedQuorum(1, 4, 5, (voter, leader), {})
    assert "MaxFollowerLag:\t4\n" in status_text("c", quorum)
    rows = [line.split("\t") for line in replication_text(quorum).splitlines()[1:]]
    assert [(row[0], row[3], row[6]) for row in rows] == [("2", "4", "Follower"), ("1", "0", "Observer")]
