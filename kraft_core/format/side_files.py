"""The small files beside a metadata log: meta.properties, quorum-state, leader-epoch-checkpoint and others.

Readers take a file's text and raise InvalidSideFileError for invalid content.
"""

from __future__ import annotations

import errno
import json
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from kraft_core.messages.uuid_text import ZERO_UUID, uuid_bytes

MAX_SIDE_FILE_BYTES = 1024 * 1024
NO_EPOCH = -1
# Characters of a longer message that are kept, of its beginning and of its end.
_MOST_SHOWN, _LAST_SHOWN = 200, 100
# The years in which a KRaft log can have been captured: Kafka 2.8 of 2021 had the first.
_FIRST_MS = 1_577_836_800_000  # 2020
_END_MS = 4_102_444_800_000  # 2100


class InvalidSideFileError(ValueError):
    """The content of a side file is invalid; the message states why.

    It may quote the file, but not all of it: tables, findings and summaries show the message.
    """

    def __init__(self, message: str) -> None:
        is_short = len(message) <= _MOST_SHOWN + _LAST_SHOWN
        super().__init__(message if is_short else f"{message[:_MOST_SHOWN]} ... {message[-_LAST_SHOWN:]}")


def side_file_text(path: Path) -> str:
    """The text of a small file. Raises OSError, also for what is no regular file, such as a pipe, which would
    never end; UnicodeDecodeError; InvalidSideFileError for one of more than MAX_SIDE_FILE_BYTES.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if status.st_size > MAX_SIDE_FILE_BYTES:
        raise InvalidSideFileError(f"{status.st_size} bytes")
    return path.read_bytes().decode()


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """meta.properties (Kafka's MetaProperties); None: not in the file.

    cluster_id: a file of version 2 (KIP-1262) may lack it until the node has learnt it from the quorum.
    node_id: version 0 calls it broker.id. directory_id: a uuid's text (KIP-858), absent before Kafka 3.7.
    """

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class QuorumState:
    """quorum-state (Kafka's QuorumStateData): the replica's durable election state.

    leader_id, voted_id: -1: none. voted_directory_id: data_version 1 only. applied_offset and current_voters
    (ids): data_version 0 only, None where the file has null.
    """

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None
    applied_offset: int | None
    current_voters: tuple[int, ...] | None


def read_meta_properties(text: str) -> MetaProperties:
    entries = read_properties(text)
    version = _integer(entries.get("version"), "version")
    if version not in (0, 1, 2):
        raise InvalidSideFileError(f"version {version}")
    node_key = "broker.id" if version == 0 else "node.id"
    node_id = _integer(entries[node_key], node_key) if node_key in entries else None
    if node_id is not None and node_id < 0:
        raise InvalidSideFileError(f"{node_key} {node_id}")
    directory_id = entries.get("directory.id")
    if directory_id is not None and not _is_uuid(directory_id):
        raise InvalidSideFileError(f"directory.id {directory_id!r} is not a uuid")
    cluster_id = entries.get("cluster.id") or None
    if cluster_id is not None and "/" in cluster_id:
        # Kafka's own ids have none; a slash precedes the life of an id (kraft_core.evidence.lives).
        raise InvalidSideFileError(f"cluster.id {cluster_id!r} contains a slash")
    return MetaProperties(version, cluster_id, node_id, directory_id)


def read_quorum_state(text: str) -> QuorumState:
    state = _json_object(text)
    data_version = _number(state, "data_version")
    if data_version not in (0, 1):
        raise InvalidSideFileError(f"data_version {data_version}")
    voters = state.get("currentVoters") if data_version == 0 else None
    voted_directory_id = _member(state, "votedDirectoryId", str) if data_version == 1 else None
    if voted_directory_id is not None and not _is_uuid(voted_directory_id):
        raise InvalidSideFileError(f"votedDirectoryId {voted_directory_id!r} is not a uuid")
    return QuorumState(
        data_version=data_version,
        leader_id=_number(state, "leaderId"),
        leader_epoch=_number(state, "leaderEpoch"),
        voted_id=_number(state, "votedId"),
        voted_directory_id=voted_directory_id,
        applied_offset=_number(state, "appliedOffset", 64) if data_version == 0 else None,
        current_voters=None if voters is None else _voter_ids(voters),
    )


def read_leader_epoch_checkpoint(text: str) -> tuple[tuple[int, int], ...]:
    """(leader epoch, start offset) of each epoch, in file order (Kafka's LeaderEpochCheckpointFile)."""
    lines = text.split("\n")
    count = _entry_count(lines)
    entries = [line for line in lines[2:] if line.strip()]
    for nth, entry in enumerate(entries, 1):
        if len(entry.split()) != 2:
            raise InvalidSideFileError(
                f"entry {nth} of {count} is {entry!r}, not an epoch and an offset: the file is incomplete"
            )
    if len(entries) != count:
        stated = "1 entry" if count == 1 else f"{count} entries"
        raise InvalidSideFileError(f"the header states {stated}, the file has {len(entries) or 'none'}")
    if entries and lines[-1].strip():
        raise InvalidSideFileError(f"the last entry {lines[-1]!r} has no line end: it may be cut")
    found = tuple(_entry(entry) for entry in entries)
    for nth, entry in enumerate(found, 1):
        if min(entry) < 0:
            raise InvalidSideFileError(f"entry {nth} of {count} is {entries[nth - 1]!r}: neither is negative")
    return found


def _entry_count(lines: list[str]) -> int:
    """By the header: the version in the first line, the number of entries in the second."""
    if not any(line.strip() for line in lines):
        raise InvalidSideFileError("the file is empty")
    version, *others = lines
    if version.strip() != "0":
        raise InvalidSideFileError(f"its version is {version!r}, not 0")
    if not any(line.strip() for line in others):
        raise InvalidSideFileError("it ends before the number of entries: the file is incomplete")
    count = others[0]
    if not count.strip().isascii() or not count.strip().isdigit():
        raise InvalidSideFileError(f"the number of entries is {count!r}")
    return _integer(count, "the number of entries")


def _entry(line: str) -> tuple[int, int]:
    epoch, offset = line.split()
    return _integer(epoch, "epoch"), _integer(offset, "offset", 64)


def read_partition_metadata(text: str) -> str:
    """The topic id of partition.metadata (Kafka's PartitionMetadataFile)."""
    entries = read_properties(text)
    version = _integer(entries.get("version"), "version")
    topic_id = entries.get("topic_id", "")
    if version != 0 or not _is_uuid(topic_id):
        raise InvalidSideFileError(f"version {version}, topic_id {topic_id!r}")
    return topic_id


def read_clean_shutdown(text: str) -> int:
    """The broker epoch in .kafka_cleanshutdown (Kafka's CleanShutdownFileHandler); NO_EPOCH in the empty file
    of releases before 3.7.
    """
    return NO_EPOCH if not text else _number(_json_object(text), "brokerEpoch", 64)


@dataclass(frozen=True, slots=True)
class CaptureNote:
    """capture.json, which Kraftlake writes beside a copy: when it was made, ms since the epoch.

    followed: no node's directory was copied, but what leaders sent as committed (kraftlake follow).
    metadata_log: the log directory of a broker that was copied also holds a metadata log, which was not.
    """

    captured_at: int
    followed: bool = False
    metadata_log: bool = False


def read_capture_json(text: str) -> CaptureNote:
    """The note of a copy; a time without a zone is UTC."""
    note = _json_object(text)
    followed, metadata_log = (
        _member(note, name, bool) if name in note else False for name in ("followed", "metadata_log")
    )
    return CaptureNote(_captured_ms(_member(note, "captured_at", str)), followed, metadata_log)


def _captured_ms(captured_at: str) -> int:
    try:
        moment = datetime.fromisoformat(captured_at)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        ms = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise InvalidSideFileError(f"captured_at {captured_at!r} is not an ISO 8601 time") from None
    if not _FIRST_MS <= ms < _END_MS:
        raise InvalidSideFileError(f"captured_at {captured_at!r} is not a time at which KRaft existed")
    return ms


_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])+)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_properties(text: str) -> dict[str, str]:
    """The entries of a file in java.util.Properties format; other lines are skipped."""
    entries: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _ENTRY.fullmatch(line)
        if match is not None:
            entries[_unescape(match[1])] = _unescape(_trimmed(match[2]))
    return entries


