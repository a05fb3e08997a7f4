"""Where a lake, or a file of it, is: a path, or a URL of an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# Bucket and key, of characters that mean themselves in URLs, in requests, and in all libraries beneath.
_S3 = re.compile(r"s3a?://(?P<bucket>[a-z0-9][a-z0-9.-]+)/(?P<key>[\w.=-]+(/[\w.=-]+)*)/*", re.ASCII)
# A scheme with any path, and those of stores with a slash forgotten: ./s3:lake is a folder.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|(?i:s3[an]?|gs|abfss?|hdfs|file):")
_REFUSED = (
    ("gs://", "safe commits have not been demonstrated on Google Cloud Storage"),
    ("abfs://", "commits on Azure failed with the libraries in use"),
    ("abfss://", "commits on Azure failed with the libraries in use"),
    ("hdfs://", "safe commits have not been demonstrated on HDFS: mount it instead"),
)


class LocationError(ValueError):
    """A text that names no place where a lake can be; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class StoreUrl:
    """A place in an object store, with the methods of Path that need no request. key: no slash at its
    ends."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> StoreUrl:
        return StoreUrl(self.bucket, f"{self.key}/{name}")

    def resolve(self) -> StoreUrl:
        return self

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


# Of a local path all methods that ask the operating system are for transforms.lake.storage.
Location = Path | StoreUrl


def is_url(word: str) -> bool:
    """Whether a text is a URL, or meant as one, and no path."""
    return _URL.match(word) is not None


def shown(word: str) -> str:
    """A URL without the keys that some hold, before the server's name or as parameters."""
    return re.sub("//[^/]*@", "//", re.split("[?#]", word)[0])


def location(word: str) -> Location:
    """A path, or the place that a URL of S3 names. Raises LocationError."""
    if not is_url(word):
        return Path(word)
    found = _S3.fullmatch(word)
    if found and not {".", ".."} & set(found["key"].split("/")):
        return StoreUrl(found["bucket"], found["key"])
    for scheme, reason in _REFUSED:
        if word.startswith(scheme):
            raise LocationError(f"{reason}; a lake is a folder, or s3://bucket/path")
    if word.startswith(("s3://", "s3a://")):
        raise LocationError(
            "a lake on S3 is s3://bucket/path, of letters, digits and . _ - =, and not the root of a bucket"
        )
    raise LocationError("a lake is a folder, or s3://bucket/path")
