import time
from hashlib import sha256
from pathlib import Path

import pytest

from kraft_core.format.log_files import find_log_files
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import read_log
from kraft_core.format.secrets import is_secret_config, redact
from kraft_core.messages.configs import CONFIG_TYPES
from kraft_core.messages.metadata import by_api_key
from tests.leaked_configs import LEAKED

GOLDEN = Path(__file__).parents[2] / "golden"
CONFIG, TOKEN, SCRAM = by_api_key[4], by_api_key[10], by_api_key[11]


MAX_VALUE_BYTES = (1 << 15) - 1
PASSWORDS = [name for name, type_ in CONFIG_TYPES.items() if type_ == "password"]
UNKNOWN = [
    *LEAKED,
    "my.retention.ms",
    "rsm.config.s3.secret.access.key",
    "rsm.config.gcs.credentials.json",
    "confluent.license.token",
    "my.jaas",
    "listener.name.secret",
    "listener.name.x.y.z.retention.ms",
    "listener.name.external.my.endpoint",
    "RETENTION.MS",
    "",
]


@pytest.mark.parametrize(
    "name",
    [
        *PASSWORDS,
        *UNKNOWN,
        "listener.name.external.ssl.keystore.password",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config",
        "listener.name.controller.ssl.truststore.certificates",
        "LISTENER.NAME.X.SSL.KEY.PASSWORD",
    ],
)
def test_secret_names(name):
    assert is_secret_config(name, "1")


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in CONFIG_TYPES if name not in PASSWORDS),
        "listener.name.external.ssl.keystore.location",
        "listener.name.external.scram-sha-512.sasl.login.callback.handler.class",
    ],
)
def test_kafkas_own_names_are_shown(name):
    assert not is_secret_config(name, "1")


CREDENTIALS = [
    "https://user:hunter2@host/path",
    "jdbc:postgresql://hunter2@db:5432/x",
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=a;",
    "-----BEGIN PRIVATE KEY-----\nMIIE",
    "Bearer abcdef123456",
    "basic dXNlcjpodW50ZXIy",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
    "a-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
    "eyJhbGciOiJIUzI1NiJ9-password=hunter2",
    'password " : hunter2',
    "Server=db;User Id=a;Password=hunter2",
    "AccountKey = aGk=",
    '{"client_secret": "hunter2"}',
    "<password>hunter2</password>",
    "https://user:hun/ter2@host/path",
    "https://user:hun?ter#2@host/path",
    "jdbc:oracle:thin:scott/tiger@//db:1521/x",
    "_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
    # Of clouds and services, by what they begin with.
    "AKIAIOSFODNN7EXAMPLE",
    "us-east-1/ASIAIOSFODNN7EXAMPLE/s3",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG",
    "BlobEndpoint=https://x;SharedAccessSignature=sv=2022&sr=b",
    "SharedAccessSignature sr=x&se=1",
    "https://x.blob.core.windows.net/c?sv=2022-11-02&sig=Zm9v%3D",
    "sig=Zm9v",
    "https://b.s3.amazonaws.com/k?X-Amz-Signature=fe5f",
    '{"type": "service_account", "private_key": "x"}',
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ya29.a0AfH6SMBx",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0123456789",
    "glpat-16C7e42F292c6912E771",
    "xoxb-123456789012-abc",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "hvs.CAESIJ16C7e42F292c6912E771",
    "Authorization: Token16C7",
    "Cookie: session=16c7",
]


