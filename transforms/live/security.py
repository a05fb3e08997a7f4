"""How to reach a listener: Kafka's option names, and the TLS settings from them. Secrets are in no text."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kraft_core.format import side_files
from kraft_core.wire.sasl import MECHANISMS, Credentials, Mechanism
from kraft_core.wording import did_you_mean
from transforms.source.errors import SourceError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
KNOWN = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)
_TO_PEM = (
    "keytool -importkeystore -srckeystore FILE -destkeystore store.p12 -deststoretype PKCS12, then "
    "openssl pkcs12 -in store.p12 -out store.pem"
)


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """What Kafka's properties say of a listener. No secret is in its representation."""

    protocol: str = "PLAINTEXT"
    credentials: Credentials | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @staticmethod
    def of(properties: Mapping[str, str]) -> ListenerSecurity:
        """By Kafka's names. Raises SourceError for a property that is not known, or a value that is not."""
        for name in properties:
            if name not in KNOWN:
                near = did_you_mean(name, KNOWN) or f"; known options: {', '.join(KNOWN)}"
                raise SourceError(f"unknown option kafka.{name}{near}")
        protocol = properties.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            raise SourceError(f"security.protocol must be one of {', '.join(PROTOCOLS)}")
        for store in ("truststore", "keystore"):
            _must_be_pem(properties, store)
        credentials = _credentials(properties) if protocol.startswith("SASL") else None
        return ListenerSecurity(protocol, credentials, dict(properties))

    def tls(self) -> ssl.SSLContext:
        """The context of a connection. Raises SourceError for a file or a key that cannot be used."""
        held = self.properties
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        location = held.get("ssl.truststore.location")
        try:
            if location or "ssl.truststore.certificates" in held:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.load_verify_locations(location, cadata=held.get("ssl.truststore.certificates"))
        except (OSError, ValueError) as error:
            where = location or "ssl.truststore.certificates"
            raise SourceError(f"{where} cannot be read as PEM certificates: {_said(error)}") from None
        context.check_hostname = held.get("ssl.endpoint.identification.algorithm", "https") != ""
        self._load_key(context)
        return context

    def _load_key(self, context: ssl.SSLContext) -> None:
        held = self.properties
        password = held.get("ssl.key.password")
        location = held.get("ssl.keystore.location")
        chain = held.get("ssl.keystore.certificate.chain")
        try:
            if location:
                context.load_cert_chain(location, password=password)
            elif chain:
                _load_texts(context, f"{chain}\n{held.get('ssl.keystore.key', '')}", password)
        except (OSError, ValueError) as error:
            where = location or "ssl.keystore.certificate.chain"
            raise SourceError(
                f"{where} cannot be used as a PEM certificate with its key: {_said(error)}; is "
                "ssl.key.password right?"
            ) from None


def _load_texts(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Python's ssl takes a key from a file only: one that this user alone can read, for a moment."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(pem)
        context.load_cert_chain(name, password=password)
    finally:
        Path(name).unlink()


def _said(error: OSError | ValueError) -> str:
    """Of an error only its kind: it may quote what it could not read."""
    return getattr(error, "strerror", None) or type(error).__name__


def _must_be_pem(properties: Mapping[str, str], store: str) -> None:
    type_ = properties.get(f"ssl.{store}.type", "PEM").upper()
    location = properties.get(f"ssl.{store}.location", "")
    if type_ != "PEM" or location.lower().endswith((".jks", ".p12", ".pfx")):
        raise SourceError(f"ssl.{store}: only PEM is supported; convert it: {_TO_PEM}")


def _credentials(properties: Mapping[str, str]) -> Credentials:
    mechanism = properties.get("sasl.mechanism", "").upper()
    named: Mechanism | None = next((name for name in MECHANISMS if name == mechanism), None)
    if named is None:
        raise SourceError(
            f"sasl.mechanism must be one of {', '.join(MECHANISMS)}; GSSAPI and OAUTHBEARER are not supported"
        )
    facts = jaas_options(properties.get("sasl.jaas.config", ""))
    if not facts.get("username") or "password" not in facts:
        raise SourceError(
            "sasl.jaas.config must contain a user, as in "
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="..." password="...";'
        )
    return Credentials(named, facts["username"], facts["password"])


def jaas_options(text: str) -> dict[str, str]:
    """The name="value" options of a JAAS line; a backslash escapes the next character."""
    found: dict[str, str] = {}
    at = 0
    while (equals := text.find("=", at)) >= 0:
        name = text[at:equals].split()[-1:] or [""]
        value, at = _value(text, equals + 1)
        found[name[0]] = value
    return found


def _value(text: str, at: int) -> tuple[str, int]:
    quote = text[at : at + 1] if text[at : at + 1] in ('"', "'") else ""
    at += len(quote)
    value: list[str] = []
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            value.append(text[at])
        elif char == quote or (not quote and (char.isspace() or char == ";")):
            return "".join(value), at + 1
        else:
            value.append(char)
        at += 1
    return "".join(value), at


def read_properties(path: str) -> dict[str, str]:
    """The properties of a client's file that say how to reach a listener. Raises SourceError."""
    try:
        found = side_files.read_properties(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} cannot be read: {_said(error)}") from None
    return {name: value for name, value in found.items() if name in KNOWN}
