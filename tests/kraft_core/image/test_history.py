"""Versions as rows of a table."""

from __future__ import annotations

from kraft_core.image.history import SNAPSHOT, History, ReplayGap, rows
from kraft_core.image.image import Image
from tests.kraft_core.image.worlds import Row, change_fields, history, partition_fields, topic_fields

ID, OTHER, NEW = (f"A{digit}EBAQEBAQEBAQEBAQEBAQ" for digit in "QRS")


def record(offset: int, timestamp: int, type_: str, value) -> Row:
    return Row(offset, 4, timestamp, type_, value)


LIFE = [
    record(0, 1000, "TOPIC_RECORD", topic_fields("t", ID)),
    record(1, 2000, "BEGIN_TRANSACTION_RECORD", {"name": None}),
    record(2, 2000, "PARTITION_RECORD", partition_fields(ID)),
    record(3, 1500, "END_TRANSACTION_RECORD", {}),
    record(4, 1800, "PARTITION_CHANGE_RECORD", change_fields(ID, leader=2)),
    record(5, 3000, "REMOVE_TOPIC_RECORD", {"topicId": ID}),
]


def brief(row):
    names = ("leader", "valid_from_offset", "valid_to_offset", "valid_from_at", "valid_to_at")
    return tuple(row[name] for name in (*names, "record_offset", "record_type", "appended_at", "ended_by"))


def test_times_never_go_back_and_a_transaction_counts_from_its_end():
    assert [brief(row) for row in rows(history(LIFE)["partitions"])] == [
        (1, 3, 4, 2000, 2000, 2, "PARTITION_RECORD", 2000, "PARTITION_CHANGE_RECORD"),
        (2, 4, 5, 2000, 3000, 4, "PARTITION_CHANGE_RECORD", 1800, "REMOVE_TOPIC_RECORD"),
    ]


def test_a_row_has_the_columns_of_the_thing_and_of_its_version():
    (row,) = rows(history(LIFE)["topics"])
    assert row == {
        "topic_id": ID,
        "topic_name": "t",
        "valid_from_offset": 0,
        "valid_to_offset": 5,
        "valid_from_at": 1000,
        "valid_to_at": 3000,
        "valid_from_exact": True,
        "earliest_from_offset": None,
        "earliest_from_at": -1,
        "valid_to_exact": True,
        "earliest_to_offset": None,
        "earliest_to_at": -1,
        "known_from_offset": None,
        "record_offset": 0,
        "record_type": "TOPIC_RECORD",
        "record_leader_epoch": 4,
        "appended_at": 1000,
        "ended_by": "REMOVE_TOPIC_RECORD",
    }


def test_versions_first_found_in_a_snapshot_are_known_from_its_last_offset():
    snapshot = Image.of_snapshot(LIFE[:1], end_offset=100, leader_epoch=7, timestamp=5000)
    (row,) = rows(history([record(100, 4000, "NO_OP_RECORD", {})], snapshot)["topics"])
    assert (row["known_from_offset"], row["valid_from_offset"], row["valid_from_at"]) == (99, 99, 5000)
    assert (row["record_offset"], row["record_type"], row["record_leader_epoch"]) == (None, "TOPIC_RECORD", 7)
    bounds = (row["valid_from_exact"], row["earliest_from_offset"], row["earliest_from_at"])
    assert bounds == (False, None, -1)


def test_a_snapshot_over_a_gap_ends_what_it_has_not_and_keeps_what_it_has():
    found = History()
    for each in LIFE[:4]:
        found.apply(each)
    found.apply(record(4, 2000, "TOPIC_RECORD", topic_fields("u", "AgICAgICAgICAgICAgICAg")))
    kept = Image.of_snapshot(LIFE[:1], end_offset=50, leader_epoch=5, timestamp=9000)
    found.load(kept, ReplayGap(first_offset=5, begun_at=2500))
    topics = [
        (v.value.name, v.valid_from_offset, v.valid_to_offset, v.ended_by) for v in found.versions("topics")
    ]
    assert topics == [("t", 0, None, None), ("u", 4, 49, SNAPSHOT)]
    (partition,) = found.versions("partitions")
    assert (partition.valid_to_offset, partition.valid_to_at) == (49, 9000)
    (ended,) = rows([partition])
    assert (ended["valid_to_exact"], ended["earliest_to_offset"], ended["earliest_to_at"]) == (False, 5, 2500)


