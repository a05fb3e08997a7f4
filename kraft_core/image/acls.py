"""ACLs (AclsDelta, StandardAcl)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change, RecordRefusedError, Refusal
from kraft_core.image.names import (
    ACL_OPERATIONS,
    ACL_PERMISSION_TYPES,
    ACL_RESOURCE_TYPES,
    PATTERN_TYPES,
    word,
)
from kraft_core.image.refusals import UNKNOWN_ACL
from kraft_core.image.tables import ACLS, Tables


@dataclass(frozen=True, slots=True)
class Acl:
    id: str
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


def add(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """ACCESS_CONTROL_ENTRY_RECORD."""
    acl = Acl(
        id=value["id"],
        resource_type=value["resourceType"],
        resource_name=value["resourceName"],
        pattern_type=value["patternType"],
        principal=value["principal"],
        host=value["host"],
        operation=value["operation"],
        permission_type=value["permissionType"],
    )
    yield Change(ACLS, (acl.id,), acl)


def remove(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REMOVE_ACCESS_CONTROL_ENTRY_RECORD."""
    if tables.get(ACLS, (value["id"],)) is None:
        raise RecordRefusedError(Refusal(UNKNOWN_ACL, f"ACL {value['id']}", f"no ACL has id {value['id']}"))
    yield Change(ACLS, (value["id"],), None)


def row(acl: Acl) -> dict[str, Any]:
    return {
        "id": acl.id,
        "resource_type": word(ACL_RESOURCE_TYPES, acl.resource_type),
        "resource_name": acl.resource_name,
        "pattern_type": word(PATTERN_TYPES, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": word(ACL_OPERATIONS, acl.operation),
        "permission_type": word(ACL_PERMISSION_TYPES, acl.permission_type),
    }


def to_record(acl: Acl) -> tuple[str, dict[str, Any]]:
    return "ACCESS_CONTROL_ENTRY_RECORD", {
        "id": acl.id,
        "resourceType": acl.resource_type,
        "resourceName": acl.resource_name,
        "patternType": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permissionType": acl.permission_type,
    }


RULES = {"ACCESS_CONTROL_ENTRY_RECORD": add, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": remove}
