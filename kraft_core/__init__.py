"""What captured KRaft logs prove.

Kafka's metadata quorum replicates one log, `__cluster_metadata-0`, by a variant of Raft (KIP-595, KIP-630,
KIP-853). A leader appends in its epoch, the other replicas fetch. A record is committed once a majority of
the voters has stored it in the epoch of its leader; it is then in the log of every later leader. The voter
set itself is in the log, and takes effect before it is committed.

No file shows how far a log is committed. The high watermark exists only in the memory of the processes, and a
captured directory may be one of five, hours old, or copied while a node was writing. This package takes such
directories and derives what must be true whatever the rest of the quorum held. It has four answers:
committed, truncated, uncommitted and undecided. The last one is frequent.

1. Captures

A capture is one copy of one replica's directory. A replica is a node id with a directory id: a replaced disk
is another replica. A capture shows which batches the log held, which checkpoints were beside it, and, by its
quorum-state, which epoch the node was in. Copies are imperfect. A quorum-state older than the last batch was
copied first and proves nothing about the epoch. An incomplete last batch, which a copy that was cut off
ends with, or other unreadable bytes after the last batch leave the log end unknown. Facts are a set: neither
order nor duplicates change any result.

2. Epoch ranges and lineage

An epoch has one leader, and a leader only appends. Hence Raft's log matching: two logs that hold the same
offset in the same epoch are equal up to that offset. A range of offsets of one epoch therefore represents its
batches, and no conclusion needs the batches one by one. All ranges of an epoch form one line, and each line
begins at one offset of the line of an earlier epoch: the captures of a cluster show parts of one tree, its
lineage. Captures that contradict this (one range with two contents, two batches at one offset, an epoch with
two starts) make the epoch contested, and a contested epoch proves nothing. Such captures belong to two
histories, like those of a clone: what is missing or overwritten in one proves nothing about the other, and no
bound holds.

3. The voter set in force

A replica uses the newest VotersRecord in its log, committed or not, and returns to the previous one if it is
truncated. So the set in force at a batch follows from the batch's own line: the newest VotersRecord at or
below it, or the set in a checkpoint if the records are gone. Without any VotersRecord (kraft.version 0)
it is the static set in LEADER_CHANGE. A static set is configuration, and may change at any restart: if a
voter's quorum-state has other voters than the newest election, nothing is bounded from above, and nothing is
uncommitted. A record that cannot be read leaves the set unknown. An election is lawful if its
LEADER_CHANGE contains the set in force below it, and a majority of that set granted its vote.

4. What proves a commit

By a majority. A batch of epoch E is committed if a majority of one voter set stored it while in epoch E. The
set is the one in force at the batch, or the next one in the same epoch if the two differ by one voter: the
leader counts by that set from its append on, for older batches too. A captured voter stored the batch in E if
its log contains it and its quorum-state, copied after the log, is in E. The leader of E wrote everything of E
in any log: it counts without a capture, unless it is not in the set. So does the leader of E + 1 for
everything below its LEADER_CHANGE: it was in E until it became a candidate. Holding a batch in a later epoch
is not enough: a majority that does so does not commit it (Raft, figure 8). Observers do not count, nor do
other replicas that were not captured. A voter that the set identifies by id alone counts once: if two
directories of its id may have been live at once, only what both hold counts.

By consequence. Some things happen only after a commit, and so bound the high watermark from below:
- a complete checkpoint ends at or below it (KIP-630);
- a leader writes metadata once its LEADER_CHANGE has committed (before Kafka 3.6: once all below it has);
- a leader changes the voters once its epoch's first batch and the previous change have committed.
Each bound holds from the time of its record on. A leader that was elected unlawfully did these things by a
set that is not in force in its log: they show what that leader believed, and prove nothing. The same is true
of a snapshot whose replica may have learned the high watermark from such a leader.

Either proof covers everything below it, on its own line and on the lines it descends from.

5. Bounds from above

The time when a directory was copied is known if capture.json or --captured-at states it. Otherwise the newest
timestamp inside it is the earliest possible time, and the latest is unknown: file times prove nothing. A
commit proven by such captures has no as_of. A directory that held more before, without a higher epoch that
replaced it, is an old disk or a restored backup: its log end bounds nothing, and proves nothing missing.

What is committed is never truncated, so a log end captured at time t or later is no lower than what its
replica contributed to the high watermark at t. Of the voters' log ends, in descending order, the one at index
floor(n/2) bounds the high watermark at t. A voter that was not captured may have stored anything. The bound
is the highest over all sets that may have counted at t: the newest committed one and each later one; there is
none where an unknown set may have counted. Half of an even set can be a majority of a next set that no
capture shows; the bound takes that into account.

6. Commit status

For the batches of an uncontested line, in this order:
- committed: a proof covers them. No later capture can change that.
- truncated: a committed batch of a higher epoch is at or below their offsets, or one of a lower epoch at
  their offsets; then they are gone for good. If a replica held them in one capture and another epoch at these
  offsets in another, that is not a proof: a log that still has them may bring them back, even to that
  replica.
- uncommitted, as of a time: so many voters, captured after the append, lacked them that the others are not a
  majority, neither of the set in force nor of a next one. They may still commit.
- undecided: everything else.

An example, from tests/golden/uncommitted-truncation. Leader 1 of voters 1, 2 and 3 adds voter 4 at offset 355
of epoch 1 while nodes 2 and 3 are down. Captures of that moment show that voters 2 and 3 lack the record, and
1 and 4 are not a majority of {1,2,3,4}: uncommitted. Later nodes 2 and 3 elect node 2, whose epoch 3 begins
at 352. Its first metadata batch proves its LEADER_CHANGE at 352 committed. Offset 355 of epoch 1 is above a
committed batch of a higher epoch: truncated, for good. {1,2,3} was the newest committed set throughout.

7. Rules

The same reasoning finds faults. If no majority can have stored what a leader reported as its high watermark,
if a replica lost what was committed, or if a LEADER_CHANGE contains other voters than its log, then a rule of
KRaft was violated. A finding needs positive evidence: what was not captured violates no rule. raft/rules.py
links each rule to its source, to the function that enforces it and to the one that checks it on captures.

Where to find what

    messages, format    Kafka's messages and files: bytes in, values out
    raft                logs, epochs, voter sets, the high watermark; the rules and their invariants
    protocol            a replica as a pure step function; simulation runs quorums of them
    evidence            sections 1 to 6: facts, lineage, in_force, majority, lower_bounds, log_ends,
                        truncation, commit; conclusions joins them and rows are the tables
    findings            section 7: rules checked on captures, recovery advice, one offset explained
    plan                what Kafka would answer to a change of the voters, computed by the protocol engine
    image, columnar     metadata records as the cluster's state, and as Arrow columns

Nothing here depends on Spark or reads a clock.
"""