def test_what_changed_over_a_gap_began_after_the_log_before_it():
    found = History()
    found.apply(LIFE[0])
    one = record(0, 0, "TOPIC_RECORD", topic_fields("v", OTHER))
    other = record(0, 0, "TOPIC_RECORD", topic_fields("w", NEW))
    found.load(Image.of_snapshot([LIFE[0], one], 50, 5, 9000), ReplayGap(1, 1000))
    found.load(Image.of_snapshot([LIFE[0], one, other], 90, 5, 9500), ReplayGap(50, 9000))
    topics = [
        (row["topic_name"], row["valid_from_offset"], row["valid_from_exact"], row["earliest_from_offset"],
         row["earliest_from_at"])
        for row in rows(found.versions("topics"))
    ]  # fmt: skip
    assert topics == [("t", 0, True, None, -1), ("v", 49, False, 1, 1000), ("w", 89, False, 50, 9000)]


def test_secrets_are_not_among_the_columns():
    credential = {"name": "a", "mechanism": 1, "salt": b"s", "storedKey": b"k", "serverKey": b"v"}
    token = {"owner": "User:a", "renewers": [], "issueTimestamp": 1, "maxTimestamp": 2}
    password = {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": "hush"}
    found = history(
        [
            record(0, 0, "USER_SCRAM_CREDENTIAL_RECORD", credential | {"iterations": 4096}),
            record(1, 0, "DELEGATION_TOKEN_RECORD", token | {"expirationTimestamp": 2, "tokenId": "hush"}),
            record(2, 0, "CONFIG_RECORD", password),
        ]
    )
    (user,), (issued,), (config,) = (
        rows(found[kind]) for kind in ("scram_users", "delegation_tokens", "configs")
    )
    assert {"salt", "stored_key", "server_key"}.isdisjoint(user)
    assert user["mechanism"] == "SCRAM-SHA-256"
    assert "token_id" not in issued
    assert len(issued["token_digest"]) == 16
    assert (config["name"], config["value"], config["redacted"]) == ("ssl.key.password", None, True)


def test_records_of_conflicting_batches_at_one_offset_count_as_one():
    """Of what they say of one thing the last counts; no version is valid for no time."""
    conflict = [
        record(1, time, "TOPIC_RECORD", topic_fields(name, ID)) for time, name in ((2000, "u"), (900, "v"))
    ]
    created = History()
    created.apply(LIFE[0])
    created.apply(*conflict, record(1, 0, "TOPIC_RECORD", topic_fields("other", OTHER)))
    assert [
        (v.value.name, v.valid_from_offset, v.valid_to_offset, v.valid_from_at, v.appended_at)
        for v in created.versions("topics")
    ] == [("t", 0, 1, 1000, 1000), ("v", 1, None, 2000, 900), ("other", 1, None, 2000, 0)]
    created.apply(
        record(2, 0, "TOPIC_RECORD", topic_fields("w", NEW)),
        record(2, 0, "REMOVE_TOPIC_RECORD", {"topicId": NEW}),
    )
    assert len(created.versions("topics")) == 3


def test_ended_versions_are_taken_once():
    taken = History()
    for each in LIFE:
        taken.apply(each)
    assert [v.value.leader for v in taken.take_ended("partitions")] == [1, 2]
    assert (taken.take_ended("partitions"), taken.current("partitions")) == ([], [])


def test_a_history_resumes_from_versions_that_are_current():
    before = History()
    for each in LIFE[:4]:
        before.apply(each)
    after = History()
    for kind in ("topics", "partitions"):
        for version in before.current(kind):
            after.resume(version)
    after.reach(2000)
    for each in LIFE[4:]:
        after.apply(each)
    assert [brief(row) for row in rows(after.versions("partitions"))] == [
        brief(row) for row in rows(history(LIFE)["partitions"])
    ]
