"""kraftlake plan: would Kafka accept a change now, what would follow, and what are the steps?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jobs.arguments import (
    EPOCH,
    AddValues,
    add_evidence_age,
    add_format,
    add_identity,
    must_take_its_options,
    now_of,
)
from jobs.plan_captures import must_be_one_source, plan_captured
from jobs.plan_format import FORMAT_OPTIONS, add_format_arguments
from jobs.plan_format import run as run_format
from jobs.plan_questions import (
    Answered,
    add_broker_dirs,
    finish_migration,
    load,
    start_broker,
    stop_broker,
    upgrade,
)
from jobs.plan_text import listed, risk_words, risks_and_steps, step_lines, steps_title
from jobs.plan_topics import TOPIC_OPTIONS, add_options, topic
from jobs.quorum.living import add_live, from_living
from jobs.runtime.evidence_age import EvidenceAge
from jobs.runtime.lakes import lake_folder
from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_answer, print_line
from jobs.time_travel.moment import iso
from kraft_core.addresses import parse_address
from kraft_core.evidence.facts import label
from kraft_core.format.capture import STATED_SOURCES
from kraft_core.messages.uuid_text import random_uuid
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.raft.voters import Endpoint
from kraft_core.wording import count

if TYPE_CHECKING:
    from kraft_core.plan.captured_quorum import CapturedQuorum
    from kraft_core.plan.plan import Plan
    from kraft_core.plan.standings import Member
    from kraft_core.plan.verdicts import Side

EXAMPLES = """examples:
  kraftlake plan remove 3 --captures /backup/controllers
  kraftlake plan add 4 --lake /data/lake --cluster iWP35uOsShu1pFlBJh_E7w
  kraftlake plan replace 2 --captures /backup/controllers
  kraftlake plan replace 2 --by 4 --captures /backup/controllers --format json
  kraftlake plan update 2 --endpoint CONTROLLER://host-7:9093 --lake /data/lake
  kraftlake plan upgrade-kraft-version --captures /backup/controllers
  kraftlake plan lose 1 2 --captures /backup/controllers
  kraftlake plan --live h1:9093,h2:9093,h3:9093 remove 3
  kraftlake plan upgrade metadata.version 4.4 --captures /backup/controllers
  kraftlake plan release 4.4 --lake /data/lake
  kraftlake plan restart-broker 2 --captures /backup/controllers
  kraftlake plan remove-broker 2 --lake /data/lake
  kraftlake plan start-broker 2 --broker-dirs /data/kafka-1 /data/kafka-2 --captures /backup/controllers
  kraftlake plan finish-migration --captures /backup/controllers
  kraftlake plan load 4.4.0 --captures /backup/controllers
  kraftlake plan topic create orders --partitions 6 --replication-factor 3 --captures /backup/controllers
  kraftlake plan topic add-partitions orders --partitions 12 --seed 7 --lake /data/lake
  kraftlake plan topic configure orders --add-config min.insync.replicas=2 --lake /data/lake
  kraftlake plan topic delete orders clicks --controller-config controller.properties --captures /backup
  kraftlake plan topic elect orders:0 orders:3 --election-type unclean --captures /backup/controllers
  kraftlake plan topic reassign orders:0=1,2,3 orders:1=2,3,1 --captures /backup/controllers
  kraftlake plan format iWP35uOsShu1pFlBJh_E7w --server-properties server.properties --standalone
  kraftlake plan random-uuid