@pytest.mark.parametrize("value", [*CREDENTIALS, *(f"9092,{value}" for value in CREDENTIALS)])
def test_credentials_are_hidden_whatever_the_name(value):
    assert is_secret_config("retention.ms", value)
    config = {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": value}
    assert redact(CONFIG, config) == ({**config, "value": None}, True)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "1",
        "INTERNAL://host:9092,EXTERNAL://other:9093",
        "compact,delete",
        "RULE:^CN=(.*?),OU=.*$/$1@x/",
        "1@host:9093,2@other:9093",
        "EXTERNAL://host:9092 CONTROLLER@host",
        "signal=1,design=2,tokens,assign",
        "AKIAIOSFODNN7",
        "makiaiosfodnn7example",
        "[a-z]",
    ],
)
def test_other_values_are_shown(value):
    assert not is_secret_config("listeners", value)


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "a.",
        "pass ",
        "pass  \n",
        "eyJ-",
        "eyJabcdefgh-",
        "://",
        "bearer, ",
        'pwd "',
        "jdbc:oracle:thin:",
        "jdbc:oracle:a/",
        "AKIA",
        "AIza ",
        "gh",
        "ghp_ ",
        "xoxb",
        "sig ",
        "://a ",
        "_eyJabcdefgh",
    ],
)
def test_a_value_is_judged_in_time_that_grows_with_its_length(part):
    """Of the longest that Kafka can write; a compressed batch holds hundreds of them in a few KB."""
    longest = part * (MAX_VALUE_BYTES // len(part))
    spaced = part.strip() + " " * (MAX_VALUE_BYTES - len(part))
    began = time.process_time()
    assert not is_secret_config("listeners", longest)
    assert not is_secret_config("listeners", spaced)
    assert time.process_time() - began < 0.5


def config(name: str, value: str | None) -> dict:
    return {"resourceType": 4, "resourceName": "11", "name": name, "value": value}


def test_what_a_config_record_keeps():
    secret = config("ssl.keystore.password", "hunter2")
    redacted, was = redact(CONFIG, secret)
    assert (redacted, was) == (config("ssl.keystore.password", None), True)
    assert secret["value"] == "hunter2"
    plain = config("ssl.keystore.type", "PKCS12")
    assert redact(CONFIG, plain) == (plain, False)
    # A removed configuration has no value: nothing was taken out.
    removed = config("ssl.keystore.password", None)
    assert redact(CONFIG, removed) == (removed, False)


def test_credentials_and_tokens():
    scram = {
        **SCRAM.default(0),
        "name": "alice",
        "salt": b"s",
        "storedKey": b"k",
        "serverKey": b"v",
        "iterations": 4096,
    }
    redacted, was = redact(SCRAM, scram)
    assert was
    assert {name for name, value in redacted.items() if value is None} == {"salt", "storedKey", "serverKey"}
    assert (redacted["name"], redacted["iterations"]) == ("alice", 4096)
    token, was = redact(TOKEN, {**TOKEN.default(0), "owner": "User:a", "tokenId": "t0k3n"})
    assert was
    assert (token["owner"], token["tokenId"]) == ("User:a", sha256(b"t0k3n").hexdigest()[:16])


def test_former_layouts_hold_secrets_too():
    (message,) = SCRAM.older
    info = {"mechanism": 1, "salt": b"s", "saltedPassword": b"p", "iterations": 4096}
    value = {"name": "alice", "credentialInfos": [info]}
    redacted, was = redact(message, value)
    assert was
    assert redacted == {
        "name": "alice",
        "credentialInfos": [{**info, "salt": None, "saltedPassword": None}],
    }
    assert value["credentialInfos"][0]["salt"] == b"s"
    assert redact(message, {"name": "alice", "credentialInfos": []})[1] is False


def test_no_secret_of_the_golden_captures_is_kept():
    shown = 0
    for path in find_log_files(GOLDEN / "dynamic-membership"):
        with mapped(path) as buf:
            for record in read_log(buf):
                was = redact(record.message, record.value)[1]
                shown += was
                expected = record.type in {
                    "USER_SCRAM_CREDENTIAL_RECORD",
                    "DELEGATION_TOKEN_RECORD",
                    "REMOVE_DELEGATION_TOKEN_RECORD",
                }
                assert was == expected
    assert shown > 20


def test_the_settings_allow_exact_names_that_kafka_does_not_define():
    allowed = frozenset({"my.plugin", "cookie", "ssl.key.password", "listener.name.x.sasl.jaas.config"})
    assert not is_secret_config("my.plugin", "1", allowed)
    assert not is_secret_config("cookie", "1", allowed)
    assert is_secret_config("cookie", "https://a:b@c", allowed)
    for name in ("my.plugin.x", "my", "My.Plugin", "pass"):
        assert is_secret_config(name, "1", allowed)
    # What Kafka itself calls a password is never shown.
    assert is_secret_config("ssl.key.password", "1", allowed)
    assert is_secret_config("listener.name.x.sasl.jaas.config", "1", allowed)
    config = CONFIG.default(0) | {"name": "my.plugin", "value": "1"}
    assert redact(CONFIG, config, allowed) == (config, False)
    assert redact(CONFIG, config) == ({**config, "value": None}, True)
