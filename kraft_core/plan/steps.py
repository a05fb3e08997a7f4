"""The steps of an action with Kafka's own commands: the scenarios of KIP-853 as Kafka implements them.

Disk failure: Kafka identifies voters by id when one is added, so the old directory is removed first (the KIP
adds first; the answer would be DUPLICATE_VOTER). Node failure: the new node is added, then the old one
removed. Changed endpoints: the voter reports them itself after its restart (UpdateRaftVoter).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from kraft_core.addresses import address_text
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import COUNTED, CapturedQuorum
from kraft_core.plan.feature_support import directories_not_known
from kraft_core.plan.parts import directory_of, fresh_directory
from kraft_core.plan.verdict import Verdict
from kraft_core.plan.verdicts import Judged, lagging
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import Endpoint

QUORUM_TOOL = "bin/kafka-metadata-quorum.sh"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What to do, with which command (None: by hand), and what to check before the next step."""

    what: str
    command: str | None = None
    expect: str | None = None


CAPTURE = "kraftlake capture METADATA_LOG_DIR --to FOLDER"
CAPTURE_MORE = PlanStep(
    "capture what is missing, quorum-state after the log",
    CAPTURE,
    "plan again, and continue only if it is SAFE",
)
_CAPTURE_DIRECTORIES = PlanStep(
    "capture the log directory of every voter: it has the directory id",
    CAPTURE,
    "plan again with --captures FOLDER, and continue only if it is SAFE",
)


def steps(quorum: CapturedQuorum, action: Action, judged: Judged) -> tuple[PlanStep, ...]:
    """The remaining steps of an action, as of the captures; if it is not safe, what to do first."""
    match judged.verdict.name:
        case "refused":
            return tuple(_first(quorum, action, judged.verdict))
        case "unsafe":
            return tuple(_bring_back(quorum, action))
        case "not_known":
            return tuple(_know_more(quorum, action))
        case "safe":
            return tuple(_steps(quorum, action))


def _steps(quorum: CapturedQuorum, action: Action) -> Iterator[PlanStep]:
    match action:
        case Add():
            yield from _add(quorum, action.node_id, action.directory_id)
        case Remove():
            yield from _remove(quorum, action.node_id, action.directory_id)
        case Replace():
            yield from _replace(quorum, action)
        case Update():
            yield from _update(quorum, action)
        case UpgradeKRaftVersion():
            yield from _upgrade(quorum, action.level)
        case Lose():
            yield _check(quorum, "--status", "a leader, and a rising HighWatermark", *action.node_ids)


def _bring_back(quorum: CapturedQuorum, action: Action) -> Iterator[PlanStep]:
    """Before an unsafe change. A loss that has happened is only looked at."""
    if isinstance(action, Lose):
        yield from _steps(quorum, action)
        return
    behind = ", ".join(str(member.key.id) for member in lagging(quorum))
    what = f"bring back {behind}; then plan again" if behind else "do not do this: nothing would commit"
    yield PlanStep(what)
    yield _check(quorum, "--replication", "Lag 0 for a majority of the voters")


def _know_more(quorum: CapturedQuorum, action: Action) -> Iterator[PlanStep]:
    """What harms nothing and what to capture; the rest is planned again once the verdict is known."""
    joining = action.node_id if isinstance(action, Add) else None
    joining = action.successor if isinstance(action, Replace) else joining
    if joining is not None and not any(not member.is_voter for member in quorum.members_of(joining)):
        yield from _format_and_start(quorum, joining)
        yield _caught_up(quorum, joining, None)
    if not quorum.is_live:
        yield CAPTURE_MORE
    elif isinstance(action, UpgradeKRaftVersion) and directories_not_known(quorum):
        yield _CAPTURE_DIRECTORIES
    else:
        yield PlanStep(
            "start the nodes that the leader lacks, or wait until they have caught up; then ask it again",
            f"kraftlake plan --live {servers(quorum)} ...",
            "continue only if it is SAFE",
        )


