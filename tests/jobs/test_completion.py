"""What a shell completes after kraftlake completion: asked of the shells that are installed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import pytest

from jobs.cli import VERBS, main

# Completes the last of the words as bash does on Tab.
TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_kraftlake "$1" "${@: -1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "kraftlake.bash"
    with pytest.MonkeyPatch.context() as patch:
        out = path.open("w")
        patch.setattr("sys.stdout", out)
        assert main(["completion", "bash"]) == 0
        out.close()
    return path


def completed(script: Path, *words: str) -> set[str]:
    words = ("bash", "--norc", "-c", TAB, "bash", str(script), "kraftlake", *words)
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_verbs(script: Path) -> None:
    assert completed(script, "") >= VERBS.keys()
    assert completed(script, "fi") == {"findings"}
    assert completed(script, "findings", "") == {"list", "ack"}


def test_options_and_their_values(script: Path) -> None:
    assert completed(script, "run", "--fail") == {"--fail-on"}
    assert completed(script, "findings", "list", "--state", "") == {"open", "acknowledged", "resolved", "all"}
    assert completed(script, "sql", "--format", "pa") == {"parquet"}


def test_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    assert completed(script, "sql", "--lake", f"{tmp_path}/la") == {f"{tmp_path}/lake"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert [verb for verb in VERBS if verb not in text] == []


@pytest.mark.skipif(which("zsh") is None, reason="zsh is not installed")
def test_zsh_loads_its_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    (tmp_path / "_kraftlake").write_text(capsys.readouterr().out)
    load = 'fpath=("$1" $fpath); autoload -Uz compinit; compinit -u -D; autoload +X _kraftlake; '
    load += "print $_comps[kraftlake]"
    done = subprocess.run(["zsh", "-f", "-c", load, "zsh", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["_kraftlake"], "")


@pytest.mark.skipif(which("fish") is None, reason="fish is not installed")
def test_fish_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    (script := tmp_path / "kraftlake.fish").write_text(capsys.readouterr().out)
    for typed, words in (
        ("fi", {"findings"}),
        ("findings list --sta", {"--state"}),
        ("sql --format pa", {"parquet"}),
    ):
        ask = 'source $argv[1]; complete -C "kraftlake $argv[2]"'
        done = subprocess.run(
            ["fish", "--no-config", "-c", ask, script, typed], capture_output=True, text=True
        )
        assert {line.partition("\t")[0] for line in done.stdout.split("\n") if line} == words, done.stderr
