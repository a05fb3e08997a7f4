"""Rules 5 and 7: committed batches remain in every replica that held them and in every later leader.

A proof of commitment covers only the batches of its own log: a dead replica that keeps or truncates a
diverged tail loses nothing. The rules apply to a leader or replica from the epoch in which a batch was
committed, which may be later than the batch's own (Raft, figure 8). They do not depend on clocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from kraft_core.evidence.facts import Capture, EpochRange, label
from kraft_core.evidence.holdings import lacks
from kraft_core.evidence.lineage import EpochLine, Link
from kraft_core.evidence.proofs import Proof
from kraft_core.findings.capture_order import is_later, successive
from kraft_core.findings.cluster_view import ClusterView, epoch_at
from kraft_core.findings.finding import Breach, Severity, of_rule
from kraft_core.wording import offset_words


def committed_stay(view: ClusterView) -> Iterator[Breach]:
    """Rule 5, between two captures of one replica in known order, where the loss comes after the commitment.

    That is so if the batch was committed in its own epoch (no leader without it can have been elected since
    it was stored), or in an epoch that the replica had reached in the earlier capture. A replica that had not
    may follow a leader of an epoch between, which lacks the batch, and lose it lawfully. An observer does not
    flush what it fetches and may lose it when the machine fails: a warning.
    """
    for replica, captures in view.known.holdings.captures.items():
        if replica.directory_id is None:  # each capture may be of another disk
            continue
        for before, after in successive(captures):
            for epoch_range in _not_kept(before, after):
                proven = _committed_end(view, before, epoch_range)
                lost = (
                    _first_lacked(after, epoch_range.leader_epoch, epoch_range.first_offset, proven[0])
                    if proven
                    else None
                )
                if proven is not None and lost is not None:
                    yield _lost(view, before, after, epoch_range.leader_epoch, lost, *proven)


def _not_kept(before: Capture, after: Capture) -> Iterator[EpochRange]:
    """The ranges of a capture that the next one does not hold in full."""
    now: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for epoch_range in after.epoch_ranges:
        now[epoch_range.leader_epoch].append((epoch_range.first_offset, epoch_range.end_offset))
    for epoch_range in before.epoch_ranges:
        if not any(
            first <= epoch_range.first_offset and epoch_range.end_offset <= end
            for first, end in now[epoch_range.leader_epoch]
        ):
            yield epoch_range


def _committed_end(view: ClusterView, before: Capture, epoch_range: EpochRange) -> tuple[int, Proof] | None:
    """Up to where a captured range was committed by a proof that binds the replica; None: nowhere."""
    line = view.known.lineage.lines.get(epoch_range.leader_epoch)
    prefix = view.known.committed_in.get(epoch_range.leader_epoch)
    if prefix is None or line is None or line.contested:
        return None
    reached = before.epoch_ranges[-1].leader_epoch if before.in_epoch is None else before.in_epoch
    committed = prefix.committed_by(reached)
    if committed is None or committed[0] <= epoch_range.first_offset:
        return None
    end, proof = committed
    return min(end, epoch_range.end_offset), proof


def _first_lacked(after: Capture, epoch: int, first: int, end: int) -> int | None:
    """The first offset of an epoch, from `first` to `end`, that a later log lacks; None if it lacks none."""
    ends = [epoch_range.end_offset for epoch_range in after.epoch_ranges] + (
        [after.known_end] if after.known_end is not None else []
    )
    starts = [epoch_range.first_offset for epoch_range in after.epoch_ranges]
    for offset in sorted({first, *(o for o in (*starts, *ends) if first < o < end)}):
        if first <= offset < end and lacks(after, epoch, offset):
            return offset
    return None


def _lost(
    view: ClusterView, before: Capture, after: Capture, epoch: int, first: int, end: int, proof: Proof
) -> Breach:
    severity: Severity = "error" if view.is_voter(before) else "warning"
    now = epoch_at(after, first)
    what = (
        f"it then had epoch {now} there"
        if now is not None
        else f"its log then ended at {after.log_end_offset}"
    )
    captures = view.known.holdings.captures[before.replica]
    later = [c for c in captures if c is after or is_later(c, after)]
    return Breach(
        of_rule(5),
        severity,
        (before.node_id, before.directory_id, epoch, first),
        f"{label(before.replica)} held the committed {offset_words(first, end)} of epoch {epoch} and lost "
        f"{'it' if end == first + 1 else 'them'}: {what}.",
        proof.words,
        first_offset=first,
        end_offset=end,
        leader_epochs=(epoch,),
        replicas=(before.replica,),
        captures=tuple(capture for capture in later if lacks(capture, epoch, first)),
    )


def leader_is_complete(view: ClusterView) -> Iterator[Breach]:
    """Rule 7: what was committed in an earlier epoch lies on the line of every later leader.

    A leader that holds everything a complete leader committed holds what was committed before that, too.
    """
    prefixes, complete = view.known.committed_in, set[int]()
    proven = sorted(prefixes)
    for epoch, line in view.known.lineage.lines.items():
        if epoch not in view.known.elections or line.contested or line.start != line.first_offset:
            continue
        path, is_complete = _Path(view, line), True
        for earlier in reversed(proven[: bisect_left(proven, epoch)]):
            committed = prefixes[earlier].committed_by(epoch - 1)
            held = view.known.lineage.lines.get(earlier)
            if committed is None or held is None or held.contested:
                continue
            end, proof = committed
            reached, known_from = path.of(earlier)
            for first, held_end in held.covered:
                missing = max(first, known_from, reached), min(held_end, end)
                if missing[0] < missing[1]:
                    is_complete = False
                    yield _incomplete(view, epoch, earlier, missing, proof)
            if earlier in complete and reached >= end:
                break
        if is_complete:
            complete.add(epoch)


class _Path:
    """The log with which a leader began its epoch, read downwards on demand."""

    def __init__(self, view: ClusterView, line: EpochLine) -> None:
        self._lines = view.known.lineage.lines
        self._ends: dict[int, int] = {}
        self._below = line.below
        self._lowest = line.first_offset

    def of(self, epoch: int) -> tuple[int, int]:
        """Up to where the leader held an earlier epoch (-1: not at all), and from where on that is known.

        Below the part that is read lie only lower epochs.
        """
        while self._below is not None and self._below.parent >= epoch:
            self._step(self._below)
        return self._ends.get(epoch, -1), self._lowest if self._below is None else 0

    def _step(self, below: Link) -> None:
        self._ends[below.parent] = below.end_offset
        parent = self._lines.get(below.parent)
        if parent is None or parent.contested or parent.first_offset >= below.end_offset:
            self._below = None
            return
        self._lowest = _contiguous_from(parent, below.end_offset)
        self._below = parent.below if self._lowest == parent.start else None


def _contiguous_from(line: EpochLine, end: int) -> int:
    """The first of the covered offsets that reach an end without a gap."""
    return next((first for first, to in line.covered if first < end <= to), end)


def _incomplete(
    view: ClusterView, epoch: int, earlier: int, missing: tuple[int, int], proof: Proof
) -> Breach:
    election = view.known.elections[epoch]
    captures = view.holding(epoch, election.offset)
    first, end = missing
    return Breach(
        of_rule(7),
        "error",
        (epoch, earlier),
        f"Leader {election.leader_id} of epoch {epoch} lacked the committed {offset_words(first, end)} of "
        f"epoch {earlier}.",
        proof.words,
        first_offset=first,
        end_offset=end,
        leader_epochs=(earlier, epoch),
        replicas=(view.replica_named(election.leader_id),),
        captures=captures,
    )
