"""rpc: raft requests, the receiver's recorded state, and Kafka's response, field by field.

Where the recorded state leaves several responses open, the recorded one must be among them, and the line is
counted under the name of what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.protocol.errors import ErrorCode, ProtocolFault
from kraft_core.protocol.membership import TIMED_OUT
from kraft_core.protocol.messages import FetchResponse, RaftMessage, Response
from kraft_core.protocol.replica import Replica
from kraft_core.protocol.step import RESPONSES, Received, step
from tests.conformance.rpc_json import Json, json_of, request_of
from tests.conformance.rpc_receivers import Logs, Receivers, recorded_logs
from tests.conformance.tally import Tally
from tests.conformance.trace import Line

ADMIN = -9
NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
EPOCH_FIELDS = ("leaderEpoch", "replicaEpoch", "currentLeaderEpoch")
ADDRESS_FIELDS = (".host", ".port")
DIFFERS = "differs"
NO_LOG = "the receiver's log is not recorded"
LATER = "answered by what came later"
ADDRESS = "the leader's address as the receiver learnt it"
LOG_APIS = ("Fetch", "FetchSnapshot", "Vote")
CHANGED = "the receiver's state had changed before it answered"
CHANGE_OUTCOMES = (
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


def compare(lines: Iterable[Line], cluster: Iterable[Line] = ()) -> Tally:
    """Every line; `cluster` is the cluster trace of the same run, for the receivers' logs."""
    tally = Tally()
    rpcs = list(lines)
    logs: Logs = recorded_logs(cluster)
    receivers = Receivers(logs)
    for line in rpcs:
        receivers.learn(line)
    for line in rpcs:
        tally.step(line["api"])
        if isinstance(line["resp"], str):  # recorders of before could not write an error of FetchSnapshot
            tally.leave_out(f"{line['api']}: its response could not be written")
        else:
            _compare_line(tally, receivers, line)
    return tally


@dataclass(frozen=True, slots=True)
class Outcome:
    """The response at once, or, of a parked Fetch, the one at its deadline; neither: it waits for others."""

    at_once: Json | None
    at_deadline: Json | None = None


def _compare_line(tally: Tally, receivers: Receivers, line: Line) -> None:
    place = f"case {line['case']} event {line['i']} {line['from']} to {line['to']} {line['api']}"
    expected = flat(line["resp"])
    outcomes = outcomes_of(receivers, line)
    reason = _why_not_equal(line, outcomes, expected)
    if reason is None:
        tally.compare_all(place, outcomes[0].at_once or outcomes[0].at_deadline or {}, expected)
        return
    if reason == DIFFERS:
        reason = _explained(receivers, line, outcomes, expected)
    if reason is None:
        tally.compare_all(place, outcomes[0].at_once or {}, expected)
    else:
        tally.leave_out(f"{line['api']}: {reason}")


def outcomes_of(receivers: Receivers, line: Line) -> list[Outcome]:
    """What each completion of the receiver answers, each kind once."""
    source = ADMIN if line["from"] == "admin" else int(line["from"][1:])
    message = RaftMessage(source, line["to"], 0, request_of(line["api"], line["req"]))
    outcomes: list[Outcome] = []
    for replica in receivers.completions(line):
        outcome = _outcome(replica, message)
        if outcome not in outcomes:
            outcomes.append(outcome)
    return outcomes


def _outcome(replica: Replica, message: RaftMessage) -> Outcome:
    try:
        after = step(replica, Received(message))
    except ProtocolFault as fault:
        return Outcome({"fault": str(fault)})
    for sent in after.messages:
        if sent.destination == message.source and isinstance(sent.body, RESPONSES):
            return Outcome(flat(json_of(_as_mock_log(sent.body))))
    if after.replica.parked:
        return Outcome(None, flat(json_of(after.replica.parked[-1].empty)))
    return Outcome(None)


