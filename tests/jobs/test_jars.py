"""The jars of Delta: fetched once from a repository, as they are pinned."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jobs.runtime import jars
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.session import settings_in_force

REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"


class Repository(SimpleHTTPRequestHandler):
    """Serves a folder, and keeps what was asked."""

    asked: list[str]

    def __init__(self, asked: list[str], *args: object, **options: object) -> None:
        self.asked = asked
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def files() -> list[Path]:
    """The jars of this environment."""
    return list(jars.jars())


@pytest.fixture
def repository(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, list[str]]]:
    """The folder that a repository serves, and its requests; there is no other source of jars."""
    served, asked = tmp_path / "served", []
    for jar, file in zip(jars.PINNED, files, strict=True):
        (served / jar.path).parent.mkdir(parents=True)
        shutil.copyfile(file, served / jar.path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Repository, asked, directory=str(served)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(jars.VARIABLE, str(tmp_path / "jars"))
    monkeypatch.setenv(REPOSITORY, f"http://127.0.0.1:{server.server_port}/")
    yield served, asked
    server.shutdown()
    server.server_close()


def test_the_pinned_jars_are_those_of_the_settings() -> None:
    (delta,) = (jar for jar in jars.PINNED if jar.artifact.startswith("delta-spark"))
    wanted = settings_in_force({})["spark.jars.packages"]
    assert wanted == f"{delta.group}:{delta.artifact}:{delta.version}"


def test_they_are_fetched_once(repository: tuple[Path, list[str]], tmp_path: Path) -> None:
    said: list[str] = []
    found = jars.jars(said.append)
    assert found == [tmp_path / "jars" / jar.name for jar in jars.PINNED]
    assert [file.stat().st_size for file in found] == [jar.size for jar in jars.PINNED]
    assert said == ["fetching 7 jars (13 MB) for Delta, once"]
    assert jars.jars(said.append) == found
    assert len(said) == 1
    assert repository[1] == [f"/{jar.path}" for jar in jars.PINNED]
    assert sorted(tmp_path.joinpath("jars").iterdir()) == sorted(found)


def test_only_what_lacks_is_fetched(repository: tuple[Path, list[str]]) -> None:
    """A file cut short lacks, too."""
    found = jars.jars()
    repository[1].clear()
    found[1].unlink()
    found[3].write_bytes(b"cut")
    assert jars.jars() == found
    assert repository[1] == [f"/{jars.PINNED[n].path}" for n in (1, 3)]


def test_mavens_own_store_saves_the_fetching(repository: tuple[Path, list[str]], tmp_path: Path) -> None:
    served, asked = repository
    shutil.copytree(served, tmp_path / ".m2" / "repository")
    assert len(jars.jars()) == len(jars.PINNED)
    assert asked == []


def test_repositories_of_the_settings_are_asked_first(
    repository: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, asked = repository
    monkeypatch.setenv(REPOSITORY, "http://127.0.0.1:9/")
    assert len(jars.jars(settings={"spark.jars.repositories": f"{served.as_uri()}/"})) == len(jars.PINNED)
    assert asked == []


@pytest.mark.long
def test_another_jar_is_refused(repository: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Spark's resolver, which is asked next, is given the same."""
    served, _ = repository
    jar = jars.PINNED[0]
    (served / jar.path).write_bytes(bytes(jar.size))
    with pytest.raises(
        Failure, match=rf"127\.0\.0\.1: {jar.name} does not match the pinned checksum.* KRAFTLAKE_JARS "
    ) as refused:
        jars.jars()
    assert refused.value.exit_code == ExitCode.ENVIRONMENT
    assert len(refused.value.details) > 10
    assert jar in jars.lacking(tmp_path / "jars")


@pytest.mark.long
def test_what_python_cannot_fetch_sparks_resolver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM knows nothing of the proxy that Python is given: it reaches the machine's repository."""
    monkeypatch.setenv(jars.VARIABLE, str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert [file.parent for file in jars.jars()] == [tmp_path] * len(jars.PINNED)
    assert jars.lacking(tmp_path) == []
