"""The commit status of captured batches: committed, truncated, uncommitted or undecided.

Captures of two histories (lineage.contested_epochs) prove nothing truncated and nothing uncommitted.

committed: a proof of its epoch, or of a later one on its line, covers it. truncated: see
truncation.py. uncommitted: so many voters lacked it in their newest captures, taken after its append, that
the others are not a majority; it may still commit after as_of. Everything else is undecided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from kraft_core.evidence.facts import Capture, TimeSource, label, labels
from kraft_core.evidence.holdings import Holdings, lacks
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.lineage import EpochLine, Lineage
from kraft_core.evidence.next_sets import NextSets
from kraft_core.evidence.proofs import CommittedPrefix, Order, Proof, by_time, committed_prefix
from kraft_core.evidence.states import SetInForce
from kraft_core.evidence.truncation import Truncation, truncations
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet

Status = Literal["committed", "truncated", "uncommitted", "undecided"]


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """A status, what proves it, and when (ms).

    as_of: committed and truncated hold for good from then on, from the time of reading where it is None;
    uncommitted held then; undecided is what captures up to then leave open (None where none of a known time
    holds it).
    """

    status: Status
    evidence: str
    as_of: int | None
    truncated_by_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class _Lack:
    """A voter lacked a batch at `at` (ms) and before, by what says when its capture was taken."""

    at: int
    source: TimeSource


def committed_prefixes(
    lineage: Lineage,
    proofs: Iterable[tuple[int, int, Proof]],
    order: Callable[[Proof], Order] = by_time,
) -> dict[int, CommittedPrefix]:
    """What is committed of each epoch, from proofs as (leader epoch, end offset, proof).

    A committed batch commits everything below it on its line, in earlier epochs too.
    """
    found: defaultdict[int, list[tuple[int, Proof]]] = defaultdict(list)
    for epoch, end, proof in proofs:
        found[epoch].append((end, proof))
    prefixes: dict[int, CommittedPrefix] = {}
    for epoch in sorted({*found, *lineage.lines}, reverse=True):
        if not found[epoch]:
            continue
        prefixes[epoch] = committed_prefix(found[epoch], order)
        line = lineage.lines.get(epoch)
        if line is not None and not line.contested:
            for link in line.links:
                found[link.parent].append((link.end_offset, prefixes[epoch].first))
    return prefixes


class CommitStatus:
    """Verdicts over one cluster's facts.

    is_reconfigured: static voters are configured with others, so that what these lack may be committed.
    """

    def __init__(
        self,
        lineage: Lineage,
        in_force: InForce,
        holdings: Holdings,
        prefixes: dict[int, CommittedPrefix],
        next_sets: NextSets,
        is_reconfigured: bool = False,
    ) -> None:
        self.lineage = lineage
        self.in_force = in_force
        self.prefixes = prefixes
        self.truncations: dict[int, Truncation] = (
            {} if lineage.contested_epochs else truncations(lineage, prefixes)
        )
        self._holdings = holdings
        self._is_reconfigured = is_reconfigured
        self.next_sets = next_sets
        self._newest = {replica: self._newest_captures(replica) for replica in holdings.captures}
        # Asked of each cut of a line, and of each line by more than one.
        self._may_lack: dict[ReplicaKey, list[Capture]] = {}
        self._ranges: dict[int, list[tuple[int, int, CommitVerdict]]] = {}

    def of_batch(self, leader_epoch: int, base_offset: int, end_offset: int) -> CommitVerdict:
        """The verdict on one batch of an epoch's line."""
        line = self.lineage.lines.get(leader_epoch)
        if line is not None and line.contested:
            return _contested(line)
        if line is not None and line.start is not None and base_offset < line.start:
            return CommitVerdict(
                "undecided", f"the captured part of the epoch begins above it, at {line.start}", None
            )
        prefix = self.prefixes.get(leader_epoch)
        proof = prefix.proof_of(end_offset) if prefix else None
        if proof is not None:
            return _committed(leader_epoch, proof)
        truncation = self.truncations.get(leader_epoch)
        if truncation is not None and truncation.offset <= base_offset:
            return _truncated(truncation)
        # Of two leaders of one epoch, a batch can begin on the captured line and end above it.
        if line is None or not line.covers(base_offset) or not line.covers(end_offset - 1):
            return CommitVerdict("undecided", "no captured log contains it", None)
        return self._open_verdict(line, base_offset, end_offset)

    def ranges(self, line: EpochLine) -> list[tuple[int, int, CommitVerdict]]:
        """(first, end, verdict) of everything captured of an epoch, cut where the status changes."""
        epoch = line.leader_epoch
        if epoch not in self._ranges:
            self._ranges[epoch] = self._joined_pieces(line)
        return self._ranges[epoch]

    def _joined_pieces(self, line: EpochLine) -> list[tuple[int, int, CommitVerdict]]:
        found: list[tuple[int, int, CommitVerdict]] = []
        for first, end in line.covered:
            pieces = [(first, end, _contested(line))] if line.contested else self._pieces(line, first, end)
            for _, same in groupby(pieces, key=lambda piece: piece[2].status):
                run = list(same)
                found.append((run[0][0], run[-1][1], _joined([verdict for *_, verdict in run])))
        return found

    def _pieces(self, line: EpochLine, first: int, end: int) -> Iterator[tuple[int, int, CommitVerdict]]:
        prefix = self.prefixes.get(line.leader_epoch)
        committed_end = min(end, prefix.end_offset) if prefix else first
        if prefix is not None and first < committed_end:
            proof = prefix.proof_of(committed_end)
            if proof is not None:
                yield first, committed_end, _committed(line.leader_epoch, proof)
        open_first = max(first, committed_end)
        truncation = self.truncations.get(line.leader_epoch)
        open_end = end if truncation is None else min(end, max(open_first, truncation.offset))
        for cut, next_cut in pairwise(self._cuts(line, open_first, open_end)):
            yield cut, next_cut, self._open_verdict(line, cut, next_cut)
        if truncation is not None and open_end < end:
            yield open_end, end, _truncated(truncation)

    def _cuts(self, line: EpochLine, first: int, end: int) -> list[int]:
        """Where the verdict on batches that are neither committed nor truncated may change."""
        if first >= end:
            return []
        cuts = {first, end}
        cuts |= {offset for offset, _ in line.appended_by if first < offset < end}
        for part in self.in_force.voter_set_ranges(line):
            cuts |= {offset for offset in (part.first_offset,) if first < offset < end}
            for capture in self._newest_of(part.voters):
                if capture.known_end is not None and first < capture.known_end < end:
                    cuts.add(capture.known_end)
        return sorted(cuts)

    def _newest_of(self, voters: SetInForce | None) -> Iterator[Capture]:
        for voter in voters.voters if voters else ():
            for replica in self._holdings.replicas_of(voter):
                yield from self._newest[replica]

    def _open_verdict(self, line: EpochLine, first: int, end: int) -> CommitVerdict:
        for epoch in self.lineage.contested_epochs[:1]:
            words = f"captures contradict each other about epoch {epoch}: they may be of two histories"
            return CommitVerdict("undecided", words, line.newest_capture_at)
        voters = self.in_force.voters_at(line.leader_epoch, end - 1)
        if voters is None:
            words = "its voter set is unknown, and no other proof covers it"
            return CommitVerdict("undecided", words, line.newest_capture_at)
        if voters.source == "static" and self._is_reconfigured:
            words = f"other voters than {voters.words} are configured, and no other proof covers it"
            return CommitVerdict("undecided", words, line.newest_capture_at)
        appended_by = line.all_appended_by(end)
        assert appended_by is not None  # a capture covers it
        lacking = self._lacking(voters.voters, line.leader_epoch, first, appended_by)
        left = [voter.key for voter in voters.voters if voter.key not in lacking]
        lacked_by = ", ".join(f"{label(key)} (by {lack.source})" for key, lack in lacking.items())
        known = f"of {voters.words} {lacked_by or 'none'} lacked it"
        counting = [voters, *self.next_sets.after(line, end)]
        if voters.source == "static":
            counting += self.next_sets.configured_after(line.leader_epoch)
        others = (self._lacking(s.voters, line.leader_epoch, first, appended_by) for s in counting[1:])
        by_set = list(zip(counting, [lacking, *others], strict=True))
        as_of = min((lack.at for _, entries in by_set for lack in entries.values()), default=None)
        if as_of is not None and all(
            len(s.voters) - len(entries) < s.voters.majority for s, entries in by_set
        ):
            no_next_set = (
                len(left) <= (len(voters.voters) - 1) // 2
                or self._has_no_next(voters, as_of)
                or self._leader_stayed(voters, line, end, as_of)
            )
            if no_next_set:
                words = f"{known}; the others ({labels(left) or 'none'}) are not a majority"
                return CommitVerdict("uncommitted", words, as_of)
            words = f"{known}; {labels(left)} are a majority of a next set that may not have been captured"
            return CommitVerdict("undecided", words, line.newest_capture_at)
        words = f"{known}; {labels(left)} may have stored it, but nothing proves it"
        return CommitVerdict("undecided", words, line.newest_capture_at)

    def _has_no_next(self, voters: SetInForce, moment: int) -> bool:
        """Whether a set was uncommitted at a moment: then no leader had appended a next one.

        A leader changes the voters once the previous change is committed (KIP-853), by the set itself.
        """
        if voters.source != "record" or voters.appended_at is None:
            return False
        base = voters.batch_base_offset
        lacking = self._lacking(voters.voters, voters.leader_epoch, base, voters.appended_at)
        count = sum(lack.at >= moment for lack in lacking.values())
        return len(voters.voters) - count < voters.voters.majority

    def _leader_stayed(self, voters: SetInForce, line: EpochLine, end: int, moment: int) -> bool:
        """Whether the epoch's leader was captured in its epoch at or after a moment, its log known from end.

        Then every voter set that it had appended is known. Half of an even set is a majority of that set
        without one of the others.
        """
        leader = self.in_force.leader_among(voters.voters, line.leader_epoch)
        if leader is None or self._holdings.is_doubtful(leader):
            return False
        return any(
            capture.captured_from is not None
            and capture.captured_from >= moment
            and capture.in_epoch == line.leader_epoch
            and self._shows_sets(line, end, capture)
            for replica in self._holdings.replicas_of(leader)
            for capture in reversed(self._holdings.captures[replica])
        )

    def _shows_sets(self, line: EpochLine, end: int, capture: Capture) -> bool:
        """Whether every set in its log from a batch's end on is known: what no copy supplies may hold one."""
        log_end = capture.known_end
        if log_end is None or log_end < end:
            return False
        is_whole = any(first < end and log_end <= last for first, last in line.covered)
        return is_whole and all(
            part.voters is not None
            for part in self.in_force.voter_set_ranges(line)
            if part.end_offset >= end and part.first_offset < log_end
        )

    def _lacking(
        self, voters: VoterSet, leader_epoch: int, first: int, appended_by: int
    ) -> dict[ReplicaKey, _Lack]:
        """The voters that lack a batch."""
        lacks_of = ((voter.key, self._lack(voter, leader_epoch, first, appended_by)) for voter in voters)
        return {key: lack for key, lack in lacks_of if lack is not None}

    def _lack(self, voter: Voter, leader_epoch: int, first: int, appended_by: int) -> _Lack | None:
        """That the voter's newest capture lacks the batch.

        None if that may have been before the append, or if a capture that may be as new holds it.
        """
        found: list[_Lack] = []
        for capture in self._captures_that_count(voter):
            if capture.captured_from is None or capture.captured_from < appended_by:
                return None
            if self._holdings.may_be_new_disk(capture, voter):
                return None
            if not (self._holdings.shows_end(capture) and lacks(capture, leader_epoch, first)):
                return None
            found.append(_Lack(capture.captured_from, capture.time_source))
        return min(found, key=lambda lack: (lack.at, lack.source), default=None)

    def _captures_that_count(self, voter: Voter) -> list[Capture]:
        """The newest captures of a voter by which it may lack something; none of a doubtful one."""
        if voter.key not in self._may_lack:
            replicas = () if self._holdings.is_doubtful(voter) else self._holdings.replicas_of(voter)
            self._may_lack[voter.key] = [c for replica in replicas for c in self._newest[replica]]
        return self._may_lack[voter.key]

    def _newest_captures(self, replica: ReplicaKey) -> list[Capture]:
        """Those of a replica that may be its newest."""
        captures = self._holdings.captures[replica]
        newest = max((c.captured_from for c in captures if c.captured_from is not None), default=None)
        return [
            capture
            for capture in captures
            if newest is None or capture.captured_until is None or capture.captured_until >= newest
        ]


