"""The metadata of an earlier moment, with what a restart needs of the newest.

Topics, configs, rights, users and quotas are those of the moment. A broker's registration is always its
newest: its epoch is compared with what the broker noted when it stopped, and one that differs makes it leave
every ISR. Replicas and ISRs are the newest, too, unless asked for otherwise: the messages lie there, and an
ISR of the moment may name a broker that lacks messages acknowledged since.
"""

from __future__ import annotations

from kraft_core.image.change import Change
from kraft_core.image.differences import differences
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, FEATURES, PARTITIONS, ZK_MIGRATION
from kraft_core.restore.checkpoint import UnwritableError
from kraft_core.restore.request import Placement

_NEVER_TRIED = (FEATURES, ZK_MIGRATION)


def placed(earlier: Image, newest: Image, placement: Placement) -> Image:
    """The metadata to restore. newest: at the end of the same log.

    Raises UnwritableError where a feature level has changed since: a cluster was never seen to go back.
    """
    for found in differences(earlier, newest):
        if found.kind in _NEVER_TRIED:
            raise UnwritableError(
                f"{found.kind} {found.key[0]} has changed since that moment: reverting it has not been tested"
            )
    made = earlier.copy()
    for key, broker in newest.tables.items(BROKERS):
        made.tables.put(Change(BROKERS, key, broker))
    if placement == "newest":
        for key, _ in list(earlier.tables.items(BROKERS)):
            made.tables.put(Change(BROKERS, key, newest.tables.get(BROKERS, key)))
        for key, _ in list(earlier.tables.items(PARTITIONS)):
            kept = newest.tables.get(PARTITIONS, key)
            if kept is not None:
                made.tables.put(Change(PARTITIONS, key, kept))
    return made
