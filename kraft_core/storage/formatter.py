"""kafka-storage format: which files it would write into a node's log directories, or why it refuses.

StorageTool and Formatter of release 4.3, and of 4.4 where they differ. Up to 4.3 the first metadata records
are in bootstrap.checkpoint of every directory, and only a quorum with initial voters has a 0-0 checkpoint in
its log; from 4.4 on they are in that checkpoint, which every controller has (KIP-1170).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kraft_core.format.log_dirs import BOOTSTRAP_NAME, LOG_DIR_NAME
from kraft_core.format.side_file_texts import checkpoint_name
from kraft_core.messages.releases import METADATA_LEVELS, METADATA_VERSION, Release
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet
from kraft_core.storage.features import (
    SCRAM_SINCE,
    effective_levels,
    metadata_version,
    named_level,
    parse_features,
)
from kraft_core.storage.initial_voters import parse_voters
from kraft_core.storage.log_dirs import META_PROPERTIES, Ensemble, LogDir, load, verify
from kraft_core.storage.node_config import NodeConfig
from kraft_core.storage.scram import ScramCredential, parse_scram
from kraft_core.storage.tool_error import RUNTIME_EXCEPTION, ToolError

FIRST_CHECKPOINT = f"{LOG_DIR_NAME}/{checkpoint_name(0, 0)}"
_DRAWN_LATER = ZERO_UUID


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """The options of kafka-storage format: as its own, with their texts."""

    cluster_id: str
    release_version: str | None = None
    features: tuple[str, ...] = ()
    standalone: bool = False
    no_initial_controllers: bool = False
    initial_controllers: str | None = None
    add_scram: tuple[str, ...] = ()
    ignore_formatted: bool = False


@dataclass(frozen=True, slots=True)
class FormattedDir:
    """A directory that is formatted. kind: in the tool's words. directory_id: None where it is drawn.

    files: those it gets, relative to it.
    """

    path: str
    kind: str
    directory_id: str | None
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Formatted:
    """What the tool would write.

    levels: every feature's, by name. voters: of the 0-0 checkpoint, None where it has none; the directory id
    of a voter is None where it is drawn. credentials: without their secrets in any text. ignored: directories
    whose meta.properties cannot be read, which the tool passes over.
    """

    node_id: int
    cluster_id: str
    directories: tuple[FormattedDir, ...]
    levels: Mapping[str, int]
    voters: VoterSet | None
    credentials: tuple[ScramCredential, ...]
    ignored: tuple[str, ...]
    has_metadata_in_log: bool

    @property
    def lines(self) -> tuple[str, ...]:
        """What the tool prints of each directory, in no order."""
        found = [f"I/O error trying to read log directory {path}. Ignoring..." for path in self.ignored]
        if not self.directories:
            return (*found, "All of the log directories are already formatted.")
        name = METADATA_LEVELS[self.levels[METADATA_VERSION]]
        words = f"with {METADATA_VERSION} {name}."
        return (*found, *(f"Formatting {each.kind} {each.path} {words}" for each in self.directories))


def plan_files(
    request: FormatRequest, config: NodeConfig, found: Mapping[str, LogDir], release: Release
) -> Formatted:
    """What is written. found: each of config.log_dirs. Raises ToolError."""
    named = None
    unstable = config.unstable_features
    if request.release_version is not None:
        named = named_level(release, request.release_version, unstable=unstable)
    given = parse_features(request.features)
    voters = _initial_voters(request, config)
    level = metadata_version(release, given, named, unstable=unstable)
    levels = effective_levels(release, given, level, is_dynamic=not config.static_voters, unstable=unstable)
    credentials = _credentials(request, level)
    ensemble = load(found)
    verify(ensemble, request.cluster_id, config.node_id)
    _check_formatted(ensemble, ignore=request.ignore_formatted)
    for path in ensemble.empty:
        if found[path].is_dangling:
            words = f"Error while writing {META_PROPERTIES} file {path}"
            raise ToolError(f"{words}: java.nio.file.FileAlreadyExistsException: {path}")
    has_metadata_in_log = release.writes_metadata_in_first_checkpoint
    directories = [
        _directory(path, config, voters, has_metadata_in_log=has_metadata_in_log) for path in ensemble.empty
    ]
    return Formatted(
        config.node_id,
        request.cluster_id,
        tuple(directories),
        levels,
        voters,
        credentials,
        ensemble.failed,
        has_metadata_in_log,
    )


def _initial_voters(request: FormatRequest, config: NodeConfig) -> VoterSet | None:
    """Raises ToolError."""
    if config.static_voters and (request.initial_controllers is not None or request.standalone):
        raise ToolError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and "
            "specify controller.quorum.bootstrap.servers instead."
        )
    if request.initial_controllers is not None:
        return parse_voters(request.initial_controllers, config.controller_listener)
    if request.standalone:
        return VoterSet((_standalone(config),))
    if not request.no_initial_controllers and config.is_controller and not config.static_voters:
        raise ToolError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the "
            "following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    return None


def _standalone(config: NodeConfig) -> Voter:
    if not config.is_controller:
        raise ToolError("You can only use --standalone on a controller.")
    if config.advertised is None:
        raise ToolError("No controller listeners found.", RUNTIME_EXCEPTION)
    listener = config.advertised
    # The tool parses this text, too, in which an IPv6 address has no brackets, and fails on it.
    text = f"{config.node_id}@{listener.host or 'localhost'}:{listener.port}:{_DRAWN_LATER}"
    (voter,) = parse_voters(text, config.controller_listener)
    return replace(voter, key=ReplicaKey(config.node_id))


def _credentials(request: FormatRequest, metadata_level: int) -> tuple[ScramCredential, ...]:
    """Raises ToolError."""
    if request.add_scram and metadata_level < SCRAM_SINCE:
        name = METADATA_LEVELS[SCRAM_SINCE]
        raise ToolError(f"SCRAM is only supported in {METADATA_VERSION} {name} or later.")
    return tuple(parse_scram(text) for text in request.add_scram)


def _check_formatted(ensemble: Ensemble, *, ignore: bool) -> None:
    if ensemble.formatted and not ignore:
        # Of several, the tool names the first of a hash map.
        raise ToolError(
            f"Log directory {next(iter(ensemble.formatted))} is already formatted. Use --ignore-formatted to "
            "ignore this directory and format the others."
        )
    if ensemble.failed and not ensemble.empty and not ensemble.formatted:
        raise ToolError("No available log directories to format.")


def _directory(
    path: str, config: NodeConfig, voters: VoterSet | None, *, has_metadata_in_log: bool
) -> FormattedDir:
    """What the directory is called and gets (DirectoryType)."""
    voter = None if voters is None else next((v for v in voters if v.key.id == config.node_id), None)
    is_log = path == config.metadata_log_dir
    kind, directory_id = "data directory", None
    if is_log and voter is not None:
        kind, directory_id = "dynamic metadata voter directory", voter.key.directory_id
    elif is_log:
        kind = "metadata directory" if voters is None else "dynamic metadata directory"
    files = [META_PROPERTIES] if has_metadata_in_log else [META_PROPERTIES, BOOTSTRAP_NAME]
    if is_log and (config.is_controller if has_metadata_in_log else voters is not None):
        files.append(FIRST_CHECKPOINT)
    return FormattedDir(path, kind, directory_id, tuple(files))