def _as_mock_log(response: Response) -> Response:
    """The traces' log, Kafka's MockLog, hands out at most two batches."""
    return (
        replace(response, batches=response.batches[:2]) if isinstance(response, FetchResponse) else response
    )


def _why_not_equal(line: Line, outcomes: list[Outcome], expected: Json) -> str | None:
    """None where the recorded state determines the recorded response, DIFFERS where it excludes it."""
    answers = [outcome.at_once or outcome.at_deadline for outcome in outcomes]
    if answers == [expected]:
        return None
    if expected in answers:
        known = [answer for answer in answers if answer is not None]
        fields = {name for one in known for name in {*one, *expected} if one.get(name) != expected.get(name)}
        return f"open is {', '.join(sorted({name.rsplit('.', 1)[-1] for name in fields})) or 'when'}"
    if any(outcome.at_once is None for outcome in outcomes) and _is_later_answer(line):
        return LATER
    return DIFFERS


def _is_later_answer(line: Line) -> bool:
    """Whether a request that had to wait can have been answered so: a change of voters not by a refusal."""
    response = line["resp"]
    if line["api"] == "Fetch":
        return response["responses"][0]["partitions"][0]["errorCode"] in CHANGE_OUTCOMES
    text = response.get("errorMessage") or TIMED_OUT
    return response["errorCode"] in CHANGE_OUTCOMES and (text == TIMED_OUT or "lagging behind" in text)


def _explained(receivers: Receivers, line: Line, outcomes: list[Outcome], expected: Json) -> str | None:
    """The name of what is missing where the recorded state cannot be the one that answered."""
    if _differs_in_address(receivers, line, outcomes, expected):
        return ADDRESS
    if _is_of_another_state(line):
        return CHANGED
    for later in receivers.states_within_event(line):
        if _why_not_equal(later, outcomes_of(receivers, later), expected) != DIFFERS:
            return CHANGED
    return NO_LOG if line["api"] in LOG_APIS and not receivers.has_log(line) else None


def _is_of_another_state(line: Line) -> bool:
    """Whether nobody in the recorded role and epoch answers so: a higher epoch, a leader no longer."""
    epochs = [value for name, value in flat(line["resp"]).items() if name.endswith("leaderEpoch")]
    asked = [value for name, value in flat(line["req"]).items() if name.endswith(EPOCH_FIELDS)]
    gone = line["receiver"]["role"] == "leader" and line["resp"]["errorCode"] == NOT_LEADER
    if flat(line["resp"]).get("topics.0.partitions.0.errorCode") == ErrorCode.INVALID_REQUEST:
        asked = []  # what is refused so raises no epoch
    return gone or max(epochs, default=-1) > max(line["receiver"]["epoch"], *asked, -1)


def _differs_in_address(receivers: Receivers, line: Line, outcomes: list[Outcome], expected: Json) -> bool:
    """Whether the leader is named by another address that it is known by, and nothing else differs.

    Of voters no line has the address: a leader whose request lacks it is named as the voter set has it.
    """
    leader = expected.get("nodeEndpoints.0.nodeId", line["receiver"]["leader"])
    addresses = {(end.host, end.port) for end in receivers.addresses_of(line["case"], leader)}
    found = {name.rsplit(".", 1)[-1]: expected[name] for name in expected if name.endswith(ADDRESS_FIELDS)}
    if (found.get("host"), found.get("port")) not in addresses:
        return False
    answers = (outcome.at_once or outcome.at_deadline or {} for outcome in outcomes)
    return _without_address(expected) in map(_without_address, answers)


def _without_address(answer: Json) -> Json:
    return {name: value for name, value in answer.items() if not name.endswith(ADDRESS_FIELDS)}


def flat(json: Any, name: str = "") -> Json:
    """The leaves of a JSON value by path."""
    if isinstance(json, dict):
        items = json.items()
    elif isinstance(json, list):
        items = enumerate(json)
    else:
        return {name: json}
    leaves = {}
    for key, value in items:
        leaves |= flat(value, f"{name}.{key}" if name else str(key))
    return leaves or {name: json}
