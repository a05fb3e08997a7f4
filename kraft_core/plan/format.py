"""plan format: what kafka-storage would write into a node's log directories, or why it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote

from kraft_core.addresses import address_text
from kraft_core.format.log_dirs import BOOTSTRAP_NAME, LOG_DIR_NAME
from kraft_core.messages.releases import KRAFT_VERSION, METADATA_VERSION, Release
from kraft_core.plan.answer import Answer
from kraft_core.plan.feature_control import level_words
from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.raft.voters import Voter
from kraft_core.storage.formatter import (
    META_PROPERTIES,
    FormatRequest,
    Formatted,
    FormattedDir,
    plan_files,
)
from kraft_core.storage.info import StorageInfo, storage_info
from kraft_core.storage.log_dirs import LogDir, read_meta
from kraft_core.storage.node_config import NodeConfig, read_node_config
from kraft_core.storage.scram import hidden
from kraft_core.storage.tool_error import ToolError
from kraft_core.wording import count, first_named

_DRAWN = "(drawn)"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class NodeToFormat:
    """entries: of its server.properties. config_file: its name. found: each log directory by its path."""

    entries: Mapping[str, str]
    config_file: str
    found: Mapping[str, LogDir]


@dataclass(frozen=True, slots=True)
class FormatAnswer:
    """thrown: the class of an exception of which the tool prints the stack trace. writes: file by file.
    prints: the tool's lines. info: what `kafka-storage info` says now, None where Kafka refuses the
    configuration.
    """

    answer: Answer
    thrown: str | None = None
    writes: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    info: StorageInfo | None = None


def plan_format(node: NodeToFormat, request: FormatRequest, release: Release) -> FormatAnswer:
    """The verdict of kafka-storage format of a release (4.3 or 4.4)."""
    question = f"kafka-storage format of Kafka {release.name}, {node.config_file}"
    info: StorageInfo | None = None
    try:
        config = read_node_config(node.entries, release)
        info = storage_info(node.found)
        formatted = plan_files(request, config, node.found, release)
    except ToolError as error:
        refused = Answer(
            question,
            "refused",
            f"Kafka refuses it: {error.text}",
            steps=tuple(_other_steps(error)),
            error_text=error.text,
        )
        return FormatAnswer(refused, error.thrown, info=info)
    risks = tuple(_risks(node, config, formatted))
    if config.unjudged:
        names = first_named(config.unjudged, _MOST_NAMED)
        verdict, reason = "not_known", f"Kraftlake does not know whether Kafka accepts the values of {names}"
    elif risks:
        verdict, reason = "risky", risks[0].sentence
    else:
        verdict, reason = "safe", _done(formatted)
    answer = Answer(
        question,
        verdict,
        reason,
        missing=tuple(f"whether Kafka accepts the value of {name}" for name in config.unjudged),
        risks=risks,
        steps=tuple(_steps(node, request, formatted)),
    )
    writes = tuple(line for directory in formatted.directories for line in _writes(formatted, directory))
    return FormatAnswer(answer, None, writes, formatted.lines, info)


def _done(formatted: Formatted) -> str:
    if not formatted.directories:
        return "all directories are formatted already: nothing is written"
    return f"kafka-storage formats {count(len(formatted.directories), 'directory', 'directories')}"


def _writes(formatted: Formatted, directory: FormattedDir) -> Iterator[str]:
    for name in directory.files:
        if name == META_PROPERTIES:
            words = (
                f"cluster.id={formatted.cluster_id}, directory.id={directory.directory_id or _DRAWN}, "
                f"node.id={formatted.node_id}, version=1"
            )
        elif name == BOOTSTRAP_NAME:
            words = ", ".join(_metadata(formatted))
        else:
            words = ", ".join(
                [*_control(formatted), *(_metadata(formatted) if formatted.has_metadata_in_log else [])]
            )
        yield f"{directory.path}/{name}: {words}"


def _control(formatted: Formatted) -> Iterator[str]:
    if formatted.levels[KRAFT_VERSION]:
        yield f"{KRAFT_VERSION} {formatted.levels[KRAFT_VERSION]}"
        if formatted.voters is not None:
            yield f"voters {' '.join(map(_voter_words, formatted.voters))}"


def _voter_words(voter: Voter) -> str:
    address = voter.endpoints[0]
    place = address_text(address.host, address.port)
    return f"{voter.key.id}@{place}:{voter.key.directory_id or _DRAWN}"


def _metadata(formatted: Formatted) -> Iterator[str]:
    levels = formatted.levels
    yield level_words(METADATA_VERSION, levels[METADATA_VERSION])
    for name, level in sorted(levels.items()):
        if level and name not in (METADATA_VERSION, KRAFT_VERSION):
            yield level_words(name, level)
    for each in formatted.credentials:
        yield f"{each.mechanism} credential of {each.name}, {each.iterations} iterations, secrets not shown"


def _risks(node: NodeToFormat, config: NodeConfig, formatted: Formatted) -> Iterator[Risk]:
    for directory in formatted.directories:
        others = node.found[directory.path].other_names
        if others:
            yield Risk(
                "not_empty",
                f"{directory.path} has no {META_PROPERTIES} but holds {first_named(others, _MOST_NAMED)}: "
                "Kafka gives it a new directory id and leaves the rest",
            )
    for path in formatted.ignored:
        yield Risk(
            "unreadable_directory",
            f"{path}/{META_PROPERTIES} cannot be read: kafka-storage skips the directory",
        )
    if formatted.voters is not None and config.is_controller:
        yield from _voter_risks(config, formatted.voters)
        yield from _formatted_before(node, config, formatted)


def _formatted_before(node: NodeToFormat, config: NodeConfig, formatted: Formatted) -> Iterator[Risk]:
    """That the metadata log directory is not formatted again, so that the voters are not written to it."""
    path = config.metadata_log_dir
    found, voters = node.found[path], formatted.voters
    own = next((voter for voter in voters or () if voter.key.id == config.node_id), None)
    if own is None or found.meta is None or path in formatted.ignored:
        return
    directory_id = read_meta(found.meta).directory_id
    if own.key.directory_id not in (None, directory_id):
        yield Risk(
            "not_a_voter",
            f"{path} is formatted already, with directory id {directory_id or 'unknown'}: the voters name "
            f"{own.key.directory_id} for node {config.node_id}",
        )
    elif LOG_DIR_NAME not in found.other_names:
        yield Risk(
            "not_a_voter",
            f"{path} is formatted already and has no {LOG_DIR_NAME}: the voters are not written to it",
        )


def _voter_risks(config: NodeConfig, voters: Iterable[Voter]) -> Iterator[Risk]:
    own = next((voter for voter in voters if voter.key.id == config.node_id), None)
    listener = config.advertised
    if own is None:
        yield Risk(
            "not_a_voter",
            f"node {config.node_id} is a controller, but none of the initial ones: it starts as an observer",
        )
    elif listener is not None and listener.host:
        address = own.endpoints[0]
        if (address.host, address.port) != (listener.host, listener.port):
            yield Risk(
                "moved_voter",
                f"the voters name {address_text(address.host, address.port)} for node {config.node_id}, "
                f"whose configuration says {address_text(listener.host, listener.port)}",
            )


def _steps(node: NodeToFormat, request: FormatRequest, formatted: Formatted) -> Iterator[PlanStep]:
    if formatted.directories:
        words = ["bin/kafka-storage.sh", "format", "--config", node.config_file]
        words += ["--cluster-id", request.cluster_id, *_flags(request)]
        yield PlanStep("format the node", " ".join(map(quote, words)), "exit code 0")


def _flags(request: FormatRequest) -> Iterator[str]:
    if request.release_version is not None:
        yield from ("--release-version", request.release_version)
    for text in request.features:
        yield from ("--feature", text)
    for text in request.add_scram:
        yield from ("--add-scram", hidden(text))
    if request.standalone:
        yield "--standalone"
    if request.no_initial_controllers:
        yield "--no-initial-controllers"
    if request.initial_controllers is not None:
        yield from ("--initial-controllers", request.initial_controllers)
    if request.ignore_formatted:
        yield "--ignore-formatted"


def _other_steps(error: ToolError) -> Iterator[PlanStep]:
    if "is already formatted" in error.text:
        yield PlanStep("to format the other directories alone, add --ignore-formatted")