def _add(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> Iterator[PlanStep]:
    if not any(not member.is_voter for member in quorum.members_of(node_id)):
        yield from _format_and_start(quorum, node_id)
    yield _caught_up(quorum, node_id, directory_id)
    yield from _addition(quorum, node_id)


def _first(quorum: CapturedQuorum, action: Action, verdict: Verdict) -> Iterator[PlanStep]:
    """What to do about a refusal; nothing if the action itself is invalid."""
    if verdict.error is ErrorCode.REQUEST_TIMED_OUT:
        behind = ", ".join(str(member.key.id) for member in lagging(quorum))
        who = f"bring back {behind}, so that" if behind else "wait until"
        yield PlanStep(f"{who} the pending change commits; then plan again")
        yield _check(quorum, "--replication", "Lag 0 for a majority of the voters")
    elif verdict.error is ErrorCode.INVALID_REQUEST and isinstance(action, Update) and quorum.leader:
        names = ",".join(end.name for end in quorum.endpoints_of(quorum.leader.id)[:1])
        yield PlanStep(
            f"keep listener {names}, which the leader uses to reach its voters, beside the new one"
        )
    elif verdict.error is ErrorCode.DUPLICATE_VOTER and isinstance(action, Add):
        yield PlanStep("to give this voter another disk", f"kraftlake plan replace {action.node_id} ...")
    elif verdict.error is ErrorCode.INVALID_UPDATE_VERSION and quorum.kraft_version == 0:
        yield PlanStep("upgrade what does not support it, or unregister it if it is gone; then plan again")
    elif verdict.error is ErrorCode.UNSUPPORTED_VERSION:
        yield PlanStep("finalize kraft.version 1 first", "kraftlake plan upgrade-kraft-version ...")


def _caught_up(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> PlanStep:
    directory = directory_id or fresh_directory(quorum, node_id) or "its new directory"
    return _check(quorum, "--replication", f"{node_id} with {directory} is an Observer with Lag 0", node_id)


def _addition(quorum: CapturedQuorum, node_id: int) -> Iterator[PlanStep]:
    yield PlanStep(
        f"make {node_id} a voter",
        f"{QUORUM_TOOL} --command-config {config(node_id)} {bootstrap(quorum, node_id)} add-controller",
        f"Added controller {node_id}",
    )
    yield _check(quorum, "--status", f"CurrentVoters lists {node_id}", node_id)


def _format_and_start(quorum: CapturedQuorum, node_id: int) -> Iterator[PlanStep]:
    yield PlanStep(
        f"format the empty disk of {node_id}, as an observer",
        f"bin/kafka-storage.sh format --cluster-id {quote(quorum.cluster_id)} --config {config(node_id)} "
        "--no-initial-controllers",
    )
    yield PlanStep(f"start {node_id}", f"bin/kafka-server-start.sh -daemon {config(node_id)}")


def _remove(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> Iterator[PlanStep]:
    yield PlanStep(
        f"set controller.quorum.auto.join.enable=false on {node_id}, if it is true, and restart it",
        expect="otherwise it adds itself again",
    )
    yield _removal(quorum, node_id, directory_id)
    yield _check(quorum, "--status", f"CurrentVoters no longer lists {node_id}", node_id)
    yield PlanStep(f"stop {node_id}", f"bin/kafka-server-stop.sh --node-id={node_id}")


def _removal(quorum: CapturedQuorum, node_id: int, directory_id: str | None) -> PlanStep:
    directory = directory_of(quorum, node_id, directory_id, voter=True) or "DIRECTORY_ID"
    return PlanStep(
        f"remove {node_id} with directory {directory} from the voters",
        f"{QUORUM_TOOL} {bootstrap(quorum, node_id)} remove-controller --controller-id {node_id} "
        f"--controller-directory-id {directory}",
        f"Removed KRaft controller {node_id}",
    )


def _replace(quorum: CapturedQuorum, action: Replace) -> Iterator[PlanStep]:
    node_id, successor = action.node_id, action.successor
    if successor is None:
        if fresh_directory(quorum, node_id) is None:
            yield PlanStep(f"stop {node_id} and give it an empty disk")
            yield from _format_and_start(quorum, node_id)
        yield _caught_up(quorum, node_id, None)
        yield _removal(quorum, node_id, None)
        yield from _addition(quorum, node_id)
        return
    yield from _add(quorum, successor, None)
    yield _removal(quorum, node_id, None)
    yield _check(quorum, "--status", f"CurrentVoters lists {successor}, and no longer {node_id}", node_id)


def _update(quorum: CapturedQuorum, action: Update) -> Iterator[PlanStep]:
    """A listener of another name is added everywhere before it becomes the first (KIP-853)."""
    node_id = action.node_id
    known = {end.name for end in quorum.endpoints_of(node_id)}
    fresh = [end for end in action.endpoints if end.name not in known]
    listeners = ",".join(map(str, action.endpoints))
    if fresh and known:
        yield from _listener_change(quorum, fresh[0], sorted(known))
        return
    yield PlanStep(f"on {node_id}, set advertised.listeners={listeners} in {config(node_id)}")
    yield from _restart(quorum, node_id)
    yield _check(quorum, "--status", f"CurrentVoters has {listeners} for {node_id}", node_id)


def _listener_change(quorum: CapturedQuorum, fresh: Endpoint, known: list[str]) -> Iterator[PlanStep]:
    names = [*known, fresh.name]
    everyone = [voter.key.id for voter in quorum.voters.voters] if quorum.voters else []
    rounds = (
        (f"add {fresh.name} to listeners and the protocol map; controller.listener.names={','.join(names)}"),
        (f"put it first: controller.listener.names={','.join([fresh.name, *known])}"),
    )
    for what in rounds:
        for node_id in everyone:
            yield PlanStep(f"on {node_id}, {what}")
            yield from _restart(quorum, node_id)
    yield PlanStep(
        f"on each broker, controller.listener.names={fresh.name}, and its port in "
        "controller.quorum.bootstrap.servers; restart one by one"
    )
    for node_id in everyone:
        yield PlanStep(f"on {node_id}, remove {','.join(known)}; controller.listener.names={fresh.name}")
        yield from _restart(quorum, node_id)
    yield _check(quorum, "--status", f"CurrentVoters has {fresh.name} for every voter")


def _restart(quorum: CapturedQuorum, node_id: int) -> Iterator[PlanStep]:
    yield PlanStep(f"stop {node_id}", f"bin/kafka-server-stop.sh --node-id={node_id}")
    yield PlanStep(f"start {node_id}", f"bin/kafka-server-start.sh -daemon {config(node_id)}")
    yield _check(quorum, "--replication", f"{node_id} is a Follower with Lag 0 before the next one", node_id)


def _upgrade(quorum: CapturedQuorum, level: int) -> Iterator[PlanStep]:
    features = f"bin/kafka-features.sh {bootstrap(quorum)}"
    if quorum.kraft_version != level:
        yield PlanStep("check that every broker and controller supports it", f"{features} describe")
        yield PlanStep(f"finalize {level}", f"{features} upgrade --feature kraft.version={level}")
    yield _check(quorum, "--status", "CurrentVoters shows directory ids")


def _check(quorum: CapturedQuorum, what: str, expect: str, *without: int) -> PlanStep:
    return PlanStep("check", f"{QUORUM_TOOL} {bootstrap(quorum, *without)} describe {what}", expect)


def config(node_id: int) -> str:
    """The name of a controller's configuration file in the plan."""
    return f"controller-{node_id}.properties"


def bootstrap(quorum: CapturedQuorum, *without: int) -> str:
    """The option of Kafka's tools: the voters in sync, without those that the action changes."""
    return f"--bootstrap-controller {servers(quorum, *without)}"


def servers(quorum: CapturedQuorum, *without: int) -> str:
    """The addresses of the voters in sync, quoted for a shell."""
    up = [m.key.id for m in quorum.members if m.is_voter and m.standing in COUNTED]
    ends = [end for node_id in up if node_id not in without for end in quorum.endpoints_of(node_id)[:1]]
    return quote(",".join(address_text(end.host, end.port) for end in ends) or "HOST:PORT")
