"""Questions of plan that are not about voters: what is asked, and the answer by the captured metadata."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from jobs.arguments import AddValues
from jobs.plan_captures import captured_directories, captured_metadata
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import Failure
from kraft_core.messages.releases import (
    METADATA_VERSION,
    OTHER_FEATURES,
    RELEASES,
    Release,
    metadata_level,
    release_of,
)
from kraft_core.wording import did_you_mean

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.captured_quorum import CapturedQuorum
    from kraft_core.plan.upgrade import FeatureUpgrade


class Answered(NamedTuple):
    """unread: what of the captures could not be read. copied_at (ms): of the oldest other evidence."""

    answer: Answer
    quorum: CapturedQuorum
    unread: list[str]
    copied_at: int | None = None


def upgrade(args: argparse.Namespace) -> Answered:
    """May these feature levels be finalized? Raises Failure."""
    from kraft_core.plan.upgrade import plan_upgrade

    asked = _upgrade_asked(args)
    metadata, unread = captured_metadata(args)
    return Answered(plan_upgrade(metadata, asked), metadata.quorum, unread)


def _upgrade_asked(args: argparse.Namespace) -> FeatureUpgrade:
    """Of upgrade or release. Raises Failure."""
    from kraft_core.plan.upgrade import FeatureUpgrade, release_upgrade

    if args.action == "release":
        if len(args.words) != 1:
            raise Failure("release takes a release, such as 4.4; see the examples of --help")
        return release_upgrade(_known_release(args.words[0], list(RELEASES)))
    if len(args.words) != 2:
        raise Failure("upgrade takes a feature and a level, such as metadata.version 4.4-IV2")
    feature, text = args.words
    known = (METADATA_VERSION, *OTHER_FEATURES)
    if feature not in known:
        raise Failure(
            f"feature {feature} is not known; known features: "
            f"{', '.join(known)}{did_you_mean(feature, known)}"
        )
    level = metadata_level(text) if feature == METADATA_VERSION else int(text) if text.isdecimal() else None
    if level is None or level > 0x7FFF:
        raise Failure(f"{text!r} is not a level of {feature}")
    return FeatureUpgrade({feature: level})


def load(args: argparse.Namespace) -> Answered:
    """Will a release read and replay these logs and checkpoints? Raises Failure."""
    from kraft_core.plan.load import OLDEST, plan_load

    if len(args.words) != 1:
        raise Failure("load takes a release, such as 4.3.1; see the examples of --help")
    names = list(RELEASES)
    release = _known_release(args.words[0], names[names.index(OLDEST.name) :])
    logs, unread = captured_directories(args)
    return Answered(plan_load(logs, release), logs.quorum, unread)


def _known_release(name: str, known: list[str]) -> Release:
    """Raises Failure."""
    release = release_of(name)
    if release is None or release.name not in known:
        raise Failure(f"release {name} is not known; known releases: {', '.join(known)}")
    return release


def finish_migration(args: argparse.Namespace) -> Answered:
    """May a migration from ZooKeeper be finished now? Raises Failure."""
    from kraft_core.plan.migration import plan_migration

    if args.words:
        raise Failure("finish-migration takes no further words; see the examples of --help")
    metadata, unread = captured_metadata(args)
    return Answered(plan_migration(metadata), metadata.quorum, unread)


def stop_broker(args: argparse.Namespace) -> Answered:
    """remove-broker, restart-broker: what happens to a broker's partitions? Raises Failure."""
    from kraft_core.plan.broker_plan import BrokerChange, plan_broker

    asked = BrokerChange(_broker_id(args), args.action == "remove-broker")
    metadata, unread = captured_metadata(args)
    return Answered(plan_broker(metadata, asked), metadata.quorum, unread)


def _broker_id(args: argparse.Namespace) -> int:
    """Raises Failure."""
    if len(args.words) != 1 or not args.words[0].isdecimal():
        raise Failure(f"{args.action} takes the id of one broker; see the examples of --help")
    return int(args.words[0])


def add_broker_dirs(parser: argparse.ArgumentParser) -> None:
    """--broker-dirs, for start-broker."""
    parser.add_argument(
        "--broker-dirs",
        type=local_path,
        default=[],
        action=AddValues,
        metavar="PATH",
        help="start-broker: all log directories of the broker, or copies of their meta.properties and "
        ".kafka_cleanshutdown and of each partition's partition.metadata",
    )


def start_broker(args: argparse.Namespace) -> Answered:
    """What becomes of the partitions in a broker's log directories when it starts? Raises Failure."""
    from kraft_core.plan.broker_start import BrokerStart, plan_start
    from kraft_core.restore.broker_dirs import BrokerDirError, broker_log_dir

    broker_id = _broker_id(args)
    if not args.broker_dirs:
        raise Failure("start-broker takes --broker-dirs PATH..., all log directories of the broker")
    for path in args.broker_dirs:
        if not path.exists():
            raise Failure(f"{path} does not exist")
    metadata, unread = captured_metadata(args)
    cluster_id = metadata.quorum.cluster_id.partition("/")[0]  # without the name of its life
    log_dirs, unreadable = {}, []
    for path in args.broker_dirs:
        try:
            log_dirs[str(path)] = broker_log_dir(path, cluster_id)
        except BrokerDirError as error:
            unreadable.append(str(error))
    start = BrokerStart(metadata, log_dirs, tuple(unreadable))
    return Answered(plan_start(start, broker_id), metadata.quorum, unread, start.copied_at)
