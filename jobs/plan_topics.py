"""plan topic: may these topics be created, changed or deleted, and what would Kafka write?"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.arguments import is_given
from jobs.plan_captures import captured_metadata
from jobs.plan_questions import Answered
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import Failure, reason_of
from kraft_core.wording import did_you_mean

if TYPE_CHECKING:
    from kraft_core.plan.topic_plan import TopicChange, TopicQuestion
    from kraft_core.topic_control.reassignments import PartitionMove

_PARTITION = re.compile(r"([^:=]+):(\d+)")
_MOVE = re.compile(r"([^:=]+):(\d+)=(\d+(?:,\d+)*)")
Names = tuple[str, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of plan topic, named as those of Kafka's tools."""
    group = parser.add_argument_group("plan topic")
    group.add_argument(
        "--partitions", type=int, metavar="N", help="create, add-partitions: number of partitions afterwards"
    )
    group.add_argument(
        "--replication-factor", type=int, metavar="N", help="create: replicas of each partition"
    )
    group.add_argument(
        "--replica-assignment",
        type=replica_lists,
        metavar="LISTS",
        help="create, add-partitions: the replicas of each new partition, such as 1:2,2:3 for two",
    )
    group.add_argument(
        "--add-config",
        type=named_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="create, configure: a config of the topic; repeatable",
    )
    group.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="NAME",
        help="configure: a config to remove from the topic; repeatable",
    )
    group.add_argument(
        "--election-type", choices=("preferred", "unclean"), help="elect: which leader (default: preferred)"
    )
    group.add_argument(
        "--reassignment-json-file",
        type=local_path,
        metavar="FILE",
        help="reassign: input of kafka-reassign-partitions",
    )
    group.add_argument("--cancel", action="store_true", help="reassign: cancel what is in progress")
    group.add_argument(
        "--validate-only",
        action="store_true",
        help="create, add-partitions, configure: answer as Kafka does when it only validates",
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
        help="properties file of the controllers, for defaults and policies, which are not in the log",
    )


