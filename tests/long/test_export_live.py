"""Metadata of a real cluster is exported, made again in an empty one, captured, and compared.

What is made is drawn; KRAFTLAKE_SEED draws other. Needs `make kafka`.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.runtime.output import printable
from tests.long.drawn_metadata import drawn_metadata
from tests.long.made_cluster import BROKERS, MadeCluster

pytestmark = pytest.mark.long


def exported(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, list[str]]:
    """What export prints, and what it says is not exported."""
    capsys.readouterr()
    assert main(["export", *words]) == 0
    printed = capsys.readouterr()
    return printed.out, [line.removeprefix("not exported: ") for line in printed.err.splitlines()]


@pytest.mark.parametrize("nth", range(2))
def test_what_is_exported_makes_the_same_metadata(
    nth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.Random(f"{os.environ.get('KRAFTLAKE_SEED', '1')} {nth}")
    first = MadeCluster.at(tmp_path / "first", 29480)
    try:
        made = first.make(list(drawn_metadata(seed, BROKERS)), tmp_path)
        captured, wanted = first.state("made")
    finally:
        first.live.close()
    placement = ["--placement"] if nth == 0 else []
    text, _ = exported(capsys, *placement, str(captured))
    (tmp_path / "desired.yaml").write_text(text)
    script, left_out = exported(capsys, "--as", "commands", *placement, str(captured))
    (tmp_path / "make.sh").write_text(script)

    second = MadeCluster.at(tmp_path / "second", 29500)
    try:
        second.run_script(tmp_path / "make.sh", tmp_path / "bin")
        anew, actual = second.state("anew")
        code = main(["diff", "--desired", str(tmp_path / "desired.yaml"), "--format", "json", str(anew)])
    finally:
        second.live.close()
    found = json.loads(capsys.readouterr().out)["differences"]
    refused = [each for each in left_out if each.startswith("ACL ")]
    with capsys.disabled():
        kinds = {kind: sum(thing["make"] == kind for thing in made) for kind in ("topic", "acl", "quotas")}
        print(f"{len(made)} things made ({kinds}), {len(left_out)} not exported: {left_out}")
    # What is missing is what export said that no command makes: each credential, and ACLs.
    missing = {printable(each["subject"]) for each in found}
    assert {each["change"] for each in found} <= {"missing"}
    assert missing == {each.partition(": ")[0] for each in refused} | {
        printable(f"{mechanism} credential of {name}") for name, mechanism in wanted.users
    }
    assert code == 1
    assert not Path("owned").exists()
    assert (actual.topics == wanted.topics) or not placement
    assert (actual.configs, actual.quotas, actual.features) == (
        wanted.configs,
        wanted.quotas,
        wanted.features,
    )
