"""The command line: one verb a module, imported only when it is called, so that errors come at once."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs.runtime import settings
from jobs.runtime.outcome import Failure

VERBS = {
    "run": ("jobs.run", "read captures, derive the quorum's history, print what was found"),
    "ingest": ("jobs.ingest", "read captures into the lake, without deriving"),
    "derive": ("jobs.derive", "derive the history of the lake's clusters again"),
    "validate": ("jobs.validate", "hold all captures against KRaft's rules, print what needs a person"),
    "explain": ("jobs.explain", "what became of an offset; from which replica to recover"),
    "findings": ("jobs.findings", "list findings, acknowledge one that is known"),
    "sql": ("jobs.sql", "ask the lake by SQL"),
    "serve": ("jobs.serve", "answer BI tools: the Thrift Server over the lake, on loopback"),
    "report": ("jobs.report", "one HTML page: the fleet, and each cluster's history and findings"),
    "shell": ("jobs.shell", "walk through the cluster's metadata at any offset or time"),
    "diff": ("jobs.diff", "what changed between two moments or two replicas"),
    "plan": ("jobs.plan", "may I change the quorum now: verdict, risks, steps"),
    "metrics": ("jobs.metrics", "what the captures prove, as a Prometheus text file"),
    "capture": ("jobs.capture", "copy the metadata log directories of live controllers"),
    "clusters": ("jobs.clusters", "the clusters of a lake, by their names"),
    "maintain": ("jobs.maintain", "join small files, let old captures expire, free space"),
    "forget": ("jobs.forget", "take everything about a cluster out of the lake"),
    "config": ("jobs.config", "print the settings in force"),
    "dump": ("jobs.dump", "print the records of segments and checkpoints as JSON lines"),
}

EPILOG = """examples:
  kraftlake run --captures /backup/controllers --lake /data/lake
  kraftlake sql "SELECT * FROM voter_history" --lake /data/lake
  kraftlake dump __cluster_metadata-0/00000000000000000000.log

A cluster is named by its id, or by the name that kraftlake.toml gives it (docs/kraftlake.toml).

exit codes: 0 fine, 1 something was found or quarantined, 2 wrong usage, 3 nothing readable, 4 lake busy"""


def build_parser(verb: str | None, known: settings.Settings) -> argparse.ArgumentParser:
    """The parser, its defaults those of the settings; only the called verb's module is imported."""
    parser = argparse.ArgumentParser(
        prog="kraftlake",
        description="Analytics of Kafka's KRaft metadata log: captured controller directories become tables.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (module, summary) in VERBS.items():
        if name == verb:
            imported = importlib.import_module(module)
            sub = verbs.add_parser(
                name,
                help=summary,
                description=summary,
                epilog=imported.EXAMPLES,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            imported.add_arguments(sub)
            sub.set_defaults(run=imported.run, settings=known)
            add_settings(sub)
            settings.apply(sub, known)
        else:
            verbs.add_parser(name, help=summary)
    return parser


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Flags of every verb."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings; by default ./kraftlake.toml (docs/kraftlake.toml)",
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="append what a run does as lines of JSON")


def named_config(words: Sequence[str]) -> Path | None:
    """The file that --config names: its settings are needed before the other flags can be understood."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    early.add_argument("--config", type=Path)
    try:
        return early.parse_known_args(words)[0].config
    except argparse.ArgumentError:  # said better by the verb's own parser
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Returns the exit code; a Failure becomes one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb = next((w for w in words if not w.startswith("-")), None)
    try:
        known = settings.read_settings(named_config(words))
        args = build_parser(verb, known).parse_args(words)
        settings.with_cluster_ids(args, known)
        return args.run(args)
    except Failure as failure:
        print(f"kraftlake {verb}: {failure}", file=sys.stderr)
        return failure.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        print(f"kraftlake {verb}: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
