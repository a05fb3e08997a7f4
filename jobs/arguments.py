"""Arguments that several verbs share, and how they are interpreted."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from jobs.maintenance.publishing import add_catalog
from jobs.runtime.lakes import lake_folder
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import Failure

if TYPE_CHECKING:
    from jobs.captures.planning import Selection
    from transforms.ingest.inputs import Inputs

EPOCH = datetime.fromtimestamp(0, UTC)


def add_lake(parser: argparse.ArgumentParser) -> None:
    """--lake and --master. A verb whose exit code depends on findings adds --fail-on (runtime.fail_on), a
    verb that registers the lake in a catalog adds --catalog (maintenance.publishing).
    """
    parser.set_defaults(fail_on="never", wait=0.0, catalog=None, database=None)
    add_lake_path(parser)
    parser.add_argument("--master", metavar="URL", help="Spark master (default: all cores of this machine)")


class _AddsArguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: str, **options: Any) -> Any: ...


def add_lake_path(parser: _AddsArguments, required: bool = True) -> None:
    """--lake, for verbs that start no job of Spark."""
    parser.add_argument(
        "--lake",
        type=lake_folder,
        required=required,
        metavar="PATH",
        help="folder of the lake, or s3://bucket/path",
    )


def add_clusters(parser: argparse.ArgumentParser) -> None:
    """--cluster, any number of times."""
    parser.add_argument(
        "--cluster", action="append", default=[], metavar="CLUSTER", help="only this cluster; repeatable"
    )


def add_format(parser: argparse.ArgumentParser, *forms: str) -> None:
    """--format, by default the first form."""
    parser.add_argument(
        "--format", choices=forms, default=forms[0], help=f"output format (default: {forms[0]})"
    )


def add_wait(parser: argparse.ArgumentParser) -> None:
    """--wait, for verbs that write the lake; other verbs never wait."""
    parser.add_argument(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait for another run that is writing the lake before exiting with 4 (default: 0)",
    )


def add_captures(parser: argparse.ArgumentParser) -> None:
    """What to read, and facts that the captures themselves may lack."""
    parser.add_argument(
        "--captures",
        action=AddValues,
        required=True,
        metavar="PATH",
        help="folders that contain controller directories at any depth, or archives of such folders "
        "(.tar.gz, .tgz, .tar, .zip); local or on s3://, gs:// or hdfs://; repeatable",
    )
    parser.add_argument(
        "--scratch",
        type=local_path,
        metavar="PATH",
        help="folder for unpacked archives and fetched files, visible to every Spark worker (default: the "
        "system's folder for temporary files)",
    )
    add_lake(parser)
    add_wait(parser)
    add_catalog(parser)
    add_clusters(parser)
    add_cluster_id(parser)
    parser.add_argument(
        "--node-id", type=node_id, metavar="N", help="node id of directories that contain none"
    )
    parser.add_argument(
        "--captured-at",
        type=moment_ms,
        metavar="TIME",
        help="when the captures were copied, such as 2026-11-21T09:15:23Z (default: from capture.json; "
        "file times prove nothing)",
    )
    parser.add_argument(
        "--verify", action="store_true", help="read everything again, even captures that were loaded before"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only print what is found, whether the lake has it or not",
    )


def add_cluster_id(parser: argparse.ArgumentParser) -> None:
    """--cluster-id, read by jobs.captures.given_clusters."""
    parser.add_argument(
        "--cluster-id",
        action="append",
        default=[],
        metavar="[PATH=]ID",
        help="cluster id of directories that contain none; with PATH=, the id of all captures below that "
        "path, whatever they contain; repeatable",
    )


def add_identity(parser: argparse.ArgumentParser) -> None:
    """--cluster, and what --captures may lack: --cluster-id, --node-id, --captured-at."""
    parser.add_argument("--cluster", metavar="CLUSTER", help="the cluster; optional if there is only one")
    add_cluster_id(parser)
    parser.add_argument(
        "--node-id", type=node_id, metavar="N", help="node id of --captures that contain none"
    )
    parser.add_argument("--captured-at", type=moment_ms, metavar="TIME", help="when --captures were copied")


class AddValues(argparse.Action):
    """One value or several: each use adds to the uses before; the first replaces those of the settings."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs="+", **options)

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, __: str | None = None) -> None:
        held = getattr(namespace, self.dest, None)
        before = [] if held is None or held is self.default else held
        setattr(namespace, self.dest, [*before, *values])