def _trimmed(value: str) -> str:
    """Without white space at its end, but for one that is escaped."""
    kept = value.rstrip(" \t\f")
    return value[: len(kept) + _is_escaping(kept)]


def _is_escaping(text: str) -> bool:
    """Whether it ends in an odd number of backslashes."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _logical_lines(text: str) -> Iterator[str]:
    """Without comments; a line that ends in an odd number of backslashes goes on in the next one."""
    held = ""
    for line in re.split(r"\r\n|\n|\r", text):
        part = line.lstrip(" \t\f")
        if not held and part.startswith(("#", "!")):
            continue
        held += part
        if _is_escaping(part):
            held = held[:-1]
            continue
        yield held
        held = ""
    yield held


def _unescape(text: str) -> str:
    units = _ESCAPED.sub(
        lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _CONTROL.get(m[1], m[1]), text
    )
    # A \\uXXXX is a unit of UTF-16: two of them make a character beyond the first 65,536.
    try:
        return units.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidSideFileError(f"{text!r} holds half of a surrogate pair") from None


def _integer(text: str | None, what: str, bits: int = 32) -> int:
    if text is None or re.fullmatch(r"-?\d{1,19}", text.strip(), re.ASCII) is None:
        raise InvalidSideFileError(f"{what} {'is missing' if text is None else repr(text)}")
    return _within(int(text), what, bits)


def _within(number: int, what: str, bits: int) -> int:
    """The number, if a signed one of this many bits can hold it, as Kafka's does."""
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise InvalidSideFileError(f"{what} {number} does not fit in {bits} bits")
    return number


def _json_object(text: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSideFileError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidSideFileError("not a JSON object")
    return cast(dict[str, Any], value)


def _member(value: dict[str, Any], name: str, kind: type) -> Any:
    held = value.get(name)
    if type(held) is not kind:
        raise InvalidSideFileError(f"{name} {'is missing' if held is None else repr(held)}")
    return held


def _number(value: dict[str, Any], name: str, bits: int = 32) -> int:
    return _within(_member(value, name, int), name, bits)


def _voter_ids(voters: Any) -> tuple[int, ...]:
    if not isinstance(voters, list):
        raise InvalidSideFileError("currentVoters is not a list")
    entries = cast(list[Any], voters)
    if not all(isinstance(voter, dict) for voter in entries):
        raise InvalidSideFileError("currentVoters does not hold objects")
    return tuple(_number(voter, "voterId") for voter in entries)


def _is_uuid(text: str) -> bool:
    if text == ZERO_UUID:
        return True
    try:
        return len(uuid_bytes(text)) == 16
    except ValueError:
        return False
