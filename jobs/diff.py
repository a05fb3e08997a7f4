"""kraftlake diff: the changes of the metadata between two moments or two sources, or to what files desire."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.arguments import add_format
from jobs.diff_voters import QuorumDifferences, quorum_differences, unknown_words
from jobs.diff_ways import counted_ways, difference_data, way_of
from jobs.runtime.local_paths import local_path
from jobs.runtime.long_lists import add_limit, limit_of, say_more
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import print_answer
from jobs.time_travel.moment import FORMS, InvalidMomentError, image_at, parse_moment
from jobs.time_travel.open_source import add_lake_arguments, open_captured, open_lake, warn
from jobs.time_travel.opened_moment import OpenedMoment
from jobs.time_travel.source import MetadataSource
from kraft_core.image import change_text, tables
from kraft_core.image.differences import Difference, differences
from kraft_core.image.kinds import BY_NAME
from kraft_core.wording import count

EXAMPLES = """examples:
  kraftlake diff --from 1894 --to end /backup/node-1
  kraftlake diff --from 2026-11-21T03:00 --to 2026-11-21T03:30 /backup/node-1
  kraftlake diff --from /backup/node-1 --to /backup/node-2
  kraftlake diff --from 09:40 --to end --lake /data/lake --cluster prod-1
  kraftlake diff --from 1894 --to /backup/node-1@1894 --lake /data/lake --cluster prod-1
  kraftlake diff --from old/00000000000000001956-0000000004.checkpoint --to /backup/node-1@2300 --format json
  kraftlake diff --desired desired.yaml /backup/node-1
  kraftlake diff --desired topics/ --desired users.yaml --at 09:40 --lake /data/lake --cluster prod-1

