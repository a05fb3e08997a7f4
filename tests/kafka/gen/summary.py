#!/usr/bin/env python3
"""summary.py <scenario dir>: from dump/*/ text files make dump/<x>/../summary.json and print one line per dump dir"""

import collections
import json
import os
import re
import sys

root = sys.argv[1]
out = {}
for d in sorted(os.listdir(f"{root}/dump")):
    p = f"{root}/dump/{d}"
    if not os.path.isdir(p):
        continue
    rec = collections.Counter()
    ctl = []
    files = {}
    last = -1
    epochs = []
    for f in sorted(os.listdir(p)):
        if not f.endswith(".txt") or "skip-record" in f:
            continue
        c = collections.Counter()
        n = 0
        first = None
        l = None
        ep = None
        batches = 0
        bad = 0
        for line in open(f"{p}/{f}", errors="replace"):
            m = re.match(
                r"baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (\d+).*isvalid: (\w+)", line
            )
            if m:
                batches += 1
                first = int(m[1]) if first is None else first
                l = int(m[2])
                ep = int(m[3])
                bad += m[4] != "true"
                continue
            if not line.startswith("| offset"):
                continue
            n += 1
            off = int(re.match(r"\| offset: (\d+)", line)[1])
            m = re.search(r'payload: \{"type":"([A-Z_]+)","version":(\d+)', line)
            if m:
                c[m[1] + " v" + m[2]] += 1
            else:
                k = re.search(r"headerKeys: \[\] (?:controlType: )?(\w+)", line)
                k = k[1] if k else "?"
                c["ctl:" + k] += 1
                e = {"file": f[:-4], "offset": off, "epoch": ep, "type": k}
                if k == "KRaftVoters":
                    e["voters"] = [
                        f"{a}@{b}"
                        for a, b in re.findall(r'"voterId":(\d+),"voterDirectoryId":"([^"]+)"', line)
                    ]
                    e["ports"] = re.findall(r'"port":(\d+)', line)
                if k == "LeaderChange":
                    e["leader"] = int(re.search(r'leaderId":(\d+)', line)[1])
                if k == "KRaftVersion":
                    e["kraftVersion"] = int(re.search(r'kRaftVersion":(\d+)', line)[1])
                ctl.append(e)
        files[f[:-4]] = {
            "batches": batches,
            "records": n,
            "first": first,
            "last": l,
            "lastEpoch": ep,
            "invalidBatches": bad,
            "types": dict(c),
        }
        if f.endswith(".log.txt"):
            rec.update(c)
    out[d] = {"files": files, "controlRecords": ctl, "logTypes": dict(sorted(rec.items()))}
    lg = [e for e in ctl if e["file"].endswith(".log")]
    logs = {k: v for k, v in files.items() if k.endswith(".log")}
    print(
        f"{d}: segs={len(logs)} ckpts={sum(k.endswith('.checkpoint') and k != 'bootstrap.checkpoint' for k in files)} logrange={min((v['first'] for v in logs.values() if v['first'] is not None), default=None)}..{max((v['last'] for v in logs.values() if v['last'] is not None), default=None)} ctl: "
        + " ".join(
            f"{e['offset']}/e{e['epoch']}:"
            + (
                "V[" + ",".join(v.split("@")[0] for v in e["voters"]) + "]"
                if e["type"] == "KRaftVoters"
                else "L%d" % e["leader"]
                if e["type"] == "LeaderChange"
                else e["type"] + (str(e.get("kraftVersion", "")))
            )
            for e in lg
        )
    )
json.dump(out, open(f"{root}/summary.json", "w"), indent=1)
