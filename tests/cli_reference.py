"""python -m tests.cli_reference: write docs/cli.md from the parsers of the verbs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from jobs.cli import VERBS, build_parser
from jobs.runtime.settings import Settings

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """# Command line

Generated from the parsers by `make docs`; edit the help texts, not this page. Defaults may come from
[kraftlake.toml](kraftlake.toml).
"""
# Flags of every verb, described once.
COMMON = ("--help", "--config", "--log")


def main() -> None:
    PAGE.write_text(page())


def page() -> str:
    """The reference: one section per verb, one item per argument."""
    parsers = {verb: _verb_parser(verb) for verb in VERBS}
    parts = [HEAD, "\n".join(f"- [`{verb}`](#{verb}): {summary}" for verb, (_, summary) in VERBS.items())]
    first = next(iter(parsers.values()))
    parts.append("## Every verb\n\n" + "\n".join(_item(a, first) for a in _arguments(first) if _is_common(a)))
    for verb, parser in parsers.items():
        parts.append("\n\n".join([f"## {verb}", f"{VERBS[verb][1]}.", *_section(parser)]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _verb_parser(verb: str) -> argparse.ArgumentParser:
    return _subparsers(build_parser(verb, Settings()))[verb]


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _section(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Arguments of a parser, then those of the parsers below it, then its examples."""
    items = [_item(action, parser) for action in _arguments(parser) if not _is_common(action)]
    if items:
        yield "\n".join(items)
    for name, below in _subparsers(parser).items():
        yield f"### {parser.prog.split()[-1]} {name}"
        if below.description:
            yield below.description
        yield from _section(below)
    if parser.epilog:
        yield f"```\n{parser.epilog.strip()}\n```"


def _arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in parser._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)
    ]


def _is_common(action: argparse.Action) -> bool:
    return any(flag in COMMON for flag in action.option_strings)


def _item(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """One argument: its spelling as code, and its help."""
    value = _value(action)
    spelling = " ".join(part for part in (", ".join(action.option_strings), value) if part)
    help_ = (action.help or "") % (vars(action) | {"prog": parser.prog})
    needed = " (required)" if action.option_strings and action.required else ""
    return f"- `{spelling}`{needed}: {' '.join(help_.split())}"


def _value(action: argparse.Action) -> str:
    """How the value is written: VALUE, [VALUE], VALUE ..., or nothing for a switch."""
    if action.nargs == 0:
        return ""
    names = action.metavar
    if names is None and action.choices is not None:
        names = "{" + ",".join(map(str, action.choices)) + "}"
    if names is None:
        names = action.dest.upper() if action.option_strings else action.dest
    if not isinstance(names, str):
        return " ".join(names)
    many = {"?": f"[{names}]", "*": f"[{names} ...]", "+": f"{names} ...", argparse.REMAINDER: "..."}
    return many.get(str(action.nargs), names)


if __name__ == "__main__":
    main()
