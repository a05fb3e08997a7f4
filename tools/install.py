"""python tools/install.py WHAT REQUIREMENT...: installs here, in the versions of constraints.txt.

uv needs a third of pip's time. It installs if it is there or pip can fetch it, except where pip has settings
that uv cannot be given: it reads none of pip's own. Where uv fails, pip installs. What they say is shown only
if pip fails, too.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

CONSTRAINTS = str(Path(__file__).resolve().parents[1] / "constraints.txt")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
# Settings of pip, as `pip config list` names them: uv's variables, and what separates several values there.
OF_UV = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "no-index": ("UV_NO_INDEX", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
}
# PySpark comes as source, of which a wheel is built: its 430 MB of jars need not be compressed for that.
QUICK_BUILD = "--config-setting=--build-option=--compression=stored"
WITHOUT_EFFECT = {"cache-dir", "disable-pip-version-check", "no-input", "progress-bar", "root-user-action"}


def main(what: str, requirements: Sequence[str]) -> int:
    """Install requirements, which are `what` in words. Returns an exit code."""
    began = time.monotonic()
    line = f"installing {what} into {sys.prefix}"
    if not sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
    with tempfile.TemporaryFile("w+") as said:
        uv, settings = find_uv(said)
        words = ("-c", CONSTRAINTS, *requirements)
        # pip compiles modules, too: else the first job does, and every job where Python may not write.
        if uv and run([*uv, "--quiet", "--compile-bytecode", QUICK_BUILD, *words], said, line, settings):
            name = "uv"
        elif run([*PIP, "install", "--quiet", *words], said, line):
            name = "pip"
        else:
            said.seek(0)
            print(said.read(), end="", file=sys.stderr)
            return 1
    erase = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{erase}installed {what} with {name} in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def find_uv(said: IO[str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """The command by which uv installs here, empty if pip has to, and its settings as variables."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=False).stdout
    settings = uv_settings(listed)
    if settings is None:
        return (), {}
    here = ("pip", "install", "--python", sys.executable)
    if found := shutil.which("uv"):
        return (found, *here), settings
    if importlib.util.find_spec("uv") is None:
        fetch = [*PIP, "install", "--quiet", "--only-binary", "uv", "-c", CONSTRAINTS, "uv"]
        if not run(fetch, said, "fetching uv"):
            return (), {}
    return (sys.executable, "-m", "uv", *here), settings


def uv_settings(listed: str) -> Mapping[str, str] | None:
    """What `pip config list` lists, as variables of uv; None if uv cannot be given some of it."""
    settings = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in WITHOUT_EFFECT:
            continue
        if name not in OF_UV:
            return None
        variable, between = OF_UV[name]
        settings[variable] = between.join(str(ast.literal_eval(value)).split())
    return settings


def run(command: Sequence[str], said: IO[str], line: str, settings: Mapping[str, str] | None = None) -> bool:
    """Whether a command succeeds; on a terminal the line shows for how long it has run."""
    environment = os.environ | (settings or {})
    try:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=subprocess.STDOUT)
    except OSError as error:
        said.write(f"{command[0]}: {error}\n")
        return False
    began = time.monotonic()
    while True:
        if sys.stderr.isatty():
            seconds = time.monotonic() - began
            print(f"\r\033[K{line}: {seconds:.0f} s", end="", file=sys.stderr, flush=True)
        try:
            return process.wait(timeout=1) == 0
        except subprocess.TimeoutExpired:
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
