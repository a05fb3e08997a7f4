"""The plan of a restoration as a file: its inputs, from which it can be made again, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kraft_core.evidence.facts import label
from kraft_core.messages.uuid_text import uuid_bytes
from kraft_core.restore.choice import Line
from kraft_core.restore.replay import Cut
from kraft_core.restore.request import NewVoter, Placement, RestoreRequest
from kraft_core.restore.restoration import Restoration, Restored

FORMAT = 4
MOST_NODE_ID = (1 << 31) - 1
_MOST = (1 << 63) - 1  # no id, offset or time (ms) of Kafka is above it, or below 0

Kind = TypeVar("Kind", str, int, bool, list[Any], dict[str, Any])


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """captures, broker_dirs: absolute paths. cluster_ids: words of --cluster-id. captured_at (ms): of all
    captures.
    """

    captures: tuple[str, ...]
    broker_dirs: tuple[str, ...]
    cluster: str | None
    cluster_ids: tuple[str, ...]
    captured_at: int | None
    request: RestoreRequest


def as_plan(inputs: PlanInputs, plan: Restoration) -> dict[str, Any]:
    """The plan for JSON; no secrets."""
    return {
        "format": FORMAT,
        "inputs": _inputs(inputs),
        "cluster_id": plan.cluster_id,
        "as_of": plan.as_of,
        "as_of_source": plan.as_of_source,
        "verdict": plan.verdict,
        "refusals": list(plan.refusals),
        "losses": [{"name": loss.name, "sentence": loss.sentence} for loss in plan.losses],
        "voters_captured": [
            {"node": c.node, "end_offset": c.end_offset, "last_appended_at": c.last_appended_at}
            for c in plan.copies
        ],
        "restored": None if plan.made is None else _restored(plan.made),
    }


def _inputs(inputs: PlanInputs) -> dict[str, Any]:
    request = inputs.request
    return {
        "captures": list(inputs.captures),
        "broker_dirs": list(inputs.broker_dirs),
        "cluster": inputs.cluster,
        "cluster_ids": list(inputs.cluster_ids),
        "captured_at": inputs.captured_at,
        "voters": [
            {"id": v.id, "directory_id": v.directory_id, "host": v.host, "port": v.port}
            for v in request.voters
        ],
        "made_at": request.made_at,
        "listener": request.listener,
        "kraft_version": request.kraft_version,
        "gone": sorted(request.gone),
        "lost_brokers": sorted(request.lost_brokers),
        "brokers_back": None if request.brokers_back is None else sorted(request.brokers_back),
        "controllers_stopped": request.are_stopped,
        "brokers_stopped": request.brokers_stopped,
        "at": None if request.at is None else {"end_offset": request.at.end_offset, "time": request.at.time},
        "placement": request.placement,
        "line": None if request.line is None else list(request.line),
    }


def inputs_of(content: Mapping[str, Any]) -> PlanInputs:
    """What a plan was made from. KeyError, TypeError, ValueError for what is not a plan."""
    if content["format"] != FORMAT:
        raise ValueError(f"format {content['format']}, not {FORMAT}")
    given = Given(content["inputs"])
    voters = tuple(_voter(Given(voter)) for voter in given.items("voters", dict))
    if not voters or len({v.id for v in voters}) < len(voters):
        raise ValueError("voters: each needs a distinct id")
    at, line, back = given.maybe("at", dict), given.maybe("line", list), given.maybe("brokers_back", list)
    return PlanInputs(
        captures=given.items("captures", str),
        broker_dirs=given.items("broker_dirs", str),
        cluster=given.maybe("cluster", str),
        cluster_ids=given.items("cluster_ids", str),
        captured_at=given.maybe("captured_at", int),
        request=RestoreRequest(
            voters=voters,
            made_at=given.one("made_at", int),
            listener=given.maybe("listener", str),
            kraft_version=given.maybe("kraft_version", int),
            gone=frozenset(given.items("gone", int)),
            lost_brokers=frozenset(given.items("lost_brokers", int)),
            brokers_back=None if back is None else frozenset(given.items("brokers_back", int)),
            are_stopped=given.one("controllers_stopped", bool),
            brokers_stopped=given.one("brokers_stopped", bool),
            at=None if at is None else _cut(Given(at)),
            placement=_placement(given.one("placement", str)),
            line=None if line is None else _line(given.items("line", int)),
        ),
    )


def _voter(given: Given) -> NewVoter:
    id_, port = given.one("id", int), given.one("port", int)
    if not 0 <= id_ <= MOST_NODE_ID or not 0 < port < 1 << 16:
        raise ValueError(f"voter {id_} at port {port}")
    directory_id = given.one("directory_id", str)
    uuid_bytes(directory_id)
    return NewVoter(id_, directory_id, given.one("host", str), port)


def _cut(given: Given) -> Cut:
    return Cut(given.maybe("end_offset", int), given.maybe("time", int))


def _placement(text: str) -> Placement:
    if text == "newest" or text == "as-of":
        return text
    raise ValueError(f"placement {text}")


def _line(held: tuple[int, ...]) -> Line:
    epoch, end = held
    return epoch, end


def _restored(made: Restored) -> dict[str, Any]:
    horizon = made.horizon
    return {
        "voters": {str(voter.id): voter.directory_id for voter in made.voters},
        "brokers_too": sorted(made.brokers_too),
        "source": label(made.source.replica),
        "source_path": str(made.directory.path),
        "source_capture": made.source.capture_id,
        "source_end_offset": made.source_end,
        "source_leader_epoch": made.source_epoch,
        "restored_end_offset": made.restored_end,
        "restored_leader_epoch": made.restored_epoch,
        "restored_time": made.restored_time,
        "kept_although_unproven": made.unproven,
        "left_behind": made.left_behind,
        "left_out": made.left_out,
        "kraft_version": made.kraft_version,
        "metadata_version": made.metadata_version,
        "listener": made.listener,
        "highest_seen": {
            "leader_epoch": horizon.leader_epoch,
            "end_offset": horizon.end_offset,
            "next_producer_id": horizon.next_producer_id,
        },
        "written": {
            "leader_epoch": horizon.new_epoch,
            "end_offset": horizon.new_end,
            "next_producer_id": horizon.new_producer_id,
        },
        "counts": made.counts,
        "differences": [
            {"loss": each.loss, "kind": each.kind, "subject": each.thing, "change": each.change}
            for each in made.later
        ],
        "stray": {str(broker): list(partitions) for broker, partitions in made.stray.items()},
        "brokers_back": list(made.brokers_back),
        "brokers_fenced": list(made.brokers_fenced),
        "first_brokers": first_brokers(made),
        "partitions": [
            {
                "topic": each.topic_name,
                "partition": each.partition_id,
                "sure_broker": each.broker_id,
                "is_back": each.is_back,
                "is_empty": each.is_empty,
                "is_behind": each.is_behind,
                "leader_is_lost": each.leader_is_lost,
            }
            for each in made.sure
        ],
        "checkpoint": made.checkpoint_name,
        "checkpoint_bytes": len(made.checkpoint),
        "checkpoint_sha256": made.digest,
    }


def first_brokers(made: Restored) -> dict[str, int]:
    """Of how many partitions each broker is the sure replica, by id."""
    counted = Counter(each.broker_id for each in made.sure if each.is_sure and each.broker_id is not None)
    return {str(broker): counted[broker] for broker in sorted(counted)}


class Given:
    """An object of JSON from a file that may have been edited, read value by value with its type."""

    def __init__(self, content: Any) -> None:
        """Raises TypeError for what is not an object."""
        if not isinstance(content, dict):
            raise TypeError(f"{content!r} is not an object")
        self._content: dict[str, Any] = content

    def one(self, name: str, kind: type[Kind]) -> Kind:
        """Raises KeyError, and TypeError for another type: a truth value is not a number. ValueError."""
        return _of(name, self._content[name], kind)

    def maybe(self, name: str, kind: type[Kind]) -> Kind | None:
        """None where it is null. Raises as one()."""
        return None if self._content[name] is None else self.one(name, kind)

    def items(self, name: str, kind: type[Kind]) -> tuple[Kind, ...]:
        """Of a list. Raises as one()."""
        return tuple(_of(name, item, kind) for item in self.one(name, list))


def _of(name: str, value: Any, kind: type[Kind]) -> Kind:
    if type(value) is not kind:
        raise TypeError(f"{name} {value!r} is not a {kind.__name__}")
    if isinstance(value, int) and not 0 <= value <= _MOST:
        raise ValueError(f"{name} {value}")
    return value
