"""The log directories of a node as kafka-storage finds them (MetaProperties, MetaPropertiesEnsemble)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_core.format.side_files import InvalidSideFileError, read_properties
from kraft_core.messages.uuid_text import uuid_bytes
from kraft_core.storage.java_values import java_integer, java_uuid
from kraft_core.storage.tool_error import RUNTIME_EXCEPTION, ToolError

META_PROPERTIES = "meta.properties"
# Ids below it are signs, such as of a lost or an unassigned directory (DirectoryId.reserved).
_RESERVED_BELOW = 100


@dataclass(frozen=True, slots=True)
class LogDir:
    """What is at the path of a log directory.

    meta: the bytes of its meta.properties, None where there is none. unreadable: why that could not be read.
    other_names: what else is in it. is_dangling: a link is there that leads nowhere.
    """

    exists: bool = True
    is_directory: bool = True
    meta: bytes | None = None
    unreadable: str | None = None
    other_names: tuple[str, ...] = ()
    is_dangling: bool = False


@dataclass(frozen=True, slots=True)
class KnownMeta:
    """A meta.properties as releases 4.3 and 4.4 read it: of version 1, or of 0, which needs no ids."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None

    @property
    def entries(self) -> dict[str, str]:
        """As the tool prints them, sorted."""
        node = "broker.id" if self.version == 0 else "node.id"
        every = {
            "cluster.id": self.cluster_id,
            "directory.id": self.directory_id,
            node: None if self.node_id is None else str(self.node_id),
            "version": str(self.version),
        }
        return {name: value for name, value in sorted(every.items()) if value is not None}


class UnreadableMetaError(ValueError):
    """A meta.properties that Kafka cannot read; the message is Kafka's, "" where it is not known."""


def read_meta(content: bytes) -> KnownMeta:
    """Raises UnreadableMetaError."""
    try:
        given = read_properties(content.decode("latin-1"))
    except InvalidSideFileError:
        raise UnreadableMetaError("") from None
    version_text = given.get("version", "0")
    version = java_integer(version_text.strip())
    if version is None:
        raise UnreadableMetaError(f"Invalid meta.properties version string '{version_text}'")
    if version not in (0, 1):
        raise UnreadableMetaError(f"Unknown meta.properties version number {version}")
    node_id = _node_id(given, version)
    directory_id = _directory_id(given)
    cluster_id = given.get("cluster.id")
    if version and cluster_id is None:
        raise UnreadableMetaError("cluster.id was not found.")
    return KnownMeta(version, cluster_id, node_id, directory_id)


def _node_id(given: Mapping[str, str], version: int) -> int | None:
    name = "broker.id" if version == 0 else "node.id"
    text = given.get(name)
    if text is None:
        if version == 0:
            return None
        raise UnreadableMetaError(f"Failed to find {name}")
    value = java_integer(text)
    if value is None:
        raise UnreadableMetaError(f"Unable to read {name} as a base-10 number.")
    return value


def _directory_id(given: Mapping[str, str]) -> str | None:
    text = given.get("directory.id")
    if text is None:
        return None
    try:
        return java_uuid(text)
    except ValueError as error:
        words = f"Unable to read directory.id as a Uuid: {error}" if str(error) else ""
        raise UnreadableMetaError(words) from None


@dataclass(frozen=True, slots=True)
class Ensemble:
    """empty: to be formatted. failed: their meta.properties cannot be read. formatted: the others."""

    empty: tuple[str, ...]
    failed: tuple[str, ...]
    formatted: Mapping[str, KnownMeta]


def load(found: Mapping[str, LogDir]) -> Ensemble:
    """By path. The tool goes on where it cannot read one."""
    formatted: dict[str, KnownMeta] = {}
    empty: list[str] = []
    failed: list[str] = []
    for path, log_dir in sorted(found.items()):
        if log_dir.unreadable is not None or (log_dir.exists and not log_dir.is_directory):
            failed.append(path)
        elif log_dir.meta is None:
            empty.append(path)
        else:
            try:
                formatted[path] = read_meta(log_dir.meta)
            except UnreadableMetaError:
                failed.append(path)
    return Ensemble(tuple(empty), tuple(failed), formatted)


def verify(ensemble: Ensemble, cluster_id: str, node_id: int) -> None:
    """Whether the formatted directories are of this node and cluster. Raises ToolError."""
    seen: dict[str, str] = {}
    for path, meta in ensemble.formatted.items():
        file = f"{path.rstrip('/')}/{META_PROPERTIES}"
        if meta.cluster_id is not None and meta.cluster_id != cluster_id:
            raise _mismatch(
                f"Invalid cluster.id in: {file}. Expected {cluster_id}, but read {meta.cluster_id}"
            )
        if meta.node_id is not None and meta.node_id != node_id:
            raise _mismatch(
                f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in {file}. If you "
                "moved your data, make sure your configured node id matches. If you intend to create a new "
                "node, you should remove all data in your data directories."
            )
        if meta.directory_id is None:
            continue
        if is_reserved(meta.directory_id):
            raise _mismatch(f"Invalid reserved directory ID {meta.directory_id} found in {path}")
        if meta.directory_id in seen:
            raise _mismatch(
                f"Duplicate directory ID Optional[{meta.directory_id}] found. It was the ID of "
                f"{seen[meta.directory_id]}, but also of {path}"
            )
        seen[meta.directory_id] = path


def is_reserved(directory_id: str) -> bool:
    """Whether Kafka uses the id as a sign (DirectoryId.reserved): no directory may have it."""
    return int.from_bytes(uuid_bytes(directory_id), "big") < _RESERVED_BELOW


def _mismatch(text: str) -> ToolError:
    return ToolError(text, RUNTIME_EXCEPTION)
