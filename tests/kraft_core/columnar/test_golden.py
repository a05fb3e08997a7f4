"""The kernel against the reference codec on every golden and every broken file."""

from pathlib import Path

import pytest

from kraft_core.columnar import fast
from kraft_core.format.log_files import find_log_files, parse_segment_name
from tests.kraft_core.columnar.comparing import assert_same, decoded

GOLDEN = Path(__file__).parents[2] / "golden"
SCENARIOS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())


def log_files(scenario: str) -> list[Path]:
    """Its segments and checkpoints, those of several replicas that are alike once."""
    found = set(find_log_files(GOLDEN / scenario))
    found |= {path for path in (GOLDEN / scenario).rglob("*.checkpoint*") if path.suffix != ".gz"}
    by_content = {path.read_bytes(): path for path in sorted(found, reverse=True)}
    return sorted(by_content.values())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_file_of_a_scenario(scenario):
    files = log_files(scenario)
    assert files
    for path in files:
        next_offset = parse_segment_name(path.name)
        assert_same(path, next_offset)


def test_every_record_type_is_in_the_golden_files():
    for scenario in ("all-record-types", "all-record-types-4.4.0"):
        (path,) = log_files(scenario)
        assert len(set(decoded(fast, path)["type"].to_pylist())) > 28
