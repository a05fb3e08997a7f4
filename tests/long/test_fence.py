"""A run that loses its lease while it sleeps changes nothing when it wakes.

A verb is stopped (SIGSTOP) at each of its commits in turn, beyond its lease; another run loads newer captures
to the end; the first is woken. The tables are then those of one clean run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as fs
import pytest

from tests.long.processes import Started, commits, run, tables
from tests.long.s3proxy import S3Server
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.objects import arrow_files
from transforms.lake.tables import EXPIRED_CAPTURES, RUNS

FAMILY = "iWP35uOsShu1pFlBJh_E7w"
# Between the two captures of each replica in golden/uncommitted-truncation.
BETWEEN = "2026-11-21T09:15:50Z"
# Of the stopped run; it is renewed three times as often.
LEASE_SECONDS = 10.0
# To try the test on a busy machine: only every so many commits, from which one on, and up to which one.
EVERY = int(os.environ.get("KRAFTLAKE_STOP_EVERY", "1"))
FIRST = int(os.environ.get("KRAFTLAKE_STOP_FIRST", "1"))
LAST = int(os.environ.get("KRAFTLAKE_STOP_LAST", "1000"))

Verb = Callable[[Path, Location], Started]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the lakes of a test are. folder: in which its files are, also those of a server."""

    folder: Path
    above: Location

    def copied(self, lake: Path, name: str) -> Location:
        copy = self.above / name
        if isinstance(copy, StoreUrl):
            fs.copy_files(str(lake), f"{copy.bucket}/{copy.key}", destination_filesystem=arrow_files())
        else:
            shutil.copytree(lake, copy)
        return copy


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return Place(tmp_path, tmp_path)
    server: S3Server = request.getfixturevalue("s3")
    return Place(server.data / "bucket/lakes", StoreUrl("bucket", "lakes"))


@pytest.fixture(scope="module")
def lakes(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lakes: `begun` of the earlier captures, `mini` of another cluster, and `clean` of all."""
    folder = tmp_path_factory.mktemp("lakes")
    family, mini = golden / "uncommitted-truncation", golden / "v4.4.0-mini"
    for name, captures in (("mini", [mini]), ("begun", [family / "before", mini]), ("clean", [family, mini])):
        assert run(folder / f"run-{name}", folder / name, captures).ended() == 0
    return folder


def stopped_everywhere(
    verb: Verb, begun: Path, captures: list[Path], place: Place, out: Path
) -> list[Location]:
    """Stop the verb at each of its commits to a copy of the lake, run over the captures, wake it.

    Returns the lakes that are left.
    """
    left: list[Location] = []
    at = FIRST
    while at <= LAST:
        lake = place.copied(begun, f"lake-{at}")
        sleeper = verb(out / f"stopped-{at}", lake)
        reached = sleeper.stop_at_commit(place.folder / lake.name, commits(begun) + at)
        if reached is None:
            assert sleeper.ended() == 0, sleeper.err.read_text()
            return left
        holds_lease = any(row["finished_at"] is None for row in rows_with(lake, RUNS))
        other = run(out / f"other-{at}", lake, captures, "--wait", "600")
        assert other.ended() == 0, other.err.read_text()
        sleeper.wake()
        code, said = sleeper.ended(), sleeper.err.read_text()
        print(f"stopped at commit {reached - commits(begun)}, ended with {code}", flush=True)
        assert code == (4 if holds_lease else 0), said
        assert "Traceback" not in said
        assert not holds_lease or "another run took over" in said.splitlines()[-1]
        again = run(out / f"again-{at}", lake, captures)
        assert again.ended() == 0, again.err.read_text()
        assert "nothing new" in again.out.read_text()
        left.append(lake)
        at = reached - commits(begun) + EVERY
    return left


@pytest.mark.long
def test_a_run_is_stopped(place: Place, lakes: Path, golden: Path, tmp_path: Path) -> None:
    """While it loads records, derives, and commits its captures."""
    captures = [golden / "uncommitted-truncation", golden / "v4.4.0-mini"]

    def earlier(out: Path, lake: Location) -> Started:
        return run(out, lake, [captures[0] / "before"], lease_seconds=LEASE_SECONDS)

    left = stopped_everywhere(earlier, lakes / "mini", captures, place, tmp_path)
    assert left
    for lake in left:
        assert tables(lake) == tables(lakes / "clean"), lake


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ("derive", "--fail-on", "never"),
        ("validate", "--full", "--fail-on", "never"),
        ("maintain",),
        ("forget", "--cluster", FAMILY),
        ("maintain", "--keep-days", "0", "--now", BETWEEN),
    ],
    ids=" ".join,
)
def test_a_verb_is_stopped(
    words: tuple[str, ...], place: Place, lakes: Path, golden: Path, tmp_path: Path
) -> None:
    """What has expired stays so; what was forgotten is loaded again."""
    captures = [golden / "uncommitted-truncation", golden / "v4.4.0-mini"]

    def verb(out: Path, lake: Location) -> Started:
        return Started(out, words[0], "--lake", str(lake), *words[1:], lease_seconds=LEASE_SECONDS)

    left = stopped_everywhere(verb, lakes / "begun", captures, place, tmp_path)
    assert left
    clean = {(): tables(lakes / "clean")}
    for lake in left:
        expired = tuple(sorted(row["capture_id"] for row in rows_with(lake, EXPIRED_CAPTURES)))
        if expired not in clean:
            kept = tmp_path / f"kept-{len(clean)}"
            shutil.copytree(lakes / "clean", kept)
            expiry = ("maintain", "--lake", kept, "--keep-days", "0", "--now", BETWEEN)
            assert Started(tmp_path / kept.name, *expiry).ended() == 0
            clean[expired] = tables(kept)
        found, expected = of_captures(tables(lake)), of_captures(clean[expired])
        assert found == expected, lake


def of_captures(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """The tables that are a function of the captures alone."""
    return {name: rows for name, rows in found.items() if name != "expectation_results"}
