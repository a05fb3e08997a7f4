"""Rule 47 among captures: a cluster id with several histories (kraft_core.evidence.lives)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import OtherLife
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.wording import first_named

MOST_NAMED = 10
"""At most this many other lives are listed."""


def one_life_per_cluster_id(view: ClusterView) -> Iterator[Breach]:
    """Rule 47: what else bears the cluster id. The facts of the newest life alone name the others."""
    others = sorted(view.facts.other_lives, key=lambda life: (-(life.last_appended_at or 0), life.cluster_id))
    if not others:
        return
    named = first_named([_words(life) for life in others], MOST_NAMED, "; ")
    captures = view.known.facts.captures
    yield Breach(
        of_rule(47),
        "warning",
        ("lives",),
        f"Cluster id {others[0].kafka_cluster_id} has {len(others) + 1} unconnected histories; this one "
        f"has the newest record.",
        f"{named}. Each is judged by its own captures; describe outputs of the id count for none of them. "
        "Reformatted nodes, cloned clusters, ids copied from a tutorial, and captures too far apart to "
        "share a batch look like this. "
        "Give captures an id of their own by `paths` of a cluster in the settings file, or by --cluster-id "
        "PATH=ID.",
        captures=(captures[0], captures[-1]) if captures else (),
    )


def _words(life: OtherLife) -> str:
    if life.last_appended_at is None:
        held = "no batch"
    else:
        held = (
            f"records up to {datetime.fromtimestamp(life.last_appended_at // 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
        )
    captures = f"{life.captures} capture{'' if life.captures == 1 else 's'}"
    nodes = f"node{'' if len(life.nodes) == 1 else 's'} {', '.join(map(str, life.nodes))}"
    return f"{life.cluster_id}: {captures} of {nodes} with {held}"
