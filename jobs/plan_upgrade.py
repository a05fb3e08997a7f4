"""plan upgrade and plan release: may these feature levels be finalized?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jobs.plan_captures import captured_metadata
from jobs.runtime.outcome import Failure
from kraft_core.messages.releases import (
    METADATA_VERSION,
    OTHER_FEATURES,
    RELEASES,
    metadata_level,
    release_of,
)
from kraft_core.wording import did_you_mean

if TYPE_CHECKING:
    from kraft_core.plan.answer import Answer
    from kraft_core.plan.captured_metadata import CapturedMetadata
    from kraft_core.plan.upgrade import FeatureUpgrade

evidence_of = captured_metadata


def words_of(args: argparse.Namespace) -> FeatureUpgrade:
    """What is asked. Raises Failure."""
    from kraft_core.plan.upgrade import FeatureUpgrade, release_upgrade

    if args.action == "release":
        if len(args.words) != 1:
            raise Failure("release takes a release, such as 4.4; see the examples of --help")
        release = release_of(args.words[0])
        if release is None:
            raise Failure(f"release {args.words[0]} is not known; known releases: {', '.join(RELEASES)}")
        return release_upgrade(release)
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


def answer_of(asked: FeatureUpgrade, metadata: CapturedMetadata) -> Answer:
    """The verdict."""
    from kraft_core.plan.upgrade import plan_upgrade

    return plan_upgrade(metadata, asked)
