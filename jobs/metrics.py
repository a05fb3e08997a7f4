"""kraftlake metrics: what the lake's newest captures prove about each quorum, as a Prometheus text file.

The names are those of Kafka's raft-metrics (KIP-595, KIP-853) with a prefix; what captures do not prove has
no sample, and what is counted and not found is 0. Read by delta-rs, without Spark.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from jobs.arguments import add_lake_path, add_now, now_of
from jobs.quorum.sample import Sample
from jobs.runtime.crash import failure_of
from jobs.runtime.lakes import must_be_lake, must_be_whole
from jobs.runtime.local_paths import output_file, put_in_place
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import printable

EXAMPLES = """examples:
  kraftlake metrics --lake /data/lake
  kraftlake metrics --lake /data/lake --out /var/lib/node_exporter/textfile/kraftlake.prom

The file is replaced atomically: a collector never reads half of it.
exit codes: 0 success, 2 wrong usage or not a lake"""

HELP = {
    "kraftlake_last_good_run_timestamp_seconds": "When the last run that loaded captures ended",
    "kraftlake_last_good_run_age_seconds": "Age of that run when this was written",
    "kraftlake_last_run_exit_code": "Exit code of the last finished run; 75 also if it could not record one",
    "kraftlake_failed_clusters": "Clusters that failed in the last run",
    "kraftlake_derivation_failed": "1 if deriving the newest captures of the cluster failed, else 0",
    "kraftlake_not_derived": "1 if what was ingested of the cluster last is not derived, else 0",
    "kraftlake_expectations_not_met": "Unmet expectations by severity, by their newest results; cluster * "
    "is the lake as a whole",
    "kraftlake_open_findings": "Open findings by severity, 0 where there is none",
    "kraftlake_findings": "Findings by rule, severity and state, for rules that a cluster violated",
    "kraftlake_quarantined_bytes": "Bytes that no captured copy supplied",
    "kraftlake_captured_timestamp_seconds": "When the replica was last captured",
    "kraftlake_current_leader": "Leader of the newest epoch known (current-leader, KIP-595); -1 if unknown",
    "kraftlake_current_leader_epoch": "The epoch of kraftlake_current_leader, the newest one known",
    "kraftlake_current_leader_is_proven": "1 if a LEADER_CHANGE names that leader, 0 if it is only reported",
    "kraftlake_voters_epoch": "The newest epoch in the captures, whose voters are counted here",
    "kraftlake_current_epoch": "Epoch of the replica's quorum-state (current-epoch, KIP-595)",
    "kraftlake_current_vote": "Candidate it voted for in that epoch, -1 for none (current-vote, KIP-595)",
    "kraftlake_current_vote_directory_id": "Directory id of that candidate, as a label (KIP-853)",
    "kraftlake_current_state": "1 for the role that the replica's files show (current-state, KIP-595)",
    "kraftlake_log_end_offset": "End of the replica's log, exclusive (log-end-offset, KIP-595)",
    "kraftlake_log_end_epoch": "Epoch of its last batch (log-end-epoch, KIP-595)",
    "kraftlake_lag_records": (
        "Records by which the replica is behind the longest log of the last epoch; no sample if its own log "
        "is of an older epoch and not shorter"
    ),
    "kraftlake_lag_seconds": "Time by which its last append is behind that of the longest log, as of its "
    "own capture",
    "kraftlake_high_watermark": "Bounds of the high watermark, proven for the moment of "
    "kraftlake_high_watermark_timestamp_seconds (high-watermark, KIP-595)",
    "kraftlake_high_watermark_timestamp_seconds": "The moment for which those bounds are proven",
    "kraftlake_committed_end_offset": "End of the proven committed log, exclusive",
    "kraftlake_election_leaderless_seconds": "Upper bound of the time without a leader before the newest "
    "epoch: since the last append of an older one "
    "(election-latency)",
    "kraftlake_number_of_voters": "Voters in the newest set (number-of-voters, KIP-853)",
    "kraftlake_number_of_observers": "Captured controllers that do not vote (number-of-observers, KIP-853)",
    "kraftlake_number_of_offline_voters": (
        "Captured voters known to lag beyond the fetch timeout (KIP-853); 0 only if the lag of each is known"
    ),
    "kraftlake_number_of_uncaptured_voters": "Voters without a capture",
    "kraftlake_uncommitted_voter_change": "1 if the newest set is not committed (KIP-853)",
    "kraftlake_is_observer": "1 if the replica is not a voter (IsObserver, KIP-853)",
    "kraftlake_reported_timestamp_seconds": "When the leader last described the quorum to kraftlake follow",
    "kraftlake_reported_leader": "Node id of that leader",
    "kraftlake_reported_leader_epoch": "Its epoch (current-epoch, KIP-595)",
    "kraftlake_reported_high_watermark": "Its high watermark (high-watermark, KIP-595)",
    "kraftlake_reported_number_of_voters": "Voters that it has (number-of-voters, KIP-853)",
    "kraftlake_reported_number_of_observers": "Observers that fetch from it, brokers among them "
    "(number-of-observers, KIP-853)",
    "kraftlake_reported_log_end_offset": "End of the replica's log, exclusive, as the leader knows it "
    "(log-end-offset, KIP-595)",
    "kraftlake_reported_lag_records": "Records by which the replica is behind the leader's log",
    "kraftlake_reported_last_caught_up_timestamp_seconds": "When the replica was last caught up, by the "
    "leader's clock",
    "kraftlake_reported_is_observer": "1 if the replica is an observer (IsObserver, KIP-853)",
    "kraftlake_restorable": "1 if the last rehearsal wrote and verified directories of a new quorum, 0 if "
    "it was refused (from restore rehearse --lake or --metrics, like all that "
    "follow)",
    "kraftlake_restore_rehearsed_timestamp_seconds": "When the last rehearsal ran",
    "kraftlake_restorable_as_of_timestamp_seconds": "The captures it is based on were taken at this time "
    "or later",
    "kraftlake_restorable_end_offset": "End of the log that would be restored, exclusive",
    "kraftlake_restorable_lost_offsets": "Offsets above that end that were seen in a capture",
    "kraftlake_restore_loss": "1 for each loss that would have to be accepted, by name",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_lake_path(parser)
    parser.add_argument("--out", type=output_file, metavar="FILE", help="file to write (default: stdout)")
    add_now(parser)


def run(args: argparse.Namespace) -> int:
    """Write the metrics. Raises Failure."""
    must_be_lake(args.lake)
    must_be_whole(args.lake)
    text = metrics_text(args)
    if args.out is None:
        sys.stdout.write(text)
    else:
        put(args.out, text)
    return ExitCode.FINE


def metrics_text(args: argparse.Namespace) -> str:
    """The metrics of args.lake; the settings name its clusters."""
    from jobs.quorum.lake_samples import cluster_names, samples

    lake = args.lake.resolve()
    names = cluster_names(lake) | {cluster.id: cluster.name for cluster in args.settings.clusters}
    return "".join(f"{line}\n" for line in lines(named(samples(lake, now_of(args)), names)))


def put(path: Path, text: str) -> None:
    """Put a file in place whole. Raises Failure."""
    try:
        with put_in_place(path) as part:
            part.write_text(text)
    except OSError as error:
        failed = OSError(error.errno, error.strerror, str(path))
        raise failure_of(failed, path) or Failure(f"{path} cannot be written: {error.strerror}") from None


def named(found: Iterable[Sample], names: Mapping[str, str]) -> Iterator[Sample]:
    """The samples; those of a cluster with its name as label `cluster`, its id where it has none."""
    for sample in found:
        cluster_id = sample.labels.get("cluster_id")
        if cluster_id is None:
            yield sample
        else:
            label = {"cluster": names.get(cluster_id, cluster_id)}
            yield replace(sample, labels=label | sample.labels)


def lines(found: Iterable[Sample]) -> Iterator[str]:
    """The text format: the samples of a metric together, under its HELP and TYPE."""
    by_name: dict[str, list[Sample]] = {}
    for sample in found:
        by_name.setdefault(sample.name, []).append(sample)
    for name in HELP:
        of_name = by_name.pop(name, [])
        if of_name:
            yield f"# HELP {name} {HELP[name]}"
            yield f"# TYPE {name} gauge"
            yield from sorted(f"{name}{_labels(sample.labels)} {_number(sample.value)}" for sample in of_name)
    assert not by_name, f"metrics without a HELP: {sorted(by_name)}"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    shown = "\n".join(printable(line) for line in value.split("\n"))
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(round(value, 3))
