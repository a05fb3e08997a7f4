"""plan start-broker: what becomes of the partitions in a broker's log directories when it starts?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobs.arguments import AddPaths
from jobs.plan_captures import captured_metadata
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import Failure

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.broker_start import BrokerStart


def add_broker_dirs(parser: argparse.ArgumentParser) -> None:
    """--broker-dirs, for start-broker."""
    parser.add_argument(
        "--broker-dirs",
        type=local_path,
        nargs="+",
        default=[],
        action=AddPaths,
        metavar="PATH",
        help="start-broker: all log directories of the broker, or copies of their meta.properties and of "
        "each partition's partition.metadata",
    )


def words_of(args: argparse.Namespace) -> int:
    """The broker's id. Raises Failure."""
    if len(args.words) != 1 or not args.words[0].isdecimal():
        raise Failure("start-broker takes the id of one broker; see the examples of --help")
    if not args.broker_dirs:
        raise Failure("start-broker takes --broker-dirs PATH..., all log directories of the broker")
    for path in args.broker_dirs:
        if not path.exists():
            raise Failure(f"{path} does not exist")
    return int(args.words[0])


def evidence_of(args: argparse.Namespace) -> tuple[BrokerStart, list[str]]:
    """The metadata and the directories, and what of the captures could not be read. Raises Failure."""
    from kraft_core.plan.broker_start import BrokerStart
    from kraft_core.restore.broker_dirs import BrokerDirError, broker_log_dir

    metadata, unread = captured_metadata(args)
    cluster_id = metadata.quorum.cluster_id.partition("/")[0]  # without the name of its life
    log_dirs, unreadable = {}, []
    for path in args.broker_dirs:
        try:
            log_dirs[str(path)] = broker_log_dir(path, cluster_id)
        except BrokerDirError as error:
            unreadable.append(str(error))
    return BrokerStart(metadata, log_dirs, tuple(unreadable)), unread


def answer_of(asked: int, start: BrokerStart) -> Answer:
    """The verdict."""
    from kraft_core.plan.broker_start import plan_start

    return plan_start(start, asked)
