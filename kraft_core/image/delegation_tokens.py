"""Delegation tokens (DelegationTokenDelta, TokenInformation)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.format.secrets import digest
from kraft_core.image.change import Change
from kraft_core.image.tables import DELEGATION_TOKENS, Tables


class TokenDigest(str):
    """Replaces a token id of which only the digest is known."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """token_id is a secret; timestamps in ms. requester: None in the layout before release 3.6."""

    token_id: str = field(repr=False)
    owner: str
    requester: str | None
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


def issue(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """DELEGATION_TOKEN_RECORD, also written when a token is renewed."""
    token = DelegationToken(
        token_id=value["tokenId"],
        owner=value["owner"],
        requester=value.get("requester"),
        renewers=tuple(value["renewers"]),
        issue_timestamp=value["issueTimestamp"],
        max_timestamp=value["maxTimestamp"],
        expiration_timestamp=value["expirationTimestamp"],
    )
    yield Change(DELEGATION_TOKENS, (token.token_id,), token)


def remove(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REMOVE_DELEGATION_TOKEN_RECORD."""
    yield Change(DELEGATION_TOKENS, (value["tokenId"],), None)


def token_digest(token_id: str) -> str:
    """A substitute for a token id, which is half of the credential."""
    if isinstance(token_id, TokenDigest):
        return token_id
    return digest(token_id)


def row(token: DelegationToken) -> dict[str, Any]:
    return {
        "token_digest": token_digest(token.token_id),
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issue_timestamp": token.issue_timestamp,
        "max_timestamp": token.max_timestamp,
        "expiration_timestamp": token.expiration_timestamp,
    }


def to_record(token: DelegationToken) -> tuple[str, dict[str, Any]]:
    return "DELEGATION_TOKEN_RECORD", {
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issueTimestamp": token.issue_timestamp,
        "maxTimestamp": token.max_timestamp,
        "expirationTimestamp": token.expiration_timestamp,
        "tokenId": token.token_id,
    }


RULES = {"DELEGATION_TOKEN_RECORD": issue, "REMOVE_DELEGATION_TOKEN_RECORD": remove}
