"""A store that fails while commits are made: each is made once, or the writer knows that it is not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from obstore.store import S3Store

from tests.long.s3proxy import S3Server, environment, faulty, use
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import newest_version, rows_with
from transforms.lake.storage import objects, prepare_lake
from transforms.lake.storage.listing import lake_listing
from transforms.lake.storage.location import StoreUrl
from transforms.lake.tables import CLUSTER_NAMES

pytestmark = pytest.mark.long
LAKE = StoreUrl("bucket", "lake")
FAULTS = ("lost", "lost by reset", "not done", "reset", "refused", "failed", "slow")
# Of the test of commits that land late: when a request is given up, and when the proxy passes it on.
TIMEOUT, LATE_SECONDS = "3s", 8.0


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
    left.write_text(times)
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


@pytest.fixture
def late(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that says how many of the next commits take effect long after they were given up."""
    file = tmp_path / "left"
    with faulty(s3.port, "late", file) as port:
        use(environment(port), monkeypatch)
        prepare_lake(LAKE)
        TableWriter(LAKE, 1).create(CLUSTER_NAMES)

        def hasty(bucket: str) -> S3Store:
            options = {"allow_http": True, "timeout": TIMEOUT}
            retries = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
            config = {"region": "us-east-1", "endpoint": f"http://127.0.0.1:{port}"}
            return S3Store(bucket, config=config, client_options=options, retry_config=retries)

        monkeypatch.setattr(objects, "_store", cache(hasty))
        yield file


@pytest.mark.parametrize("waits", [0.0, LATE_SECONDS - 4, LATE_SECONDS])
def test_a_commit_lands_after_it_was_given_up(late: Path, waits: float) -> None:
    """The writer fails; who repeats the load, before the commit lands or after, finds it or overtakes it."""
    late.write_text("1")
    with pytest.raises(OSError, match="error sending request"):
        TableWriter(LAKE, 1).append_once(CLUSTER_NAMES, [row("once")], "a load")
    late.write_text("0")
    time.sleep(waits)
    TableWriter(LAKE, 1).append_once(CLUSTER_NAMES, [row("once")], "a load")
    assert names() == ["once"]
    time.sleep(LATE_SECONDS)
    assert names() == ["once"]
    TableWriter(LAKE, 1).append(CLUSTER_NAMES, [row("then")])
    assert names() == ["once", "then"]


def test_a_commit_that_lands_late_is_fenced(late: Path) -> None:
    """The next run does not wait for it: its fence has the version, and what comes later is refused."""
    late.write_text("1")
    with pytest.raises(OSError, match="error sending request"):
        TableWriter(LAKE, 1).append(CLUSTER_NAMES, [row("late")])
    late.write_text("0")
    TableWriter(LAKE, 2).fence()
    fenced = names()
    time.sleep(LATE_SECONDS)
    assert names() == fenced == []


def test_who_takes_the_lease_knows_it(left: Path) -> None:
    """append_after says whether its row is there."""
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    left.write_text("1")
    took = writer.append_after(CLUSTER_NAMES, row("lease"), newest_version(LAKE, CLUSTER_NAMES))
    assert names() == ["lease"] * took