The answer holds for the time of the captures; if they are older than a day, what was safe is SAFE AS OF that
time. plan does not start Spark.
exit codes: 0 safe, 1 safe as of, risky, unsafe, refused or not known; 2 wrong usage, 3 nothing readable;
5 load is refused"""


# Other questions: how each is answered, its words, and what it does.
QUESTIONS: dict[str, tuple[Callable[[argparse.Namespace], Answered], str, str]] = {
    "upgrade": (upgrade, "FEATURE LEVEL", "finalize a level of a feature, or downgrade to it"),
    "release": (upgrade, "RELEASE", "finalize every feature of a release"),
    "start-broker": (start_broker, "ID", "start a broker on its log directories"),
    "restart-broker": (stop_broker, "ID", "stop a broker and start it again"),
    "remove-broker": (stop_broker, "ID", "stop a broker for good and unregister it"),
    "topic": (
        topic,
        "create|add-partitions|configure|delete|elect|reassign NAME...",
        "create topics, or change or delete them",
    ),
    "finish-migration": (finish_migration, "", "finish a migration from ZooKeeper"),
    "load": (load, "RELEASE", "start a release on these logs and checkpoints"),
}
# What each action does, and the least and greatest number of nodes it takes (None: any number).
ACTIONS: dict[str, tuple[str, int, int | None]] = {
    "add": ("make an observer a voter", 1, 1),
    "remove": ("make a voter an observer", 1, 1),
    "update": ("restart a voter with new endpoints", 1, 1),
    "replace": ("replace a lost voter with a new disk or another node", 1, 1),
    "upgrade-kraft-version": ("finalize a level of kraft.version", 0, 0),
    "lose": ("assess the loss of these nodes", 1, None),
}


# The actions that take an option.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "directory_id": ("add", "remove"),
    "by": ("replace",),
    "level": ("upgrade-kraft-version",),
    "endpoint": ("update",),
    "broker_dirs": ("start-broker",),
    **dict.fromkeys((*TOPIC_OPTIONS, "controller_config"), ("topic",)),
    **dict.fromkeys(FORMAT_OPTIONS, ("format",)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    summaries = {name: text for name, (text, _, _) in ACTIONS.items()}
    summaries |= {name: text for name, (_, _, text) in QUESTIONS.items()}
    summaries["format"] = "format a node's log directories, as kafka-storage does"
    summaries["random-uuid"] = "print a new cluster or directory id, as kafka-storage does"
    actions = "; ".join(f"{name}: {text}" for name, text in summaries.items())
    parser.add_argument("action", choices=tuple(summaries), metavar="ACTION", help=actions)
    taken = [f"{name}: {words}" for name, (_, words, _) in QUESTIONS.items() if words]
    words = ", ".join([*taken, "format: CLUSTER_ID"])
    parser.add_argument("words", nargs="*", metavar="WORD", help=f"node ids; {words}")
    parser.add_argument(
        "--captures",
        type=local_path,
        action=AddValues,
        metavar="PATH",
        help="captured directories; repeatable",
    )
    parser.add_argument(
        "--lake", type=lake_folder, metavar="PATH", help="folder of a lake, instead of --captures"
    )
    add_live(parser)
    add_identity(parser)
    add_format(parser, "text", "json")
    add_evidence_age(parser)
    quorum = parser.add_argument_group("changes of the quorum")
    quorum.add_argument("--directory-id", metavar="ID", help="add, remove: directory of the node")
    quorum.add_argument("--by", type=int, metavar="NODE", help="replace: by this node instead of a new disk")
    quorum.add_argument("--level", type=int, metavar="N", help="upgrade-kraft-version (default: 1)")
    quorum.add_argument(
        "--endpoint",
        type=endpoint,
        action="append",
        default=[],
        metavar="NAME://HOST:PORT",
        help="update: a listener of the voter; repeat it for every listener",
    )
    add_options(parser)
    add_broker_dirs(parser)
    add_format_arguments(parser)


def endpoint(text: str) -> Endpoint:
    """NAME://HOST:PORT."""
    name, _, address = text.partition("://")
    place = parse_address(address)
    if not name or place is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an endpoint such as CONTROLLER://host-1:9093")
    return Endpoint(name, *place)


def action_of(args: argparse.Namespace) -> Action:
    """The action to plan. Raises Failure for an incomplete one."""
    _, least, most = ACTIONS[args.action]
    nodes = [int(word) for word in args.words if word.isdecimal()]
    if len(nodes) < len(args.words):
        wrong = next(word for word in args.words if not word.isdecimal())
        raise Failure(f"{wrong!r} is not a node id; see the examples of --help")
    if not least <= len(nodes) <= (len(nodes) if most is None else most):
        takes = {0: "no node", 1: "one node", None: "one node or more"}[most]
        raise Failure(f"{args.action} takes {takes}; see the examples of --help")
    if args.action == "update" and not args.endpoint:
        raise Failure("update takes the new --endpoint, such as CONTROLLER://host-1:9093")
    match args.action:
        case "add":
            return Add(nodes[0], args.directory_id)
        case "remove":
            return Remove(nodes[0], args.directory_id)
        case "update":
            return Update(nodes[0], tuple(args.endpoint))
        case "replace":
            return Replace(nodes[0], args.by)
        case "lose":
            return Lose(tuple(nodes))
        case _:
            return UpgradeKRaftVersion(1 if args.level is None else args.level)


