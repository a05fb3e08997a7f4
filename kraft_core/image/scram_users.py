"""SCRAM credentials, one per user and mechanism (ScramDelta)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.image.change import Change, Refusal
from kraft_core.image.names import SCRAM_MECHANISMS, word
from kraft_core.image.refusals import UNKNOWN_CREDENTIAL
from kraft_core.image.tables import SCRAM_USERS, Tables


@dataclass(frozen=True, slots=True)
class ScramUser:
    """Salt and keys are secrets: compared, never shown."""

    mechanism: int
    name: str
    iterations: int
    salt: bytes | None = field(repr=False)
    stored_key: bytes | None = field(repr=False)
    server_key: bytes | None = field(repr=False)


def set_credential(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """USER_SCRAM_CREDENTIAL_RECORD. Up to release 3.4 it held several, without these keys."""
    for credential in value.get("credentialInfos", [value]):
        user = ScramUser(
            mechanism=credential["mechanism"],
            name=value["name"],
            iterations=credential["iterations"],
            salt=credential["salt"],
            stored_key=credential.get("storedKey"),
            server_key=credential.get("serverKey"),
        )
        yield Change(SCRAM_USERS, (user.mechanism, user.name), user)


def remove(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REMOVE_USER_SCRAM_CREDENTIAL_RECORD."""
    yield Change(SCRAM_USERS, (value["mechanism"], value["name"]), None)


def is_known(tables: Tables, value: Mapping[str, Any]) -> Refusal | None:
    """A controller refuses to remove a credential that is not there (ScramControlManager)."""
    if tables.get(SCRAM_USERS, (value["mechanism"], value["name"])) is not None:
        return None
    who = f"user {value['name']}"
    reason = f"{who} has no credential for {word(SCRAM_MECHANISMS, value['mechanism'])}"
    return Refusal(UNKNOWN_CREDENTIAL, who, reason, by_controllers_only=True)


def row(user: ScramUser) -> dict[str, Any]:
    return {
        "mechanism": word(SCRAM_MECHANISMS, user.mechanism),
        "name": user.name,
        "iterations": user.iterations,
    }


def to_record(user: ScramUser) -> tuple[str, dict[str, Any]]:
    return "USER_SCRAM_CREDENTIAL_RECORD", {
        "name": user.name,
        "mechanism": user.mechanism,
        "salt": user.salt,
        "storedKey": user.stored_key,
        "serverKey": user.server_key,
        "iterations": user.iterations,
    }


RULES = {
    "USER_SCRAM_CREDENTIAL_RECORD": set_credential,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": remove,
}
CONTROLLER_CHECKS = {"REMOVE_USER_SCRAM_CREDENTIAL_RECORD": is_known}
