"""explain --topic T --partition P: why the partition had no leader, a small ISR or no ELR."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow.dataset as ds

from jobs.runtime.finding_text import wrapped
from jobs.runtime.lake_clusters import one_cluster
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_answer, warn_line
from jobs.time_travel.lake_source import LakeSource, open_cluster
from jobs.time_travel.moment import InvalidMomentError, at_offset_of, iso, parse_moment
from jobs.time_travel.opened_moment import opened_moment
from kraft_core.findings.partition_story import PartitionStory, partition_story
from kraft_core.image.effective_configs import MIN_ISR
from kraft_core.image.events import Event
from kraft_core.image.image import Image
from kraft_core.image.replay_path import COMMITTED
from kraft_core.wording import did_you_mean
from transforms.lake.tables import BROKERS, CONFIGS, PARTITIONS, TOPICS


def explain_partition(args: argparse.Namespace) -> int:
    """Print it, by the captured replica of --captures or by a lake. Returns the exit code. Raises Failure."""
    asked = _of_captures(args) if args.lake is None else _of_lake(args)
    story = partition_story(asked.image, asked.offset, asked.topic_id, args.partition, asked.events)
    if story is None:
        words = f"topic {args.topic} has no partition {args.partition} at offset {asked.offset}"
        raise Failure(words) if asked.is_whole else _not_known(words)
    of_cluster = {"cluster_id": asked.cluster}
    print_answer(args.format, lambda: as_json(story) | of_cluster, lines(story, asked.cluster))
    return ExitCode.FINE if asked.is_whole else ExitCode.FOUND


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of partition_story.

    cluster: its id, None if the captures do not contain it. is_whole: False if part of the log could not be
    read or replayed.
    """

    cluster: str | None
    image: Image
    offset: int
    topic_id: str
    events: Iterable[Event]
    is_whole: bool


def _of_lake(args: argparse.Namespace) -> _Asked:
    must_be_lake(args.lake)
    cluster = one_cluster(args.lake, args.cluster)
    source = open_cluster(args.lake, cluster)
    offset = _offset_of(source, args.at or "end")
    doubts = source.gaps
    named = source.part_at(offset, {TOPICS: ds.field("topic_name") == args.topic})
    topic_id = named.tables.topic_ids.get(args.topic)
    if topic_id is None:
        every = source.part_at(offset, {TOPICS: ds.scalar(True)})
        found = source.events_of({TOPICS: ds.field("topic_name") == args.topic})
        absent = _no_topic(args.topic, offset, every, found)
        raise _not_known(str(absent)) if doubts else absent
    for doubt in doubts:
        warn_line(f"warning: {doubt}")
    status = source.commit_status(offset)
    if status not in (None, COMMITTED):
        warn_line(f"note: offset {offset} is {status}: brokers knew only what was committed")
    of_partition = (ds.field("topic_id") == topic_id) & (ds.field("partition_id") == args.partition)
    image = source.part_at(offset, {PARTITIONS: of_partition, CONFIGS: ds.field("name") == MIN_ISR})
    events = source.events_of({PARTITIONS: of_partition, BROKERS: ds.scalar(True)})
    return _Asked(cluster, image, offset, topic_id, events, is_whole=not doubts)


def _of_captures(args: argparse.Namespace) -> _Asked:
    at = opened_moment(args)
    offset = at.image.offset
    topic_id = at.image.tables.topic_ids.get(args.topic)
    if topic_id is None:
        named = ("image", "topics", "byName", args.topic)
        absent = _no_topic(args.topic, offset, at.image, at.source.events([named], offset))
        raise _not_known(str(absent)) if at.doubts else absent
    warn_line(
        "note: the log of one replica does not show which records at its end were committed; a lake of all "
        "captures does"
    )
    partition = ("image", "topics", "byId", topic_id, str(args.partition))
    events = at.source.events([partition, ("image", "cluster", "brokers")], at.source.last_offset)
    return _Asked(at.source.cluster_id, at.image, offset, topic_id, events, is_whole=not at.doubts)


def _no_topic(name: str, offset: int, image: Image, found: Iterable[Event]) -> Failure:
    """found: events of topics of that name."""
    words = f"there is no topic {name} at offset {offset}"
    deleted = [each for each in found if _deletes_topic(each) and each.offset <= offset]
    if not deleted:
        return Failure(words + did_you_mean(name, image.tables.topic_ids))
    by = "" if deleted[-1].is_exact else " or before"
    return Failure(f"{words}: it was deleted at offset {deleted[-1].offset}{by}; give an earlier --at")


def _deletes_topic(event: Event) -> bool:
    return event.kind == TOPICS.name and event.before is not None and event.after is None


def _not_known(words: str) -> Failure:
    return Failure(f"not known: part of the log could not be read; by the rest, {words}", ExitCode.FOUND)


def _offset_of(source: LakeSource, text: str) -> int:
    """The offset (inclusive) of a moment. Raises Failure."""
    newest = source.append_before(source.last_offset + 1) or -1

    def known(offset: int | None) -> int:
        source.step_at(found := source.last_offset if offset is None else offset)
        return found

    try:
        return at_offset_of(source, parse_moment(text, newest), newest, known)
    except InvalidMomentError as error:
        raise Failure(str(error)) from None


def lines(story: PartitionStory, cluster: str | None) -> Iterator[str]:
    """The story as text: the state, why there was no leader, then change by change."""
    of = "" if cluster is None else f" of cluster {cluster}"
    yield f"partition {story.topic_name}-{story.partition_id}{of} at offset {story.offset}"
    for sentence in story.words:
        yield from wrapped(sentence)
    for each in story.lines:
        at = iso(each.effective_at)
        by = "" if each.is_exact else " or before"
        yield f"  {at}  offset {each.offset}{by}  {each.record_type}"
        yield f"      {each.subject}: {each.change}"
        if each.cause is not None:
            yield f"        {each.cause}"


def as_json(story: PartitionStory) -> dict[str, Any]:
    """The story as JSON: stable keys, times in ISO 8601."""
    made = _dated(asdict(story))
    made["lines"] = [_dated(each) for each in made["lines"]]
    return made


def _dated(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: iso(held) if name.endswith("_at") and held is not None else held
        for name, held in values.items()
    }
