"""docs/data-dictionary.md is what tables and views declare, and the catalog says the same."""

from __future__ import annotations

from typing import Any

import pytest

from dashboards.view_columns import FUNCTIONS, VIEWS
from tests.data_dictionary import PAGE, page
from transforms.lake.tables import TABLES


def test_the_dictionary_is_current() -> None:
    """If not: make docs."""
    assert page() == PAGE.read_text()


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_of_a_view_has_its_meaning(catalog_lake: Any, view: str) -> None:
    fields = catalog_lake.spark.table(view).schema.fields
    assert {field.name: field.metadata.get("comment") for field in fields} == VIEWS[view]
    assert [field.name for field in fields] == list(VIEWS[view])


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_of_a_table_has_its_meaning(catalog_lake: Any, table: Any) -> None:
    fields = catalog_lake.spark.table(table.name).schema.fields
    assert {field.name: field.metadata.get("comment") for field in fields} == {
        column.name: column.comment for column in table.columns
    }


def test_no_view_is_left_out(catalog_lake: Any) -> None:
    shown = {row.viewName for row in catalog_lake.spark.sql("SHOW VIEWS").collect()}
    assert shown == set(VIEWS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_column_of_a_function_has_its_meaning(catalog_lake: Any, function: str) -> None:
    frame = catalog_lake.spark.sql(f"SELECT * FROM {function}('none', TIMESTAMP '2026-11-21 09:15:20')")
    assert frame.columns == list(FUNCTIONS[function])
