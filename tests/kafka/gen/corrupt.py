#!/usr/bin/env python3
"""derive corrupt metadata log files from a good segment + checkpoint. usage: corrupt.py <segment.log> <x.checkpoint> <outdir>"""

import os
import random
import struct
import sys

T = []
for i in range(256):
    c = i
    for _ in range(8):
        c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    T.append(c)


def crc32c(b):
    c = 0xFFFFFFFF
    for x in b:
        c = (c >> 8) ^ T[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF


def batches(d):
    p = 0
    r = []
    while p + 12 <= len(d):
        base, l = struct.unpack_from(">qi", d, p)
        r.append((p, 12 + l, base))
        p += 12 + l
    return r


def recrc(b):
    return b[:17] + struct.pack(">I", crc32c(b[21:])) + b[21:]


seg, cp, out = sys.argv[1:4]
D = open(seg, "rb").read()
C = open(cp, "rb").read()
B = batches(D)
CB = batches(C)
sn = os.path.basename(seg)
cn = os.path.basename(cp)
rnd = random.Random(7)
readme = [
    f"# corrupt\n\nbase segment: {seg} ({len(D)} bytes, {len(B)} batches, last batch at {B[-1][0]} baseOffset {B[-1][2]}); base checkpoint: {cp} ({len(C)} bytes, {len(CB)} batches)\n"
]


def w(case, data, note, name=sn):
    os.makedirs(f"{out}/{case}", exist_ok=True)
    open(f"{out}/{case}/{name}", "wb").write(data)
    readme.append(f"- `{case}/{name}` ({len(data)} bytes): {note}")


lp, ll, lb = B[-1]
mi = len(B) // 2
big = [b for b in B if b[1] > 150 and b[0] > 0]
mp, ml, mb = big[len(big) // 2]
w("good", D, "unmodified segment")
w("good", C, "unmodified checkpoint", cn)
w(
    "torn-last-batch",
    D[: lp + ll // 2 + 20],
    f"last batch (pos {lp}, baseOffset {lb}, size {ll}) cut in the middle of its records: last readable offset {lb - 1}",
)
w(
    "torn-in-batch-header",
    D[: lp + 40],
    f"cut 40 bytes into the last batch (pos {lp}): inside the 61-byte batch header",
)
w(
    "torn-in-length-field",
    D[: lp + 9],
    f"cut 9 bytes into the last batch (pos {lp}): inside the 12-byte offset+length prefix",
)
x = bytearray(D)
x[mp + 61 + 20] ^= 0x40
w(
    "crc-flip-middle",
    bytes(x),
    f"one bit flipped in records of batch pos {mp} baseOffset {mb}; later batches are intact",
)
x = bytearray(D)
x[lp + ll - 2] ^= 0x01
w("crc-flip-last", bytes(x), f"one bit flipped in the last batch pos {lp} baseOffset {lb}")
x = bytearray(D)
x[mp + 18] ^= 0xFF
w("crc-field-flip", bytes(x), f"crc field itself changed in batch pos {mp} baseOffset {mb}")
w(
    "garbage-tail",
    D + bytes(rnd.randrange(256) for _ in range(137)),
    f"137 random bytes after the last batch (pos {len(D)})",
)
w(
    "garbage-tail-text",
    D + b"this is not a kafka record batch, just some text appended to the log\n" * 3,
    f"ASCII text after the last batch (pos {len(D)})",
)
w("empty-segment", b"", "zero-byte segment")
w("zero-tail", D + b"\0" * 4096, f"4096 zero bytes after the last batch (pos {len(D)}): preallocated tail")
w("all-zero", b"\0" * 4096, "segment with only zero bytes")
x = bytearray(D)
x[mp + 16] = 9
w("wrong-magic", bytes(x), f"magic=9 in batch pos {mp} baseOffset {mb} (magic is not covered by the crc)")
x = bytearray(D)
x[mp + 16] = 1
w("magic-1", bytes(x), f"magic=1 in batch pos {mp} baseOffset {mb}")
x = bytearray(D)
struct.pack_into(">i", x, mp + 8, 0x7FFFFF00)
w("length-huge", bytes(x), f"batchLength=0x7fffff00 in batch pos {mp}")
x = bytearray(D)
struct.pack_into(">i", x, mp + 8, -1)
w("length-negative", bytes(x), f"batchLength=-1 in batch pos {mp}")
x = bytearray(D)
struct.pack_into(">i", x, mp + 8, 10)
w("length-too-small", bytes(x), f"batchLength=10 (<49) in batch pos {mp}")
w("missing-batch", D[:mp] + D[mp + ml :], f"batch pos {mp} baseOffset {mb} removed: offset gap")
i = B.index((mp, ml, mb))
np_, nl, nb = B[i + 1]
w(
    "swapped-batches",
    D[:mp] + D[np_ : np_ + nl] + D[mp : mp + ml] + D[np_ + nl :],
    f"batches baseOffset {mb} and {nb} swapped",
)
w("duplicate-batch", D[: mp + ml] + D[mp : mp + ml] + D[mp + ml :], f"batch baseOffset {mb} twice")
x = bytearray(D)
struct.pack_into(">i", x, mp + 12, 0)
w("epoch-regression", bytes(x), f"partitionLeaderEpoch=0 in batch baseOffset {mb} (not covered by the crc)")
b = bytearray(D[mp : mp + ml])
n = struct.unpack_from(">i", b, 57)[0]
struct.pack_into(">i", b, 57, n + 3)
w(
    "record-count-too-big",
    D[:mp] + recrc(bytes(b)) + D[mp + ml :],
    f"recordCount {n}->{n + 3} in batch baseOffset {mb}, crc recomputed",
)
# unknown types, valid crc. single NoOp batch: find one: record value frame: 01 <apiKey> <version>
noop = [q for q in B if q[1] <= 75 and not (D[q[0] + 22] & 0x20)]


# rewrite payload of a batch with a single record
def one(base, epoch, ts, key, val, control=False):
    def vi(n):
        n = (n << 1) ^ (n >> 63)
        o = b""
        while True:
            c = n & 0x7F
            n >>= 7
            if n:
                o += bytes([c | 0x80])
            else:
                return o + bytes([c])

    k = vi(-1) if key is None else vi(len(key)) + key
    r = b"\0" + vi(0) + vi(0) + k + vi(len(val)) + val + vi(0)
    r = vi(len(r)) + r
    body = struct.pack(">hiqqqhii", 0x20 if control else 0, 0, ts, ts, -1, -1, -1, 1) + r
    return (
        struct.pack(">qiib", base, 4 + 1 + 4 + len(body), epoch, 2) + struct.pack(">I", crc32c(body)) + body
    )


ep = struct.unpack_from(">i", D, lp + 12)[0]
ts = struct.unpack_from(">q", D, lp + 35)[0]
nxt = lb + struct.unpack_from(">i", D, lp + 23)[0] + 1
tail = one(nxt + 1, ep, ts + 500, None, b"\x01\x14\x00\x00")
w(
    "unknown-record-type",
    D + one(nxt, ep, ts + 1, None, b"\x01\xe7\x07\x00\x01\x02\x03") + tail,
    f"valid batch at offset {nxt} with metadata record apiKey 999 version 0, then a NoOpRecord batch at {nxt + 1}",
)
w(
    "unknown-record-version",
    D + one(nxt, ep, ts + 1, None, b"\x01\x02\x63\x05abcd") + tail,
    f"valid batch at offset {nxt}: TopicRecord (apiKey 2) version 99, then NoOp",
)
w(
    "unknown-frame-version",
    D + one(nxt, ep, ts + 1, None, b"\x07\x02\x00\x05abcd") + tail,
    f"valid batch at offset {nxt}: frame version 7, then NoOp",
)
w(
    "unknown-control-type",
    D + one(nxt, ep, ts + 1, struct.pack(">hh", 0, 77), b"\0\0", True) + tail,
    f"valid control batch at offset {nxt}: control type 77, then NoOp",
)
w(
    "truncated-record-payload",
    D + one(nxt, ep, ts + 1, None, b"\x01\x02\x00\x20ab") + tail,
    f"valid batch at offset {nxt}: TopicRecord whose string length exceeds the payload (crc ok), then NoOp",
)
w(
    "trailing-garbage-in-payload",
    D + one(nxt, ep, ts + 1, None, b"\x01\x14\x00\x00\x99\x99") + tail,
    f"valid batch at offset {nxt}: NoOpRecord with 2 extra bytes (crc ok), then NoOp",
)
w(
    "unknown-tagged-field",
    D + one(nxt, ep, ts + 1, None, b"\x01\x14\x00\x01\x7b\x03xyz") + tail,
    f'valid batch at offset {nxt}: NoOpRecord with unknown tagged field 123 = "xyz" (legal), then NoOp',
)
w(
    "null-value-record",
    D + one(nxt, ep, ts + 1, None, b"") + tail,
    f"valid batch at offset {nxt}: record with empty value (crc ok), then NoOp",
)
fp, fl, fb = CB[-1]
w("checkpoint-no-footer", C[:fp], f"footer batch removed (pos {fp})", cn)
w("checkpoint-torn", C[: fp - 30], "cut inside the last data batch", cn)
w("checkpoint-no-header", C[CB[1][0] :], "header batch removed", cn)
x = bytearray(C)
q = CB[1]
x[q[0] + 80] ^= 4
w("checkpoint-crc-flip", bytes(x), f"bit flipped in batch pos {q[0]}", cn)
w("checkpoint-empty", b"", "zero bytes", cn)
w(
    "checkpoint-part",
    C[: fp - 30],
    "unfinished temporary snapshot file as Kafka leaves after a crash",
    cn + ".part",
)
open(f"{out}/README.md", "w").write("\n".join(readme) + "\n")
print("\n".join(readme))
