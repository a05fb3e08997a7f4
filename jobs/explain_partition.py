"""explain --topic T --partition P: why the partition had no leader, a small ISR or no ELR."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pyarrow.dataset as ds

from jobs.runtime.finding_text import wrapped
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_line, print_lines, warn_line
from jobs.time_travel.lake_source import LakeSource, open_cluster
from jobs.time_travel.moment import InvalidMomentError, iso, parse_moment
from kraft_core.findings.partition_story import PartitionStory, partition_story
from kraft_core.image.effective_configs import MIN_ISR
from kraft_core.image.replica import OutOfReachError
from kraft_core.wording import did_you_mean
from transforms.lake.tables import BROKERS, CONFIGS, PARTITIONS, TOPICS


def explain_partition(args: argparse.Namespace, cluster: str) -> int:
    """Print it. Returns the exit code. Raises Failure."""
    source = open_cluster(args.lake, cluster)
    offset = _offset_of(source, args.at or "end")
    image = source.part_at(offset, {TOPICS: ds.field("topic_name") == args.topic})
    topic_id = image.tables.topic_ids.get(args.topic)
    if topic_id is None:
        names = source.part_at(offset, {TOPICS: ds.scalar(True)}).tables.topic_ids
        near = did_you_mean(args.topic, names)
        raise Failure(f"there is no topic {args.topic} at offset {offset}{near}")
    of_partition = (ds.field("topic_id") == topic_id) & (ds.field("partition_id") == args.partition)
    image = source.part_at(offset, {PARTITIONS: of_partition, CONFIGS: ds.field("name") == MIN_ISR})
    events = source.events_of({PARTITIONS: of_partition, BROKERS: ds.scalar(True)})
    story = partition_story(image, offset, topic_id, args.partition, events)
    if story is None:
        raise Failure(f"topic {args.topic} has no partition {args.partition} at offset {offset}")
    if args.format == "json":
        print_line(json_line(as_json(story) | {"cluster_id": cluster}))
    else:
        print_lines(lines(story, cluster))
    return ExitCode.FINE


def _offset_of(source: LakeSource, text: str) -> int:
    """The offset (inclusive) of a moment. Raises Failure."""
    newest = source.append_before(source.last_offset + 1) or -1
    try:
        moment = parse_moment(text, newest)
        if moment.time is None:
            offset = source.last_offset if moment.offset is None else moment.offset
        else:
            offset = source.offset_at(moment.time)
        source.step_at(offset)
    except (InvalidMomentError, OutOfReachError) as error:
        raise Failure(str(error)) from None
    if offset < 0:
        raise Failure(f"{text} is before the first record of the log")
    if moment.time is not None and moment.time > newest:
        later = f"{iso(moment.time)} is after the newest record, which is of {iso(newest)}"
        warn_line(f"warning: {later}: what happened after that is not known")
    return offset


def lines(story: PartitionStory, cluster: str) -> Iterator[str]:
    """The story as text: the state, why there was no leader, then change by change."""
    yield f"partition {story.topic_name}-{story.partition_id} of cluster {cluster} at offset {story.offset}"
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
