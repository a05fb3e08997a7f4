"""Nodes to format, drawn: a configuration, what lies in its directories, and the options of kafka-storage."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field, replace
from pathlib import Path

from kraft_core.messages.uuid_text import uuid_text
from kraft_core.storage.formatter import FormatRequest

CLUSTERS = ("iWP35uOsShu1pFlBJh_E7w", "a=b: c#!", " prod\\1", "x")


@dataclass
class DrawnNode:
    """entries: the configuration. metas: by path, what meta.properties holds; None for an empty directory,
    "file" where the path is a file.
    """

    entries: dict[str, str]
    request: FormatRequest
    metas: dict[Path, str | None] = field(default_factory=dict)

    def write(self, file: Path) -> None:
        lines = [f"{name}={value}".replace("\\", "\\\\") for name, value in self.entries.items()]
        file.write_text("\n".join(lines), encoding="latin-1")
        for path, content in self.metas.items():
            if content == "file":
                path.write_text("")
                continue
            path.mkdir(parents=True)
            if content is not None:
                (path / "meta.properties").write_text(content)

    def arguments(self, file: Path) -> list[str]:
        asked = self.request
        words = ["format", "--config", str(file), f"--cluster-id={asked.cluster_id}"]
        if asked.release_version is not None:
            words += ["--release-version", asked.release_version]
        words += [word for text in asked.features for word in ("--feature", text)]
        words += [word for text in asked.add_scram for word in ("--add-scram", text)]
        words += ["--standalone"] * asked.standalone + ["--ignore-formatted"] * asked.ignore_formatted
        words += ["--no-initial-controllers"] * asked.no_initial_controllers
        return words + (
            [] if asked.initial_controllers is None else ["--initial-controllers", asked.initial_controllers]
        )


def drawn_node(rng: random.Random, folder: Path) -> DrawnNode:
    """folder: of its log directories."""
    node_id = rng.choice([0, 1, 2, 7, 100, 3000])
    roles = rng.choice(["controller", "controller", "broker", "broker,controller", "controller,broker"])
    dirs = [folder / name for name in rng.sample("abc", rng.choice([1, 1, 2, 3]))]
    entries = {
        "process.roles": roles,
        "node.id": str(node_id),
        "controller.listener.names": "CONTROLLER",
        **_listeners(rng, roles),
        "log.dirs": ",".join(map(str, dirs)),
    }
    if rng.random() < 0.3:
        entries["metadata.log.dir"] = str(rng.choice([dirs[0], folder / "meta"]))
    is_static = rng.random() < 0.3
    if is_static:
        ids = sorted({*rng.sample(range(9), 2), *([node_id] if roles != "broker" else [])})
        entries["controller.quorum.voters"] = ",".join(f"{each}@h{each}:9093" for each in ids)
    else:
        entries["controller.quorum.bootstrap.servers"] = "h1:9093,h2:9093"
    if rng.random() < 0.15:
        entries["unstable.feature.versions.enable"] = "true"
    if rng.random() < 0.3:
        entries |= {
            "num.io.threads": "8",
            "log.retention.hours": "168",
            "my.own": "x",
            "auto.create.topics.enable": "FALSE",
        }
    if rng.random() < 0.2:
        entries |= _sasl(rng)
    request = _request(rng, node_id, is_controller="controller" in roles, is_static=is_static)
    metas: dict[Path, str | None] = {}
    if rng.random() < 0.5:
        request = _spoiled_request(rng, request, node_id)
        if rng.random() < 0.5:
            spoil(rng, entries)
        metas = {path: _meta(rng, request.cluster_id, node_id) for path in dirs if rng.random() < 0.25}
    return DrawnNode(entries, request, metas)


def _listeners(rng: random.Random, roles: str) -> dict[str, str]:
    own = rng.choice(["", "localhost", "h1", "0.0.0.0", "[::1]", "10.0.0.1"])
    controller, broker = f"CONTROLLER://{own}:9093", f"PLAINTEXT://{own}:9092"
    given = [x for x, role in ((broker, "broker"), (controller, "controller")) if role in roles]
    rng.shuffle(given)
    entries = {"listeners": ",".join(given)}
    if rng.random() < 0.3:
        advertised = [("PLAINTEXT", 9092, "broker"), ("CONTROLLER", 9193, "controller")]
        entries["advertised.listeners"] = ",".join(
            f"{name}://public-{rng.randint(1, 3)}:{port}" for name, port, role in advertised if role in roles
        )
    if rng.random() < 0.3:
        entries["listener.security.protocol.map"] = "CONTROLLER:PLAINTEXT, plaintext:plaintext"
    return entries


def _sasl(rng: random.Random) -> dict[str, str]:
    """SASL between brokers; whether the mechanism is enabled is drawn."""
    drawn = {"sasl.mechanism.inter.broker.protocol": rng.choice(["PLAIN", "GSSAPI", "SCRAM-SHA-512"])}
    for name in ("sasl.enabled.mechanisms", "listener.name.plaintext.sasl.enabled.mechanisms"):
        if rng.random() < 0.6:
            drawn[name] = rng.choice(["PLAIN", "PLAIN, SCRAM-SHA-512", "GSSAPI", ""])
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.password": "a secret",
        "super.users": "User:admin",
        **drawn,
    }


_WRONG = {
    "process.roles": ("", "brokers", "broker,,controller", "controller,controller"),
    "node.id": ("-1", "x", "+3", "4294967296", " 5 "),
    "broker.id": ("9", "1", "b"),
    "controller.listener.names": ("", "OTHER", "CONTROLLER,OTHER", "controller", "PLAINTEXT", "SSL"),
    "listeners": (
        "",
        "CONTROLLER://:9093",
        "PLAINTEXT://:9092",
        "CONTROLLER://h:x",
        "X://h:1",
        "PLAINTEXT://:9093,CONTROLLER://:9093",
        "CONTROLLER://a:1,CONTROLLER://b:2",
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://[::1]:1",
        "PLAINTEXT://1.1.1.1:1,CONTROLLER://2.2.2.2:1",
        "PLAINTEXT://1.1.1.1:1,CONTROLLER://h:1",
    ),
    "advertised.listeners": (
        "PLAINTEXT://0.0.0.0:9092",
        "CONTROLLER://0.0.0.0:1",
        "PLAINTEXT://h:1",
        "",
        "SSL://h:1",
    ),
    "listener.security.protocol.map": (
        "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
        "CONTROLLER:X",
        "CONTROLLER",
        "",
        "A:PLAINTEXT",
    ),
    "inter.broker.listener.name": ("PLAINTEXT", "CONTROLLER", "X", "plaintext"),
    "security.inter.broker.protocol": ("SSL", "X", "PLAINTEXT"),
    "controller.quorum.voters": (
        "1@h",
        "1",
        "x@h:1",
        "1@h:1",
        "1@0.0.0.0:1,2@h:2",
        "",
        "1@h!:1",
        "3000@h:1,7@h:2",
    ),
    "controller.quorum.bootstrap.servers": ("h", "", "h:1", "h!:1"),
    "sasl.enabled.mechanisms": ("", "PLAIN", "PLAIN,,X", "GSSAPI,PLAIN"),
    "sasl.mechanism.inter.broker.protocol": ("PLAIN", "GSSAPI"),
    "log.dirs": ("", "/x,,/y"),
    "controller.quorum.auto.join.enable": ("true", "yes"),
    "unstable.feature.versions.enable": ("maybe", "TRUE"),
}


def spoil(rng: random.Random, entries: dict[str, str]) -> None:
    """Change or drop one entry; the outcome may still be right."""
    name = rng.choice(list(_WRONG))
    # Kafka's default log directory is everybody's.
    if name in entries and name != "log.dirs" and rng.random() < 0.3:
        del entries[name]
    else:
        entries[name] = rng.choice(_WRONG[name])


def _request(rng: random.Random, node_id: int, *, is_controller: bool, is_static: bool) -> FormatRequest:
    """One that mostly is accepted."""
    asked = FormatRequest(rng.choice(CLUSTERS), ignore_formatted=rng.random() < 0.5)
    if rng.random() < 0.3:
        asked = replace(asked, release_version=rng.choice(["3.5", "3.9-IV0", "4.0", "4.1.2", "4.3-IV0"]))
    asked = replace(asked, add_scram=tuple(_good_scram(rng) for _ in range(rng.choice([0, 0, 1, 2]))))
    if is_static:
        return asked
    drawn = rng.random()
    if drawn < 0.4 and is_controller:
        return replace(asked, standalone=True)
    if drawn < 0.8:
        return replace(asked, initial_controllers=_initial(rng, node_id))
    return replace(asked, no_initial_controllers=True)


def _spoiled_request(rng: random.Random, asked: FormatRequest, node_id: int) -> FormatRequest:
    """With what may be refused."""
    if rng.random() < 0.3:
        versions = ["3.3", "3.3-IV3", "3.4", "3.5-IV1", "4.4", "4.4-IV0", "4.3.", "9.9", "30", ""]
        asked = replace(asked, release_version=rng.choice(versions))
    if rng.random() < 0.5:
        asked = replace(asked, features=tuple(_feature(rng) for _ in range(rng.choice([1, 1, 2]))))
    if rng.random() < 0.2:
        asked = replace(asked, add_scram=(*asked.add_scram, _bad_scram(rng)))
    if rng.random() < 0.3:
        flags = {"standalone": False, "no_initial_controllers": False, "initial_controllers": None}
        wrong = f"{_initial(rng, node_id)},{_bad_voter(rng)}"
        flags |= rng.choice(
            [{}, {"standalone": True}, {"no_initial_controllers": True}, {"initial_controllers": wrong}]
        )
        asked = replace(asked, **flags)  # pyright: ignore[reportArgumentType]
    return asked


def _initial(rng: random.Random, node_id: int) -> str:
    ids = rng.sample(range(12), rng.choice([1, 2, 3])) + ([node_id] if rng.random() < 0.8 else [])
    voters = [
        f"{each}@{rng.choice(['h', '10.0.0.1', '[::1]'])}:{9000 + each}:{_uuid(rng)}"
        for each in dict.fromkeys(ids)
    ]
    return ",".join(voters)


def _bad_voter(rng: random.Random) -> str:
    whole = [f"1@h:1:{_uuid(rng)},1@h:1:{_uuid(rng)}", f"900@h:0:{_uuid(rng)}==", ""]
    ids = ["1", "@h:1:x", "x@h:1:x", "-1@h:1:x", "1@", "1@[h:1:x", "1@h", "1@[h]1:x", "1@h:1", "1@h:x:y"]
    return rng.choice([*whole, *ids, "1@h:70000:x", f"1@h:1:{'A' * 25}", "1@h:1:AAAA", "1@h:1:!"])


def _feature(rng: random.Random) -> str:
    name = rng.choice(
        [
            "kraft.version",
            "metadata.version",
            "group.version",
            "transaction.version",
            "share.version",
            "streams.version",
            "eligible.leader.replicas.version",
            "x.version",
        ]
    )
    high = {"metadata.version": 34, "transaction.version": 3, "share.version": 3}.get(name, 2)
    return rng.choice(
        [
            f"{name}={rng.randint(0, high)}",
            f" {name} = {rng.randint(0, 1)} ",
            name,
            f"{name}=x",
            f"{name}=99999",
            f"{name}={high - 1}",
            f"{name}=1",
        ]
    )


def _good_scram(rng: random.Random) -> str:
    mechanism, salt = _mechanism(rng), _salt(rng)
    return rng.choice(
        [
            f"{mechanism}=[name=alice,password=p w]",
            f'{mechanism}=[name=bob,iterations=8192,password="q",salt={salt}]',
            f' {mechanism}=[name="carol",salt="{salt}",saltedpassword={salt}] ',
        ]
    )


def _bad_scram(rng: random.Random) -> str:
    mechanism = _mechanism(rng)
    configs = ["name=a", "password=b", "name=a,b", "", f"name=a,saltedpassword={_salt(rng)}"]
    password = "name=a,password=b"
    others = ["iterations=5", "iterations=99999", "iterations=x", "d=e,c=f", "salt=*", ","]
    configs += [f"{password},{other}" for other in others]
    whole = [f"{mechanism}=[{text}]" for text in configs]
    return rng.choice([*whole, "x", "X=[name=a]", f"{mechanism}=name=a", f"{mechanism}=[name=a"])


def _mechanism(rng: random.Random) -> str:
    return rng.choice(["SCRAM-SHA-256", "SCRAM-SHA-512"])


def _salt(rng: random.Random) -> str:
    return base64.b64encode(rng.randbytes(rng.choice([10, 11, 12]))).decode()


def _meta(rng: random.Random, cluster_id: str, node_id: int) -> str | None:
    cluster = cluster_id.replace("\\", "\\\\").replace(" ", "\\ ")
    own = f"cluster.id={cluster}\nnode.id={node_id}\nversion=1\n"
    return rng.choice(
        [
            None,
            "file",
            "",
            own,
            own,
            f"{own}directory.id={_uuid(rng)}\n",
            f"{own}directory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
            f"{own}directory.id={uuid_text(bytes(range(16)))}\n",
            f"cluster.id=other\nnode.id={node_id}\nversion=1\n",
            f"cluster.id={cluster}\nnode.id=55\nversion=1\n",
            f"node.id={node_id}\nversion=2\n",
            "version=1\nnode.id=1\n",
            "version=x\n",
            "version=1\ncluster.id=x\n",
            f"version=1\ncluster.id={cluster}\nnode.id=a\n",
            f"{own}directory.id=!!\n",
            f"{own}directory.id=AAAA\n",
            f"broker.id={node_id}\nversion=0\ncluster.id={cluster}\n",
        ]
    )


def _uuid(rng: random.Random) -> str:
    return uuid_text(rng.randbytes(16))
