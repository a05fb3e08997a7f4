"""Profiles of Amazon's tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from transforms.lake.storage.profile import ProfileError, profile_of

CREDENTIALS = """
[default]
aws_access_key_id = of-default
aws_secret_access_key = s%cret
[night]
aws_access_key_id=of-night
aws_secret_access_key=secret
aws_session_token=token
"""
CONFIG = """
[default]
region = eu-west-1
[profile night]
region = eu-central-1
[profile role]
role_arn = arn:aws:iam::1:role/r
source_profile = night
"""
DEFAULT = {
    "AWS_ACCESS_KEY_ID": "of-default",
    "AWS_SECRET_ACCESS_KEY": "s%cret",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
NIGHT = {
    "AWS_ACCESS_KEY_ID": "of-night",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "token",
    "AWS_DEFAULT_REGION": "eu-central-1",
}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws/config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, DEFAULT),
        ({"AWS_PROFILE": "default"}, DEFAULT),
        ({"AWS_PROFILE": "night"}, NIGHT),
        ({"AWS_PROFILE": "night", "AWS_ACCESS_KEY_ID": "own"}, {}),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, {}),
    ],
)
def test_a_profile_gives_what_the_environment_lacks(
    home: dict[str, str], variables: dict[str, str], found: dict[str, str]
) -> None:
    assert profile_of(home | variables) == found


def test_files_may_be_elsewhere(home: dict[str, str], tmp_path: Path) -> None:
    elsewhere = tmp_path / "keys"
    elsewhere.write_text(CREDENTIALS.replace("of-default", "elsewhere"))
    found = profile_of(home | {"AWS_SHARED_CREDENTIALS_FILE": str(elsewhere)})
    assert found["AWS_ACCESS_KEY_ID"] == "elsewhere"


@pytest.mark.parametrize("name", ["role", "absent"])
def test_a_named_profile_without_keys_is_an_error(home: dict[str, str], name: str) -> None:
    with pytest.raises(ProfileError, match=f"profile {name} has no keys"):
        profile_of(home | {"AWS_PROFILE": name})


@pytest.mark.parametrize("content", ["", "[default]\nregion = x\n", "no section", "\udcff"])
def test_no_profile(tmp_path: Path, content: str) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_bytes(content.encode(errors="surrogateescape"))
    assert profile_of({"HOME": str(tmp_path)}) == {}
