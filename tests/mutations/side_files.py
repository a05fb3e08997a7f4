"""Damaged side files, describe outputs and settings: each is read, or refused with a reason."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from random import Random

from jobs.captures.describe_files import find_describe_files
from jobs.captures.planning import Selection, identified
from jobs.runtime.outcome import Failure
from jobs.runtime.settings import read_settings
from kraft_core.format.controller_dir import LOG_DIR_NAME, read_controller_dir
from tests.mutations.damage import damaged
from transforms.ingest.capture_rows import capture_rows
from transforms.ingest.captured_files import CaptureCopy
from transforms.lake.arrow_rows import to_arrow
from transforms.lake.tables import CAPTURES, OBSERVATIONS
from transforms.quality.findings import observation_rows

CHECKOUT = Path(__file__).parents[2]
NODES = (
    "dynamic-membership/node-1",
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-3.9.2/node-1",
    "v4.4.0-mini/node-1",
)
# What ControllerDir holds of each.
SIDE_FILES = {
    "meta.properties": "meta",
    f"{LOG_DIR_NAME}/quorum-state": "quorum_state",
    f"{LOG_DIR_NAME}/leader-epoch-checkpoint": "leader_epoch_checkpoint",
    f"{LOG_DIR_NAME}/partition.metadata": "topic_id",
    "capture.json": "captured_at",
}
PRINTED = (b"ClusterId:", b"LeaderId:", b"HighWatermark:", b"CurrentVoters:", b"NodeId\t", b"LogEndOffset\t")
MADE = {"capture.json": b'{"captured_at": "2026-11-21T09:15:23Z"}'}
# Making a row of a table takes longer than all the rest.
STORED_ONE_OF = 8
# What stands in the place of a number, or of anything, in a file that is otherwise sound.
ODD = (
    *(b"-1", b"0", b"2147483648", b"-2147483649", b"9223372036854775808", b"1e400", b"NaN", b"null", b"true"),
    *(b'"', b"[" * 5000, b"{" * 5000, b"\\ud800", b"\\u0000", b"\x00", b"\xff", b"\xed\xa0\x80", b"\\"),
    *(b"9" * 5000, b"\r", b"\n", b"\x85", "\u202e\u2028".encode(), "\u0663".encode(), b"=", b" ", b"\t"),
)


@cache
def _originals(name: str) -> tuple[bytes, ...]:
    found = (CHECKOUT / "tests/golden" / node / name for node in NODES)
    return tuple(path.read_bytes() for path in found if path.is_file()) or (MADE[name],)


def _damaged_text(rng: Random, data: bytes, other: bytes) -> bytes:
    if rng.random() < 0.5:
        return damaged(rng, data, other)
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(ODD) + data[at + rng.choice((0, 0, 1, 2, 8)) :]


def check_side_file(rng: Random, folder: Path) -> int:
    """Of a directory with a damaged side file: it is read or a fault, and its row fits table captures."""
    node = folder / "node"
    if not node.exists():
        (node / LOG_DIR_NAME).mkdir(parents=True)
        for name in SIDE_FILES:
            (node / name).write_bytes(_originals(name)[0])
    name = rng.choice(list(SIDE_FILES))
    data = _damaged_text(rng, rng.choice(_originals(name)), rng.choice(_originals(name)))
    (node / name).write_bytes(data)
    try:
        directory = read_controller_dir(node / LOG_DIR_NAME)
        assert [fault.file for fault in directory.faults] in ([], [name])
        assert (getattr(directory, SIDE_FILES[name]) is None) == bool(directory.faults), "it vanished"
        found = identified(directory, Selection((node,)))
        if isinstance(found, CaptureCopy) and rng.randrange(STORED_ONE_OF) == 0:
            rows = capture_rows([found], [], [], [], {})
            loaded = {c.name: None for c in CAPTURES.schema.fields if c.name not in rows[0]}
            (row,) = to_arrow([rows[0] | loaded], CAPTURES.arrow_schema).to_pylist()
            assert [fault["file"] for fault in row["file_faults"]] == [f.file for f in directory.faults]
        elif isinstance(found, str):
            assert "meta.properties" in found
    finally:
        (node / name).write_bytes(_originals(name)[0])
    return len(data)


@cache
def _outputs() -> tuple[bytes, ...]:
    paths = sorted((CHECKOUT / "tests/golden").glob("*/quorum/*.txt"))
    return tuple(path.read_bytes() for path in paths[::7] if path.stat().st_size < 4096)


def check_describe(rng: Random, folder: Path) -> int:
    """A damaged output beside a sound one: observed, or left out with the reason."""
    outputs = folder / "quorum"
    outputs.mkdir(exist_ok=True)
    status = "ClusterId: c\nLeaderId: 1\nLeaderEpoch: 1\nHighWatermark: 1\nCurrentVoters: []\n"
    (outputs / "1750000000000.txt").write_text(f"{status}CurrentObservers: []\n")
    original = rng.choice(_outputs())
    data = _damaged_text(rng, original, rng.choice(_outputs()))
    path = outputs / "1750000000001.txt"
    path.write_bytes(data)
    found = find_describe_files([outputs])
    assert any(file.cluster_id == "c" for file in found.files)
    for file in found.files if rng.randrange(STORED_ONE_OF) == 0 else ():
        rows = observation_rows(file.cluster_id, file.observation_id, file.observations)
        loaded = {c.name: None for c in OBSERVATIONS.schema.fields if c.name not in rows[0]}
        to_arrow([row | loaded for row in rows], OBSERVATIONS.arrow_schema)
    if len(found.files) == 1 and not found.left_out:
        assert not any(name in data for name in PRINTED), "an output vanished"
    shutil.rmtree(outputs)
    return len(data)


def check_settings(rng: Random, folder: Path) -> int:
    """A damaged kraftlake.toml: settings whose every property can be read, or a Failure."""
    original = (CHECKOUT / "docs/kraftlake.toml").read_bytes()
    lines = [line.removeprefix(b"# ") for line in original.splitlines(keepends=True)]
    plain = b"".join(line for line in lines if b" = " in line or line.startswith(b"["))
    data = _damaged_text(rng, rng.choice((original, plain)), plain)
    path = folder / "kraftlake.toml"
    path.write_bytes(data)
    try:
        settings = read_settings(path)
    except Failure:
        return len(data)
    assert all(cluster.id for cluster in settings.clusters)
    assert [settings.flags, settings.expectations, settings.spark]
    return len(data)
