"""Objects of a store with the protocol of S3: what of obstore, delta-rs and Arrow is used for them.

All three ask the machine for credentials by themselves: variables AWS_*, else the role of the web identity,
container or instance. None are stored, or given from one to another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from transforms.lake.storage.location import StoreUrl

if TYPE_CHECKING:
    import pyarrow.fs as fs
    from obstore.store import S3Config, S3Store


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object below a place: its key there, its bytes, and the tag of its content."""

    name: str
    size_bytes: int
    tag: str


def endpoint() -> str | None:
    """The address of a server that is not Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def delta_options() -> dict[str, str]:
    """The options of delta-rs, which ignores misspelt ones."""
    address = endpoint()
    known = {} if address is None else {"aws_endpoint": address, "allow_http": "true"}
    return {"aws_region": region(), **known}


@cache
def arrow_files() -> fs.S3FileSystem:
    """Arrow's own access. Small files are written by one request."""
    import pyarrow.fs as fs

    address = re.fullmatch(r"(?:(https?)://)?(.*?)/*", endpoint() or "")
    assert address is not None
    return fs.S3FileSystem(
        region=region(),
        scheme=address[1] or "https",
        endpoint_override=address[2] or None,
        allow_delayed_open=True,
    )


@cache
def _store(bucket: str) -> S3Store:
    from obstore.store import S3Store

    config: S3Config = {"region": region()}
    if (address := endpoint()) is not None:
        config["endpoint"] = address
    return S3Store(bucket, config=config, client_options={"allow_http": address is not None})


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Errors of obstore that are none of the system become such."""
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise OSError(str(error)) from None


def put_new(place: StoreUrl, content: bytes) -> str | None:
    """Make an object unless there is one. Returns the tag of its content, None if there was one.

    Raises OSError.
    """
    import obstore
    from obstore.exceptions import AlreadyExistsError

    with _as_os_errors():
        try:
            made = obstore.put(_store(place.bucket), place.key, content, mode="create")
        except AlreadyExistsError:
            return None
    return made["e_tag"] or ""


def put(place: StoreUrl, content: bytes) -> None:
    """Make an object, or replace it. Raises OSError."""
    import obstore

    with _as_os_errors():
        obstore.put(_store(place.bucket), place.key, content)


def content(place: StoreUrl) -> bytes:
    """What an object holds. Raises OSError; FileNotFoundError where there is none."""
    import obstore

    with _as_os_errors():
        try:
            return bytes(obstore.get(_store(place.bucket), place.key).bytes())
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise OSError(str(error)) from None
            raise


def below(place: StoreUrl) -> Iterator[StoredObject]:
    """All objects whose keys begin with that of a place and a slash, by key. Raises OSError."""
    import obstore

    with _as_os_errors():
        for some in obstore.list(_store(place.bucket), place.key + "/"):
            for found in some:
                name = found["path"].removeprefix(place.key + "/")
                yield StoredObject(name, found["size"], found["e_tag"] or "")


def names_in(place: StoreUrl) -> list[str]:
    """What a place holds, of objects below it the first part of their keys. Raises OSError."""
    import obstore

    with _as_os_errors():
        found = obstore.list_with_delimiter(_store(place.bucket), place.key + "/")
    paths = [*found["common_prefixes"], *(held["path"] for held in found["objects"])]
    # Some tools make an object of the place itself, for it to look like a folder.
    return [path.rpartition("/")[2] for path in paths if path != place.key]


def written_at(place: StoreUrl) -> float:
    """When an object was written, in seconds since 1970. Raises OSError."""
    import obstore

    with _as_os_errors():
        return obstore.head(_store(place.bucket), place.key)["last_modified"].timestamp()


def delete(place: StoreUrl) -> None:
    """Remove an object, which another may have removed meanwhile. Raises OSError."""
    import obstore

    with _as_os_errors(), suppress(FileNotFoundError):
        obstore.delete(_store(place.bucket), place.key)
