"""What the log shows of a broker and of partitions, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_core.image.brokers import Broker
from kraft_core.image.effective_configs import elr_enabled
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS
from kraft_core.plan.broker_loss import PartitionLoss
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.wording import count, first_named

_MOST_TOPICS = 20


def evidence(
    metadata: CapturedMetadata, image: Image, broker_id: int, losses: Iterable[PartitionLoss]
) -> Iterator[str]:
    """What an answer about a broker rests on."""
    found = list(losses)
    partitions = [loss.partition for loss in found]
    broker: Broker | None = image.tables.get(BROKERS, (broker_id,))
    registration = metadata.quorum.registrations.brokers.get(broker_id)
    if broker is not None:
        where = f" at offset {registration.offset}" if registration is not None else ""
        incarnation = f"incarnation {broker.incarnation_id}"
        yield f"broker {broker_id} registered{where}, {incarnation}, {broker.state_words}"
    leads = sum(each.leader == broker_id for each in partitions)
    in_sync = sum(broker_id in each.isr for each in partitions)
    holds = sum(broker_id in each.replicas for each in partitions)
    role = f"is in the ISR of {in_sync:,}, and has replicas of {holds:,} of {len(partitions):,}"
    yield f"broker {broker_id} leads {count(leads, 'partition')}, {role}"
    brokers = [each for _, each in image.tables.items(BROKERS)]
    up = sorted(each.broker_id for each in brokers if each.is_active)
    down = sorted(each.broker_id for each in brokers if not each.is_active)
    yield f"active brokers: {_ids(up)}; fenced or shutting down: {_ids(down)}"
    yield f"eligible leader replicas (KIP-966): {'on' if elr_enabled(image) else 'off'}"
    offline = [loss.partition for loss in found if loss.before.is_offline]
    if offline:
        yield f"already without a leader: {partition_words(offline)}"
    under = [loss.partition for loss in found if loss.before.is_under_min_isr]
    if under:
        yield f"already under min.insync.replicas: {partition_words(under)}"
    yield (
        f"as of offset {metadata.quorum.log_end}: a broker that stopped less than broker.session.timeout.ms "
        "(9 s by default) before that is not fenced in it yet"
    )


def partition_words(partitions: Iterable[Partition]) -> str:
    """The partitions by topic, their ids as ranges: "clicks 0-3,7, orders 1"."""
    by_topic: dict[str, list[int]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic_name, []).append(each.partition_id)
    words = [f"{topic} {_ranges(sorted(ids))}" for topic, ids in sorted(by_topic.items())]
    return first_named(words, _MOST_TOPICS)


def _ranges(ids: list[int]) -> str:
    """Ascending ids: 0, 1, 2, 5 as "0-2,5"."""
    ranges: list[tuple[int, int]] = []
    for each in ids:
        if ranges and each == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], each)
        else:
            ranges.append((each, each))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _ids(node_ids: Iterable[int]) -> str:
    return ", ".join(map(str, node_ids)) or "none"
