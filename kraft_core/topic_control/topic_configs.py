"""Whether a topic may have these configs (LogConfig.validate, called by ControllerConfigurationValidator)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraft_core.topic_control import controller_file as file_names
from kraft_core.topic_control.config_types import (
    TOPIC_CONFIGS,
    ConfigRefusedError,
    parsed,
    unknown_name,
)
from kraft_core.topic_control.controller_file import ControllerFile
from kraft_core.topic_control.java import hash_map_order, string_hash

# Where the controller's file has the default of a config that is checked against another.
_IN_FILE = {
    "min.compaction.lag.ms": file_names.MIN_COMPACTION_LAG,
    "max.compaction.lag.ms": file_names.MAX_COMPACTION_LAG,
    "retention.ms": file_names.RETENTION_MS,
    "retention.bytes": file_names.RETENTION_BYTES,
    "local.retention.ms": file_names.LOCAL_RETENTION_MS,
    "local.retention.bytes": file_names.LOCAL_RETENTION_BYTES,
    "cleanup.policy": file_names.CLEANUP_POLICY,
}
_NOT_TIERED = (
    "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
    "storage."
)
_COMPACTED = (
    "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty "
    "list."
)
_NOT_DELETED = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote "
    "data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If "
    "you want to disable remote storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)


def in_java_order(names: Iterable[str], at_once: int = 0) -> list[str]:
    """Names of configs in the order of the HashMap that Kafka keeps them in."""
    return hash_map_order(names, string_hash, at_once)


def check(configs: Mapping[str, str], existing: Mapping[str, str], file: ControllerFile) -> None:
    """configs: all that the topic would have, in the order of their insertion. existing: what it has.

    Raises ConfigRefusedError.
    """
    wrong = unknown_name(in_java_order(configs))
    if wrong is not None:
        raise ConfigRefusedError(f"Unknown topic config name: {wrong}")
    values = {name: parsed(name, configs[name]) for name in TOPIC_CONFIGS if name in configs}
    _check_compaction_lag(values, file)
    if values.get("remote.storage.enable", False):
        _check_tiered(values, file)
    elif existing.get("remote.storage.enable", "false").upper() == "TRUE" and not values.get(
        "remote.log.delete.on.disable", False
    ):
        raise ConfigRefusedError(_NOT_DELETED)


def _effective(values: Mapping[str, Any], name: str, file: ControllerFile) -> Any:
    if name in values:
        return values[name]
    return parsed(name, file.get(_IN_FILE[name]))


def _check_compaction_lag(values: Mapping[str, Any], file: ControllerFile) -> None:
    names = ("min.compaction.lag.ms", "max.compaction.lag.ms")
    if not any(name in values for name in names):
        return
    least, most = (_effective(values, name, file) for name in names)
    if least > most:
        raise ConfigRefusedError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )


def _check_tiered(values: Mapping[str, Any], file: ControllerFile) -> None:
    if not file.is_on(file_names.TIERED_STORAGE):
        raise ConfigRefusedError(_NOT_TIERED)
    if _effective(values, "cleanup.policy", file) not in ((), ("delete",)):
        raise ConfigRefusedError(_COMPACTED)
    limits = {
        name: _effective(values, name, file)
        for name in ("retention.bytes", "local.retention.bytes", "retention.ms", "local.retention.ms")
    }
    for name, has_limit in (
        ("retention.bytes", limits["retention.bytes"] > -1),
        ("retention.ms", limits["retention.ms"] != -1),
    ):
        if has_limit:
            _check_local(name, limits[name], limits[f"local.{name}"])
    if values.get("remote.log.copy.disable", False):
        _check_no_copy(limits)


def _check_local(name: str, total: int, local: int) -> None:
    """What is kept on brokers is at most what is kept at all; -2: as much."""
    if local == -2:
        return
    objection = None
    if local == -1:
        objection = f"Value must not be -1 as {name} value is set as {total}."
    elif local > total:
        objection = f"Value must not be more than {name} property value: {total}"
    if objection is not None:
        raise ConfigRefusedError(f"Invalid value {local} for configuration local.{name}: {objection}")


def _check_no_copy(limits: Mapping[str, int]) -> None:
    for name in ("retention.bytes", "retention.ms"):
        if limits[f"local.{name}"] not in (-2, limits[name]):
            raise ConfigRefusedError(
                f"When `remote.log.copy.disable` is set to true, the `local.{name}` and `{name}` must be set "
                "to the identical value because there will be no more logs copied to the remote storage."
            )