def selection_of(args: argparse.Namespace, inputs: Inputs) -> Selection:
    """The selection from add_captures' arguments, whose paths have been opened."""
    from jobs.captures.given_clusters import given_clusters
    from jobs.captures.planning import Selection

    for life in (cluster for cluster in args.cluster if "/" in cluster):
        raise Failure(
            f"--cluster {life}: captures are selected by the cluster id in meta.properties; their lives "
            f"are not known before they are read"
        )
    cluster_id, given = given_clusters(args.cluster_id, args.settings.cluster_paths, inputs.named)
    return Selection(
        paths=tuple(inputs.roots),
        clusters=frozenset(args.cluster),
        cluster_id=cluster_id,
        given=given,
        node_id=args.node_id,
        captured_at=args.captured_at,
        verify=args.verify,
        unreadable=inputs.unreadable,
    )


def add_now(parser: argparse.ArgumentParser) -> None:
    """--now, the reference clock of everything that has an age."""
    parser.add_argument(
        "--now",
        type=moment_ms,
        metavar="TIME",
        help="compute ages as of this time, such as 2026-11-21T12:00:00Z (default: now)",
    )


def add_evidence_age(parser: argparse.ArgumentParser) -> None:
    """--max-evidence-age-hours and --now, for verbs that call something safe."""
    parser.add_argument(
        "--max-evidence-age-hours",
        type=positive_hours,
        default=24.0,
        metavar="HOURS",
        help="evidence older than this proves only what was safe then, not what is safe now (default: 24)",
    )
    add_now(parser)


def node_id(text: str) -> int:
    """The id of a node."""
    id_ = int(text)
    if id_ < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a node id")
    return id_


def duration(text: str) -> float:
    """Seconds of a number with a unit: 30s, 1m, 1h, 2d."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:])
    if unit is None or not (text.isascii() and text[:-1].isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 30s, 1m, 1h or 2d")
    return int(text[:-1]) * unit


def seconds(text: str) -> float:
    """A number of seconds, 0 or more."""
    return _number(text, "seconds", math.inf)


def days(text: str) -> float:
    """A number of days, 0 or more: a negative age would be of the future."""
    return _number(text, "days", 365_000)


def _number(text: str, unit: str, limit: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < limit:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {unit}, 0 or more")
    return value


def positive_hours(text: str) -> float:
    """A number of hours above 0."""
    hours = float(text)
    if not 0 < hours < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0")
    return hours


def now_of(args: argparse.Namespace) -> datetime:
    """The reference time: --now, else the clock."""
    return datetime.now(UTC) if args.now is None else EPOCH + timedelta(milliseconds=args.now)


def is_given(value: object) -> bool:
    """Whether an option was given, by its value: 0 is one."""
    return value is not None and value is not False and value != []


def must_take_its_options(args: argparse.Namespace, options: Mapping[str, Sequence[str]]) -> None:
    """Raises Failure for an option of another action: the answer would not be about it.

    options: by name in the namespace, the actions that take it.
    """
    for option, actions in options.items():
        if is_given(getattr(args, option)) and args.action not in actions:
            name = option.replace("_", "-")
            raise Failure(f"--{name} is an option of {' and '.join(actions)}, not of {args.action}")


def moment_ms(text: str) -> int:
    """An ISO 8601 time as milliseconds since the epoch; UTC unless it has a zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-11-21T09:15:23Z") from None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
