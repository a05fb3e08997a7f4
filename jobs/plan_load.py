"""plan load: will a release read and replay these logs and checkpoints?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobs.plan_captures import captured_directories
from jobs.runtime.outcome import Failure
from kraft_core.messages.releases import RELEASES, Release, release_of

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.load import CapturedDirectories

evidence_of = captured_directories


def words_of(args: argparse.Namespace) -> Release:
    """The release. Raises Failure."""
    from kraft_core.plan.load import OLDEST

    if len(args.words) != 1:
        raise Failure("load takes a release, such as 4.3.1; see the examples of --help")
    release = release_of(args.words[0])
    names = list(RELEASES)
    known = names[names.index(OLDEST.name) :]
    if release is None or release.name not in known:
        raise Failure(f"release {args.words[0]} is not known; known releases: {', '.join(known)}")
    return release


def answer_of(asked: Release, logs: CapturedDirectories) -> Answer:
    """The verdict."""
    from kraft_core.plan.load import plan_load

    return plan_load(logs, asked)
