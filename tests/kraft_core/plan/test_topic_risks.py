"""What the risks of new partitions say holds for every placement that Kafka may draw."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS
from kraft_core.plan.topic_risks import fewest_in_sync
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import ControllerFile
from kraft_core.topic_control.java import JavaRandom
from kraft_core.topic_control.placement import place

# Rack, and whether it is fenced, or active, or in controlled shutdown without the controller's knowledge.
BROKER = st.tuples(
    st.sampled_from((None, "a", "b", "c")), st.sampled_from(("up", "up", "fenced", "stopping"))
)


@given(
    st.lists(BROKER, min_size=1, max_size=9), st.integers(1, 5), st.integers(1, 40), st.integers(0, 1 << 48)
)
def test_no_placement_has_fewer_replicas_in_sync(
    brokers: list[tuple[str | None, str]], replicas: int, partitions: int, seed: int
) -> None:
    image = Image()
    for nth, (rack, state) in enumerate(brokers):
        made = Broker(nth, 7, "i", (), (), rack, state == "fenced", state == "stopping", False, (), None)
        image.tables.put(Change(BROKERS, (nth,), made))
    controller = ActiveController(image, 99, ControllerFile({}), JavaRandom(seed))
    usable = controller.usable_brokers()
    if replicas > len(usable) or all(broker.fenced for broker in usable):
        return
    least = fewest_in_sync(controller, replicas, partitions)
    for placed in place(usable, partitions, replicas, controller.chooser):
        assert len(controller.in_sync(placed)) >= least
