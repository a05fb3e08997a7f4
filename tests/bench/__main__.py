"""python -m tests.bench [GROUP ...]: measure, print one table, write it as JSON."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from tests.bench.frame import Bench, Kafka, Row, groups, table
from tests.kafka import LAB, RELEASE, is_fetched


def main() -> None:
    every = groups()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("group", nargs="*", help=f"of {', '.join(every)}; all of them if none is named")
    parser.add_argument("--small", action="store_true", help="about a hundredth of the work, figures rough")
    parser.add_argument("--clusters", type=int, metavar="N", help="of the fleet, instead of 10,000")
    parser.add_argument("--out", type=Path, default=Path("bench.json"), help="the rows as JSON")
    parser.add_argument("--folder", type=Path, default=Path(".bench"), help="inputs, kept between runs")
    args = parser.parse_args()
    unknown = sorted(set(args.group) - set(every))
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(every)}")
    bench = Bench(args.folder.resolve(), args.small, Kafka() if is_fetched() else None, args.clusters)
    if bench.kafka is None:
        bench.say(f"no Kafka {RELEASE} in {LAB}: its rows are left out (make kafka)")
    rows: list[tuple[str, Row]] = []
    for name in args.group or every:
        for row in every[name](bench):
            rows.append((name, row))
            bench.say(table(rows)[-1])
    print("\n".join(table(rows)))
    found = [{"group": name, **asdict(row), "met": row.is_met} for name, row in rows]
    args.out.write_text(json.dumps({"small": args.small, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
