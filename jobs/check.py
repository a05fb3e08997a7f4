"""kraftlake check: check a lake for lost data, and print the commands that bring it back; without Spark."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from jobs.arguments import add_format, add_lake_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_lines, warn_line
from transforms.lake.storage import NoLakeError, check_lake, has_tables, is_lake, make_marker
from transforms.lake.storage.location import Location, StoreUrl

if TYPE_CHECKING:
    from transforms.lake.tables import Table

EXAMPLES = """examples:
  kraftlake check --lake /data/lake
  kraftlake check --lake /data/lake --format jsonl
  kraftlake check --lake /data/lake --restore

It compares each Delta log with its files, the captures with the batches, records and checkpoints that were
read from them, and the number of derived rows with what their derivation wrote. It changes nothing unless
--restore is given, which writes lake.json again if it is lost, with the shown_configs of the settings; these
must agree with the tables. Exit codes: 0 nothing is lost, 1 something is."""
CAPTURED = "--captures ..."


@dataclass(frozen=True, slots=True)
class LakeLoss:
    """What is lost, of which table and cluster (None: of all), and the commands that bring it back."""

    table: str
    cluster_id: str | None
    lost: str
    commands: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_lake_path(parser)
    add_format(parser, "text", "jsonl")
    parser.add_argument("--restore", action="store_true", help="first write lake.json again if it is lost")


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure where the path is not a lake."""
    try:
        if args.restore:
            restore_marker(args.lake, args.settings.shown_configs)
        check_lake(args.lake)
    except NoLakeError as error:
        raise Failure(str(error)) from None
    losses = list(lake_losses(args.lake))
    print_lines(_lines(losses, args.format))
    return ExitCode.FOUND if losses else ExitCode.FINE


def restore_marker(lake: Location, shown: Set[str]) -> None:
    """Write lake.json of a folder that has the tables of a lake and lost it; does nothing to a lake.

    shown: the configs that the settings show. Raises Failure where the tables show others, NoLakeError where
    they are not of a lake that this version reads.
    """
    if is_lake(lake) or not has_tables(lake):
        return
    from kraft_core.format.secrets import is_secret_name
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.schema import missing_columns
    from transforms.lake.tables import CONFIGS

    missing_columns(lake)
    rows = rows_with(lake, CONFIGS, ["name", "value"])
    more = sorted({row["name"] for row in rows if row["value"] and is_secret_name(row["name"], shown)})
    if more:
        raise Failure(
            f"the tables of {lake} show {', '.join(more)}, which Kafka does not define: list the names "
            f"that the lake was created with in shown_configs of kraftlake.toml"
        )
    make_marker(lake, shown)
    warn_line(f"{lake}/lake.json was written again")


def lake_losses(lake: Location) -> Iterator[LakeLoss]:
    """What the lake should hold and does not. Rows are compared only if the files of all tables are sound."""
    from transforms.lake.delta_rs import distinct
    from transforms.lake.table_damage import damaged_tables
    from transforms.lake.tables import BATCHES, CAPTURES, DERIVATIONS

    damaged = damaged_tables(lake, open_files=True)
    for table, damage in damaged.items():
        for words in damage:
            yield LakeLoss(table.name, None, words, _of_files(lake, table))
    if damaged:
        return
    clusters: set[str] = set()
    for table in (CAPTURES, BATCHES, DERIVATIONS):
        clusters |= distinct(lake, table, "cluster_id")
    for cluster in sorted(clusters):
        yield from _cluster_losses(lake, cluster)


def _cluster_losses(lake: Location, cluster: str) -> Iterator[LakeLoss]:
    from transforms.quality.derived_counts import lost_rows
    from transforms.quality.lost_reads import lost_reads

    at = f"--lake {shlex.quote(str(lake))}"
    read = f"kraftlake run {CAPTURED} {at}"
    forget = f"kraftlake forget --cluster {shlex.quote(cluster)} {at}"
    for lost in lost_reads(lake, cluster):
        yield LakeLoss(lost.table, cluster, lost.words, (read,) if lost.unclaimed else (forget, read))
    for rows in lost_rows(lake, [cluster]):
        words = f"{rows.rows:,} rows of {rows.expected:,} that were derived"
        derive = f"kraftlake derive --cluster {shlex.quote(cluster)} {at}"
        yield LakeLoss(rows.table, cluster, words, (derive,))


def _of_files(lake: Location, table: Table) -> tuple[str, ...]:
    """The commands that bring back a table whose files are damaged."""
    from transforms.lake.storage.table_folders import table_folder
    from transforms.lake.tables import ACKNOWLEDGEMENTS, CLUSTER_NAMES, EXPECTATION_RESULTS, REHEARSALS, RUNS

    at = f"--lake {shlex.quote(str(lake))}"
    remove = "aws s3 rm --recursive" if isinstance(lake, StoreUrl) else "rm -r"
    drop = f"{remove} {shlex.quote(str(table_folder(lake, table)))}"
    if table.recomputed:
        return (drop, f"kraftlake derive {at}")
    if table is CLUSTER_NAMES:
        return (drop, f"kraftlake clusters {at}")
    if table in (RUNS, ACKNOWLEDGEMENTS, REHEARSALS, EXPECTATION_RESULTS):
        return ("restore it from a copy of the lake: it cannot be loaded from captures",)
    return (f"kraftlake run {CAPTURED} --lake ANOTHER",)


def _lines(losses: list[LakeLoss], form: str) -> Iterator[str]:
    if form == "jsonl":
        yield from (json_line(asdict(loss)) for loss in losses)
        return
    for loss in losses:
        of = "" if loss.cluster_id is None else f" of cluster {loss.cluster_id}"
        yield f"{loss.table}{of}: {loss.lost}"
        yield from (f"    {command}" for command in loss.commands)
    yield f"{len(losses)} {'loss' if len(losses) == 1 else 'losses'}" if losses else "nothing is lost"
