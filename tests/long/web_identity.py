"""A web identity gives the credentials, as in a pod of Kubernetes: JAR FOLDER COMMAND...

Runs a command where Amazon's address of such roles (STS) is a server in this process, with TLS, and S3 is
S3Proxy. The libraries beneath ask that address and no other, so this is run in a network of its own, with its
own /etc/hosts and authorities: see in_own_network.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from tests.long.s3proxy import KEY, REGION, SECRET, started

HOST, ROLE, TOKEN = f"sts.{REGION}.amazonaws.com", "arn:aws:iam::123456789012:role/kraftlake", "of.the.pod"
# Where systems keep the certificates of authorities.
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
ANSWER = f"""<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{KEY}</AccessKeyId>
<SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>of a session</SessionToken>
<Expiration>2999-11-21T00:00:00Z</Expiration></Credentials>
<AssumedRoleUser><Arn>{ROLE}/s</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""


class Sts(BaseHTTPRequestHandler):
    """AssumeRoleWithWebIdentity for one token and one role."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        asked = parse_qs(body or self.path.partition("?")[2])
        is_known = asked.get("WebIdentityToken") == [TOKEN] and asked.get("RoleArn") == [ROLE]
        content = ANSWER.encode()
        self.send_response(200 if is_known else 403)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(content) if is_known else 0))
        self.end_headers()
        if is_known:
            self.wfile.write(content)

    do_GET = do_POST  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


def make_certificates(folder: Path) -> None:
    """A certificate of the host, the authority that signs it, also as Java trusts one, and /etc/hosts."""
    folder.mkdir()
    (folder / "hosts").write_text(f"127.0.0.1 localhost {HOST}\n")
    name = f"-days 2 -subj /CN={HOST} -addext subjectAltName=DNS:{HOST}"
    for words in (
        f"openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem {name}",
        f"openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out host.pem {name} "
        "-addext basicConstraints=critical,CA:FALSE -CA ca.pem -CAkey ca-key.pem",
        "keytool -importcert -noprompt -file ca.pem -keystore trusted.p12 -storepass changeit",
    ):
        subprocess.run(words.split(), cwd=folder, check=True, capture_output=True)


def in_own_network(folder: Path) -> list[str]:
    """The beginning of a command that runs the rest of it where the host of STS is this machine.

    folder: of make_certificates. An address besides that of loopback lets its name be looked up.
    """
    script = (
        "ip link set lo up && ip address add 192.0.2.1/32 dev lo && "
        f"mount --bind {folder}/hosts /etc/hosts && mount --bind {folder}/ca.pem {AUTHORITIES} && "
        'exec "$@"'
    )
    return ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", script, "sh"]


@contextmanager
def sts(folder: Path) -> Iterator[None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "host.pem", folder / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 443), Sts) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def main(jar: Path, folder: Path, command: list[str]) -> int:
    """The exit code of a command that may write s3://bucket."""
    token = folder / "token"
    token.write_text(TOKEN)
    with started(jar, folder / "s3") as server, sts(folder / "certificates"):
        variables = {name: value for name, value in server.environment.items() if "KEY" not in name}
        # AWS_ENDPOINT_URL is also that of STS.
        variables["AWS_ENDPOINT_URL_S3"] = variables.pop("AWS_ENDPOINT_URL")
        variables |= {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
            "AWS_ROLE_ARN": ROLE,
            "AWS_ROLE_SESSION_NAME": "kraftlake",
            "SSL_CERT_FILE": AUTHORITIES,
            "JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={folder}/certificates/trusted.p12 "
            "-Djavax.net.ssl.trustStorePassword=changeit",
        }
        others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return subprocess.run(command, env=others | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
