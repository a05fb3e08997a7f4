"""The paths of --captures, opened; errors end the verb and show the user's names of the paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jobs.runtime.outcome import Failure
from transforms.ingest import inputs
from transforms.ingest.inputs import InputError, Inputs


@contextmanager
def opened_inputs(captures: Sequence[str], scratch: Path | None) -> Iterator[Inputs]:
    """As in transforms.ingest.inputs. Raises Failure, and names scratch folders in none of the block's."""
    try:
        with inputs.opened_inputs(captures, scratch) as opened:
            try:
                yield opened
            except Failure as failure:
                failure.args = (opened.named(str(failure)),)
                failure.details = [opened.named(line) for line in failure.details]
                raise
    except InputError as error:
        raise Failure(str(error)) from None
