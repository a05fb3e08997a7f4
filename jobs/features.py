"""kraftlake features: what kafka-features prints, from the declared releases and from captures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from jobs.arguments import AddValues, add_identity, must_take_its_options
from jobs.runtime.lakes import lake_folder
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_lines, warn_line
from kraft_core.messages.feature_tool import (
    UnknownFeatureError,
    describe,
    feature_dependencies,
    version_mapping,
)
from kraft_core.messages.releases import KRAFT_VERSION, METADATA_VERSION, RELEASES, Release, release_of

EXAMPLES = """examples:
  kraftlake features version-mapping
  kraftlake features version-mapping --release-version 3.9-IV0
  kraftlake features feature-dependencies --feature eligible.leader.replicas.version=1
  kraftlake features feature-dependencies --feature kraft.version=1 --tool 4.0
  kraftlake features describe --captures /backup/controllers

version-mapping and feature-dependencies print what kafka-features of release --tool prints. describe prints
what the captured leader supports and what is proven committed; its Epoch is not known, because that of a
controller depends on when it started (kraftlake describe features --node ID shows that of a broker).
exit codes: 0 success, 1 unknown release, feature or level, or not known; 2 wrong usage, 3 nothing readable"""

VERBS = ("describe", "version-mapping", "feature-dependencies")
# The actions that take an option, by its name in the namespace.
_OPTIONS = {
    "release_version": ("version-mapping",),
    "feature": ("feature-dependencies",),
    **dict.fromkeys(("captures", "lake", "cluster", "cluster_id", "node_id", "captured_at"), ("describe",)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=VERBS, metavar="ACTION", help="; ".join(VERBS))
    parser.add_argument(
        "--tool", metavar="RELEASE", default="4.3", help="release of kafka-features to imitate (default: 4.3)"
    )
    parser.add_argument("--release-version", metavar="VERSION", help="version-mapping: a metadata.version")
    parser.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="feature-dependencies; repeatable",
    )
    parser.add_argument(
        "--captures",
        type=local_path,
        action=AddValues,
        metavar="PATH",
        help="describe: from these captures",
    )
    parser.add_argument("--lake", type=lake_folder, metavar="PATH", help="describe: from a lake")
    add_identity(parser)


def run(args: argparse.Namespace) -> int:
    """Print what the tool would have printed. Raises Failure."""
    must_take_its_options(args, _OPTIONS)
    if args.action == "describe":
        return _describe(args)
    release = release_of(args.tool)
    if release is None:
        raise Failure(f"release {args.tool} is not known; known releases: {', '.join(RELEASES)}")
    return _printed(_asked(args, release))


def _asked(args: argparse.Namespace, release: Release) -> Iterable[str]:
    """Raises Failure."""
    if args.action == "version-mapping":
        return version_mapping(release, args.release_version)
    if not args.feature:
        raise Failure("feature-dependencies takes --feature NAME=LEVEL; see the examples of --help")
    return feature_dependencies(release, [_feature(text) for text in args.feature])


def _feature(text: str) -> tuple[str, int]:
    name, _, level = text.partition("=")
    if not name or not level.isdecimal():
        raise Failure(f"{text!r} is not a feature and a level such as metadata.version=30")
    return name, int(level)


def _printed(lines: Iterable[str]) -> int:
    """The tool prints what it can, then the error."""
    try:
        for line in lines:
            print_lines([line])
    except UnknownFeatureError as unknown:
        warn_line(str(unknown))
        return ExitCode.FOUND
    return ExitCode.FINE


def _describe(args: argparse.Namespace) -> int:
    if not args.captures and args.lake is None:
        raise Failure("describe takes --captures PATH... or --lake PATH")
    # What concludes is imported late: help, and what is wrong with a command, comes first.
    from jobs.plan_captures import captured_metadata
    from kraft_core.plan.feature_control import state_of

    args.live = None
    metadata, unread = captured_metadata(args)
    for line in unread:
        warn_line(f"not read: {line}")
    quorum, image = metadata.quorum, metadata.committed
    gaps = metadata.gaps
    if gaps:
        raise Failure(f"not known: {gaps[0]}", ExitCode.FOUND)
    if image is None or quorum.leader is None or quorum.kraft_version is None:
        raise Failure("not known: the captures do not prove any metadata committed", ExitCode.FOUND)
    state = state_of(image, quorum.leader.id, quorum.kraft_version, ())
    if state is None:
        raise Failure(
            "not known: the log does not show metadata.version, or what the leader supports", ExitCode.FOUND
        )
    levels = {
        **state.finalized,
        METADATA_VERSION: state.metadata_version,
        KRAFT_VERSION: state.kraft_version,
    }
    print_lines(describe(state.local, levels, None))
    return ExitCode.FINE
