"""A store that fails while commits are made: each is made once, or the writer knows that it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.s3proxy import S3Server, environment, faulty, s3, s3proxy_jar, use
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import newest_version, rows_with
from transforms.lake.storage import prepare_lake
from transforms.lake.storage.listing import lake_listing
from transforms.lake.storage.location import StoreUrl
from transforms.lake.tables import CLUSTER_NAMES

__all__ = ["s3", "s3proxy_jar"]
pytestmark = pytest.mark.long
LAKE = StoreUrl("bucket", "lake")
FAULTS = ("lost", "lost by reset", "not done", "reset", "refused", "failed", "slow")


@pytest.fixture(params=FAULTS)
def left(
    request: pytest.FixtureRequest, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A file that says how many of the next commits meet the fault."""
    file = tmp_path / "left"
    with faulty(s3.port, request.param, file) as port:
        use(environment(port), monkeypatch)
        prepare_lake(LAKE)
        yield file


def names() -> list[str]:
    return sorted(row["name"] for row in rows_with(LAKE, CLUSTER_NAMES))


def row(name: str) -> dict[str, str | None]:
    return {"cluster_id": name, "name": name, "environment": None, "owner": None}


@pytest.mark.parametrize("times", ["1", "3"])
def test_each_commit_is_made_once(left: Path, times: str) -> None:
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    for name, write in (
        ("append", lambda rows: writer.append(CLUSTER_NAMES, rows)),
        ("once", lambda rows: writer.append_once(CLUSTER_NAMES, rows, "a load")),
        ("put", lambda rows: writer.put(CLUSTER_NAMES, rows, by="cluster_id")),
    ):
        left.write_text(times)
        write([row(name)])
        left.write_text("0")
    assert names() == ["append", "once", "put"]
    writer.append_once(CLUSTER_NAMES, [row("once")], "a load")
    assert names() == ["append", "once", "put"]


def test_a_row_is_put_once_into_a_table_that_is_not_opened(left: Path) -> None:
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    listed = lake_listing(LAKE)
    left.write_text("1")
    appended = writer.append_next(CLUSTER_NAMES, row("next"), listed)
    left.write_text("0")
    assert names() == (["next"] if appended else [])


def test_who_takes_the_lease_knows_it(left: Path) -> None:
    """append_after says whether its row is there."""
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    left.write_text("1")
    took = writer.append_after(CLUSTER_NAMES, row("lease"), newest_version(LAKE, CLUSTER_NAMES))
    assert names() == ["lease"] * took
