"""What runs found out about a lake, recorded for the next: memo.json, which is only a cache.

A note is about files: a table was sound, or a question was answered, when the tables had these. It is valid
as long as a listing shows the same files, so that it never hides a commit, unfinished work or a lost file;
and without the memo everything is found out again.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

from transforms.lake.storage import files
from transforms.lake.storage.listing import LakeListing
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    CAPTURES,
    EXPIRED_CAPTURES,
    LIVES,
    PARSER_VERSION,
    REPLAY_VERSION,
    RUNS,
    SEGMENTS,
    TABLES,
    Table,
)

NAME = "memo.json"
# Questions are asked again every night: this many answers about one state of a lake are kept.
MOST_ANSWERS = 16
# The tables that tell whether a lake has all of a capture.
KNOWING = (CAPTURES, EXPIRED_CAPTURES, LIVES, SEGMENTS)
DIGEST_BYTES = 16

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Memo:
    """sound: by table the fingerprint of what was found sound. answers: by question, of just these tables.

    lease: the greatest number of a lease in the logs of these tables but `runs`; None if it is not known.
    copies: digests of copies of captures of which the tables KNOWING have all, DIGEST_BYTES each.
    """

    sound: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    lease: int | None = None
    copies: bytes = b""

    def unknown(self, listed: LakeListing) -> list[Table]:
        """The tables that are not known to be sound as they are listed."""
        return [table for table in TABLES if self.sound.get(table.name) != listed.fingerprint(table)]

    def answer(self, question: str, listed: LakeListing) -> Answer | None:
        """What was answered about the lake as it is listed."""
        return None if self.unknown(listed) else self.answers.get(question)

    def known_copies(self, listed: LakeListing) -> list[bytes]:
        """The digests of copies of captures of which the lake as it is listed has all."""
        if any(self.sound.get(table.name) != listed.fingerprint(table) for table in KNOWING):
            return []
        starts = range(0, len(self.copies), DIGEST_BYTES)
        return [self.copies[start : start + DIGEST_BYTES] for start in starts]

    def moved(self, listed: LakeListing) -> Memo:
        """The memo after a row of this run alone came to `runs`: no answer hangs on that."""
        return replace(self, sound=fingerprints(listed))

    def greatest_lease(self, listed: LakeListing) -> int | None:
        """The greatest number of a lease in the tables as they are listed, but in `runs`, if it is known."""
        return None if self.is_of_others(listed) else self.lease

    def is_of_others(self, listed: LakeListing) -> bool:
        """Whether the memo was made of other tables than those listed, `runs` apart."""
        return any(table != RUNS for table in self.unknown(listed))

    def extended(
        self,
        listed: LakeListing,
        question: str,
        answer: Answer | None,
        lease: int | None = None,
        copies: Iterable[bytes] = (),
    ) -> Memo:
        """The memo of a lake of which all tables were found sound as listed, with one more answer.

        lease: the number of this run's lease, which is greater than all others; None if it had none. copies:
        digests of all copies of captures that are known from now on.
        """
        others = {} if self.is_of_others(listed) else dict(self.answers)
        others.pop(question, None)
        kept = [*others.items(), *([] if answer is None else [(question, answer)])]
        known = self.greatest_lease(listed) if lease is None else lease
        return Memo(fingerprints(listed), dict(kept[-MOST_ANSWERS:]), known, b"".join(copies))


def fingerprints(listed: LakeListing) -> dict[str, str]:
    return {table.name: listed.fingerprint(table) for table in TABLES}


def read_memo(lake: Location) -> Memo:
    """The memo of a lake; an empty one where there is none that this version wrote. Raises OSError."""
    try:
        held = json.loads(files.text_of(lake / NAME))
        if held["of"] == _version():
            copies = base64.b64decode(held["copies"], validate=True)
            return Memo(_texts(held["sound"]), _answers(held["answers"]), _number(held["lease"]), copies)
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return Memo()


def write_memo(lake: Location, memo: Memo) -> None:
    """Raises OSError."""
    content = {"of": _version(), "sound": memo.sound, "answers": memo.answers, "lease": memo.lease}
    content["copies"] = base64.b64encode(memo.copies).decode()
    files.put(lake / NAME, json.dumps(content) + "\n")


def _texts(held: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(held).items()}


def _answers(held: Any) -> dict[str, Answer]:
    return {str(name): dict(cast("Answer", value)) for name, value in dict(held).items()}


def _number(held: Any) -> int | None:
    return None if held is None else int(held)


@cache
def _version() -> str:
    """What soundness depends on: the tables that this version declares, and how it reads."""
    return hashlib.sha256(f"{PARSER_VERSION} {REPLAY_VERSION} {TABLES}".encode()).hexdigest()
