"""The parser of the command line: its errors are one line that says what is wrong, with a suggestion."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn, cast

from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_line, warn_line
from kraft_core.wording import did_you_mean

# How argparse says that a flag is missing, or each of a group.
_REQUIRED = "the following arguments are required: "
_ONE_OF = "one of the arguments "


# Options whose value may be a cluster's id, and one that begins with a dash, perhaps with a life.
_OF_IDS = ("--cluster", "--cluster-id")
_DASHED_ID = re.compile(r"-[A-Za-z0-9_-]{21}(/.*)?")


def _with_ids(words: Sequence[str]) -> list[str]:
    """The words with each dashed id joined to its option: argparse takes it for an option of its own."""
    joined: list[str] = []
    for word in words:
        if "--" not in joined and joined and joined[-1] in _OF_IDS and _DASHED_ID.fullmatch(word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _with_setting(message: str) -> str:
    """The message about missing flags, with where --lake can be set instead."""
    by_setting = '--lake PATH, or lake = "PATH" in kraftlake.toml'
    if message.startswith(f"{_ONE_OF}--lake "):
        others = message.removeprefix(f"{_ONE_OF}--lake ").removesuffix(" is required")
        return f"{_REQUIRED}{by_setting}, or {others}"
    return f"{message.removesuffix('--lake')}{by_setting}" if message.endswith(" --lake") else message


class HelpText(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. argparse makes one for each argument, and its own ones import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_terminal_columns() - 2)


def _terminal_columns() -> int:
    """As shutil.get_terminal_size says."""
    with suppress(KeyError, ValueError):
        columns = int(os.environ["COLUMNS"])
        if columns > 0:
            return columns
    with suppress(AttributeError, ValueError, OSError):
        columns = os.get_terminal_size(cast(Any, sys.__stdout__).fileno()).columns
        if columns > 0:
            return columns
    return 80


class CommandParser(argparse.ArgumentParser):
    """An ArgumentParser without the usage before each error; verbs, and their own verbs, have one, too."""

    _given: Sequence[str] = ()
    # Words that stand where a verb does, and are none.
    also_known: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        if message.startswith((_REQUIRED, _ONE_OF)):
            # The misspelt flag says more than the one that is missing for it.
            message = self._unknown_flag(self._given) or _with_setting(message)
        warn_line(f"{self.prog}: {message}")
        warn_line(f"{self.prog} --help lists the options")
        sys.exit(ExitCode.USAGE)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """The parsed arguments. What this parser does not know ends with an error: no parser passes it on."""
        self._given = _with_ids(sys.argv[1:] if args is None else args)
        parsed, unknown = super().parse_known_args(self._given, namespace)
        if unknown:
            self._add_words(parsed, unknown)
        return parsed, []

    def _add_words(self, parsed: argparse.Namespace, unknown: list[str]) -> None:
        """Add the words behind an option to a list of words, which for argparse ends at the first option.

        Behind -- words may begin with a dash.
        """
        until = unknown.index("--") if "--" in unknown else len(unknown)
        flag = self._unknown_flag(unknown[:until])
        listed = [each.dest for each in self._actions if each.nargs == "*" and not each.option_strings]
        if flag is not None or not listed:
            self.error(flag or f"too many arguments: {' '.join(unknown)}")
        held = getattr(parsed, listed[0])
        setattr(parsed, listed[0], [*held, *unknown[:until], *unknown[until + 1 :]])

    def leaves(self) -> list[CommandParser]:
        """The parsers of its own verbs, such as those of findings list; else the parser itself."""
        nested = [action.choices for action in self._actions if isinstance(action.choices, dict)]
        return [leaf for verbs in nested for verb in verbs.values() for leaf in verb.leaves()] or [self]

    def _unknown_flag(self, words: Sequence[str]) -> str | None:
        """What to say of the first word that looks like a flag and is none."""
        options = [option for action in self._actions for option in action.option_strings]
        for word in words:
            name = word.partition("=")[0]
            is_flag = name.startswith("-") and not name[1:2].isdecimal() and len(name) > 1
            if is_flag and not any(option.startswith(name) for option in options):
                return f"unknown option {name}{did_you_mean(name, options)}"
        return None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        hint = did_you_mean(str(value), [*known, *self.also_known]) or f": it is one of {', '.join(known)}"
        if isinstance(action.choices, dict):
            self.error(f"unknown verb {value}{hint}")
        raise argparse.ArgumentError(action, f"{value} is unknown{hint}")


class ShowVersion(argparse.Action):
    """--version: print it and end."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "dest": argparse.SUPPRESS, "default": argparse.SUPPRESS, "nargs": 0})

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print_line(f"{parser.prog} {kraftlake_version()}")
        parser.exit()


def kraftlake_version() -> str:
    """The installed version."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kraftlake")
    except PackageNotFoundError:
        return "of a checkout that is not installed"
