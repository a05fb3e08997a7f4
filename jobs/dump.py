"""kraftlake dump: the records of segments and checkpoints as JSON lines or as kafka-dump-log, without Spark.

Records go to stdout, faults of the files to stderr, one per line. Only the module of the format is imported:
for a small file, imports take most of the time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from jobs.runtime.long_lists import add_limit
from jobs.runtime.outcome import Failure

EXAMPLES = """examples:
  kraftlake dump __cluster_metadata-0/00000000000000000000.log
  kraftlake dump /backup/node-1 | jq 'select(.type == "KRaftVoters")'
  kraftlake dump --format text 00000000000000003692-0000000009.checkpoint
  kraftlake dump --cluster-metadata-decoder --files 00000000000000000000.log,00000000000000000697.log

--format kafka prints what kafka-dump-log --cluster-metadata-decoder of Kafka 4.3.1 prints, byte for byte, in
UTF-8, but much faster; secrets are null unless --show-secrets. The options of kafka-dump-log select it.

exit codes: 0 success (a log that ends inside a batch is only a warning), 1 something is unreadable or out of
order, 2 no such path, 3 nothing readable"""

MOST_RECORDS = 1000  # on a terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help="a segment, a checkpoint, or a folder that contains some at any depth",
    )
    parser.add_argument("--files", metavar="FILE,FILE", help="the same, separated by commas")
    parser.add_argument("--format", choices=("jsonl", "text", "kafka"), help="output format (default: jsonl)")
    parser.add_argument("--show-secrets", action="store_true", help="print secrets instead of null")
    parser.add_argument(
        "--raw-unknown",
        action="store_true",
        help="print values that cannot be decoded as base64; they may contain secrets",
    )
    parser.add_argument(
        "--max-bytes",
        type=int,
        metavar="SIZE",
        help="read only the first SIZE bytes of each file",
    )
    add_limit(parser, "records of jsonl and text", MOST_RECORDS)
    kafka = parser.add_argument_group("options of kafka-dump-log, which select --format kafka")
    kafka.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="print neither the metadata of records nor control records",
    )
    for option in ("--cluster-metadata-decoder", "--deep-iteration", "--print-data-log"):
        kafka.add_argument(option, action="store_true", dest="as_kafka", help="accepted; always on")


def run(args: argparse.Namespace) -> int:
    """Dump every file; returns the exit code. Failure if a path does not exist."""
    given = [*args.paths, *filter(None, (args.files or "").split(","))]
    if not given:
        raise Failure("which files? give a segment, a checkpoint or a folder, or --files FILE,FILE")
    missing = [path for path in given if not Path(path).exists()]
    if missing:
        raise Failure(f"no such file or directory: {', '.join(missing)}")
    if args.max_bytes is not None and args.max_bytes < 0:
        raise Failure(f"--max-bytes {args.max_bytes}: a size cannot be negative")
    if args.format == "kafka" or (args.format is None and (args.as_kafka or args.skip_record_metadata)):
        if args.limit is not None:
            raise Failure(
                "--limit does not apply to --format kafka, which prints all that kafka-dump-log prints"
            )
        from jobs.dump_kafka import dump_as_kafka

        return dump_as_kafka(given, args)
    if args.skip_record_metadata:
        raise Failure(f"--skip-record-metadata is an option of --format kafka, not of {args.format}")
    from jobs.dump_records import dump_records

    return dump_records([Path(path) for path in given], args)