def run(args: argparse.Namespace) -> int:
    """Print the plan. Raises Failure."""
    must_take_its_options(args, OPTIONS)
    must_be_one_source(args)
    if args.action == "format":
        return run_format(args)
    if args.action == "random-uuid":
        return _print_uuid(args)
    if args.action in QUESTIONS:
        return _run_question(args)
    action = action_of(args)
    made, unread = (_plan_living(args, action), []) if args.live else plan_captured(args, action)
    age = evidence_age(made.quorum, args)
    print_answer(
        args.format,
        lambda: as_json(made) | _age_fields(made, age) | {"unread": unread},
        lines(made, age, unread),
    )
    is_safe = age.verdict_now(made.judged.verdict.name) == "safe"
    return ExitCode.FINE if is_safe else ExitCode.FOUND


def _plan_living(args: argparse.Namespace, action: Action) -> Plan:
    # What concludes and plans is imported late: help, and what is wrong with a command, comes first.
    from kraft_core.plan.plan import plan

    return plan(from_living(args), action)


def _print_uuid(args: argparse.Namespace) -> int:
    if args.words:
        raise Failure("random-uuid takes no words")
    made = random_uuid()
    print_line(json_line({"uuid": made}) if args.format == "json" else made)
    return ExitCode.FINE


def _run_question(args: argparse.Namespace) -> int:
    """Print the answer to a question that is not about voters."""
    answer, quorum, unread, copied_at = QUESTIONS[args.action][0](args)
    from jobs.plan_answer import show_answer

    # Of start-broker, copies of the broker's directories may be older than the captures.
    age = evidence_age(quorum, args, copied_at)
    refused = ExitCode.WILL_NOT_LOAD if args.action == "load" else ExitCode.FOUND
    return show_answer(answer, quorum, age, unread, args.format, refused)


def evidence_age(
    quorum: CapturedQuorum, args: argparse.Namespace, copied_at: int | None = None
) -> EvidenceAge:
    """The age of the captures that count; if none does, of the log that the others are compared with.

    copied_at (ms): of the oldest other evidence, None if there is none.
    """
    ms, source = quorum.evidence_from, None
    if ms is None:
        ms = quorum.as_of
        source = None if quorum.as_of_source in STATED_SOURCES else quorum.as_of_source
    ms = ms if copied_at is None else min(ms, copied_at)
    known_at = EPOCH + timedelta(milliseconds=ms)
    return EvidenceAge(known_at, now_of(args), args.max_evidence_age_hours, source)


def _age_fields(made: Plan, age: EvidenceAge) -> dict[str, Any]:
    """What the age of the evidence adds to the JSON answer, or changes in it."""
    return {
        "verdict": age.verdict_now(made.judged.verdict.name),
        "reason": age.reason_now(made.judged.verdict.name, made.judged.verdict.reason),
        "evidence_from": made.quorum.evidence_from,
        "is_evidence_old": age.is_old,
        "evidence_age": age.sentence,
    }


def lines(made: Plan, age: EvidenceAge, unread: Sequence[str]) -> Iterator[str]:
    """The plan as text. unread: files that could not be read."""
    quorum, judged = made.quorum, made.judged
    name = age.verdict_now(judged.verdict.name)
    words = name.replace("_", " ").upper() + (
        f" {iso(quorum.evidence_from or 0)}" if name == "safe_as_of" else ""
    )
    yield f"{words}: {age.reason_now(judged.verdict.name, judged.verdict.reason)}"
    yield f"  {age.sentence}"
    if judged.verdict.exception and judged.verdict.error_text:
        yield f"  Kafka's tool prints {judged.verdict.exception}: {judged.verdict.error_text}"
    if len(judged.stages) > 1:
        yield from (
            f"  {nth}. {stage.what}: {stage.verdict.name.replace('_', ' ')}; {stage.verdict.reason}"
            for nth, stage in enumerate(judged.stages, start=1)
        )
    yield f"cluster {quorum.cluster_id} {_captured(quorum)}: {_log_words(quorum, judged.high_watermarks)}"
    for when, side in (("before", judged.before), ("after", judged.after)):
        if side is not None:
            yield f"{when}: {_side_words(side)}"
    yield "replicas:"
    yield from (f"  {_member_words(member, quorum.voters is not None)}" for member in quorum.members)
    yield from listed("missing", judged.missing)
    yield from listed("not read", unread)
    yield from listed("risks", risk_words(made.risks))
    yield from step_lines(made.steps, steps_title(judged.verdict.name, name))


