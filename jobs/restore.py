"""kraftlake restore: restart a quorum that lost its majority, from captures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.arguments import AddValues, add_cluster_id, add_format, add_wait, moment_ms
from jobs.runtime.lakes import lake_folder
from jobs.runtime.local_paths import local_path, output_file
from jobs.runtime.outcome import Failure
from kraft_core.addresses import parse_address

EXAMPLES = """examples:
  kraftlake restore plan --captures /backup/controllers --voters 1@ctl-1:9093 --gone 2 3 --brokers-stopped
      --controllers-stopped --out plan.json
  kraftlake restore apply plan.json --to /backup/restored --accept-loss unseen-records
  kraftlake restore verify /backup/restored --against plan.json
  kraftlake restore rehearse --captures /backup/controllers --lake /data/lake

restore never writes to captures, nor to the directory of a running node. docs/restore.md is the runbook.
exit codes: 0 plan: safe, apply: written, verify: as planned, rehearse: restorable; 1 plan: something may be
lost, any: refused; 2 wrong usage, 3 nothing readable"""


@dataclass(frozen=True, slots=True)
class VoterAddress:
    """A controller to be, as the user names it."""

    id: int
    host: str
    port: int


def voter_of(text: str) -> VoterAddress:
    """ID@HOST:PORT."""
    id_, _, address = text.partition("@")
    place = parse_address(address)
    if not id_.isdecimal() or place is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a voter such as 1@host-1:9093")
    return VoterAddress(int(id_), *place)


def line_of(text: str) -> tuple[int, int]:
    """EPOCH@OFFSET."""
    epoch, _, end = text.partition("@")
    if not epoch.isdecimal() or not end.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not the end of a log such as 5@5306")
    return int(epoch), int(end)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", metavar="plan|apply|verify|rehearse", required=True)
    _add_plan(verbs.add_parser("plan", help="decide what would be restored, and what may be lost"))
    apply = verbs.add_parser("apply", help="write the planned directories into a new folder")
    apply.add_argument("plan", type=local_path, metavar="PLAN", help="the file that restore plan wrote")
    apply.add_argument(
        "--to", type=local_path, required=True, metavar="PATH", help="folder that does not exist yet"
    )
    apply.add_argument(
        "--accept-loss",
        action=AddValues,
        default=[],
        metavar="NAME",
        help="every loss that the plan lists; repeatable",
    )
    rehearse = verbs.add_parser(
        "rehearse", help="plan, write to a scratch folder and verify: check whether a restore would succeed"
    )
    _add_captures(rehearse)
    rehearse.add_argument(
        "--metrics",
        type=output_file,
        metavar="FILE",
        help="also write the result as a Prometheus text file",
    )
    rehearse.add_argument(
        "--lake",
        type=lake_folder,
        metavar="PATH",
        help="record the result in table rehearsals of this lake, which must contain captures of the cluster",
    )
    add_wait(rehearse)
    add_format(rehearse, "text", "json")
    verify = verbs.add_parser(
        "verify", help="read what was written as a capture, and compare it with the plan"
    )
    verify.add_argument("folder", type=local_path, metavar="PATH", help="the folder that restore apply wrote")
    verify.add_argument(
        "--against", type=local_path, required=True, metavar="PLAN", help="the plan that it was made from"
    )
    verify.add_argument(
        "--kafka",
        type=local_path,
        metavar="PATH",
        help="folder of a Kafka installation (the one with libs): its kafka-dump-log and "
        "kafka-metadata-shell must read the same",
    )


def _add_plan(parser: argparse.ArgumentParser) -> None:
    _add_captures(parser)
    _add_nodes(parser)
    parser.add_argument(
        "--controllers-stopped",
        action="store_true",
        help="state that all controllers, captured or not, had stopped before the captures were taken",
    )
    parser.add_argument(
        "--brokers-stopped",
        action="store_true",
        help="state that no broker runs until the new quorum has a leader",
    )
    parser.add_argument(
        "--at",
        default="end",
        metavar="MOMENT",
        help="restore the metadata as of this offset (inclusive) or time: undoes later changes, and needs "
        "--brokers-stopped (default: end)",
    )
    parser.add_argument(
        "--placement",
        choices=("newest", "as-of"),
        default="newest",
        help="with --at: replicas and ISRs as of now, where the messages are, or as of that moment "
        "(default: newest)",
    )
    parser.add_argument(
        "--line",
        type=line_of,
        metavar="EPOCH@OFFSET",
        help="which of several histories to restore, by the last epoch and the end of its log, as listed "
        "when the plan is refused",
    )
    parser.add_argument("--out", type=output_file, metavar="FILE", help="write the plan to this new file")
    add_format(parser, "text", "json")


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    """The controllers and brokers of the restored quorum."""
    parser.add_argument(
        "--voters",
        type=voter_of,
        action=AddValues,
        required=True,
        metavar="ID@HOST:PORT",
        help="the controllers of the restored quorum; repeatable",
    )
    parser.add_argument(
        "--kraft-version",
        type=int,
        choices=(1,),
        help="1 makes a static quorum a dynamic one (default: as captured)",
    )
    parser.add_argument(
        "--gone",
        type=int,
        action=AddValues,
        default=[],
        metavar="ID",
        help="voters whose disks are gone for good; a capture of one counts as a backup, which proves "
        "nothing; repeatable",
    )
    parser.add_argument(
        "--lost-brokers",
        type=int,
        action=AddValues,
        default=[],
        metavar="ID",
        help="brokers that never come back; repeatable",
    )
    parser.add_argument(
        "--brokers-back",
        type=int,
        action=AddValues,
        metavar="ID",
        help="the only brokers that come back; repeatable (default: all registered ones except "
        "--lost-brokers)",
    )


def _add_captures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--captures",
        type=local_path,
        action=AddValues,
        required=True,
        metavar="PATH",
        help="captured directories of controllers, and of brokers, which also have a copy of the metadata "
        "log",
    )
    parser.add_argument(
        "--broker-dirs",
        type=local_path,
        action=AddValues,
        default=[],
        metavar="PATH",
        help="log directories of brokers, with meta.properties: their topics, leader epochs and copy of "
        "the metadata log are read",
    )
    parser.add_argument("--cluster", metavar="CLUSTER", help="the cluster; optional if there is only one")
    add_cluster_id(parser)
    parser.add_argument("--captured-at", type=moment_ms, metavar="TIME", help="when --captures were copied")
    parser.add_argument("--listener", metavar="NAME", help="the controllers' listener (default: as captured)")


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    if args.what == "plan":
        _check_voters(args.voters)
    from jobs.restore_verbs import VERBS

    return VERBS[args.what](args)


def _check_voters(voters: Sequence[VoterAddress]) -> None:
    """Raises Failure where two voters have one id or one address."""
    if len({v.id for v in voters}) < len(voters) or len({(v.host, v.port) for v in voters}) < len(voters):
        raise Failure("--voters: each needs an id and an address of its own")
