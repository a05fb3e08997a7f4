"""The profile of Amazon's tools, as variables of this process.

Not all libraries read profiles, but all of them accept variables, and so do the JVM and the tasks that this
process starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import ConfigParser, Error
from functools import cache
from pathlib import Path

# By the name in a profile.
_VARIABLES = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region": "AWS_DEFAULT_REGION",
}
_KEYS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


class StoreVariableError(OSError):
    """A variable by which no store can be asked; the message says what to do."""


class ProfileError(StoreVariableError):
    """A profile that gives no credentials."""


@cache
def use_profile() -> None:
    """Set the variables of the profile, where the environment gives no credentials. Raises ProfileError."""
    for name, value in profile_of(os.environ).items():
        os.environ.setdefault(name, value)
    if region := os.environ.get("AWS_DEFAULT_REGION"):
        os.environ.setdefault("AWS_REGION", region)  # the one name that Amazon's SDK for Java knows


def profile_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a profile gives: AWS_PROFILE, else `default`.

    None where there are keys or a web identity, which come first in Amazon's tools, too, or no profile with
    keys. Raises ProfileError where AWS_PROFILE names one without.
    """
    if environment.get("AWS_ACCESS_KEY_ID") or environment.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return {}
    named = environment.get("AWS_PROFILE")
    name = named or "default"
    config = _section(
        environment, "AWS_CONFIG_FILE", "config", "default" if name == "default" else f"profile {name}"
    )
    held = config | _section(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials", name)
    found = {variable: held[key] for key, variable in _VARIABLES.items() if held.get(key)}
    if found.keys() >= _KEYS:
        return found
    if named:
        raise ProfileError(
            f"profile {named} has no keys (aws_access_key_id) in ~/.aws: "
            f'eval "$(aws configure export-credentials --profile {named} --format env)" sets those of a role'
        )
    return {}


def _section(environment: Mapping[str, str], variable: str, file: str, name: str) -> dict[str, str]:
    """A section of one of the tools' files; nothing where it cannot be read."""
    home = Path(environment.get("HOME") or "~").expanduser()
    path = environment.get(variable) or home / ".aws" / file
    parser = ConfigParser(interpolation=None, default_section="")
    try:
        parser.read(path)
    except (Error, OSError, UnicodeDecodeError):
        return {}
    return dict(parser[name]) if parser.has_section(name) else {}