def _captured(quorum: CapturedQuorum) -> str:
    """When the log was captured that the others are compared with, as far as its capture states it."""
    if quorum.as_of_source in STATED_SOURCES:
        return f"at {iso(quorum.as_of)}"
    return f"at {iso(quorum.as_of)} ({quorum.as_of_source}) or later"


def _log_words(quorum: CapturedQuorum, marks: tuple[int | None, int | None]) -> str:
    """The leader and its log, as far as the captures show it."""
    leader = quorum.leader.id if quorum.leader else "unknown"
    end = quorum.log_end if quorum.leader_log_gap is None else f"at least {quorum.log_end}"
    return f"epoch {quorum.epoch}, leader {leader}, log end {end}, {_watermark_words(marks)}"


def _watermark_words(marks: tuple[int | None, int | None]) -> str:
    least, most = marks
    if least is not None and most is None:
        return f"high watermark at least {least}"
    if least is None:
        return "high watermark not known" if most is None else f"high watermark unknown or up to {most}"
    return f"high watermark {least}" if least == most else f"high watermark {least} to {most}"


def _side_words(side: Side) -> str:
    from kraft_core.plan.risks import failures

    names = ", ".join(label(key) for key in side.voters)
    spare = f"{side.spare} more may stop" if side.spare >= 0 else f"{-side.spare} too few to commit"
    hangs = f", commits need each of {', '.join(str(k.id) for k in side.hangs_on)}" if side.hangs_on else ""
    return (
        f"{count(len(side.voters), 'voter')} ({names}), majority {side.majority}, tolerates "
        f"{failures(side.tolerated_failures)}; {side.keeping_up} in sync, {spare}{hangs}"
    )


def _member_words(member: Member, voters_known: bool) -> str:
    role = "voter" if member.is_voter else "observer" if voters_known else "role not known"
    end = f", log end {member.end_offset}" if member.end_offset is not None else ""
    return f"{label(member.key)} {role}, {member.standing.value}: {member.words}{end}"


def as_json(made: Plan) -> dict[str, Any]:
    """The plan as JSON: stable keys, times in ms."""
    quorum, judged = made.quorum, made.judged
    verdict = judged.verdict
    return {
        "cluster_id": quorum.cluster_id,
        "as_of": quorum.as_of,
        "as_of_source": quorum.as_of_source,
        "action": asdict(made.action) | {"name": type(made.action).__name__},
        "verdict": verdict.name,
        "reason": verdict.reason,
        "error": verdict.error.name if verdict.error else None,
        "exception": verdict.exception,
        "error_message": verdict.error_text,
        "leader_epoch": quorum.epoch,
        "leader": label(quorum.leader) if quorum.leader else None,
        "log_end_offset": quorum.log_end,
        "high_watermark_at_least": judged.high_watermarks[0],
        "high_watermark_at_most": judged.high_watermarks[1],
        "missing": list(judged.missing),
        "stages": [
            {"what": stage.what, "verdict": stage.verdict.name, "reason": stage.verdict.reason}
            for stage in judged.stages
        ],
        "before": _side_json(judged.before),
        "after": _side_json(judged.after),
        "replicas": [
            {
                "replica": label(member.key),
                "is_voter": member.is_voter,
                "standing": member.standing.value,
                "log_end_offset": member.end_offset,
                "lag_records": member.lag_records,
                "lag_ms": member.lag_ms,
                "captured_at": member.stated_at,
                "time_source": member.time_source,
                "gap": member.gap,
            }
            for member in quorum.members
        ],
        **risks_and_steps(made.risks, made.steps),
    }


def _side_json(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "voters": [label(key) for key in side.voters],
        "majority": side.majority,
        "tolerated_failures": side.tolerated_failures,
        "keeping_up": side.keeping_up,
        "spare": side.spare,
        "hangs_on": [label(key) for key in side.hangs_on],
    }
