"""The command line. Each verb is a module that is imported only when it is called: usage errors are fast.

What only jobs need is imported for them alone: of dump, start-up takes most of the time.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.runtime import settings
from jobs.runtime.arrow_alone import import_pyarrow
from jobs.runtime.command_parser import CommandParser, HelpText, ShowVersion
from jobs.runtime.local_paths import local_path, output_file
from jobs.runtime.outcome import MEANINGS, ExitCode, Failure, UnknownCluster
from jobs.runtime.output import json_line, print_line, warn_line
from kraft_core.wording import did_you_mean

if TYPE_CHECKING:  # dump has no lake, and should not import its libraries
    from jobs.runtime.progress import Progress
    from transforms.lake.storage.location import Location

JVM_HAS_ENDED = (
    "Spark's JVM has ended: it was killed, or ran out of memory (spark.driver.memory); "
    "run the same command again"
)
_GONE = "was moved or deleted while it was in use"
VERBS = {
    "run": ("jobs.run", "load captures, derive the quorum's history, print a summary"),
    "ingest": ("jobs.ingest", "load captures into the lake without deriving"),
    "derive": ("jobs.derive", "derive the history of the lake's clusters again"),
    "follow": ("jobs.follow", "continuously load what running quorums commit"),
    "validate": ("jobs.validate", "evaluate KRaft's rules, validate the tables, list what needs attention"),
    "explain": ("jobs.explain", "explain an offset, a partition without a leader, or where to recover from"),
    "findings": ("jobs.findings", "list findings, or acknowledge a known one"),
    "sql": ("jobs.sql", "query the lake with SQL"),
    "serve": ("jobs.serve", "let BI tools query the lake over JDBC"),
    "report": ("jobs.report", "write an HTML page: the fleet, and each cluster's history and findings"),
    "shell": ("jobs.shell", "browse the cluster's metadata at any offset or time"),
    "diff": (
        "jobs.diff",
        "compare the metadata of two moments or two replicas, or with a desired state in YAML",
    ),
    "export": (
        "jobs.export",
        "export the metadata as YAML, or as commands that recreate it in an empty cluster",
    ),
    "plan": (
        "jobs.plan",
        "check a change of the quorum, a broker, topics or the release: verdict, risks, steps",
    ),
    "features": ("jobs.features", "print feature levels of a release or of captures, as kafka-features does"),
    "describe": (
        "jobs.describe",
        "print the state of a running quorum, or the output of Kafka's tools at a moment",
    ),
    "restore": ("jobs.restore", "build controller directories for a quorum that lost its majority"),
    "metrics": ("jobs.metrics", "export what the captures prove as a Prometheus text file"),
    "capture": ("jobs.capture", "copy the metadata log directories of running controllers"),
    "clusters": ("jobs.clusters", "list the clusters of a lake and their names"),
    "maintain": ("jobs.maintain", "compact small files, expire old captures, free space"),
    "check": ("jobs.check", "check a lake for lost data, and print the commands that bring it back"),
    "forget": ("jobs.forget", "delete everything about a cluster from the lake"),
    "config": ("jobs.config", "print the settings in effect"),
    "dump": ("jobs.dump", "print the records of segments and checkpoints as JSON lines"),
    "doctor": ("jobs.doctor", "check Java, jars, disk, memory and the lake, and print what to fix"),
    "completion": ("jobs.completion", "print a shell script that completes verbs and options"),
    "version": ("jobs.version", "print the versions of kraftlake and its dependencies"),
}

# Verbs that hold many rows or partitions, and the objects that they make between two collections of garbage,
# which look through all of these.
HOLD_MANY = ("run", "dump", "describe", "diff", "explain", "export", "plan", "shell")
MOST_GARBAGE = 100_000
# Verbs whose output ends with a JSON line, whatever happens; Ctrl-C ends them once.
JOBS = ("run", "follow", "ingest", "derive", "validate", "maintain", "forget")

EPILOG = """examples:
  kraftlake run --captures /backup/controllers --lake /data/lake
  kraftlake sql "SELECT * FROM voter_history" --lake /data/lake
  kraftlake dump __cluster_metadata-0/00000000000000000000.log

