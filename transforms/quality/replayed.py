"""The metadata after some records of a log or of a checkpoint, as rule 22 compares it.

Partitions, most of a log, are replayed as columns; all other kinds by the core's image, one record after the
other. Their rules do not depend on partitions; partitions depend on the topics of the image. Records in a
metadata transaction (KIP-868) count once it ends, but not if it is aborted.
"""

from __future__ import annotations

from kraft_core.image.from_columns import StoredRecord
from kraft_core.image.image import Image
from kraft_core.image.tables import TOPICS
from transforms.histories import replay_records
from transforms.histories.partition_events import CLEAR_ELR, Life
from transforms.histories.replay_plan import BEGIN, END, MARKERS
from transforms.histories.replay_records import stored_records
from transforms.histories.standing_partitions import STANDING, Clear, after
from transforms.quality.replay_pieces import Piece, joined, offsets

# The place of a transaction that began in an earlier piece.
BELOW = -1


class Replayed:
    """Owns the image of all kinds but partitions, the partitions (STANDING), and what is not applied yet."""

    def __init__(self) -> None:
        self.image = Image()
        self.partitions = STANDING.empty_table()
        self.in_transaction = False
        self._held_back: list[Piece] = []
        self._ready: list[Piece] = []

    def add(self, piece: Piece) -> None:
        """The next records. They are applied once there are as many as partitions, or by `apply`."""
        aborted: list[tuple[int, int]] = []
        begun = BELOW if self.in_transaction else None
        for place, type_ in piece.markers():
            if type_ == BEGIN:
                begun = place if begun is None else begun
            elif begun is not None:
                if type_ == END:
                    self._ready += self._held_back
                else:
                    aborted.append((begun, place))
                begun, self._held_back = None, []
        self.in_transaction = begun is not None
        if begun is not None:
            self._held_back.append(piece.from_(begun))
            piece = piece.below(begun)
        self._ready.append(piece.without(aborted))
        if sum(map(len, self._ready)) >= max(len(self.partitions), 2 * replay_records.TOGETHER):
            self.apply()

    def forget_transaction(self) -> None:
        """Drop a transaction that is open, with its records."""
        self.in_transaction = False
        self._held_back = []

    def apply(self) -> None:
        """Apply all records that count by now."""
        if not any(map(len, self._ready)):
            return
        piece, self._ready = joined(self._ready), []
        below = piece.first - 1
        topics = TopicLives(self.image)
        seqs = (offsets(piece.others) - below).tolist()
        for seq, record in zip(seqs, stored_records(piece.others, "offset"), strict=True):
            if record.type not in MARKERS:  # what they say is known here
                topics.apply(seq, record)
        if len(piece.partitions) or topics.ended or topics.clears:
            seqs = offsets(piece.partitions) - below
            self.partitions = after(self.partitions, piece.partitions, seqs, topics.lives, topics.clears)


class TopicLives:
    """Applies records to an image; owns the lives of its topics by their places, 0 for what stood before, and
    the places where ELRs are cleared, with the id of the topic, None: of all topics.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._begun = {topic_id: 0 for (topic_id,), _ in image.tables.items(TOPICS)}
        self.ended: list[Life] = []
        self.clears: list[Clear] = []

    @property
    def lives(self) -> list[Life]:
        """All of them, ended or not."""
        return [*self.ended, *(life(topic_id, begun, None) for topic_id, begun in self._begun.items())]

    def apply(self, seq: int, record: StoredRecord) -> None:
        """Apply the record at a place."""
        if record.type == CLEAR_ELR and record.value is not None:
            name = record.value["topicName"]
            cleared = self._image.tables.topic_ids.get(name)
            if cleared is not None or not name:
                self.clears.append((seq, cleared if name else None))
        for made in self._image.apply(record):
            if made.change.kind != TOPICS:
                continue
            (topic_id,) = made.change.key
            if topic_id in self._begun:
                self.ended.append(life(topic_id, self._begun.pop(topic_id), seq))
            if made.change.value is not None:
                self._begun[topic_id] = seq


def life(topic_id: str, begun: int, ended: int | None) -> Life:
    """A life by the places where it begins and ends, None: it goes on."""
    return Life(topic_id, "", begun, ended, None, None, None, None, None)
