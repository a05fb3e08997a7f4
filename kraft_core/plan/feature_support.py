"""Whether the registered brokers and controllers support a level of kraft.version.

KIP-853, UpdateFeatures, step 2; KIP-584. Kafka's controller asks this before its raft layer checks the voters
(FeatureControlManager, QuorumFeatures): every registered broker, fenced or not, and every registered
controller must support the feature in a range that contains the level, and every voter must have registered.
The raft layer asks each voter's UpdateRaftVoter, which a leader of kraft.version 0 keeps in memory: a voter
sends it to every new leader, once it has followed it for its fetch timeout (FollowerState).
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.messages.releases import CONTROLLERS_REGISTER
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.registrations import KRAFT_VERSION, Registration
from kraft_core.plan.standings import FETCH_TIMEOUT_MS, Standing
from kraft_core.wording import length

_MAX_SHORT = 0x7FFF


def unsupported(quorum: CapturedQuorum, level: int) -> str | None:
    """Kafka's text where a registration that the captures show refuses the level; None if none does."""
    reason = next(_reasons(quorum, level), None)
    return None if reason is None else f"Invalid update version {level} for feature {KRAFT_VERSION}. {reason}"


def upgrade_gap(quorum: CapturedQuorum, level: int) -> str | None:
    """What the captures do not show of an upgrade, None if they show who supports it."""
    if quorum.kraft_version == level:
        return None
    if quorum.registrations.gap is not None:
        return f"which brokers are registered is not known: {quorum.registrations.gap}"
    if quorum.metadata_version is None:
        return "metadata.version, which decides whether controllers register, is not known"
    if quorum.leader is not None:
        registered = quorum.registration(quorum.leader.id)
        if registered is None or not registered.upgrades_kraft_version:
            return (
                f"nothing shows that leader {quorum.leader.id} runs Kafka 4.1 or newer; 3.9 answers that "
                "kraft.version was upgraded, and leaves it at 0"
            )
    return _untold(quorum) if quorum.kraft_version == 0 else None


def _untold(quorum: CapturedQuorum) -> str | None:
    """Why a voter may not have told this epoch's leader what it supports; None if all have."""
    voters = tuple(quorum.voters.voters) if quorum.voters is not None else ()
    for voter in voters:
        members = [member for member in quorum.members if voter.matches(member.key)]
        if not any(member.key == quorum.leader or quorum.is_counted(member.key) for member in members):
            words = members[0].words if members else quorum.not_seen
            return f"voter {voter.key.id} may not have told the leader that it supports it: {words}"
    election = quorum.known.elections.get(quorum.epoch)
    led_ms = 0 if election is None else quorum.as_of - election.elected_at
    if len(voters) > 1 and led_ms <= FETCH_TIMEOUT_MS:
        return (
            f"the leader had led for {length(led_ms, digits=1)}, and a voter tells it what it supports only "
            f"after its fetch timeout: {'ask' if quorum.is_live else 'capture'} again"
        )
    return None


def directories_not_known(quorum: CapturedQuorum) -> tuple[int, ...]:
    """The static voters of which all is known but their directory ids.

    The upgrade writes these into the voter set. A voter tells its leader, which keeps them in memory and does
    not report them (DescribeQuorum).
    """
    if quorum.kraft_version != 0:
        return ()
    found = [m for m in quorum.members if m.is_voter and m.standing is not Standing.NOT_KNOWN]
    return tuple(member.key.id for member in found if member.key.directory_id is None)


def _reasons(quorum: CapturedQuorum, level: int) -> Iterator[str]:
    registrations = quorum.registrations
    for broker_id, registration in sorted(registrations.brokers.items()):
        yield from _reason(f"Broker {broker_id}", registration, level)
    if quorum.metadata_version is None or quorum.metadata_version < CONTROLLERS_REGISTER:
        return
    for node_id, registration in sorted(registrations.controllers.items()):
        yield from _reason(f"Controller {node_id}", registration, level)
    if registrations.gap is None and quorum.voters is not None:
        for node_id in quorum.voters.voters.ids:
            if node_id not in registrations.controllers:
                yield f"controller {node_id} has not registered, and may not support this feature"


def _reason(who: str, registration: Registration, level: int) -> Iterator[str]:
    low, high = registration.kraft_versions or (0, 0)
    if low <= level <= high:
        return
    if high == 0:
        yield f"{who} does not support this feature."
    else:
        upper = "+" if high == _MAX_SHORT else f"-{high}"
        yield f"{who} only supports versions {low if low == high else f'{low}{upper}'}"
