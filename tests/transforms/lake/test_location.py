"""Where lakes may be, and what their stores say."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from jobs.runtime.crash import failure_of
from jobs.runtime.lakes import lake_folder
from jobs.runtime.outcome import ExitCode, Failure
from transforms.lake.storage.location import Location, LocationError, StoreUrl, location


@pytest.mark.parametrize("word", ["s3://bucket/a/lake", "s3a://bucket/a/lake", "s3://bucket/a/lake/"])
def test_one_place_in_a_store(word: str) -> None:
    place = location(word)
    assert place == StoreUrl("bucket", "a/lake")
    assert str(place / "runs") == "s3://bucket/a/lake/runs"
    assert (place / "runs").name == "runs"
    assert pickle.loads(pickle.dumps(place)) == place


@pytest.mark.parametrize(
    "word", ["lake", "/data/lake", "s3", "C:lake", "a:b/c", "./s3:", "./s3:/bucket/lake"]
)
def test_a_path(word: str) -> None:
    place: Location = location(word)
    assert place == Path(word)


@pytest.mark.parametrize(
    "word",
    [
        *("s3://bucket", "s3://bucket/", "s3://", "s3:/bucket/lake", "s3://b/a//lake", "s3://bucket/../lake"),
        *("s3://bucket/a%20b", "s3://bucket/a b", "s3://bucket/l?x=y", "s3://key:secret@bucket/lake"),
        *("s3:", "s3:bucket/lake", "S3://bucket/lake", "gs:bucket/lake", "HDFS:lake"),
        *("gs://bucket/lake", "abfss://c@a/lake", "abfs://c@a/lake", "hdfs://host/lake", "file:///data/lake"),
    ],
)
def test_no_place(word: str) -> None:
    with pytest.raises(LocationError, match="s3://bucket/path"):
        location(word)


def test_keys_in_a_url_are_not_shown() -> None:
    for word in ("s3://key:secret@bucket/lake", "s3://bucket/lake?X-Amz-Signature=secret"):
        with pytest.raises(Failure) as refused:
            lake_folder(word)
        assert "secret" not in str(refused.value)
        assert "bucket/lake" in str(refused.value)


# As obstore, delta-rs and Arrow said them of a server on loopback.
SAID = (
    (
        "404 Not Found: <?xml version='1.0'?><Error><Code>NoSuchBucket</Code>",
        ExitCode.USAGE,
        "no bucket bucket",
    ),
    (
        "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 4.4s",
        ExitCode.ENVIRONMENT,
        "no credentials",
    ),
    (
        "Kernel error -> Operation not supported\n an error occurred while loading credentials",
        ExitCode.ENVIRONMENT,
        "no credentials",
    ),
    ("403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code>", ExitCode.ENVIRONMENT, "rejects the key"),
    (
        "400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>",
        ExitCode.ENVIRONMENT,
        "set AWS_DEFAULT_REGION to",
    ),
    ("403 Forbidden: <Error><Code>AccessDenied</Code>", ExitCode.ENVIRONMENT, "permission denied"),
    ("Generic S3 error: HTTP error: error sending request", ExitCode.TRY_AGAIN, "run the same command again"),
    ("status code: 503 Service Unavailable: <Error>", ExitCode.TRY_AGAIN, "run the same command again"),
)


@pytest.mark.parametrize(("said", "code", "words"), SAID)
def test_what_stores_say(said: str, code: ExitCode, words: str) -> None:
    failure = failure_of(OSError(said), StoreUrl("bucket", "lake"))
    assert failure is not None
    assert failure.exit_code == code
    assert words in str(failure)
    assert "<" not in str(failure)


def test_a_value_with_such_a_text_is_no_fault_of_the_store() -> None:
    assert failure_of(KeyError("403 Forbidden"), StoreUrl("bucket", "lake")) is None
    assert failure_of(OSError("403 Forbidden"), Path("lake")) is None
