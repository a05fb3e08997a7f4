"""The bundled captures with all that the rules read of them, describe outputs too."""

from __future__ import annotations

from functools import cache

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.findings.describe import parse_describe
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.format.controller_dir import find_controller_dirs
from tests.kraft_core.evidence.golden import CLUSTERS, GOLDEN, MOMENTS, cluster, moment
from tests.kraft_core.findings.collect_rule_facts import collect_rule_facts

EVERY = (*MOMENTS, *(f"all of {name}" for name in CLUSTERS))
SCENARIOS = tuple(dict.fromkeys(name.split("/")[0] for name in MOMENTS))


@cache
def known(name: str) -> Conclusions:
    """Of a moment, or of "all of" a cluster."""
    facts = cluster(name.removeprefix("all of ")) if name.startswith("all of ") else moment(name)
    return conclude(facts)


@cache
def observations(scenario: str) -> tuple[Observation, ...]:
    """A scenario's describe outputs: one command after the other, each of less than 10 s."""
    files = sorted((GOLDEN / scenario / "quorum").glob("*.txt"))
    started = [int(path.name.split("-")[0]) for path in files]
    found: list[Observation] = []
    for path, start, following in zip(files, started, [*started[1:], started[-1] + 10_000], strict=True):
        until = min(following, start + 10_000)
        found += parse_describe(path.name, path.read_text(), until, known_id(scenario))
    return tuple(found)


def known_id(scenario: str) -> str:
    """The cluster that a scenario is of."""
    return next(known(name).facts.cluster_id for name in MOMENTS if name.split("/")[0] == scenario)


@cache
def rule_facts() -> dict[str, RuleFacts]:
    """By cluster id, of all captures together."""
    found = collect_rule_facts(find_controller_dirs([GOLDEN]).directories)
    return {
        cluster_id: RuleFacts(
            facts.batch_conflicts,
            facts.order_faults,
            facts.unreadable,
            facts.snapshot_deviations,
            tuple(o for s in SCENARIOS if known_id(s) == cluster_id for o in observations(s)),
            facts.replay_refusals,
        )
        for cluster_id, facts in found.items()
    }


@cache
def findings(name: str) -> tuple[Finding, ...]:
    """What the rules say of a moment, or of all captures of a cluster, and its describe outputs."""
    conclusions = known(name)
    return tuple(judge(conclusions, rule_facts()[conclusions.facts.cluster_id]))
