"""A running quorum for plan, instead of captures: its leader's log, and the leader's view of its replicas."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.quorum.asked import add_command_config, asking, living_cluster
from jobs.runtime.outcome import ExitCode, Failure

if TYPE_CHECKING:
    from kraft_core.plan.captured_quorum import CapturedQuorum


def add_live(parser: argparse.ArgumentParser) -> None:
    """--live and --command-config, read by from_living."""
    parser.add_argument(
        "--live", metavar="HOST:PORT,...", help="controllers of a running quorum, instead of --captures"
    )
    add_command_config(parser)


def from_living(args: argparse.Namespace) -> CapturedQuorum:
    """The quorum at the addresses of --live. Raises Failure."""
    from kraft_core.evidence.collect import collect_lives
    from kraft_core.evidence.conclusions import conclude
    from kraft_core.format.controller_dir import find_controller_dirs
    from kraft_core.plan.captured_quorum import quorum_of
    from kraft_core.plan.living import answered_watermarks, living_quorum
    from kraft_core.plan.registrations import registered
    from transforms.live.leader_copy import copy_leader

    cluster = living_cluster("bootstrap.controllers", args.live, args, args.cluster)
    with tempfile.TemporaryDirectory(prefix="kraftlake-") as folder:
        with asking():
            copy = copy_leader(cluster, Path(folder) / "leader")
        directories = find_controller_dirs([Path(folder)]).directories
        (copied,) = collect_lives(directories)
        facts = replace(copied.facts, answered=answered_watermarks(copy.quorum))
        quorum = quorum_of(conclude(facts), registered(directories))
    if quorum is None:
        raise Failure("the leader has no committed record yet: try again", ExitCode.TRY_AGAIN)
    return living_quorum(quorum, copy.quorum, copy.appended)
