"""Objects of a store with the protocol of S3: the parts of obstore, delta-rs and Arrow that are used for
them.

All three ask the machine for credentials by themselves: variables AWS_*, perhaps those of a profile, else the
role of the web identity, container or instance. None are stored, or given from one to another.
"""

from __future__ import annotations

import atexit
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Literal, get_args

from transforms.lake.storage.location import StoreUrl
from transforms.lake.storage.profile import StoreVariableError, use_profile

if TYPE_CHECKING:
    import pyarrow.fs as fs
    from obstore.store import S3Config, S3Store


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object below a place: its key there, its bytes, the tag of its content; seconds since 1970."""

    name: str
    size_bytes: int
    tag: str
    written_at: float


Request = Literal["LIST", "GET", "PUT", "DELETE"]
# Objects that one request lists or deletes at most; bytes of one part of a large file that Arrow writes.
PAGE, PART_BYTES = 1000, 10 * 1024 * 1024
_SERVER = re.compile(r"https?://[^\s/?#@]+/*")
_requests: Counter[Request] = Counter()
_counting = Lock()


def count_requests(kind: Request, count: int = 1) -> None:
    """Add requests that this process makes, by any library."""
    with _counting:
        _requests[kind] += count


def count_written(size_bytes: int) -> None:
    """Add the requests by which Arrow writes a file: one, or those of an upload in parts."""
    count_requests("PUT", 1 if size_bytes < PART_BYTES else 2 + -(-size_bytes // PART_BYTES))


def requests() -> dict[str, int]:
    """The requests of this process so far, of every kind; each once, also where a library repeats it.

    Nothing where it made none.
    """
    with _counting:
        return {kind: _requests[kind] for kind in get_args(Request)} if _requests else {}


def endpoint() -> str | None:
    """The address of a server other than Amazon's. Raises StoreVariableError if it is not a URL."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if address := os.environ.get(name):
            if not _SERVER.fullmatch(address):
                raise StoreVariableError(f"{name} is not the URL of a server: set it to https://HOST:PORT")
            return address
    return None


def region() -> str:
    """The region in which buckets are looked for. Raises ProfileError, as all who ask a store."""
    use_profile()
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

    # With the credentials of a web identity, the end of the process would wait for this one to be let go.
    atexit.register(arrow_files.cache_clear)
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

    count_requests("PUT")
    with _as_os_errors():
        try:
            made = obstore.put(_store(place.bucket), place.key, content, mode="create")
        except AlreadyExistsError:
            return None
    return made["e_tag"] or ""


def put(place: StoreUrl, content: bytes) -> str:
    """Make an object, or replace it. Returns the tag of its content. Raises OSError."""
    import obstore

    count_requests("PUT")
    with _as_os_errors():
        return obstore.put(_store(place.bucket), place.key, content)["e_tag"] or ""


def content(place: StoreUrl) -> bytes:
    """What an object holds. Raises OSError; FileNotFoundError where there is none."""
    import obstore

    count_requests("GET")
    with _as_os_errors():
        try:
            return bytes(obstore.get(_store(place.bucket), place.key).bytes())
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise OSError(str(error)) from None
            raise


def below(place: StoreUrl, after: str | None = None) -> Iterator[StoredObject]:
    """All objects whose keys begin with that of a place and a slash, by key. Raises OSError.

    after: only those whose name below the place follows it.
    """
    import obstore

    folder = place.key + "/"
    offset = None if after is None else folder + after
    with _as_os_errors():
        count_requests("LIST")
        for page, some in enumerate(
            obstore.list(_store(place.bucket), folder, offset=offset, chunk_size=PAGE)
        ):
            if page:
                count_requests("LIST")
            for found in some:
                name, written_at = found["path"].removeprefix(folder), found["last_modified"].timestamp()
                yield StoredObject(name, found["size"], found["e_tag"] or "", written_at)


def names_in(place: StoreUrl) -> list[str]:
    """What a place holds, of objects below it the first part of their keys. Raises OSError."""
    import obstore

    count_requests("LIST")
    with _as_os_errors():
        found = obstore.list_with_delimiter(_store(place.bucket), place.key + "/")
    paths = [*found["common_prefixes"], *(held["path"] for held in found["objects"])]
    # Some tools make an object of the place itself, for it to look like a folder.
    return [path.rpartition("/")[2] for path in paths if path != place.key]


def written_at(place: StoreUrl) -> float:
    """When an object was written, in seconds since 1970. Raises OSError."""
    import obstore

    count_requests("GET")
    with _as_os_errors():
        return obstore.head(_store(place.bucket), place.key)["last_modified"].timestamp()


def delete(place: StoreUrl) -> None:
    """Remove an object, which another may have removed meanwhile. Raises OSError."""
    delete_all([place])


def delete_all(places: Sequence[StoreUrl]) -> None:
    """Remove objects of a bucket, which others may have removed meanwhile. Raises OSError."""
    import obstore

    for first in range(0, len(places), PAGE):
        some = places[first : first + PAGE]
        count_requests("DELETE")
        with _as_os_errors(), suppress(FileNotFoundError):
            obstore.delete(_store(some[0].bucket), [place.key for place in some])
