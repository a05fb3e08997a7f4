"""The plan of one action on one captured quorum: verdict, risks and steps."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_core.plan.actions import Action, Lose, lost_by
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.risks import Risk, risks
from kraft_core.plan.steps import PlanStep, steps
from kraft_core.plan.verdicts import Judged, judge


@dataclass(frozen=True, slots=True)
class Plan:
    """quorum: as captured, with the nodes that the action takes for gone as lost."""

    quorum: CapturedQuorum
    action: Action
    judged: Judged
    risks: tuple[Risk, ...]
    steps: tuple[PlanStep, ...]


def plan(quorum: CapturedQuorum, action: Action) -> Plan:
    """What would happen, what to know before and what to do."""
    judged = judge(quorum, action)
    left = quorum.without(lost_by(action), observers=isinstance(action, Lose))
    return Plan(left, action, judged, risks(quorum, action, judged), steps(left, action, judged))
