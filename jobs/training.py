"""python -m jobs.training FILE SCRATCH [RUN'S WORDS]: a session whose JVM archives its classes when it ends.

It does what sessions do: run, then sql. Part of jobs.runtime.class_archive.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from jobs.cli import main as kraftlake
from jobs.runtime.output import warn_line
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.control import LEADER_CHANGE
from kraft_core.messages.metadata import by_api_key

_AT_MS = 1_750_000_000_000
_TOPIC, _PARTITION = 2, 3
_QUESTIONS = """
SELECT * FROM voter_history;
SELECT COUNT(*), MAX(`offset`) FROM records WHERE type LIKE 'Topic%' GROUP BY cluster_id ORDER BY 1;
SELECT * FROM topics_now t JOIN partitions_now p ON p.cluster_id = t.cluster_id LIMIT 3;
SELECT * FROM captures VERSION AS OF 0;
SELECT * FROM topics_as_of('training', 2);
DESCRIBE TABLE voter_sets;
EXPLAIN SELECT * FROM epochs;
"""


def main(archive: Path, scratch: Path, words: Sequence[str]) -> int:
    """Run, ask, and let the JVM end, which writes the archive. Returns the run's exit code.

    words: of a `run` that somebody waits for, with its --lake; empty: a capture made here is loaded.
    """
    options = _options(archive)
    settings = scratch / "kraftlake.toml"
    settings.write_text(f'[spark]\n"spark.driver.extraJavaOptions" = {json.dumps(options)}\n')
    config = ("--config", str(settings))
    if words:
        code = kraftlake(["run", *words, *config])
        warn_line("archiving Spark's classes for faster starts, once (half a minute)")
        lake = words[words.index("--lake") + 1]
    else:
        lake = str(scratch / "lake")
        _write_capture(scratch / "node-1", 1)
        _open_and_compile(options)
        code = kraftlake(["run", "--captures", str(scratch / "node-1"), "--lake", lake, *config])
    _ask(lake, scratch, config)
    _end_jvm()
    return code


def _ask(lake: str, scratch: Path, config: Sequence[str]) -> None:
    """Queries of every kind, whose results are discarded."""
    questions = scratch / "questions.sql"
    questions.write_text(_QUESTIONS)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        kraftlake(["sql", "--file", str(questions), "--lake", lake, *config])


def _options(archive: Path) -> str:
    """Those of short jobs, and no warnings about classes that cannot be archived."""
    from jobs.runtime.session import settings_in_force

    of_short_jobs = settings_in_force({})["spark.kraftlake.quickJavaOptions"]
    return f"{of_short_jobs} -Xlog:disable '-XX:ArchiveClassesAtExit={archive}'"


def _open_and_compile(options: str) -> None:
    """Open the session, and compile meanwhile the kernel that its workers need; that takes as long."""
    from jobs.runtime.session import open_session

    with subprocess.Popen([sys.executable, "-m", "kraft_core.columnar"]):
        spark = open_session(quick=True, own={"spark.driver.extraJavaOptions": options})
        spark.sql("SELECT id % 7, COUNT(*) FROM RANGE(100) GROUP BY 1 ORDER BY 1").collect()


def _write_capture(folder: Path, node: int) -> None:
    """A controller directory of one leader and one topic."""
    voters = [{"voterId": 1}, {"voterId": 2}]
    elected = {"version": 0, "leaderId": 1, "voters": voters, "grantingVoters": voters}
    key = struct.pack(">hh", 0, LEADER_CHANGE)
    leader = RawRecord(0, _AT_MS, key, write_control_value(LEADER_CHANGE, elected))
    batches = (
        write_batch(0, 1, [leader], is_control=True),
        write_batch(1, 1, [_record(_TOPIC, 1), _record(_PARTITION, 2)]),
    )
    (folder / LOG_DIR_NAME).mkdir(parents=True)
    (folder / "meta.properties").write_text(f"version=1\ncluster.id=training\nnode.id={node}\n")
    (folder / LOG_DIR_NAME / f"{0:020d}.log").write_bytes(b"".join(batches))


def _record(api_key: int, offset: int) -> RawRecord:
    message = by_api_key[api_key]
    return RawRecord(offset, _AT_MS, None, write_metadata_value(message, 0, message.default(0)))


def _end_jvm() -> None:
    """Stop the session and wait until its JVM has written the archive."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    if gateway is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
