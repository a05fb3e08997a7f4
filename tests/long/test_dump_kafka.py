"""dump --format kafka beside kafka-dump-log itself: all golden files, and faults drawn anew.

KRAFTLAKE_SEED draws others.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_core.columnar.kafka_text import CompiledDump
from kraft_core.format.kafka_dump import FileDump
from tests.kafka import RELEASE, SCRIPTS, needs_kafka
from tests.kafka.gen.dump_quirks import batch_logs, printed, value_log
from tests.kraft_core.format.kafka_dumps import difference

GOLDEN = Path(__file__).parents[1] / "golden"
# Of 4.4: known to kraftlake, unknown to 4.3.1.
NEWER = "all-record-types-4.4.0"
ALL = sorted(
    str(path.relative_to(GOLDEN))
    for pattern in ("*.log", "*.checkpoint")
    for path in GOLDEN.rglob(pattern)
    if path.parts[len(GOLDEN.parts)] not in (NEWER, "corrupt")
)

pytestmark = [pytest.mark.long, needs_kafka]


def run(command: list[object], given: list[object]) -> tuple[bytes, bytes]:
    environment = {**os.environ, "KOPTS": "-Dfile.encoding=UTF-8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*map(str, command), *map(str, given)], cwd=GOLDEN, env=environment, capture_output=True, check=True
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("options", [[], ["--skip-record-metadata"], ["--max-bytes", 3000]])
@pytest.mark.parametrize("files", [ALL, ALL[:3]])
def test_stdout_and_stderr_for_many_files_at_once(files, options):
    given = ["--cluster-metadata-decoder", *options, "--files", ",".join(files)]
    kafka = run([SCRIPTS / "bin" / "k", RELEASE, "dump-log"], given)
    ours = run([sys.executable, "-m", "jobs.cli", "dump", "--show-secrets"], given)
    assert ours[0] == kafka[0]
    assert ours[1] == kafka[1]


@pytest.mark.parametrize("skip_metadata", [False, True])
def test_faults_drawn_anew(tmp_path, skip_metadata):
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    logs = iter([value_log(seed, 20_000), *batch_logs(seed, 2000)])
    differing = {}
    for name, log, text in printed(logs, skip_metadata):
        (tmp_path / name).write_bytes(log)
        for kind in (FileDump, CompiledDump):
            found = difference(tmp_path / name, name, text, skip_metadata, kind)
            if found is not None:
                differing[name, kind] = found
    assert differing == {}, f"seed {seed}"
