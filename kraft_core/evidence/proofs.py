"""Proofs that a prefix of the log was committed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

BoundKind = Literal["snapshot", "first_data_batch", "voters_record", "live", "answer"]
ProofKind = Literal[BoundKind, "majority"]
Order: TypeAlias = tuple[int | str, ...]
_RANK: dict[ProofKind, int] = {
    "snapshot": 0,
    "first_data_batch": 1,
    "voters_record": 2,
    "majority": 3,
    "live": 4,
    "answer": 5,
}


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything below end_offset on the line of leader_epoch was committed by as_of (ms).

    as_of: None where the captures that prove it do not say when they were taken: by the time of reading.
    committed_in: the leader of that epoch or of an earlier one committed it; None if no epoch is known. A
    snapshot bears the epoch of its last record, which the leader of a later epoch may have brought back and
    committed (Raft, figure 8): only its holder's quorum-state bounds the epoch.
    """

    kind: ProofKind
    leader_epoch: int
    end_offset: int
    as_of: int | None
    words: str
    committed_in: int | None

    @property
    def order(self) -> tuple[int, int, int, int, int, str]:
        """Earlier first; then an order by value, so that a choice depends on nothing else."""
        return (*time_order(self.as_of), self.leader_epoch, self.end_offset, _RANK[self.kind], self.words)


def time_order(as_of: int | None) -> tuple[int, int]:
    """Earlier times first, an unknown one last."""
    return (1, 0) if as_of is None else (0, as_of)


@dataclass(frozen=True, slots=True)
class CommittedPrefix:
    """What is committed of one epoch's line.

    ends: offsets, rising; by_end: for each the first proof of that much or more, of this epoch or a later
    one, first by the order that the proofs were reduced by.
    """

    ends: tuple[int, ...]
    by_end: tuple[Proof, ...]

    @property
    def end_offset(self) -> int:
        return self.ends[-1]

    @property
    def first(self) -> Proof:
        """The first proof that anything of the epoch is committed."""
        return self.by_end[0]

    def proof_of(self, end_offset: int) -> Proof | None:
        """The first proof that everything below `end_offset` is committed."""
        nth = bisect_left(self.ends, end_offset)
        return self.by_end[nth] if nth < len(self.ends) else None

    def committed_by(self, epoch: int) -> tuple[int, Proof] | None:
        """Up to where the line was committed in an epoch or an earlier one, as far as that is known."""
        for end, proof in zip(reversed(self.ends), reversed(self.by_end), strict=True):
            if proof.committed_in is not None and proof.committed_in <= epoch:
                return end, proof
        return None


def by_time(proof: Proof) -> Order:
    """What was committed earlier comes first."""
    return proof.order


def by_epoch(proof: Proof) -> Order:
    """What was committed in the lower epoch comes first; for proofs with a known epoch."""
    return (-1 if proof.committed_in is None else proof.committed_in, *proof.order)


def committed_prefix(
    proofs: Iterable[tuple[int, Proof]], order: Callable[[Proof], Order] = by_time
) -> CommittedPrefix:
    """Proofs, each with the end up to which it commits this epoch, reduced to the first for each end."""
    kept: list[tuple[int, Proof]] = []
    for end, proof in sorted(proofs, key=lambda entry: (-entry[0], order(entry[1]))):
        if not kept or order(proof) < order(kept[-1][1]):
            if kept and kept[-1][0] == end:
                continue
            kept.append((end, proof))
    kept.reverse()
    return CommittedPrefix(tuple(end for end, _ in kept), tuple(proof for _, proof in kept))
