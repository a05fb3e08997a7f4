"""diff --desired: how the metadata at a moment differs from the desired state in files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from jobs.runtime.long_lists import limit_of, say_more
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_answer, warn_line
from jobs.time_travel.opened_moment import OpenedMoment, opened_moment
from kraft_core.desired.drift import Discrepancy, counted, drift, not_named
from kraft_core.desired.of_image import state_in
from kraft_core.desired.read_state import read_state
from kraft_core.desired.state import SECTIONS, DesiredState
from kraft_core.desired.yaml_tree import InvalidFileError
from kraft_core.wording import first_named

_MOST_OTHERS = 10


def diff_desired(args: argparse.Namespace) -> int:
    """Print the differences. Returns FOUND if there are any, or if there may be. Raises Failure."""
    if args.before is not None or args.after is not None:
        raise Failure("--desired replaces --from and --to: give the moment with --at")
    files = list(_files(args.desired))
    desired = _desired(files, args)
    at = opened_moment(args)
    actual = state_in(at.image)
    found = list(drift(actual, desired))
    beyond = not_named(actual, desired)
    print_answer(
        args.format,
        lambda: {
            "at": at.data,
            "desired": list(map(str, files)),
            "not_named": beyond,
            "not_known": at.doubts,
            "differences": [asdict(each) for each in found],
        },
        _lines(at, files, found, beyond, limit_of(args)),
    )
    return ExitCode.FOUND if found or at.doubts else ExitCode.FINE


def _files(given: Sequence[Path]) -> Iterator[Path]:
    """Each file, and the YAML files of each folder at any depth, by name. Raises Failure."""
    for path in given:
        if not path.is_dir():
            yield path
            continue
        within = sorted(each for each in path.rglob("*") if each.suffix in (".yaml", ".yml"))
        if not within:
            raise Failure(f"{path} contains no *.yaml or *.yml")
        yield from within


def _desired(files: Sequence[Path], args: argparse.Namespace) -> DesiredState:
    """Raises Failure."""
    state = DesiredState()
    others: list[str] = []
    for path in files:
        try:
            read_state(state, path.read_text(encoding="utf-8"), args.settings.shown_configs, others)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise Failure(f"{path} is not UTF-8") from None
        except InvalidFileError as error:
            raise Failure(f"{path}, {error}") from None
    if others:
        warn_line(f"not compared: {first_named(others, _MOST_OTHERS)}")
    if not state.states_anything:
        raise Failure("the desired files contain no desired state")
    return state


def _lines(
    at: OpenedMoment, files: Sequence[Path], found: list[Discrepancy], beyond: dict[str, int], most: int
) -> Iterator[str]:
    """The differences by section; most: how many are listed, 0: all. All are counted."""
    yield f"at      {at.words}"
    yield f"desired {', '.join(map(str, files))}"
    for doubt in at.doubts:
        yield f"not known: {doubt}"
    if not found:
        yield "no difference" + (" in what is known" if at.doubts else "")
    listed = 0
    for section in SECTIONS:
        of_section = [each for each in found if each.section == section]
        if of_section:
            yield f"{section}: {counted(of_section)}"
        for each in of_section:
            listed += 1
            if not most or listed <= most:
                yield f"  {each.words}"
    if beyond:
        counts = ", ".join(f"{number:,} {section}" for section, number in beyond.items())
        yield f"not in the desired files, and not compared: {counts}"
    say_more(listed - most if most else 0, "differences")
