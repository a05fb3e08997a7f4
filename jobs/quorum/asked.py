"""A running quorum that a command queries: its addresses, and the errors of querying it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jobs.runtime.outcome import ExitCode, Failure

if TYPE_CHECKING:
    from transforms.live.options import LiveCluster


def add_command_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a client's properties file: security.protocol, sasl.*, ssl.* (docs/live.md)",
    )


def living_cluster(
    option: str, where: str, args: argparse.Namespace, cluster_id: str | None = None
) -> LiveCluster:
    """The cluster at bootstrap.controllers or bootstrap.servers. Raises Failure."""
    # Imports PySpark, a second that help need not wait.
    from transforms.live.options import quorum_options
    from transforms.source.errors import SourceError

    given = {option: where}
    if cluster_id is not None:
        given["clusterId"] = cluster_id
    if args.command_config is not None:
        given["command.config"] = args.command_config
    try:
        (cluster,) = quorum_options(given)
    except SourceError as error:
        raise Failure(str(error)) from None
    return cluster


@contextmanager
def asking() -> Iterator[None]:
    """What may heal ends with TRY_AGAIN, what a person has to change with ENVIRONMENT."""
    from kraft_core.wire.errors import RefusedError, WireError
    from transforms.source.errors import SourceError

    try:
        yield
    except (RefusedError, SourceError) as error:
        raise Failure(str(error), ExitCode.ENVIRONMENT) from None
    except WireError as error:
        raise Failure(str(error), ExitCode.TRY_AGAIN) from None
