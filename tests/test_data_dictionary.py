"""docs/data-dictionary.md is what tables and views declare; the catalog: tests/jobs/sql/test_questions.py."""

from __future__ import annotations

from tests.data_dictionary import PAGE, page


def test_the_dictionary_is_current() -> None:
    """If not: make docs."""
    assert page() == PAGE.read_text()
