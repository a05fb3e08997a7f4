"""Which describe outputs are from the captured quorum.

Several quorums may have one cluster id: a clone, a restored copy, or unrelated ones that copied it from a
tutorial. An output contains its leader, its epoch and, from Kafka 3.9 on, the voters' directory ids: these
attribute it to the captures. An output that cannot be attributed is not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.named_directories import are_of_others, named_directories
from kraft_core.findings.facts import Observation


class Reports:
    """The outputs about a captured quorum.

    tied: those that may count. untied: the others, each with why, by name. not_strange: all but those whose
    voters are other replicas: they may show a fault of this quorum.
    """

    def __init__(self, known: Conclusions, observations: Iterable[Observation]) -> None:
        outputs = sorted(
            set(observations), key=lambda output: (output.observed_from, output.source, repr(output))
        )
        directories = named_directories(known.facts)
        leaders = _leaders(known, outputs)
        tied: list[Observation] = []
        untied: list[tuple[Observation, str]] = []
        not_strange: list[Observation] = []
        for output in outputs:
            strange = _of_others(output, directories)
            why = _two_histories(known) or strange or _other_leader(output, leaders)
            if strange is None:
                not_strange.append(output)
            if why is None:
                tied.append(output)
            elif output.kind == "status":
                untied.append((output, why))
        self.tied = tuple(tied)
        self.untied = tuple(untied)
        self.not_strange = tuple(not_strange)


def _leaders(known: Conclusions, outputs: Iterable[Observation]) -> Mapping[int, set[int]]:
    """By epoch its leader, as the LEADER_CHANGE or else each output names it."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for output in outputs:
        if output.kind == "status" and output.leader_epoch is not None:
            found[output.leader_epoch].add(output.node_id)
    return {**found, **{epoch: {election.leader_id} for epoch, election in known.elections.items()}}


def _two_histories(known: Conclusions) -> str | None:
    for epoch in known.lineage.contested_epochs[:1]:
        return f"captures contradict each other about epoch {epoch}, so it may belong to either history"
    return None


def _of_others(output: Observation, directories: Mapping[int, set[str]]) -> str | None:
    if are_of_others(output.voters, directories):
        return "its voters have directory ids that no capture has"
    return None


def _other_leader(output: Observation, leaders: Mapping[int, set[int]]) -> str | None:
    if output.kind != "status" or output.leader_epoch is None:
        return None
    named = leaders[output.leader_epoch]
    if named == {output.node_id}:
        return None
    if len(named) > 1:
        return f"outputs name {len(named)} leaders of epoch {output.leader_epoch}"
    (leader,) = named
    return f"its leader is {output.node_id}; LEADER_CHANGE of epoch {output.leader_epoch} names {leader}"
