"""plan topic: may these topics be created, changed or deleted, and what would Kafka write?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.plan_captures import captured_metadata
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import Failure
from kraft_core.wording import did_you_mean

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.captured_metadata import CapturedMetadata
    from kraft_core.plan.topic_plan import TopicChange, TopicQuestion

evidence_of = captured_metadata


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of plan topic, named as those of Kafka's tools."""
    group = parser.add_argument_group("plan topic")
    group.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="how many; create: by default as the controller's file says",
    )
    group.add_argument(
        "--replication-factor", type=int, metavar="N", help="create: replicas of each partition"
    )
    group.add_argument(
        "--replica-assignment",
        type=replica_lists,
        metavar="LISTS",
        help="the replicas of each partition: 1:2,2:3 for two partitions",
    )
    group.add_argument(
        "--add-config",
        type=named_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="create: a config of the topic; repeatable",
    )
    group.add_argument(
        "--validate-only", action="store_true", help="what Kafka answers where it only validates"
    )
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="show the placement that Kafka chooses with a random generator of this seed",
    )
    group.add_argument(
        "--controller-config",
        type=local_path,
        metavar="FILE",
        help="the properties file of the controllers: defaults and policies, which no log shows",
    )


def replica_lists(text: str) -> tuple[tuple[int, ...], ...]:
    """1:2,2:3."""
    try:
        return tuple(tuple(int(each) for each in part.split(":")) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} lists no replicas, such as 1:2,2:3") from None


def named_value(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as retention.ms=60000")
    return name.strip(), value.strip()


def words_of(args: argparse.Namespace) -> TopicQuestion:
    """What is asked. Raises Failure."""
    from kraft_core.plan.topic_plan import TopicQuestion

    verb = args.words[0] if args.words else ""
    if verb not in CHANGES:
        raise Failure(f"topic takes one of {', '.join(CHANGES)}, and names{did_you_mean(verb, CHANGES)}")
    if len(args.words) < 2:
        raise Failure(f"topic {verb} takes names of topics; see the examples of --help")
    properties = None if args.controller_config is None else _properties(args.controller_config)
    return TopicQuestion(CHANGES[verb](args, tuple(args.words[1:])), properties, args.seed)


def _create(args: argparse.Namespace, names: tuple[str, ...]) -> TopicChange:
    from kraft_core.plan.topic_creation import CreateTopics
    from kraft_core.topic_control.requests import UNSET, NewTopic

    partitions = UNSET if args.partitions is None else args.partitions
    factor = UNSET if args.replication_factor is None else args.replication_factor
    if not -(1 << 15) <= factor < 1 << 15 or not -(1 << 31) <= partitions < 1 << 31:
        raise Failure("a request has no room for such a number of partitions or replicas")
    assignments = tuple(enumerate(args.replica_assignment or ()))
    configs = tuple(args.add_config)
    topics = tuple(NewTopic(name, partitions, factor, assignments, configs) for name in names)
    return CreateTopics(topics, args.validate_only, args.seed is not None)


CHANGES: Mapping[str, Callable[[argparse.Namespace, tuple[str, ...]], TopicChange]] = {"create": _create}


def _properties(path: Path) -> dict[str, str]:
    from kraft_core.topic_control.controller_file import properties_of

    try:
        return properties_of(path.read_text().splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read: {error}") from None


def answer_of(asked: TopicQuestion, metadata: CapturedMetadata) -> Answer:
    """The verdict."""
    from kraft_core.plan.topic_plan import plan_topics

    return plan_topics(metadata, asked)
