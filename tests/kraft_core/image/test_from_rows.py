"""Things come back from their rows, all but their secrets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from kraft_core.format.secrets import is_secret_config
from kraft_core.image.delegation_tokens import DelegationToken, token_digest
from kraft_core.image.from_rows import REDACTED, change_of, things_of
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.scram_users import ScramUser
from kraft_core.image.tables import CONFIGS, DELEGATION_TOKENS, KINDS
from tests.kraft_core.image.worlds import lives, replay


@settings(deadline=None)
@given(lives)
def test_a_row_has_everything_but_secrets(records):
    image = replay(records)
    for kind in KINDS:
        for key, value in image.tables.items(kind):
            row = BY_NAME[kind].row(value)
            change = change_of(kind, row)
            assert BY_NAME[kind].row(change.value) == row
            if kind == DELEGATION_TOKENS:
                assert change.key == (token_digest(key[0]),)
            else:
                assert (change.key, change.value) == (key, without_secrets(kind, value))
        rows = [BY_NAME[kind].row(value) for _, value in image.tables.items(kind)]
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        by_row = [change_of(kind, row) for row in rows]
        by_column = list(things_of(kind, columns)) if rows else []
        assert by_column == [(change.key, change.value) for change in by_row]


def without_secrets(kind, value):
    assert not isinstance(value, DelegationToken)
    if isinstance(value, ScramUser):
        return replace(value, salt=None, stored_key=None, server_key=None)
    return (
        replace(value, value=REDACTED)
        if kind == CONFIGS and is_secret_config(value.name, value.value)
        else value
    )
