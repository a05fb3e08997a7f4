"""python -m tests.bench [GROUP ...]: measure, print one table, write it as JSON."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from tests.bench.frame import Bench, Kafka, Row, groups, table


def main() -> None:
    every = groups()
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("group", nargs="*", help=f"of {', '.join(every)}; all of them if none is named")
    parser.add_argument("--small", action="store_true", help="about a hundredth of the work, figures rough")
    parser.add_argument("--out", type=Path, default=Path("bench.json"), help="the rows as JSON")
    parser.add_argument("--folder", type=Path, default=Path(".bench"), help="inputs, kept between runs")
    parser.add_argument("--kafka", type=Path, help="the scripts that drive a real Kafka, if any")
    parser.add_argument("--lab", type=Path, default=os.environ.get("KAFKA_LAB", ".kafka-lab"))
    args = parser.parse_args()
    unknown = sorted(set(args.group) - set(every))
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(every)}")
    kafka = Kafka(args.kafka.resolve(), args.lab.resolve()) if args.kafka and args.kafka.is_dir() else None
    bench = Bench(args.folder.resolve(), args.small, kafka if kafka and kafka.is_ready else None)
    if bench.kafka is None:
        bench.say("no Kafka is set up: its rows are left out (--kafka SCRIPTS --lab FOLDER)")
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