kraftlake help VERB shows its options and examples. Give a cluster by its id or by its name in
kraftlake.toml (docs/kraftlake.toml).

exit codes:
"""


def build_parser(verb: str | None, known: settings.Settings) -> CommandParser:
    """The parser, with defaults from the settings; only the called verb's module is imported."""
    parser, verbs = _parser_of_verbs()
    for name, (_, summary) in VERBS.items():
        if name == verb:
            _add_verb(verbs, name, known)
        else:
            verbs.add_parser(name, help=summary, formatter_class=HelpText)
    return parser


def _parser_for(words: Sequence[str], verb: str | None, known: settings.Settings) -> CommandParser:
    """What build_parser returns, with the one verb that the first word is, else with all."""
    if words[:1] != [verb] or verb not in VERBS:
        return build_parser(verb, known)
    parser, verbs = _parser_of_verbs()
    _add_verb(verbs, verb, known)
    return parser


def full_parser(known: settings.Settings) -> CommandParser:
    """The parser with the arguments of every verb."""
    parser, verbs = _parser_of_verbs()
    for name in VERBS:
        _add_verb(verbs, name, known)
    return parser


def _parser_of_verbs() -> tuple[CommandParser, Any]:
    """The parser, and where verbs are added to it."""
    parser = CommandParser(
        prog="kraftlake",
        description="Analytics of Kafka's KRaft metadata log: captured controller directories become tables.",
        epilog=EPILOG + "\n".join(f"  {code.value:<4}{meaning}" for code, meaning in MEANINGS.items()),
        formatter_class=HelpText,
    )
    parser.also_known = ("help",)
    parser.add_argument("--version", action=ShowVersion, help="print the version")
    return parser, parser.add_subparsers(dest="verb", metavar="VERB", required=True, prog=parser.prog)


def _add_verb(verbs: Any, name: str, known: settings.Settings) -> None:
    """Add a verb with its arguments; verbs: of _parser_of_verbs."""
    module, summary = VERBS[name]
    imported = importlib.import_module(module)
    parser = verbs.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=imported.EXAMPLES,
        formatter_class=HelpText,
    )
    imported.add_arguments(parser)
    parser.set_defaults(run=imported.run, settings=known)
    for leaf in parser.leaves():
        add_settings(leaf)
        settings.apply(leaf, known)


