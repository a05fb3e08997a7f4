"""The jars that Delta needs beside Spark's own: pinned by checksum, fetched once, kept in one folder.

`python -m jobs.runtime.jars` fetches them (part of `make setup`), else the first session does. KRAFTLAKE_JARS
names another folder: filled once, it serves machines without a network.

They are looked for where Spark would look: in spark.jars.repositories, in Maven's store on this machine, then
in DEFAULT_ARTIFACT_REPOSITORY (Spark's variable that names a mirror) or Maven Central. What cannot be fetched
so, Spark's own resolver fetches: it knows spark.jars.ivySettings and the JVM's proxies.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

from jobs.runtime.outcome import ExitCode, Failure, one_line
from jobs.runtime.output import warn_line

VARIABLE = "KRAFTLAKE_JARS"
CENTRAL = "https://repo1.maven.org/maven2"
# Seconds without an answer.
_PATIENCE = 30.0
_NO_SETTINGS: Mapping[str, str] = {}
_SETTINGS_OF_THE_RESOLVER = ("spark.jars.ivySettings", "spark.jars.repositories", "spark.jars.excludes")


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar of a Maven repository, with its size in bytes and its SHA-256."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where a repository has it."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


# What spark.jars.packages fetches for Delta, without the jars that Spark has itself (mostly newer) and four
# small ones that nothing here loads. Artifact: size and SHA-256.
_DELTA = {
    "delta-spark_4.2_2.13": (9515916, "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"),
    "delta-storage": (113863, "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
    "delta-kernel-api": (2838619, "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11"),
    "delta-kernel-defaults": (227185, "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b"),
    "delta-kernel-unitycatalog": (43048, "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa"),
}
_UNITY = {
    "unitycatalog-client": (564136, "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19"),
    "unitycatalog-hadoop": (78389, "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150"),
}
PINNED = (
    *(Jar("io.delta", name, "4.4.0", *pin) for name, pin in _DELTA.items()),
    *(Jar("io.unitycatalog", name, "0.6.0", *pin) for name, pin in _UNITY.items()),
)


def folder() -> Path:
    """KRAFTLAKE_JARS, else this environment or, if that is read-only, the user's cache."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    environment = Path(sys.prefix)
    place = environment / "share" / "kraftlake" / "jars"
    if not lacking(place) or os.access(environment, os.W_OK):
        return place
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kraftlake" / "jars"


def lacking(place: Path) -> list[Jar]:
    """The jars that a folder does not hold in full size."""
    return [jar for jar in PINNED if not _has_size(place / jar.name, jar.size)]


def _has_size(file: Path, size: int) -> bool:
    try:
        return file.stat().st_size == size
    except OSError:
        return False


def jars(
    say: Callable[[str], None] | None = None, settings: Mapping[str, str] = _NO_SETTINGS
) -> Sequence[Path]:
    """The jars' files; those that are not there are fetched first.

    Parameters: `say` receives a line before the fetching; `settings` of Spark may name repositories. Raises
    Failure (ENVIRONMENT) if some jar cannot be had.
    """
    place = folder()
    missing = lacking(place)
    if missing:
        if say is not None:
            say(f"fetching {amount(missing)} for Delta, once")
        fetch(missing, place, settings)
    return [place / jar.name for jar in PINNED]


def amount(some: Sequence[Jar]) -> str:
    """How many jars, and their size."""
    return f"{len(some)} jars ({sum(jar.size for jar in some) / 1e6:.0f} MB)"