Secrets are never shown, only the fact that one changed. --desired reads what kraftlake export --as yaml
writes, and Strimzi's KafkaTopic and KafkaUser resources; --at is the moment to compare with (default: end).
exit codes: 0 success, with or without differences between two states; 1 not as desired, or not known;
2 wrong path, moment or file, 3 nothing readable"""

MOST_DIFFERENCES = 1000  # on a terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ends = f"{FORMS}; or a path, or PATH@MOMENT"
    parser.add_argument("--from", dest="before", metavar="X", help=f"the first state: {ends}")
    parser.add_argument("--to", dest="after", metavar="Y", help="the second state, likewise")
    parser.add_argument(
        "--desired",
        type=local_path,
        action="append",
        default=[],
        metavar="FILE",
        help="YAML, or a folder of *.yaml and *.yml, that states what should be there; repeatable",
    )
    parser.add_argument("--at", metavar="MOMENT", help=f"with --desired: {FORMS} (default: end)")
    parser.add_argument(
        "source",
        type=local_path,
        nargs="?",
        metavar="PATH",
        help="the controller directory, segment or checkpoint that the moments refer to",
    )
    add_lake_arguments(parser)
    add_format(parser, "text", "json")
    add_limit(parser, "differences of text", MOST_DIFFERENCES)


@dataclass(frozen=True, slots=True)
class _End:
    """One of the two states. doubts: why it may not be whole, as far as it was known when it was read."""

    at: OpenedMoment
    doubts: list[str]


def run(args: argparse.Namespace) -> int:
    """Print the differences. Raises Failure."""
    if args.desired:
        from jobs.diff_desired import diff_desired

        return diff_desired(args)
    if args.before is None or args.after is None:
        raise Failure("give --from and --to, or --desired FILE; see the examples of --help")
    if args.at is not None:
        raise Failure("--at belongs to --desired: give the moments with --from and --to")
    opened: dict[Path, MetadataSource] = {}
    if args.lake is not None:
        if args.source is not None:
            raise Failure("give a path or --lake, not both")
        # The lake's path identifies it, as a directory's does.
        args.source = args.lake
        opened[args.lake] = open_lake(args.lake, args.cluster)
    warned: list[str] = []
    before, after = (_end(end, args, opened, warned) for end in (args.before, args.after))
    is_one = before.at.source is after.at.source
    compare = before.at.source.differences if is_one else differences
    found = list(compare(before.at.image, after.at.image))
    if args.lake is not None:
        found = _without_secrets(found)
    quorum = quorum_differences(before.at, after.at)
    lines = _lines(before, after, found, quorum, limit_of(args))
    print_answer(args.format, lambda: _data(before, after, found, quorum), lines)
    return ExitCode.FINE


def _without_secrets(found: list[Difference]) -> list[Difference]:
    """The visible differences: a lake holds no secrets, and identifies a token by the digest of its id."""

    def rows(each: Difference) -> tuple[str, str]:
        row = BY_NAME[each.kind].row
        before, after = (None if value is None else row(value) for value in (each.before, each.after))
        return repr(before), repr(after)

    # A partition's row is all of it, and there may be millions.
    others = [each for each in found if each.kind != tables.PARTITIONS]
    gone = {(each.kind, before) for each in others if each.after is None for before, _ in [rows(each)]}
    come = {(each.kind, after) for each in others if each.before is None for _, after in [rows(each)]}
    kept = gone & come

    def is_visible(each: Difference) -> bool:
        if each.kind == tables.PARTITIONS:
            return True
        before, after = rows(each)
        return before != after and (each.kind, after if each.before is None else before) not in kept

    return list(filter(is_visible, found))


def _end(text: str, args: argparse.Namespace, opened: dict[Path, MetadataSource], warned: list[str]) -> _End:
    """opened: the sources by their paths. warned: what was said of them."""
    path, moment = _split(text, args.source)
    if path is None:
        raise Failure(
            f"{text!r} is not a path: also give the directory that this moment refers to, or --lake PATH"
        )
    if path not in opened:
        opened[path] = open_captured(path, args.settings.shown_configs)
    notes = opened[path].notes
    try:
        newest = opened[path].image_at()
        image = newest
        if moment is not None:
            image = image_at(opened[path], parse_moment(moment, newest.timestamp), newest.timestamp)
    except InvalidMomentError as error:
        raise Failure(str(error)) from None
    warn([note for note in notes if note not in warned], image)
    warned += notes
    at = OpenedMoment(path, opened[path], image)
    return _End(at, at.doubts)


def _split(text: str, source: Path | None) -> tuple[Path | None, str | None]:
    """The path and the moment of one state. A file named like an offset can be given as ./1894."""
    if _is_moment(text):
        return source, text
    if Path(text).exists() or "@" not in text:
        if source is not None and not Path(text).exists():
            raise Failure(f"{text} is neither a moment nor a path: give {FORMS}")
        return Path(text), None
    path, _, moment = text.rpartition("@")
    return Path(path), moment


def _is_moment(text: str) -> bool:
    try:
        parse_moment(text, 0)
    except InvalidMomentError:
        return False
    return True


def _lines(
    before: _End, after: _End, found: list[Difference], quorum: QuorumDifferences, most: int
) -> Iterator[str]:
    """The differences by kind, voters first; most: how many are listed, 0: all. All are counted."""
    yield f"from {before.at.words}"
    yield f"to   {after.at.words}"
    yield from quorum.lines(most)
    if not (found or quorum.voters or quorum.levels):
        doubts = before.doubts or after.doubts or quorum.unknown
        yield "no difference" + (" in what is known" if doubts else "")
    in_topics = _partitions_of_whole_topics(found)
    listed = len(quorum.voters)
    for kind in tables.KINDS:
        of_kind = [each for each in found if each.kind == kind]
        if of_kind:
            yield f"{kind}: {counted_ways(way_of(each.before, each.after) for each in of_kind)}"
        for each in of_kind:
            if each.kind == tables.PARTITIONS and each.key[0] in in_topics:
                continue
            listed += 1
            if most and listed > most:
                continue
            value = each.before if each.after is None else each.after
            partitions = in_topics.get(each.key[0]) if each.kind == tables.TOPICS else None
            with_them = "" if partitions is None else f", with {count(partitions, 'partition')}"
            change = change_text.what_changed(kind, each.before, each.after)
            yield f"  {change_text.thing(kind, value)}: {change}{with_them}"
    say_more(listed - most if most else 0, "differences")


def _partitions_of_whole_topics(found: list[Difference]) -> Counter[str]:
    """The partitions added or removed with their topics, by topic id; they are counted, not listed."""
    whole = {
        each.key[0] for each in found if each.kind == tables.TOPICS and None in (each.before, each.after)
    }
    return Counter(each.key[0] for each in found if each.kind == tables.PARTITIONS and each.key[0] in whole)


def _data(before: _End, after: _End, found: list[Difference], quorum: QuorumDifferences) -> dict[str, Any]:
    def end(one: _End) -> dict[str, Any]:
        unknown = [unknown_words(one.at)] if any(one.at is at for at in quorum.unknown) else []
        return one.at.data | {"not_known": [*one.doubts, *unknown]}

    return {
        "from": end(before),
        "to": end(after),
        "differences": [*quorum.data, *(_difference(each) for each in found)],
    }


def _difference(each: Difference) -> dict[str, Any]:
    row = BY_NAME[each.kind].row
    both = each.before is not None and each.after is not None
    return difference_data(
        each.kind,
        change_text.thing(each.kind, each.before if each.after is None else each.after),
        change_text.changed_columns(each.kind, each.before, each.after) if both else None,
        None if each.before is None else row(each.before),
        None if each.after is None else row(each.after),
    )
