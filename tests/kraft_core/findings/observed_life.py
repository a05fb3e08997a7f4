"""Describe outputs of the cluster of tests.kraft_core.evidence.long_life."""

from __future__ import annotations

from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.evidence.long_life import PER_EPOCH


def observed_life(epochs: int) -> RuleFacts:
    """One output per epoch, from its leader, once all of its batches are written."""
    return RuleFacts(
        observations=tuple(
            Observation(
                "long",
                f"{epoch}-status.txt",
                100 * epoch + 91,
                100 * epoch + 95,
                "status",
                1 + epoch % 5,
                ZERO_UUID,
                "Leader",
                leader_epoch=epoch,
                high_watermark=PER_EPOCH * epoch,
            )
            for epoch in range(1, epochs + 1)
        )
    )
