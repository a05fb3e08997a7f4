"""Proofs that a prefix of the log was committed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

BoundKind = Literal["snapshot", "first_data_batch", "voters_record"]
ProofKind = Literal[BoundKind, "majority"]
_RANK: dict[ProofKind, int] = {"snapshot": 0, "first_data_batch": 1, "voters_record": 2, "majority": 3}


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything below end_offset on the line of leader_epoch was committed by as_of (ms)."""

    kind: ProofKind
    leader_epoch: int
    end_offset: int
    as_of: int
    words: str

    @property
    def order(self) -> tuple[int, int, int, int, str]:
        """Earlier first; then an order by value, so that a choice depends on nothing else."""
        return (self.as_of, self.leader_epoch, self.end_offset, _RANK[self.kind], self.words)


@dataclass(frozen=True, slots=True)
class CommittedPrefix:
    """What is committed of one epoch's line.

    ends: offsets, rising; by_end: for each the earliest proof of that much or more, of this epoch or a
    later one.
    """

    ends: tuple[int, ...]
    by_end: tuple[Proof, ...]

    @property
    def end_offset(self) -> int:
        return self.ends[-1]

    @property
    def earliest(self) -> Proof:
        """The earliest proof that anything of the epoch is committed."""
        return self.by_end[0]

    def proof_of(self, end_offset: int) -> Proof | None:
        """The earliest proof that everything below `end_offset` is committed."""
        nth = bisect_left(self.ends, end_offset)
        return self.by_end[nth] if nth < len(self.ends) else None


def committed_prefix(proofs: Iterable[tuple[int, Proof]]) -> CommittedPrefix:
    """Proofs, each with the end up to which it commits this epoch, reduced to the earliest for each end."""
    kept: list[tuple[int, Proof]] = []
    for end, proof in sorted(proofs, key=lambda entry: (-entry[0], entry[1].order)):
        if not kept or proof.order < kept[-1][1].order:
            if kept and kept[-1][0] == end:
                continue
            kept.append((end, proof))
    kept.reverse()
    return CommittedPrefix(tuple(end for end, _ in kept), tuple(proof for _, proof in kept))
