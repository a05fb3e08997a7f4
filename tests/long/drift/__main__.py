"""Has Kafka changed? Random operations on a release's real log classes, compared with the engine.

`make drift` fetches the release (tests/kafka), compiles ReplayLog.java against it, has it
carry out a new plan, and compares the trace as `make conformance` does. The trace stays in the lab's folder
drift/RELEASE. Exit code 1 on a mismatch, 2 if something could not be run.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.conformance import __main__ as conformance
from tests.kafka import LAB, RELEASE, SCRIPTS
from tests.long.drift.plan import plan

CASES, STEPS = 60, 60
TIMEOUT_S = 600


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long.drift", description=__doc__)
    parser.add_argument("--release", default=RELEASE)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args(arguments)
    try:
        traces = record(options.release, options.seed)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"drift: {error}", file=sys.stderr)
        return 2
    print(f"Kafka {options.release}, seed {options.seed}, {traces}")
    return conformance.main([str(traces)])


def record(release: str, seed: int) -> Path:
    """Carries out a new plan on the release's classes; the folder with the trace."""
    jars = LAB / f"kafka-{release}" / "libs"
    if not jars.is_dir():
        subprocess.run([SCRIPTS / "bin" / "get", release], check=True, timeout=TIMEOUT_S)
    work = LAB / "drift" / release
    shutil.rmtree(work, ignore_errors=True)
    traces = work / "traces"
    traces.mkdir(parents=True)
    source = work / "ReplayLog.java"
    source.write_text(fitted(Path(__file__).with_name("ReplayLog.java").read_text(), jars))
    compiler = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", work / "classes", source]
    subprocess.run(compiler, check=True, timeout=TIMEOUT_S)
    lines = "\n".join(json.dumps(line) for line in plan(seed, CASES, STEPS))
    replay = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{work}/classes:{jars}/*"]
    replay += ["org.apache.kafka.raft.internals.ReplayLog", work / "logs"]
    with (traces / "log-replay.jsonl").open("w") as trace, (work / "stderr.txt").open("w") as errors:
        subprocess.run(
            replay, input=lines, text=True, stdout=trace, stderr=errors, check=True, timeout=TIMEOUT_S
        )
    shutil.rmtree(work / "logs")
    return traces


def fitted(source: str, jars: Path) -> str:
    """The source with its imports of Kafka's classes as this release has them: some move between packages."""
    names = {
        name.removesuffix(".class").replace("/", ".")
        for jar in jars.glob("kafka-*.jar")
        for name in zipfile.ZipFile(jar).namelist()
        if name.endswith(".class")
    }

    def found(match: re.Match[str]) -> str:
        moved = [name for name in names if name.endswith("." + match[1].rsplit(".", 1)[1])]
        return match[0] if match[1] in names or len(moved) != 1 else f"import {moved[0]};"

    return re.sub(r"import (org\.apache\.kafka\.[\w.]+);", found, source)


if __name__ == "__main__":
    sys.exit(main())
