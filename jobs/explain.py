"""kraftlake explain: what became of an offset, why a partition was in trouble, which replica to recover from.

Without Spark.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from jobs.arguments import AddValues, add_evidence_age, add_format, add_lake_path, now_of
from jobs.runtime.evidence_age import EvidenceAge
from jobs.runtime.finding_text import as_json, recovery_lines, wrapped
from jobs.runtime.lake_clusters import one_cluster
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_line, print_lines, warn_line
from transforms.lake.storage.location import Location

Row = dict[str, Any]
_TIMES = ("as_of", "captured_from")  # beside the fields *_at
EXAMPLES = """examples:
  kraftlake explain --lake /data/lake --cluster iWP35uOsShu1pFlBJh_E7w --offset 355
  kraftlake explain --lake /data/lake --cluster iWP35uOsShu1pFlBJh_E7w --recovery
  kraftlake explain --lake /data/lake --recovery --without 2 3
  kraftlake explain --lake /data/lake --offset 355 --format json
  kraftlake explain --lake /data/lake --topic orders --partition 3 --at 2026-11-21T09:42:33Z
  kraftlake explain --captures /backup/node-1 --topic orders --partition 3 --at 2026-11-21T09:42:33Z

exit codes: 0 success, 1 part of the log could not be read; 2 wrong usage, 3 nothing readable"""


class _InsteadOfLake(argparse.Action):
    """Stores the value; the lake of kraftlake.toml is then not read."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _: str | None = None,
    ) -> None:
        lake = next(action for action in parser._actions if action.dest == "lake")
        setattr(namespace, self.dest, values)
        if namespace.lake is lake.default:
            namespace.lake = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    add_lake_path(where, required=False)
    where.add_argument(
        "--captures",
        dest="source",
        type=local_path,
        action=_InsteadOfLake,
        metavar="PATH",
        help="with --topic: a controller directory, a segment or a checkpoint, instead of a lake",
    )
    parser.add_argument("--cluster", metavar="CLUSTER", help="the cluster; optional if the lake has only one")
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--offset",
        type=_offset,
        metavar="N",
        help="which replicas held this offset, and what became of it",
    )
    question.add_argument(
        "--recovery",
        action="store_true",
        help="which replica to recover from, and what each choice would lose",
    )
    question.add_argument(
        "--topic",
        metavar="T",
        help="why a partition of this topic had no leader, a small ISR, or no ELR",
    )
    parser.add_argument("--partition", type=_partition, metavar="P", help="with --topic: the partition")
    parser.add_argument(
        "--at", metavar="TIME", help="with --topic: a time or an offset (default: the end of the log)"
    )
    parser.add_argument(
        "--without",
        type=int,
        action=AddValues,
        default=[],
        metavar="N",
        help="with --recovery: assume that these nodes are gone for good; repeatable",
    )
    add_evidence_age(parser)
    add_format(parser, "text", "json")


def _offset(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not an offset: the log begins at 0")
    return int(text)


def _partition(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a partition: partitions are numbered from 0")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    if args.without and not args.recovery:
        raise Failure("--without N is an option of --recovery")
    if (args.topic is None) != (args.partition is None):
        raise Failure("give --topic T and --partition P together")
    if args.at is not None and args.topic is None:
        raise Failure("--at TIME is an option of --topic")
    if args.topic is not None:
        from jobs.explain_partition import explain_partition

        return explain_partition(args)
    if args.lake is None:
        raise Failure("--captures PATH is an option of --topic: the other questions take --lake PATH")
    must_be_lake(args.lake)
    cluster = one_cluster(args.lake, args.cluster)
    return _explain_recovery(args, cluster) if args.recovery else _explain_offset(args, cluster)


def _explain_offset(args: argparse.Namespace, cluster: str) -> int:
    from jobs.quorum.quorum_facts import facts_of, why_not_settled
    from kraft_core.evidence.conclusions import conclude
    from kraft_core.findings.explain import explain

    doubt = why_not_settled(args.lake, cluster)
    code = ExitCode.FINE if doubt is None else ExitCode.FOUND
    if doubt is not None:
        warn_line(f"warning: {doubt}")
    explained = explain(conclude(facts_of(args.lake, cluster)), args.offset)
    if args.format == "json":
        print_line(json_line(as_json(_with_times(asdict(explained)))))
        return code
    print_line(f"offset {explained.offset} of cluster {cluster}")
    for sentence in explained.words:
        print_lines(wrapped(sentence))
    return code


def _with_times(value: Any) -> Any:
    """A conclusion with its times as datetimes."""
    from transforms.lake.arrow_rows import moment

    if isinstance(value, dict):
        return {
            name: moment(held) if name.endswith("_at") or name in _TIMES else _with_times(held)
            for name, held in value.items()
        }
    return [_with_times(item) for item in value] if isinstance(value, list | tuple) else value


def _explain_recovery(args: argparse.Namespace, cluster: str) -> int:
    from jobs.quorum.quorum_facts import why_not_settled
    from kraft_core.format.capture import STATED_SOURCES
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import RECOVERIES

    if (words := why_not_settled(args.lake, cluster)) is not None:
        raise Failure(f"not known: {words}", ExitCode.FOUND)
    rows = rows_with(args.lake, RECOVERIES, cluster_id=[cluster])
    if not rows:
        raise Failure(f"cluster {cluster} has not been validated yet: kraftlake validate --lake {args.lake}")
    row = _without(args.lake, cluster, rows[0], sorted(set(args.without))) if args.without else rows[0]
    source = row["as_of_source"]
    bounded_by = None if source in STATED_SOURCES else source
    age = EvidenceAge(row["as_of"], now_of(args), args.max_evidence_age_hours, bounded_by)
    if args.format == "json":
        print_line(json_line(as_json(row | _age_fields(row, age))))
    else:
        print_lines(recovery_lines(row, age.is_old))
        print_lines(wrapped(_age_sentence(row, age) or ""))
    return ExitCode.FINE


def _without(lake: Location, cluster: str, row: Row, gone: list[int]) -> Row:
    """The advice as a row of recoveries, with the nodes that are gone for good. Raises Failure.

    row: with no node gone.
    """
    from jobs.quorum.quorum_facts import facts_of
    from kraft_core.evidence.conclusions import conclude
    from kraft_core.evidence.set_history import set_nodes
    from kraft_core.findings.recovery import recovery_advice
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import FINDINGS
    from transforms.quality.findings import finding_of

    known = conclude(facts_of(lake, cluster))
    ids = {replica.id for replica in known.holdings.captures}
    ids |= {voter.key.id for node in set_nodes(known) for voter in node.voters.voters}
    for node in gone:
        if node not in ids:
            raise Failure(
                f"node {node} is not a voter of {cluster} and was not captured: --without takes one of "
                f"{', '.join(map(str, sorted(ids)))}"
            )
    findings = [finding_of(row) for row in rows_with(lake, FINDINGS, cluster_id=[cluster])]
    advice = recovery_advice(known, findings, gone, row["highest_epoch"])
    return _with_times(asdict(advice)) | {"without": gone}


def _age_fields(row: Row, age: EvidenceAge) -> Row:
    """The age of the evidence as fields of the JSON answer."""
    return {"now": age.now, "is_evidence_old": age.is_old, "evidence_age": _age_sentence(row, age)}


def _age_sentence(row: Row, age: EvidenceAge) -> str | None:
    """None for advice that rests on no captured replica: all are gone."""
    return age.sentence if row["best"] or row["others"] else None
