"""Which of two captures of one replica was taken later, as far as that is known."""

from __future__ import annotations

from kraft_core.evidence.facts import Capture


def is_later(after: Capture, before: Capture) -> bool:
    """Whether a capture was provably taken after another one of the same replica.

    By their times, or by the replica's epoch, which never falls: one capture shows an epoch that the replica
    had not reached in the other (KIP-595, quorum state).
    """
    return before.captured_at < after.captured_at or _had_not_reached(before, _reached(after))


def _reached(capture: Capture) -> int:
    """An epoch that the replica had reached when it was captured, -1 if none is known."""
    epochs = [run.leader_epoch for run in capture.runs]
    return max(
        [*epochs, -1 if capture.quorum_state_epoch is None else capture.quorum_state_epoch], default=-1
    )


def _had_not_reached(capture: Capture, epoch: int) -> bool:
    return capture.in_epoch is not None and capture.in_epoch < epoch
