"""The section on samples of a running quorum: lag by replica and commit rate."""

from __future__ import annotations

from dashboards.report.draw_samples import draw_samples, per_second
from dashboards.report.formatting import directory, number, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.samples import Samples, samples_of
from dashboards.report.tables import Col, newest, table
from dashboards.report.view import View

NEWEST_RATES = 60
MOST_REPLICAS = 200


def samples(view: View) -> Markup | None:
    found = samples_of(view.of("sampled_lags"), view.of("sampled_watermarks"))
    if found is None:
        return None
    return el("div", draw_samples(found), _lags(found), _rates(found) if found.rates else None)


def _lags(found: Samples) -> Markup:
    cells = [
        (
            f"node {each.replica.node_id}",
            directory(each.replica.directory_id),
            each.status.lower(),
            number(each.now),
            number(None if each.worst is None else each.worst.most),
            time_of(each.worst.start if each.worst is not None and each.worst.most else None),
            number(each.samples),
        )
        for each in found.replicas[:MOST_REPLICAS]
    ]
    columns = [Col("Replica"), Col("Directory"), Col("Role"), Col("Records behind", True),
               Col("At most", True), Col("At"), Col("Samples", True)]  # fmt: skip
    more = f"The first {len(cells):,} of {len(found.replicas):,} replicas."
    return table("Lag by replica", columns, cells, more if len(cells) < len(found.replicas) else None)


def _rates(found: Samples) -> Markup:
    cells = [
        (
            time_of(rate.start),
            time_of(rate.end),
            number(rate.records),
            per_second(rate.a_second),
            number(rate.reached),
        )
        for rate in reversed(found.rates)
    ][:NEWEST_RATES]
    columns = [Col("From"), Col("To"), Col("Records committed", True), Col("Per second", True),
               Col("High watermark", True)]  # fmt: skip
    return table("Commit rate", columns, cells, newest(len(cells), len(found.rates), "periods"))
