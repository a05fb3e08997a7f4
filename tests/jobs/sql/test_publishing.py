"""--catalog and --database, as far as that needs no metastore (tests/long/test_catalog.py has one)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dashboards.databases import Database
from jobs.cli import main

IN_MEMORY = (
    "the catalog spark_catalog is in memory only: configure its metastore under [spark] in kraftlake.toml"
)


@pytest.mark.parametrize("words", [("sql", "SELECT 1"), ("derive",), ("serve", "--port", "0")])
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--database", "kraft"), "--database kraft needs a --catalog"),
        (("--catalog", "spark_catalog"), IN_MEMORY),
    ],
)
def test_a_catalog_that_does_not_last(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    flags: tuple[str, ...],
    said: str,
) -> None:
    """Said in one line, before Spark starts."""
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    began = time.monotonic()
    assert main([*words, "--lake", str(tmp_path), *flags]) == 2
    assert time.monotonic() - began < 5
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_names_as_sql_writes_them() -> None:
    assert str(Database("spark_catalog")) == "`spark_catalog`.`kraft`"
    assert str(Database("a-b", "c`d")) == "`a-b`.`c``d`"
