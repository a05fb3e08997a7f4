"""kraftlake describe: a running quorum as its leader reports it, or Kafka's tools as of a moment."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobs.arguments import add_format, node_id
from jobs.quorum.asked import add_command_config, asking, living_cluster
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_lines
from jobs.time_travel.moment import FORMS, iso
from jobs.time_travel.open_source import add_lake_arguments
from kraft_core.messages.uuid_text import ZERO_UUID

if TYPE_CHECKING:
    from kraft_core.wire.quorum import DescribedReplica
    from transforms.live.quorum_asker import QuorumSample

EXAMPLES = """examples:
  kraftlake describe --bootstrap-controllers h1:9093,h2:9093,h3:9093
  kraftlake describe --bootstrap-servers broker-1:9092 --command-config client.properties
  kraftlake describe --bootstrap-controllers h1:9093,h2:9093,h3:9093 --format json
  kraftlake describe topics --at 2026-11-21T03:12 --captures /backup/node-1
  kraftlake describe quorum --replication --at 1894 --lake /data/lake --cluster prod-1
  kraftlake describe features --node 11 --captures /backup/node-1

Only the leader of a running quorum answers: give all controllers, or a broker, which forwards the request.
The user needs Describe on resource Cluster.
From captures or a lake, it prints what kafka-topics --describe, kafka-cluster cluster-id and list-endpoints,
kafka-features describe, and kafka-metadata-quorum describe would have printed at the moment (default: end).
What the log does not contain is not known, and is reported on stderr.
exit codes: 0 success, 1 not known, or part of the log could not be read; 2 wrong usage, 3 nothing readable,
75 no leader answered, 78 the user, its permissions or a certificate were refused"""

OF_A_MOMENT = ("topics", "cluster", "features", "quorum")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        choices=OF_A_MOMENT,
        nargs="?",
        metavar="WHAT",
        help=f"from captures or a lake: {', '.join(OF_A_MOMENT)}; omit it with --bootstrap-...",
    )
    parser.add_argument(
        "--captures",
        dest="source",
        type=local_path,
        metavar="PATH",
        help="with WHAT: a controller directory, a segment or a checkpoint",
    )
    add_lake_arguments(parser)
    parser.add_argument("--at", metavar="MOMENT", help=f"with WHAT: {FORMS} (default: end)")
    parser.add_argument(
        "--node",
        type=node_id,
        metavar="ID",
        help="topics, features: the node that the tool would have queried",
    )
    parser.add_argument("--listener", metavar="NAME", help="cluster: the listener of brokers to show")
    parser.add_argument(
        "--replication", action="store_true", help="quorum: print --replication instead of --status"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--bootstrap-controllers", metavar="HOST:PORT,...", help="addresses of controllers")
    where.add_argument("--bootstrap-servers", metavar="HOST:PORT,...", help="addresses of brokers")
    add_command_config(parser)
    add_format(parser, "text", "json")


def run(args: argparse.Namespace) -> int:
    """Print the quorum, or what was at a moment. Raises Failure."""
    if args.what is not None:
        if args.bootstrap_controllers or args.bootstrap_servers:
            raise Failure(f"{args.what} is described from captures or a lake: give --captures or --lake")
        if args.format == "json":
            raise Failure(f"{args.what} is printed as text, like Kafka's tool: shell and export print JSON")
        from jobs.describe_moment import describe_moment

        return describe_moment(args)
    given = {
        "bootstrap.controllers": args.bootstrap_controllers,
        "bootstrap.servers": args.bootstrap_servers,
    }
    named = [(option, where) for option, where in given.items() if where]
    if not named:
        raise Failure(
            "give --bootstrap-controllers or --bootstrap-servers, or what to describe of captures: "
            f"{', '.join(OF_A_MOMENT)}; see the examples of --help"
        )
    cluster = living_cluster(*named[0], args)
    from transforms.live.quorum_asker import QuorumAsker
    from transforms.live.quorum_rows import sample_rows

    asker = QuorumAsker(cluster)
    try:
        with asking():
            sample = asker.sample()
    finally:
        asker.close()
    if args.format == "json":
        print_lines(json_line(row) for row in sample_rows(sample))
    else:
        print_lines(_lines(sample))
    return ExitCode.FINE


def _lines(sample: QuorumSample) -> Iterator[str]:
    quorum = sample.quorum
    watermark = "not known yet" if quorum.high_watermark is None else quorum.high_watermark
    cluster = sample.cluster_id or "(the node does not report its id)"
    yield f"cluster {cluster} at {iso(sample.answered_at)}, answered by {sample.answered_by}"
    yield f"epoch {quorum.leader_epoch}, leader {quorum.leader_id}, high watermark {watermark}"
    for replica in quorum.replicas:
        yield f"  {_words(replica, sample)}"


def _words(replica: DescribedReplica, sample: QuorumSample) -> str:
    quorum = sample.quorum
    role = "voter" if replica.is_voter else "observer"
    known = replica.directory_id != ZERO_UUID
    name = f"{replica.node_id} ({replica.directory_id}) {role}" if known else f"{replica.node_id} {role}"
    listeners = quorum.endpoints.get(replica.node_id, ()) if replica.is_voter else ()
    where = "".join(f", {end}" for end in listeners)
    if replica == quorum.leader:
        return f"{name}, leads: log end {replica.log_end_offset}{where}"
    if replica.log_end_offset is None:
        return f"{name}: has not fetched from this leader{where}"
    lag = quorum.lag_of(replica)
    lacks = "" if lag is None else f", lacks {lag}"
    return f"{name}: log end {replica.log_end_offset}{lacks}, {_caught_up(replica, quorum.leader)}{where}"


def _caught_up(replica: DescribedReplica, leader: DescribedReplica | None) -> str:
    """When it had the whole log, by the leader's clock alone."""
    if replica.last_caught_up_at is None:
        return "never caught up" if replica.last_fetch_at is not None else "when it caught up is not reported"
    if leader is None or leader.last_fetch_at is None:
        return f"caught up at {iso(replica.last_caught_up_at)}"
    age = max(0, leader.last_fetch_at - replica.last_caught_up_at)
    return f"caught up {age / 1000:.1f} s ago"
