"""The class archive: Spark's classes, ready to be mapped by the JVM, which halves the time to its first row.

Java calls it an archive of application class data sharing (JEP 350). `python -m jobs.archive_classes`
makes it (part of `make setup`), else the first session does, and again when Java, Spark or a jar has changed:
the name of the file is a digest of these. A JVM that cannot use it starts without.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from jobs.runtime.java import release_of
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.python_path import with_own_path
from jobs.runtime.spark_jvm import JavaCommand

# Java options after which an archive of another is not used, or not wanted.
_OWN_OPTIONS = ("-Xshare", "-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-XX:-UseCompressed")
# More than a training takes on a slow machine.
_TRAINING_SECONDS = 300
TRAINING = "jobs.training"
_KEPT = 2


def folder() -> Path:
    """The environment's, if it may be written, else the user's cache."""
    environment = Path(sys.prefix)
    if os.access(environment, os.W_OK):
        return environment / "share" / "kraftlake" / "classes"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kraftlake" / "classes"


def archive_of(command: JavaCommand) -> Path:
    """The archive's file for a Java and a class path, whether it exists or not."""
    stamps = [(str(jar), (stat := jar.stat()).st_size, stat.st_mtime_ns) for jar in command.class_path]
    release = release_of(command.java)
    known = json.dumps([str(command.java.resolve()), release, stamps])
    return folder() / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def options_of(command: JavaCommand, say: Callable[[str], None] | None = None) -> tuple[str, ...]:
    """The options with which a JVM uses the archive, made now if there is none; none if it cannot be had.

    say: receives a line before a long wait.
    """
    if unwanted(command) is not None:
        return ()
    archive = archive_of(command)
    if not archive.is_file():
        if failed(archive) is not None:
            return ()
        if say is not None:
            say("archiving Spark's classes for faster starts, once (half a minute)")
        with suppress(Failure):
            make(archive)
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto") if archive.is_file() else ()


def unwanted(command: JavaCommand) -> str | None:
    """The Java option that speaks of archives itself, if there is one."""
    given = (*command.options, *os.environ.get("JAVA_TOOL_OPTIONS", "").split())
    return next((option for option in given if option.startswith(_OWN_OPTIONS)), None)


def unused(command: JavaCommand) -> str | None:
    """Why a JVM would start without the archive, asked of Java itself; None if it uses it."""
    option = unwanted(command)
    if option is not None:
        return f"because {option} is set"
    archive = archive_of(command)
    if not archive.is_file():
        return failed(archive) or "which does not exist yet"
    words = command.words(f"-XX:SharedArchiveFile={archive}", "-Xshare:on")
    asked = subprocess.run([*words[:-1], "-version"], capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return None
    said = (asked.stdout + asked.stderr).strip().splitlines()
    return said[-1] if said else f"Java exited with {asked.returncode}"


def failed(archive: Path) -> str | None:
    """Why it could not be made before: sessions do not try again, `make setup` does."""
    with suppress(OSError):
        return _note(archive).read_text()
    return None


def _note(archive: Path) -> Path:
    return archive.with_suffix(".failed")


def make(archive: Path) -> None:
    """Make it by a session that does what sessions do. Raises Failure, of which a note is kept."""
    _make(archive, (), subprocess.PIPE)


def run_and_make(archive: Path, words: Sequence[str]) -> int:
    """Let the session of a `run` make it when the run has ended.

    words: the run's, --lake among them and no --config. Returns the run's exit code. Raises Failure, as
    `make`: whether the run was done is then not known.
    """
    return _make(archive, words, None)


def _make(archive: Path, words: Sequence[str], output: int | None) -> int:
    """output: where the training's own goes, as of Popen. Returns the training's exit code."""
    note, code = _note(archive), 0
    why: str | None
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        note.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".making-") as scratch:
            made = Path(scratch) / archive.name
            code, why = _train(made, Path(scratch), words, output)
            if why is None:
                made.replace(archive)
                _remove_old(archive.parent)
    except OSError as error:
        why = str(error)
    if why is not None:
        with suppress(OSError):
            note.write_text(why)
        raise Failure(f"no archive of Spark's classes: {why}", ExitCode.ENVIRONMENT)
    return code


def _remove_old(place: Path) -> None:
    """Keep the newest archives: some machines have two Javas."""
    by_age = sorted(place.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
    for old in by_age[:-_KEPT]:
        old.unlink(missing_ok=True)


def _train(made: Path, scratch: Path, words: Sequence[str], output: int | None) -> tuple[int, str | None]:
    """Let a session of its own make the file. Returns its exit code, and why it made none."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", TRAINING, made, scratch, *words],
            env=with_own_path(_without(os.environ, "KRAFTLAKE_CONFIG")),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output and subprocess.STDOUT,
            text=True,
            timeout=None if words else _TRAINING_SECONDS,  # a run takes as long as it takes
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"not finished within {_TRAINING_SECONDS} s"
    if made.is_file():
        return done.returncode, None
    said = (done.stdout or "").strip().splitlines() or ["no archive was written"]
    return done.returncode, said[-1]


def _without(environ: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in environ.items() if key != name}