def fetch(missing: Sequence[Jar], place: Path, settings: Mapping[str, str] = _NO_SETTINGS) -> None:
    """Put jars into a folder, each complete or not at all. Raises Failure (ENVIRONMENT)."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".fetching-") as scratch:
            problem = None
            if "spark.jars.ivySettings" not in settings:
                problems = (_fetch(jar, place, Path(scratch), settings) for jar in missing)
                # Up to the first: a network that does not answer is not asked seven times.
                problem = next(filter(None, problems), None)
            if lacking(place):
                _resolve(place, Path(scratch), settings, problem)
    except OSError as error:
        raise _no_jars(place, str(error)) from None


def _fetch(jar: Jar, place: Path, scratch: Path, settings: Mapping[str, str]) -> str | None:
    """Fetch a jar from the first repository that has it as pinned. Returns what was wrong if none has."""
    problem = None
    for repository in _repositories(settings):
        part, host = scratch / jar.name, urlsplit(repository).hostname or "this machine"
        try:
            with urlopen(f"{repository}/{jar.path}", timeout=_PATIENCE) as answer, part.open("wb") as file:
                shutil.copyfileobj(answer, file)
        except (OSError, HTTPException, ValueError) as error:
            problem = f"{host}: {one_line(error)}"
            continue
        if _moved(part, jar, place):
            return None
        problem = f"{host}: {jar.name} does not match the pinned checksum"
    return problem


def _repositories(settings: Mapping[str, str]) -> Iterable[str]:
    """The addresses of repositories, in the order in which Spark's resolver asks them."""
    yield from filter(
        None, (r.strip().rstrip("/") for r in settings.get("spark.jars.repositories", "").split(","))
    )
    yield (Path.home() / ".m2" / "repository").as_uri()
    yield (os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or CENTRAL).rstrip("/")


def _moved(file: Path, jar: Jar, place: Path) -> bool:
    """Move a file to its place if it is the pinned one."""
    with file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != jar.sha256:
            return False
    file.replace(place / jar.name)
    return True


def _resolve(place: Path, scratch: Path, settings: Mapping[str, str], problem: str | None) -> None:
    """Let Spark's resolver fetch what lacks in a folder. problem: why it was not fetched directly."""
    packages = ",".join(f"{jar.group}:{jar.artifact}:{jar.version}" for jar in PINNED)
    resolver = _resolved_by_spark(packages, scratch, settings)
    for jar in lacking(place):
        resolved = scratch / "jars" / f"{jar.group}_{jar.name}"
        if not (resolved.is_file() and _moved(resolved, jar, place)):
            why = problem or f"Spark's resolver: no {jar.name} that matches the pinned checksum"
            raise _no_jars(place, why, resolver.stdout.splitlines())


def jars_of(packages: str, settings: Mapping[str, str]) -> Sequence[Path]:
    """The jars of other spark.jars.packages and all that these need, resolved once by Spark.

    Raises Failure (ENVIRONMENT) if they cannot be had.
    """
    place = folder() / hashlib.sha256(packages.encode()).hexdigest()[:16]
    if not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetching-") as scratch:
            resolver = _resolved_by_spark(packages, Path(scratch), settings)
            if resolver.returncode != 0:
                said = resolver.stdout.splitlines()
                raise Failure(f"spark.jars.packages: no jars for {packages}", ExitCode.ENVIRONMENT, said)
            Path(scratch, "jars").replace(place)
    return sorted(place.glob("*.jar"))


def _resolved_by_spark(
    packages: str, scratch: Path, settings: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Let Spark's resolver put the jars of packages into scratch/jars. What it says is hundreds of lines."""
    import pyspark

    nothing = scratch / "nothing.py"
    nothing.write_text("")
    wanted = {key: settings[key] for key in _SETTINGS_OF_THE_RESOLVER if key in settings}
    wanted["spark.jars.ivy"] = str(scratch)
    confs = [word for key, value in wanted.items() for word in ("--conf", f"{key}={value}")]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    return subprocess.run(
        [submit, "--master", "local", "--packages", packages, *confs, nothing],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _no_jars(place: Path, why: str, details: Sequence[str] = ()) -> Failure:
    names = ", ".join(jar.name for jar in lacking(place))
    return Failure(
        f"no jars for Delta ({why}): without a network, set {VARIABLE} to a folder that contains {names}",
        ExitCode.ENVIRONMENT,
        details,
    )


def main() -> int:
    try:
        jars(say=warn_line)
    except Failure as failure:
        for line in (*failure.details, f"jars: {failure}"):
            warn_line(line)
        return failure.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
