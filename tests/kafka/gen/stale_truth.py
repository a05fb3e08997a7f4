#!/usr/bin/env python3
"""stale_truth.py <scenario dir>: reads dump/, logs/, jmx.txt, quorum/ of one run and writes expected.json and the
section "Expected truth" of timeline.md. Everything is computed from the files of that run."""

import glob
import gzip
import json
import os
import re
import sys

D = sys.argv[1]
dumps = {}


def ids(s):
    return sorted(int(x) for x in re.findall(r'"voterId":(\d+)', s))


def load(p):
    vr, lc, cfg, ep, end = [], [], {}, 0, 0
    spans = []
    for l in open(p, errors="replace"):
        if l.startswith("baseOffset"):
            m = re.search(r"baseOffset: (\d+) lastOffset: (\d+).*partitionLeaderEpoch: (-?\d+)", l)
            b, e, ep = map(int, m.groups())
            end = e + 1
            if spans and spans[-1][2] == ep:
                spans[-1][1] = e
            else:
                spans.append([b, e, ep])
        elif l.startswith("| offset"):
            o = int(re.match(r"\| offset: (\d+)", l)[1])
            if " KRaftVoters " in l:
                vr.append((o, ep, ids(l.split("KRaftVoters", 1)[1])))
            elif "LeaderChange: " in l:
                j = json.loads(l.split("LeaderChange: ", 1)[1])
                lc.append(
                    (
                        o,
                        ep,
                        j["leaderId"],
                        sorted(v["voterId"] for v in j["voters"]),
                        sorted(v["voterId"] for v in j["grantingVoters"]),
                    )
                )
            else:
                m = re.search(r'"resourceName":"([a-zA-Z0-9-]*?)-\d+-\d+"', l)
                if m:
                    c = cfg.setdefault(m[1], [o, o, ep, 0])
                    c[1] = o
                    c[3] += 1
    return dict(voters=vr, leaders=lc, cfg=cfg, end=end, epochs=spans)


for d in sorted(glob.glob(D + "/dump/*-node-*")):
    m = re.match(r"(.*)-node-(\d+)$", os.path.basename(d))
    ps = sorted(glob.glob(d + "/0*.log.txt"))
    if not ps:
        continue
    r = load(ps[0])
    r["checkpoints"] = {
        os.path.basename(c)[:-15]: ids("".join(x for x in open(c, errors="replace") if " KRaftVoters " in x))
        for c in sorted(glob.glob(d + "/*-*.checkpoint.txt"))
    }
    dumps.setdefault(m[1], {})[int(m[2])] = r
L1 = next(iter(dumps["before"]))
E = dumps["before"][L1]["end"]
logs = {}
for p in sorted(glob.glob(D + "/logs/c*.log*")):
    if "grep" in p:
        continue
    n = int(re.search(r"c(\d)\.log", p)[1])
    logs[n] = [
        l
        for l in (gzip.open(p, "rt", errors="replace") if p.endswith("gz") else open(p, errors="replace"))
        if re.search(
            r"Reading KRaft snapshot|Latest set of voters|Truncated to|Starting voters|Completed transition|^\[.*ERROR.*fatal|^java\.lang\.Ill|^org\.apache\.kafka\.common\.KafkaException",
            l,
        )
    ]
T = int(re.search(r"Truncated to offset (\d+)", next(l for l in logs[L1] if "Truncated to" in l))[1])
a = dumps["after"]
true_off, true_ep, true_v = a[L1]["voters"][-1]
out = [
    f"L1 = node {L1}; T = {T}; E = {E}; epochs in L1's log before: {dumps['before'][L1]['epochs']} after: {a[L1]['epochs']} ([first offset, last offset, epoch])"
]
missed = [v for v in a[L1]["voters"] if T <= v[0] < E]
out.append(
    f"VotersRecords in L1's own log with T <= V < E (offset, epoch, ids): {missed}; so the true voter set after the truncation is {true_v} (offset {true_off}) on every node: {all(r['voters'][-1][2] == true_v for r in a.values())}"
)
read = [
    int(m[1]) for l in logs[L1] for m in [re.search(r"Latest set of voters is .* at offset (-?\d+)", l)] if m
]
i = next(k for k, l in enumerate(logs[L1]) if "Truncated to" in l)
nxt = next((k for k, l in enumerate(logs[L1]) if k > i and "Reading KRaft snapshot" in l), len(logs[L1]))
seg = [
    int(m[1])
    for l in logs[L1][i:nxt]
    for m in [re.search(r"Latest set of voters is .* at offset (-?\d+)", l)]
    if m and "Loading" not in l
]
out.append(
    f'"Latest set of voters" lines of L1 between its truncation and its next start: at offsets {[x for x in seg if x >= 0 and x < E and x >= T]} (expected, had they been read: {[v[0] for v in missed]})'
)
for n in sorted(logs):
    if n != L1:
        out.append(
            f"node {n} read VotersRecords at {[int(m[1]) for l in logs[n] for m in [re.search(r'Latest set of voters is .* at offset (-?[0-9]+)', l)] if m]}"
        )