def replica_lists(text: str) -> tuple[tuple[int, ...], ...]:
    """1:2,2:3."""
    try:
        return tuple(tuple(int(each) for each in part.split(":")) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of replicas such as 1:2,2:3") from None


def named_value(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not name.strip() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as retention.ms=60000")
    return name.strip(), value.strip()


def topic(args: argparse.Namespace) -> Answered:
    """The verdict on a request about topics. Raises Failure."""
    from kraft_core.plan.topic_plan import plan_topics

    asked = _asked(args)
    metadata, unread = captured_metadata(args)
    return Answered(plan_topics(metadata, asked), metadata.quorum, unread)


def _asked(args: argparse.Namespace) -> TopicQuestion:
    """Raises Failure."""
    from kraft_core.plan.topic_plan import TopicQuestion

    verb = args.words[0] if args.words else ""
    if verb not in CHANGES:
        raise Failure(f"topic takes one of {', '.join(CHANGES)}, and names{did_you_mean(verb, CHANGES)}")
    names: Names = tuple(args.words[1:])
    if not names and verb not in _MAY_NAME_NONE:
        raise Failure(f"topic {verb} takes names of topics; see the examples of --help")
    for option, verbs in TOPIC_OPTIONS.items():
        if is_given(getattr(args, option)) and verb not in verbs:
            raise Failure(f"--{option.replace('_', '-')} is of {' and '.join(verbs)}, not of {verb}")
    properties = None if args.controller_config is None else _properties(args.controller_config)
    return TopicQuestion(CHANGES[verb](args, names), properties, args.seed)


def _create(args: argparse.Namespace, names: Names) -> TopicChange:
    from kraft_core.plan.topic_creation import CreateTopics
    from kraft_core.topic_control.requests import UNSET, NewTopic

    partitions = UNSET if args.partitions is None else args.partitions
    factor = UNSET if args.replication_factor is None else args.replication_factor
    if not -(1 << 15) <= factor < 1 << 15 or not -(1 << 31) <= partitions < 1 << 31:
        raise Failure("the number of partitions or replicas does not fit into a request")
    assignments = tuple(enumerate(args.replica_assignment or ()))
    configs = tuple(args.add_config)
    topics = tuple(NewTopic(name, partitions, factor, assignments, configs) for name in names)
    return CreateTopics(topics, args.validate_only, args.seed is not None)


def _add_partitions(args: argparse.Namespace, names: Names) -> TopicChange:
    from kraft_core.plan.topic_partitions import AddPartitions
    from kraft_core.topic_control.requests import NewPartitions

    if args.partitions is None or not 0 < args.partitions < 1 << 31:
        raise Failure("add-partitions takes --partitions N, the new number of partitions")
    topics = tuple(NewPartitions(name, args.partitions, args.replica_assignment) for name in names)
    return AddPartitions(topics, args.validate_only, args.seed is not None)


def _delete(_: argparse.Namespace, names: Names) -> TopicChange:
    from kraft_core.plan.topic_deletion import DeleteTopics

    return DeleteTopics(names)


def _configure(args: argparse.Namespace, names: Names) -> TopicChange:
    from kraft_core.plan.topic_configuration import ConfigureTopics

    changes: dict[str, str | None] = dict(args.add_config)
    twice = [name for name in args.delete_config if name in changes]
    if twice or not (changes or args.delete_config):
        raise Failure("configure takes --add-config NAME=VALUE or --delete-config NAME, each name once")
    changes |= dict.fromkeys(args.delete_config)
    return ConfigureTopics(tuple(dict.fromkeys(names)), changes, args.validate_only)


def _elect(args: argparse.Namespace, names: Names) -> TopicChange:
    from kraft_core.plan.topic_election import ElectLeaders
    from kraft_core.topic_control.partition_change import ElectionType

    # By topic; None stands for all of its partitions.
    asked: dict[str, dict[int | None, None]] = {}
    for name in names:
        match = _PARTITION.fullmatch(name)
        if match is None and ":" in name:
            raise Failure(f"{name!r} is neither a topic nor a partition such as orders:0")
        asked.setdefault(match[1] if match else name, {})[int(match[2]) if match else None] = None
    partitions = {
        topic: () if None in ids else tuple(each for each in ids if each is not None)
        for topic, ids in asked.items()
    }
    return ElectLeaders(ElectionType(args.election_type or "preferred"), partitions)


def _reassign(args: argparse.Namespace, names: Names) -> TopicChange:
    from kraft_core.plan.topic_reassignment import ReassignPartitions
    from kraft_core.topic_control.reassignments import PartitionMove

    moves = _moves_of_file(args.reassignment_json_file) if args.reassignment_json_file else []
    for name in names:
        match = (_PARTITION if args.cancel else _MOVE).fullmatch(name)
        if match is None:
            wanted = "orders:0" if args.cancel else "orders:0=1,2,3"
            raise Failure(
                f"{name!r} is not a partition{'' if args.cancel else ' with replicas'}, such as {wanted}"
            )
        replicas = None if args.cancel else tuple(map(int, match[3].split(",")))
        moves.append(PartitionMove(match[1], int(match[2]), replicas))
    if not moves:
        raise Failure("reassign takes partitions such as orders:0=1,2,3, or --reassignment-json-file FILE")
    if args.cancel:
        moves = [PartitionMove(move.topic, move.partition_id, None) for move in moves]
    if len({(move.topic, move.partition_id) for move in moves}) < len(moves):
        raise Failure("reassign takes each partition once")
    return ReassignPartitions(tuple(moves))


def _moves_of_file(path: Path) -> list[PartitionMove]:
    """Of a file that kafka-reassign-partitions takes. Raises Failure."""
    from kraft_core.topic_control.reassignments import PartitionMove

    try:
        entries = json.loads(path.read_text())["partitions"]
        moves = [
            PartitionMove(each["topic"], int(each["partition"]), tuple(map(int, each["replicas"])))
            for each in entries
        ]
        directories = {name for each in entries for name in each.get("log_dirs") or ()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} is not a readable reassignment: {reason_of(error)}") from None
    if directories - {"any"}:
        raise Failure(
            f"{path} names log directories: the log does not contain their paths, so nothing is known of "
            "them; give log_dirs any, or none"
        )
    return moves


CHANGES: Mapping[str, Callable[[argparse.Namespace, Names], TopicChange]] = {
    "create": _create,
    "add-partitions": _add_partitions,
    "configure": _configure,
    "delete": _delete,
    "elect": _elect,
    "reassign": _reassign,
}
_MAY_NAME_NONE = ("elect", "reassign")
TOPIC_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "partitions": ("create", "add-partitions"),
    "replication_factor": ("create",),
    "replica_assignment": ("create", "add-partitions"),
    "add_config": ("create", "configure"),
    "delete_config": ("configure",),
    "election_type": ("elect",),
    "reassignment_json_file": ("reassign",),
    "cancel": ("reassign",),
    "validate_only": ("create", "add-partitions", "configure"),
    "seed": ("create", "add-partitions"),
}


def _properties(path: Path) -> dict[str, str]:
    from kraft_core.format.side_files import InvalidSideFileError, read_properties
    from kraft_core.topic_control.controller_file import provided, wrong_number

    try:
        properties = read_properties(path.read_text(encoding="latin-1"))
    except (OSError, InvalidSideFileError) as error:
        raise Failure(f"{path} cannot be read: {reason_of(error)}") from None
    elsewhere = provided(properties)
    if elsewhere is not None:
        words = f"{elsewhere} of {path} is from a config provider: give a file with its value"
        raise Failure(f"{words}, not {properties[elsewhere]!r}")
    wrong = wrong_number(properties)
    if wrong is not None:
        raise Failure(f"{wrong} of {path} is not a number: {properties[wrong]!r}")
    return properties