OF_EVERY_VERB = ("--config", "--log")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Flags that every verb has."""
    parser.add_argument(
        "--config",
        type=local_path,
        metavar="FILE",
        help="settings file (default: $KRAFTLAKE_CONFIG, else ./kraftlake.toml); see docs/kraftlake.toml",
    )
    parser.add_argument(
        "--log", type=output_file, metavar="FILE", help="append progress to this file as JSON lines"
    )


def _config_flag(words: Sequence[str]) -> Path | None:
    """The value of --config: the parser of the other flags needs its settings."""
    if not any(word.startswith("--config") for word in words):
        return None
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    early.add_argument("--config", type=Path)
    try:
        return early.parse_known_args(words)[0].config
    except argparse.ArgumentError:  # the verb's own parser reports it better
        return None


def _run(args: argparse.Namespace) -> int:
    """Run the verb. Raises Failure for every error: what explains it, else an internal one."""
    try:
        if getattr(args, "lake", None) is not None:
            import_pyarrow()
        return args.run(args)
    except UnknownCluster as unknown:
        known = [*unknown.known, *(cluster.name for cluster in args.settings.clusters)]
        raise Failure(f"{unknown}{did_you_mean(unknown.word, known)}") from None
    except (Failure, BrokenPipeError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is not an Exception
        from jobs.runtime.interrupt import is_interrupted

        if is_interrupted(error):
            raise KeyboardInterrupt from None
        raise _captured_file_gone(error, args) or _explained(error, getattr(args, "lake", None)) from None


def _captured_file_gone(error: BaseException, args: argparse.Namespace) -> Failure | None:
    """The Failure that a captured file is which was listed, and is gone when it is read without a lake."""
    if not isinstance(error, FileNotFoundError) or getattr(args, "lake", None) is not None:
        return None
    file = error.filename
    if not file or not any(Path(file).is_relative_to(path) for path in getattr(args, "captures", None) or ()):
        return None
    return Failure(f"{file} {_GONE}: run the same command again", ExitCode.TRY_AGAIN)


def _explained(error: BaseException, lake: Location | None) -> Failure:
    from jobs.runtime.crash import failure_of, internal

    if "py4j" in sys.modules:
        from jobs.runtime.session import jvm_has_ended

        if jvm_has_ended():
            return Failure(JVM_HAS_ENDED, ExitCode.TRY_AGAIN)
    outside = failure_of(error, lake)
    if outside is not None:
        return outside
    from jobs.runtime.lakes import damage_of, is_lake

    try:
        if isinstance(error, FileNotFoundError) and lake is not None and not is_lake(lake):
            words = f"{_GONE}: run the same command again where it is now"
            return Failure(f"{lake} {words}", ExitCode.TRY_AGAIN)
        damage = None if lake is None else damage_of(lake, open_files=True)
    except KeyboardInterrupt:
        raise
    except BaseException as unread:  # a store that does not answer, or a panic, as above
        return failure_of(unread, lake) or internal(error)
    return internal(error) if damage is None else Failure(damage)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb. Returns the exit code; a Failure becomes one line on stderr.

    Without arguments it runs that of this process, which ends with dump.
    """
    if argv is None and sys.argv[1:2] and sys.argv[1] in HOLD_MANY:
        gc.set_threshold(MOST_GARBAGE)
    if argv is not None or sys.argv[1:2] != ["dump"]:
        return _main(argv)
    # It has no lake and no threads of its own: nothing is left to do at exit, and what Python does then takes
    # much of the time of a small file.
    code = _main(None)
    with suppress(OSError):  # Python's own end says so, as of all verbs
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed
            stream.flush()
        os._exit(code)
    return code


def _main(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    # Of a panic in Rust, its message is enough.
    os.environ.setdefault("RUST_BACKTRACE", "0")
    # NumPy's OpenBLAS starts a thread for each core when it is loaded, and they spin. Nothing here asks it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if words[:1] == ["help"]:
        words = [*dropwhile("help".__eq__, words), "--help"]
    option = words[0].partition("=")[0] if words else ""
    if option in OF_EVERY_VERB:
        warn_line(f"kraftlake: {option} comes after the verb, as in kraftlake config {option} FILE")
        return ExitCode.USAGE
    verb = next((w for w in words if not w.startswith("-")), None)
    args = argparse.Namespace()
    try:
        if argv is None and verb in JOBS:
            from jobs.runtime.interrupt import interrupt_once

            interrupt_once()
        known = settings.read_settings(_config_flag(words))
        args = _parser_for(words, verb, known).parse_args(words)
        if verb in JOBS:
            from jobs.runtime.progress import Progress

            args.progress = Progress(args.log)
        settings.with_cluster_ids(args, known)
        return _run(args)
    except Failure as failure:
        for line in failure.details:
            warn_line(line)
        warn_line(f"kraftlake {verb}: {failure}")
        return _failed(args, failure.exit_code, str(failure))
    except BrokenPipeError:
        _forget_output()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        if argv is None:
            # The process ends: a second Ctrl-C must not cut short how its threads and Spark end.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        warn_line(f"kraftlake {verb}: interrupted")
        code = _failed(args, ExitCode.INTERRUPTED, "interrupted")
        if argv is None:
            _forget_output()
        return code


def _failed(args: argparse.Namespace, code: ExitCode, error: str) -> ExitCode:
    """Print the JSON line of a job that could not end as one does. Returns the exit code."""
    progress: Progress | None = getattr(args, "progress", None)
    if progress is not None and not getattr(args, "dry_run", False):
        report = {"run_id": progress.run_id, "job": args.verb, "exit_code": int(code), "error": error}
        progress.done()
        with suppress(OSError):
            progress.log("ended", **report)
        try:
            print_line(json_line(report))
            sys.stdout.flush()
        except OSError:
            _forget_output()
    return code


def _forget_output() -> None:
    """Drop what is not written yet: its reader may have gone, or take no more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
