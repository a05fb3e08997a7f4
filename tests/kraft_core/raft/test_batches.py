"""The chunked list of batches behaves as a plain list, and states share it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraft_core.raft.batches import CHUNK_LENGTH, Batch, Batches

lengths = st.lists(st.integers(1, 3), max_size=2 * CHUNK_LENGTH + 5)


def laid_out(lengths: list[int], base: int = 0) -> list[Batch]:
    batches: list[Batch] = []
    for length in lengths:
        batches.append(Batch(base, base + length - 1, 1))
        base += length
    return batches


@given(first=lengths, then=lengths, offset=st.integers(0, 3 * CHUNK_LENGTH))
def test_as_a_list(first: list[int], then: list[int], offset: int) -> None:
    head = laid_out(first)
    tail = laid_out(then, head[-1].end_offset if head else 0)
    batches = Batches(head).extended(tail)
    plain = head + tail
    assert list(batches) == plain
    assert len(batches) == len(plain)
    assert (batches.first, batches.last) == ((plain[0], plain[-1]) if plain else (None, None))
    assert list(batches.truncated(offset)) == [batch for batch in plain if batch.end_offset <= offset]
    assert list(batches.starting_at(offset)) == [batch for batch in plain if batch.end_offset > offset]
    holding = [batch for batch in plain if batch.base_offset <= offset < batch.end_offset]
    assert batches.holding(offset) == (holding[0] if holding else None)


@given(lengths=lengths, offset=st.integers(0, 3 * CHUNK_LENGTH))
def test_equal_whatever_the_chunks(lengths: list[int], offset: int) -> None:
    batches = Batches(laid_out(lengths))
    again = Batches(batches.starting_at(offset))
    assert again == batches.starting_at(offset)
    assert hash(again) == hash(batches.starting_at(offset))
    assert Batches() == Batches(()) != [1]


def test_appending_shares_the_chunks_before() -> None:
    batches = Batches(laid_out([1] * (3 * CHUNK_LENGTH)))
    end = 3 * CHUNK_LENGTH
    longer = batches.extended([Batch(end, end, 1)])
    assert batches._chunks[1] is longer._chunks[1]
    assert batches.last == Batch(end - 1, end - 1, 1)


def test_a_gap_belongs_to_no_batch() -> None:
    batches = Batches([Batch(0, 1, 1), Batch(5, 6, 1)])
    assert batches.holding(3) is None
    assert batches.starting_at(3).first == Batch(5, 6, 1)
