"""The steps of a broker's removal or restart, with Kafka's own commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from kraft_core.addresses import address_text
from kraft_core.image.brokers import Broker
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS
from kraft_core.plan.broker_words import partition_words
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.reassignment import execute_option, move_off
from kraft_core.plan.steps import PlanStep, bootstrap


def restart_steps(image: Image, broker: Broker, held: Sequence[Partition]) -> Iterator[PlanStep]:
    """Stop it in controlled shutdown, start it, wait until it is in sync."""
    servers, broker_id = bootstrap_server(image, broker.broker_id), broker.broker_id
    lagging = sorted({replica for each in held for replica in each.replicas if replica not in each.isr})
    if any(replica != broker_id for replica in lagging):
        names = ", ".join(str(replica) for replica in lagging if replica != broker_id)
        yield _check(servers, "--under-replicated-partitions", "nothing", f"wait until {names} is in sync")
    if not broker.fenced:
        yield _stop(broker_id)
        at_once = "only the partitions above" if held else "nothing"
        yield _check(servers, "--unavailable-partitions", at_once)
    yield PlanStep(f"start {broker_id}", f"bin/kafka-server-start.sh -daemon broker-{broker_id}.properties")
    expect = f"nothing that mentions {broker_id}, before you restart the next broker"
    yield _check(servers, "--under-replicated-partitions", expect)


def removal_steps(
    quorum: CapturedQuorum, image: Image, broker: Broker, held: Sequence[Partition]
) -> Iterator[PlanStep]:
    """Move its replicas, remove it from the voters, stop it, unregister it."""
    broker_id = broker.broker_id
    servers = bootstrap_server(image, broker_id)
    if held:
        yield from _reassign(image, broker_id, held, servers)
    if quorum.voter_of(broker_id) is not None:
        yield PlanStep(f"remove {broker_id} from the voters", f"kraftlake plan remove {broker_id} ...")
    if not broker.fenced:
        yield _stop(broker_id)
    yield PlanStep(
        "unregister it",
        f"bin/kafka-cluster.sh unregister {bootstrap(quorum, broker_id)} --id {broker_id}",
        f"Broker {broker_id} is no longer registered. A running or restarted broker is not kept out",
    )


def _reassign(image: Image, broker_id: int, held: Sequence[Partition], servers: str) -> Iterator[PlanStep]:
    file = f"remove-broker-{broker_id}.json"
    tool = f"bin/kafka-reassign-partitions.sh {servers} --reassignment-json-file {file}"
    moved = move_off(image, broker_id, held)
    if moved.stuck:
        yield PlanStep(
            f"start another broker, or lower the replication factor: too few active brokers are left for "
            f"{partition_words(moved.stuck)}; then plan again"
        )
    if moved.moves:
        yield PlanStep("write the new assignment", f"echo {quote(moved.json)} > {file}")
        yield PlanStep("move them", f"{tool} {execute_option(image)}")
        yield PlanStep("wait", f"{tool} --verify", "each reassignment is completed")


def _stop(broker_id: int) -> PlanStep:
    return PlanStep(
        f"stop {broker_id} by a controlled shutdown (no kill -9)",
        f"bin/kafka-server-stop.sh --node-id={broker_id}",
    )


def _check(servers: str, which: str, expect: str, what: str = "check") -> PlanStep:
    return PlanStep(what, f"bin/kafka-topics.sh {servers} --describe {which}", expect)


def bootstrap_server(image: Image, broker_id: int) -> str:
    """--bootstrap-server with the active brokers but this one."""
    brokers = sorted((b for _, b in image.tables.items(BROKERS)), key=lambda b: b.broker_id)
    ends = [end for b in brokers if b.is_active and b.broker_id != broker_id for end in b.endpoints[:1]]
    servers = ",".join(address_text(end.host, end.port) for end in ends)
    return f"--bootstrap-server {quote(servers or 'HOST:PORT')}"
