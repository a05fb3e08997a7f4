"""Arguments that several verbs share, and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.maintenance.publishing import add_catalog

if TYPE_CHECKING:
    from jobs.captures.planning import Selection

EPOCH = datetime.fromtimestamp(0, UTC)


def add_lake(parser: argparse.ArgumentParser) -> None:
    """--lake and --master. A verb that fails by findings adds --fail-on (frame.verdict), one that registers
    the lake in a catalog --catalog (upkeep.publishing).
    """
    parser.set_defaults(fail_on="never", wait=0.0, catalog=None, database=None)
    parser.add_argument("--lake", type=Path, required=True, metavar="PATH", help="folder of the lake")
    parser.add_argument("--master", metavar="URL", help="Spark master; by default all cores of this machine")


def add_wait(parser: argparse.ArgumentParser) -> None:
    """--wait, of verbs that write the lake; others never wait."""
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait for a run that writes the lake; then exit 4 (default: not at all)",
    )


def add_captures(parser: argparse.ArgumentParser) -> None:
    """What to read, and what is known of it that the captures do not say themselves."""
    parser.add_argument(
        "--captures",
        nargs="+",
        required=True,
        metavar="PATH",
        help="folders in which controller directories lie, at any depth; archives of them (.tar.gz, .tgz, "
        ".tar, .zip); either of them on s3://, gs:// or hdfs://",
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        metavar="PATH",
        help="where archives are unpacked and remote files fetched; every Spark worker must see it "
        "(default: the system's folder for temporary files)",
    )
    add_lake(parser)
    add_wait(parser)
    add_catalog(parser)
    parser.add_argument(
        "--cluster", action="append", default=[], metavar="CLUSTER", help="read only this cluster"
    )
    parser.add_argument("--cluster-id", metavar="ID", help="cluster id of directories that state none")
    parser.add_argument("--node-id", type=int, metavar="N", help="node id of directories that state none")
    parser.add_argument(
        "--captured-at",
        type=moment_ms,
        metavar="TIME",
        help="when they were copied, as 2026-11-21T09:15:23Z; by default capture.json or file times say so",
    )
    parser.add_argument("--verify", action="store_true", help="read everything again, known or not")
    parser.add_argument("--dry-run", action="store_true", help="print what would be read, and stop")


def selection_of(args: argparse.Namespace, roots: Iterable[Path]) -> Selection:
    """The selection that add_captures' arguments make; roots: where the captures lie on this machine."""
    from jobs.captures.planning import Selection

    return Selection(
        paths=tuple(roots),
        clusters=frozenset(args.cluster),
        cluster_id=args.cluster_id,
        node_id=args.node_id,
        captured_at=args.captured_at,
        verify=args.verify,
    )


def now_of(args: argparse.Namespace) -> datetime:
    """The time that --now names; the clock's without it."""
    return datetime.now(UTC) if args.now is None else EPOCH + timedelta(milliseconds=args.now)


def moment_ms(text: str) -> int:
    """A time of ISO 8601 as milliseconds since the epoch; UTC where it names no zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 2026-11-21T09:15:23Z") from None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