liv = sorted(
    {
        re.search(r"voters=\[([\d, ]*)\]", l)[1]
        for l in logs[L1][i - 1 : nxt]
        if re.search(r"Completed transition.*?voters=\[", l)
    }
)
out.append(f"live voter set of L1 in its state-transition lines from the truncation to the next start: {liv}")
mm = []
for lab, ns in dumps.items():
    for n, r in ns.items():
        for o, ep, ld, lv, gv in r["leaders"]:
            b = [v for v in r["voters"] if v[0] < o]
            if b and b[-1][2] != lv:
                mm.append((o, ep, ld, tuple(lv), tuple(gv), b[-1][0], tuple(b[-1][2])))
for o, ep, ld, lv, gv, vo, vv in sorted(set(mm)):
    out.append(
        f"OFFLINE EVIDENCE: LeaderChange at offset {o} epoch {ep} by leader {ld}: voters {list(lv)}, granted by {list(gv)}, but the last VotersRecord before it (offset {vo}) is {list(vv)}: majority needs {len(vv) // 2 + 1}, granting true voters = {sorted(set(gv) & set(vv))}"
    )
for lab, ns in dumps.items():
    for n, r in ns.items():
        for c, cv in r["checkpoints"].items():
            eo = int(c.split("-")[0])
            b = [v for v in r["voters"] if v[0] < eo]
            if eo and b and b[-1][2] != cv:
                out.append(
                    f"OFFLINE EVIDENCE ({lab}): node {n} checkpoint {c} holds voters {cv}, its own log says {b[-1][2]} (offset {b[-1][0]})"
                )
if "two-of-five" in dumps and "three-of-five" in dumps:
    x = next(iter(dumps["two-of-five"].values()))
    y = next(iter(dumps["three-of-five"].values()))
    out.append(
        f"two committed histories: 2-of-5: {x['cfg'].get('committed-by-2-of-5')} last LeaderChange {x['leaders'][-1]}; 3-of-5: {y['cfg'].get('committed-by-3-of-5')} last LeaderChange {y['leaders'][-1]} (config ranges = [first offset, last offset, epoch, records]); both acknowledged to clients; same epoch: {x['leaders'][-1][1] == y['leaders'][-1][1]}"
    )
if "final" in dumps:
    for n, r in dumps["final"].items():
        out.append(
            f"final log of node {n}: committed-by-2-of-5 records {r['cfg'].get('committed-by-2-of-5', [0] * 4)[3]}, committed-by-3-of-5 records {r['cfg'].get('committed-by-3-of-5', [0] * 4)[3]}, epochs {r['epochs']}"
        )
for lab in ("after-duplicate-add",):
    for n, r in dumps.get(lab, {}).items():
        out.append(f"{lab}: node {n} VotersRecords (offset, epoch, ids): {r['voters']}")
for n in logs:
    for l in logs[n]:
        if re.match(r"java\.lang\.Ill|org\.apache\.kafka\.common\.KafkaException", l):
            out.append(f"crash of node {n}: {l.strip()[:260]}")
json.dump(
    dict(
        L1=L1,
        T=T,
        E=E,
        missed=missed,
        true_voters=true_v,
        leader_change_mismatches=[list(x) for x in sorted(set(mm))],
        dumps={k: {n: {kk: vv for kk, vv in r.items()} for n, r in v.items()} for k, v in dumps.items()},
    ),
    open(D + "/expected.json", "w"),
    indent=1,
)
t = open(D + "/timeline.md").read().split("\n## Expected truth")[0].rstrip("\n")
open(D + "/timeline.md", "w").write(
    t
    + "\n\n## Expected truth (computed by gen/stale_truth.py from the files of this run)\n"
    + "".join(f"- {x}\n" for x in out)
)
print("\n".join(out))
