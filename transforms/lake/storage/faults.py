"""Why a store refuses or fails, in one sentence, from the errors of obstore, delta-rs, Arrow or Spark.

Their messages are lines of XML and debug output, and may quote the id of a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from transforms.lake.storage import objects
from transforms.lake.storage.location import StoreUrl


class Remedy(Enum):
    """What helps: another --lake, another environment, or time."""

    NAME = auto()
    ENVIRONMENT = auto()
    TIME = auto()


@dataclass(frozen=True, slots=True)
class StoreFault:
    """What is wrong with a store, as a sentence that says what to do."""

    sentence: str
    remedy: Remedy


# By the first that matches. The words LAKE, BUCKET and REGION are replaced.
_FAULTS = (
    (
        r"NoSuchBucket|NO_SUCH_BUCKET|UnknownStoreException",
        "there is no bucket BUCKET: create it, or choose another --lake",
        Remedy.NAME,
    ),
    (
        r"latest/api/token|latest/meta-data|169\.254\.|NoAuthWithAWSException|No valid credentials"
        r"|[Ll]oad(ing)? credentials|IMDS|WebIdentity",
        "no credentials for LAKE: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role "
        "provides them",
        Remedy.ENVIRONMENT,
    ),
    (
        r"SignatureDoesNotMatch|InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH",
        "the store of LAKE rejects the key: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        Remedy.ENVIRONMENT,
    ),
    (
        r"ExpiredToken|InvalidToken|TokenRefreshRequired",
        "the credentials for LAKE have expired: fetch new ones (AWS_SESSION_TOKEN)",
        Remedy.ENVIRONMENT,
    ),
    (
        r"RequestTimeTooSkewed",
        "the store of LAKE rejects this machine's clock: set it",
        Remedy.ENVIRONMENT,
    ),
    (
        r"AuthorizationHeaderMalformed|PermanentRedirect|301 Moved|IllegalLocationConstraint|bare redirect"
        r"|redirect without LOCATION",
        "bucket BUCKET is not in region REGION: set AWS_DEFAULT_REGION to the bucket's region",
        Remedy.ENVIRONMENT,
    ),
    (
        r"AccessDenied|ACCESS_DENIED|403 Forbidden|status: 403|lacked the necessary privileges",
        "permission denied for LAKE: this user needs permission to list, read, write and delete objects "
        "there",
        Remedy.ENVIRONMENT,
    ),
    (
        r"Generic S3 error|AWS Error|error sending request|SlowDown|status code: 5\d\d"
        r"|AWSClientIOException|SdkClientException",
        "the store of LAKE answers with errors: run the same command again",
        Remedy.TIME,
    ),
)


def fault_of(error: BaseException, lake: StoreUrl) -> StoreFault | None:
    """The fault of a lake's store that an error is; None if it is none that is known."""
    values = {"LAKE": str(lake), "BUCKET": lake.bucket, "REGION": objects.region()}
    for pattern, sentence, remedy in _FAULTS:
        if re.search(pattern, str(error)):
            return StoreFault(re.sub(r"\b(LAKE|BUCKET|REGION)\b", lambda m: values[m[1]], sentence), remedy)
    return None