def _committed(leader_epoch: int, proof: Proof) -> CommitVerdict:
    later = (
        f"below a committed batch of epoch {proof.leader_epoch}: "
        if proof.leader_epoch > leader_epoch
        else ""
    )
    return CommitVerdict("committed", later + proof.words, proof.as_of)


def _truncated(truncation: Truncation) -> CommitVerdict:
    return CommitVerdict("truncated", truncation.words, truncation.as_of, truncation.by_epoch)


def _contested(line: EpochLine) -> CommitVerdict:
    words = f"captures contradict each other about epoch {line.leader_epoch}"
    return CommitVerdict("undecided", words, line.newest_capture_at)


def _joined(verdicts: list[CommitVerdict]) -> CommitVerdict:
    """The verdict on adjacent ranges of one status: the proofs of the first and the last."""
    evidence = dict.fromkeys([verdicts[0].evidence, verdicts[-1].evidence])
    words, status = "; further up ".join(evidence), verdicts[0].status
    known = [verdict.as_of for verdict in verdicts if verdict.as_of is not None]
    if status in ("committed", "truncated"):  # holds of all of it once it does of the last
        as_of = max(known) if len(known) == len(verdicts) else None
    else:
        as_of = min(known, default=None)
    return CommitVerdict(status, words, as_of, verdicts[0].truncated_by_epoch)
