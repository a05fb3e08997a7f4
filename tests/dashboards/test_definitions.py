"""Which tables, views and functions a question needs."""

from __future__ import annotations

import pytest

from dashboards.definitions import needed
from transforms.lake.tables import TABLES

TABLE_NAMES = {table.name for table in TABLES}


def test_a_view_needs_what_it_is_made_of() -> None:
    found = needed("SELECT * FROM under_min_isr")
    assert found is not None
    assert {"under_min_isr", "min_isr_periods", "partitions", "configs"} <= found
    assert found & TABLE_NAMES < TABLE_NAMES


def test_a_function_needs_its_table() -> None:
    found = needed("with t as (select 1) SELECT * FROM Topics_As_Of('c', 5), t")
    assert found is not None
    assert found & TABLE_NAMES == {"topics"}


@pytest.mark.parametrize(
    "asked", ["SHOW VIEWS", "SELECT 1; SHOW TABLES", "CREATE TEMP VIEW v AS SELECT 1", ""]
)
def test_others_may_need_everything(asked: str) -> None:
    assert needed(asked) is None


def test_several_statements_need_what_all_of_them_name() -> None:
    found = needed("SELECT * FROM runs;\nSELECT * FROM epochs")
    assert found is not None
    assert found & TABLE_NAMES == {"runs", "epochs"}
