"""kraftlake completion: a shell script that completes verbs, options and files."""

from __future__ import annotations

import argparse

from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_lines

EXAMPLES = """examples:
  kraftlake completion bash > ~/.local/share/bash-completion/completions/kraftlake
  kraftlake completion zsh > ~/.zfunc/_kraftlake   # with fpath+=~/.zfunc before compinit in ~/.zshrc
  kraftlake completion fish > ~/.config/fish/completions/kraftlake.fish
  source <(kraftlake completion bash)

The script is for this version: regenerate it after an upgrade."""
SHELLS = ("bash", "zsh", "fish")
# Metavars of arguments that are files or folders.
PATHS = ("FILE", "PATH")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    """Print the script. Returns the exit code."""
    import shtab

    from jobs.cli import full_parser

    parser = full_parser(args.settings)
    for leaf in parser.leaves():
        for action in leaf._actions:
            if action.metavar in PATHS:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print_lines(shtab.complete(parser, args.shell).splitlines())
    return ExitCode.FINE
