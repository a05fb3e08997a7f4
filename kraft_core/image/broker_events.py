"""What a change of a broker's registration means: its lifecycle (KIP-631), as far as the log proves it."""

from __future__ import annotations

from typing import Literal

from kraft_core.image.brokers import Broker

BrokerEventName = Literal[
    "registered",
    "registered_again",
    "unregistered",
    "fenced",
    "unfenced",
    "controlled_shutdown",
    "directories_changed",
]


def broker_events(before: Broker | None, after: Broker | None) -> list[BrokerEventName]:
    """What happened between two versions of a registration, None: not registered. Empty for other changes."""
    if before is None or after is None:
        return [] if before is after else ["unregistered"] if after is None else ["registered"]
    if after.broker_epoch != before.broker_epoch:
        return ["registered_again"]
    found: list[BrokerEventName] = []
    if after.fenced != before.fenced:
        found.append("fenced" if after.fenced else "unfenced")
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        found.append("controlled_shutdown")
    if after.log_dirs != before.log_dirs:
        found.append("directories_changed")
    return found


def broker_event_words(before: Broker | None, after: Broker | None) -> str:
    """The change of a registration in words; empty where nothing of it is a broker's lifecycle."""
    return ", ".join(_words(name, before, after) for name in broker_events(before, after))


def _words(name: BrokerEventName, before: Broker | None, after: Broker | None) -> str:
    match name:
        case "registered" | "registered_again" if after is not None:
            again = "registered"
            if before is not None:
                same = after.incarnation_id == before.incarnation_id
                again = "registered again" + (", the same process" if same else ", another process")
            return f"{again} (incarnation {after.incarnation_id}){', fenced' if after.fenced else ''}"
        case "fenced" if before is not None:
            return (
                "fenced at the end of its controlled shutdown" if before.in_controlled_shutdown else "fenced"
            )
        case "controlled_shutdown":
            return "in controlled shutdown"
        case "directories_changed" if before is not None and after is not None:
            gone = sorted(set(before.log_dirs) - set(after.log_dirs))
            come = sorted(set(after.log_dirs) - set(before.log_dirs))
            words = [f"log directory {each} offline" for each in gone]
            return ", ".join([*words, *(f"log directory {each} online" for each in come)])
        case _:
            return name
