"""The user and the password of kraftlake serve's clients: one line USER:PASSWORD in a private file."""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from jobs.runtime.outcome import Failure, reason_of

# Made by the first start of a server, readable by its user only.
DEFAULT_FILE = Path.home() / ".kraftlake_login"
DEFAULT_USER = "kraftlake"


@dataclass(frozen=True, slots=True)
class Login:
    """What a client must send."""

    user: str
    password: str = field(repr=False)


def login_of(file: Path) -> Login:
    """The login in the file. The default file is made, with a random password. Raises Failure."""
    if file == DEFAULT_FILE and not file.exists():
        _make(file)
    user, colon, password = private_text(file).strip().partition(":")
    if not (user and colon and password) or "\n" in password:
        raise Failure(f"{file} is not one line USER:PASSWORD")
    return Login(user, password)


def private_text(file: Path) -> str:
    """The text of a file that only its owner may read. Raises Failure."""
    try:
        mode = file.stat().st_mode
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{file} cannot be read: {reason_of(error)}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise Failure(f"{file} can be read by others: chmod 600 {file}")
    return text


def _make(file: Path) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as made:
            made.write(f"{DEFAULT_USER}:{secrets.token_urlsafe(24)}\n")
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}; choose another --login") from None
