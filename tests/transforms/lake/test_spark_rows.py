"""Spark settings of a block."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from transforms.lake.spark_rows import interpreted


def test_queries_are_interpreted_within_the_block_alone(spark: Any) -> None:
    def is_compiled() -> bool:
        plan = spark.range(7).selectExpr("id + 1")._jdf.queryExecution().executedPlan().toString()
        return "*(1)" in plan

    assert is_compiled()
    with suppress(ValueError), interpreted(spark):
        assert not is_compiled()
        with interpreted(spark):
            pass
        assert not is_compiled()
        raise ValueError
    assert is_compiled()
