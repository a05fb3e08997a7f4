"""What administrators did, newest first, from versions in the histories; in the words of view admin_events.

A version tells of two moments: the record that made it, and the one that ended it. An end at the offset where
the next version of the same thing begins is a change, told by that next version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dashboards.report.formatting import listed, utc
from transforms.lake.tables import (
    ACLS,
    CLIENT_QUOTAS,
    CONFIGS,
    DELEGATION_TOKENS,
    FEATURES,
    PARTITIONS,
    SCRAM_USERS,
    TOPICS,
    Table,
)

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventKind:
    """What a history's versions tell: the columns needed, who is meant, in which words.

    `begun` and `ended` name the operation, None if it is not an administrator's; `begun` is also told whether
    the version follows another one at once.
    """

    table: Table
    columns: tuple[str, ...]
    resource_type: Callable[[Row], str]
    resource: Callable[[Row], str]
    detail: Callable[[Row], str]
    begun: Callable[[bool], str | None]
    ended: Callable[[Row], str | None]


def always(words: str | None) -> Callable[[Any], Any]:
    return lambda _: words


def acl(row: Row) -> str:
    parts = ("permission_type", "principal", "operation", "pattern_type")
    return f"{' '.join(str(row[p]) for p in parts)} from {row['host']}"


def config_value(row: Row) -> str:
    return f"{row['name']} = {'(a secret)' if row['redacted'] else row['value']}"


def replicas_words(row: Row) -> str:
    """What a reassignment moves."""
    moves = [
        f"{verb} {listed(row[f'{verb}_replicas'])}"
        for verb in ("adding", "removing")
        if row[f"{verb}_replicas"]
    ]
    return f"replicas {listed(row['replicas'])}: {', '.join(moves)}"


KINDS = (
    EventKind(TOPICS, ("name", "topic_id"), always("TOPIC"), lambda r: r["name"], always(""),
         always("create topic"),
         lambda r: "delete topic" if r["ended_by"] == "REMOVE_TOPIC_RECORD" else None),
    EventKind(PARTITIONS, ("topic_name", "partition_id", "topic_id", "replicas", "adding_replicas",
                      "removing_replicas"),
         always("PARTITION"), lambda r: f"{r['topic_name']}-{r['partition_id']}", replicas_words,
         lambda follows: None if follows else "reassign partition", always(None)),
    EventKind(CONFIGS, ("resource_type", "resource_name", "name", "value", "redacted"),
         lambda r: r["resource_type"], lambda r: r["resource_name"] or "(default)", config_value,
         always("alter config"), lambda r: "delete config" if r["ended_by"] == "CONFIG_RECORD" else None),
    EventKind(ACLS, ("id", "resource_type", "resource_name", "permission_type", "principal", "operation",
                "pattern_type", "host"),
         lambda r: r["resource_type"], lambda r: r["resource_name"], acl, always("create ACL"),
         always("delete ACL")),
    EventKind(CLIENT_QUOTAS, ("entity_name", "key", "value"), always("QUOTA"), lambda r: r["entity_name"],
         lambda r: f"{r['key']} = {r['value']:,.15g}", always("alter client quota"),
         always("delete client quota")),
    EventKind(SCRAM_USERS, ("mechanism", "name"), always("USER"), lambda r: r["name"],
         lambda r: r["mechanism"], always("alter SCRAM credential"), always("delete SCRAM credential")),
    EventKind(DELEGATION_TOKENS, ("token_digest", "owner", "expiration_timestamp"), always("TOKEN"),
         lambda r: r["owner"], lambda r: f"expires {utc(r['expiration_timestamp'])}",
         lambda follows: f"{'renew' if follows else 'create'} delegation token",
         always("expire delegation token")),
    EventKind(FEATURES, ("name", "level"), always("FEATURE"), lambda r: r["name"],
         lambda r: f"level {r['level']}",
         always("update feature"), always("remove feature")),
)  # fmt: skip


def events(versions: Mapping[str, Sequence[Row]], most: int) -> list[Row]:
    """The newest events of a cluster; `versions` by name of the table, the newest begun and ended of each."""
    found = [event for kind in KINDS for event in told(kind, versions.get(kind.table.name, ()))]
    found.sort(
        key=lambda e: (-e["offset"], e["resource_type"], e["resource"] or "", e["detail"], e["operation"])
    )
    return together(found)[:most]


def together(found: Iterable[Row]) -> list[Row]:
    """The same done to the same thing again and again as one event, with how often and since when."""
    rows: list[Row] = []
    for _, group in groupby(found, same):
        events_of = list(group)
        rows.append(events_of[0] | {"times": len(events_of), "since": events_of[-1]["changed_at"]})
    return rows


def same(event: Row) -> tuple[Any, ...]:
    """What is done to what; of a setting its name counts, not its value."""
    subject = event["detail"].split(" = ")[0]
    return event["operation"], event["resource_type"], event["resource"], subject, event["commit_status"]


def told(kind: EventKind, versions: Iterable[Row]) -> Iterable[Row]:
    """The events that versions of one kind tell."""
    rows = list(versions)
    begun = {(identity(kind, r), r["valid_from_offset"]) for r in rows}
    ended = {(identity(kind, r), r["valid_to_offset"]) for r in rows}
    for row in rows:
        operation = kind.begun((identity(kind, row), row["valid_from_offset"]) in ended)
        # What a snapshot told of first was done at some unknown time before.
        if operation is not None and row["record_offset"] is not None:
            yield event(kind, row, operation, "from", row["commit_status"])
        operation = None if row["valid_to_offset"] is None else kind.ended(row)
        if operation is not None and (identity(kind, row), row["valid_to_offset"]) not in begun:
            yield event(kind, row, operation, "to", row["end_commit_status"])


def identity(kind: EventKind, row: Row) -> tuple[Any, ...]:
    """Which thing a version is of: the key of its table without cluster and offset."""
    return tuple(row[name] for name in kind.table.key[1:-1])


def event(kind: EventKind, row: Row, operation: str, part: str, status: str | None) -> Row:
    return {
        "offset": row[f"valid_{part}_offset"],
        "changed_at": row[f"valid_{part}_at"],
        "operation": operation,
        "resource_type": kind.resource_type(row),
        "resource": kind.resource(row),
        "detail": kind.detail(row),
        "commit_status": status,
    }
