"""Partitions under min ISR and what administrators did, from versions in the histories."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dashboards.report import admin_events, under_min_isr
from dashboards.report.under_min_isr import MOST_STEPS

Row = dict[str, Any]


def version(start: int, end: int | None, **more: Any) -> Row:
    """A version of anything, from one offset to another; its times are ten times its offsets."""
    row = {
        "cluster_id": "a",
        "valid_from_offset": start,
        "valid_to_offset": end,
        "valid_from_at": start * 10,
        "valid_to_at": None if end is None else end * 10,
        "record_offset": start,
        "ended_by": None,
        "commit_status": "committed",
        "end_commit_status": None if end is None else "committed",
    }
    return row | more


def partition(start: int, end: int | None, isr: int, replicas: int = 3) -> Row:
    return version(
        start, end, topic_id="t", topic_name="orders", partition_id=0,
        isr=list(range(isr)), replicas=list(range(replicas)),
    )  # fmt: skip


def setting(start: int, end: int | None, value: int | str, topic: str = "orders") -> Row:
    return version(
        start, end, resource_type="TOPIC" if topic else "BROKER", resource_name=topic, value=str(value)
    )


def successive(parts: tuple[list[int], list[Any]], make: Any) -> list[Row]:
    """Versions one after the other, with a None among the values for a gap."""
    cuts, values = parts
    spans = zip(cuts, [*cuts[1:], None], values, strict=False)
    return [make(start, end, value) for start, end, value in spans if value is not None]


def cut(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[list[int], list[Any]]]:
    return st.lists(st.tuples(st.integers(0, 20), values), max_size=6, unique_by=lambda t: t[0]).map(
        lambda pairs: ([a for a, _ in sorted(pairs)], [v for _, v in sorted(pairs)])
    )


def value_at(rows: list[Row], offset: int) -> Row | None:
    for row in rows:
        end = row["valid_to_offset"]
        if row["valid_from_offset"] <= offset and (end is None or offset < end):
            return row
    return None


@given(cut(st.integers(0, 3)), cut(st.none() | st.integers(1, 4)), cut(st.none() | st.integers(1, 4)))
def test_under_min_isr_at_every_offset(isrs: Any, own: Any, shared: Any) -> None:
    versions = successive(isrs, partition)
    own_rows = successive(own, setting)
    shared_rows = successive(shared, lambda start, end, value: setting(start, end, value, topic=""))
    spans = under_min_isr.spans(versions, [*own_rows, *shared_rows])
    for offset in range(22):
        standing = value_at(versions, offset)
        held = value_at(own_rows, offset) or value_at(shared_rows, offset)
        least = min(int(held["value"]) if held else 1, 3)
        is_thin = standing is not None and len(standing["isr"]) < least
        covering = [
            s for s in spans
            if s["from_offset"] <= offset and (s["to_offset"] is None or offset < s["to_offset"])
        ]  # fmt: skip
        assert len(covering) == is_thin
    assert all(
        s["to_offset"] is None or s["under_ms"] == 10 * (s["to_offset"] - s["from_offset"]) for s in spans
    )
    ends = [s["to_offset"] for s in spans]
    assert not set(ends) & {s["from_offset"] for s in spans}


def test_a_topic_of_another_name_or_cluster_has_its_own_setting() -> None:
    settings = [setting(0, None, 3, topic="other"), setting(0, None, 3) | {"cluster_id": "b"}]
    assert under_min_isr.spans([partition(0, None, 1)], settings) == []


def test_fewer_replicas_than_the_setting_are_enough() -> None:
    assert under_min_isr.spans([partition(0, None, 1, replicas=1)], [setting(0, None, 2)]) == []
    (span,) = under_min_isr.spans([partition(0, None, 1, replicas=2)], [setting(0, None, 3)])
    assert (span["min_isr"], span["to_at"], span["under_ms"]) == (2, None, None)


def test_partitions_that_fare_alike_are_one_row() -> None:
    versions = [partition(5, 9, 1) | {"partition_id": n} for n in (0, 1, 4)] + [
        partition(5, 8, 1) | {"partition_id": 2}
    ]
    rows = under_min_isr.together(under_min_isr.spans(versions, [setting(0, None, 2)]))
    assert [(r["partitions"], r["to_at"]) for r in rows] == [([0, 1, 4], 90), ([2], 80)]


def test_a_setting_that_is_no_number_counts_as_none() -> None:
    assert under_min_isr.spans([partition(0, None, 1)], [setting(0, None, "many")]) == []


def test_steps_count_the_partitions() -> None:
    spans = [{"from_at": 10, "to_at": 50}, {"from_at": 20, "to_at": None}, {"from_at": 20, "to_at": 30}]
    assert under_min_isr.steps(spans) == [
        {"at": 10, "most": 1, "partitions": 1},
        {"at": 20, "most": 3, "partitions": 3},
        {"at": 30, "most": 2, "partitions": 2},
        {"at": 50, "most": 1, "partitions": 1},
    ]
    many = [{"from_at": n * 10, "to_at": n * 10 + 5} for n in range(5_000)]
    rows = under_min_isr.steps(many)
    assert len(rows) <= MOST_STEPS
    assert {row["most"] for row in rows} == {1}
    assert rows[-1]["partitions"] == 0
    assert under_min_isr.steps([]) == []


def told(**versions: list[Row]) -> list[tuple[int, str, str, str]]:
    found = admin_events.events(versions, 60)
    return [(e["offset"], e["operation"], e["resource"], e["detail"]) for e in found]


def test_topics_are_created_and_deleted() -> None:
    rows = [version(5, 9, topic_id="x", name="orders", ended_by="REMOVE_TOPIC_RECORD"),
            version(12, None, topic_id="y", name="orders")]  # fmt: skip
    assert told(topics=rows) == [
        (12, "create topic", "orders", ""),
        (9, "delete topic", "orders", ""),
        (5, "create topic", "orders", ""),
    ]


def test_a_config_is_altered_and_then_deleted_and_secrets_stay_secret() -> None:
    def config(start: int, end: int | None, value: str | None, redacted: bool = False) -> Row:
        return version(
            start, end, resource_type="TOPIC", resource_name="orders", name="retention.ms", value=value,
            redacted=redacted, ended_by="CONFIG_RECORD",
        )  # fmt: skip

    assert told(configs=[config(1, 4, "10"), config(4, 6, "20"), config(8, None, None, redacted=True)]) == [
        (8, "alter config", "orders", "retention.ms = (a secret)"),
        (6, "delete config", "orders", "retention.ms = 20"),
        (4, "alter config", "orders", "retention.ms = 20"),
    ]


def test_a_reassignment_is_told_once_however_the_isr_goes_meanwhile() -> None:
    def moving(start: int, end: int, away: int) -> Row:
        return version(
            start, end, topic_id="t", topic_name="orders", partition_id=3, replicas=[1, 2, 3, 4],
            adding_replicas=[4], removing_replicas=[away],
        )  # fmt: skip

    assert told(partitions=[moving(5, 7, 1), moving(7, 9, 1), moving(20, 22, 2)]) == [
        (20, "reassign partition", "orders-3", "replicas 1, 2, 3 and 4: adding 4, removing 2"),
        (5, "reassign partition", "orders-3", "replicas 1, 2, 3 and 4: adding 4, removing 1"),
    ]


def test_what_a_snapshot_told_of_first_is_no_event() -> None:
    assert told(features=[version(5, None, name="metadata.version", level=7, record_offset=None)]) == []
    assert told(features=[version(5, None, name="metadata.version", level=7)]) == [
        (5, "update feature", "metadata.version", "level 7")
    ]


def test_tokens_acls_quotas_and_credentials() -> None:
    token = {"token_digest": "d", "owner": "User:bob", "expiration_timestamp": 1_795_252_516_632}
    acl = {"id": "i", "resource_type": "TOPIC", "resource_name": "orders", "permission_type": "ALLOW",
           "principal": "User:bob", "operation": "READ", "pattern_type": "LITERAL", "host": "*"}  # fmt: skip
    assert told(
        delegation_tokens=[version(1, 2, **token), version(2, 3, **token)],
        acls=[version(4, 5, **acl)],
        client_quotas=[version(6, None, entity_name="user=bob", key="producer_byte_rate", value=1e6)],
        scram_users=[version(7, None, mechanism="SCRAM-SHA-256", name="bob")],
    ) == [
        (7, "alter SCRAM credential", "bob", "SCRAM-SHA-256"),
        (6, "alter client quota", "user=bob", "producer_byte_rate = 1,000,000"),
        (5, "delete ACL", "orders", "ALLOW User:bob READ LITERAL from *"),
        (4, "create ACL", "orders", "ALLOW User:bob READ LITERAL from *"),
        (3, "expire delegation token", "User:bob", "expires 2026-11-21 09:15:16Z"),
        (2, "renew delegation token", "User:bob", "expires 2026-11-21 09:15:16Z"),
        (1, "create delegation token", "User:bob", "expires 2026-11-21 09:15:16Z"),
    ]


def test_the_same_again_and_again_is_one_event() -> None:
    rows = [
        version(n, n + 1, resource_type="TOPIC", resource_name="orders", name="retention.ms", value=str(n),
                redacted=False, ended_by="CONFIG_RECORD")
        for n in range(30)
    ]  # fmt: skip
    rows.append(version(15, None, topic_id="x", name="other"))
    found = admin_events.events({"configs": rows[:-1], "topics": rows[-1:]}, 60)
    assert [(e["offset"], e["operation"], e["detail"], e["times"], e["since"]) for e in found] == [
        (30, "delete config", "retention.ms = 29", 1, 300),
        (29, "alter config", "retention.ms = 29", 15, 150),
        (15, "create topic", "", 1, 150),
        (14, "alter config", "retention.ms = 14", 15, 0),
    ]


def test_only_the_newest_are_told() -> None:
    rows = [version(n, None, topic_id=str(n), name=f"t{n}") for n in range(200)]
    found = admin_events.events({"topics": rows}, 60)
    assert [e["offset"] for e in found] == list(range(199, 139, -1))
