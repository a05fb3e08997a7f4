"""What captured KRaft logs prove.

Kafka's metadata quorum replicates one log, `__cluster_metadata-0`, by a variant of Raft (KIP-595, KIP-630,
KIP-853). A leader appends in its epoch, the other replicas fetch. A record is committed once a majority of
the voters has stored it in the epoch of its leader; it is then in the log of every later leader. Who the
voters are stands in the log itself, and takes effect before it is committed.

No file says how far a log is committed. The high watermark lives in the memory of the processes, and a
captured directory may be one of five, hours old, or copied while a node was writing. This package takes such
directories and derives what must be true whatever the rest of the quorum held. It has four answers:
committed, truncated, uncommitted and undecided. The last one is frequent.

1. Captures

A capture is one copy of one replica's directory. A replica is a node id with a directory id: a replaced disk
is another replica. A capture shows which batches the log held, which checkpoints lay beside it, and by
quorum-state which epoch the node was in. Copies are imperfect. A quorum-state older than the last batch was
copied first and says nothing of the epoch. A torn last batch is where a copy ended; other unreadable bytes
behind the last batch leave the log end unknown. Facts are a set: neither order nor duplicates change any
result.

2. Epoch ranges and lineage

An epoch has one leader, and a leader only appends. Hence Raft's log matching: two logs that hold the same
offset in the same epoch are equal up to there. A range of offsets of one epoch therefore stands for its
batches, and no conclusion needs the batches one by one. All ranges of an epoch form one line, and each line
begins at one offset of the line of an earlier epoch: the captures of a cluster show parts of one tree, its
lineage. Captures that contradict this (one range with two contents, two batches at one offset, an epoch with
two starts) make the epoch contested, and a contested epoch proves nothing. Such captures are of two
histories, as those of a clone are: what is lacking or overwritten in one says nothing of the other, and no
bound holds.

3. The voter set in force

A replica uses the newest VotersRecord that it holds, committed or not, and returns to the one before if it is
truncated. So the set in force at a batch follows from the batch's own line: the newest VotersRecord at or
below it, or what a checkpoint restores where the records are gone. Without any VotersRecord (kraft.version 0)
it is the static set that LEADER_CHANGE names. A static set is configuration, and may change at any restart:
where a voter's quorum-state names others than the newest election, nothing is bounded from above, and nothing
is uncommitted. A record that cannot be read leaves the set unknown. An election is lawful if its
LEADER_CHANGE names the set in force below it and a majority of that set granted it.

4. What proves a commit

By a majority. A batch of epoch E is committed if a majority of one voter set stored it while in epoch E. The
set is the one in force at the batch, or the next one in the same epoch if the two differ by one voter: the
leader counts by it from its append on, for older batches too. A captured voter stored the batch in E if its
log holds it and its quorum-state, copied after the log, is in E. The leader of E wrote whatever any log holds
of E: it counts without a capture, unless the set does not have it. So does the leader of E + 1 for what lies
below its LEADER_CHANGE: it was in E until it stood for election. To hold a batch in a later epoch is not
enough: a majority that does so commits nothing by it (Raft, figure 8). Observers do not count, nor does
another replica that was not captured. A voter that the set knows by id alone counts once: two directories of
its id that may have been live at once count by what both hold.

By consequence. Some things are done only after a commit, and so bound the high watermark from below:
- a complete checkpoint ends at or below it (KIP-630);
- a leader writes metadata once its LEADER_CHANGE has committed (before Kafka 3.6: once all below it has);
- a leader changes the voters once its epoch's first batch and the previous change have committed.
Each bound holds from the time of its record on. A leader that was elected unlawfully did these things by a
set that its log does not have in force: they show what that leader believed, and prove nothing. The same
holds of a snapshot whose replica may have learnt from such a leader what is committed.

Either proof covers all that lies below it, on its own line and on the lines beneath.

5. Bounds from above

When a directory was copied is known where capture.json or --captured-at says so. Else the newest timestamp
inside it is the earliest possible time, and the latest is unknown: file times prove nothing. A commit proven
by such captures has no as_of. A directory that held more before, while no higher epoch took its place, is an
old disk or a restored backup: its log end bounds nothing, and shows nothing to be missing.

What is committed is never truncated, so a log end captured at time t or later is no lower than what its
replica contributed to the high watermark at t. Of the voters' log ends, in descending order, the one at index
floor(n/2) bounds the high watermark at t. A voter that was not captured may have stored anything. The bound
is the highest over all sets that may have counted at t: the newest committed one and each later one; there is
none where an unknown set may have counted. Half of an even set can be a majority of a next set that no
capture shows; the bound allows for that.

6. Commit status

Of the batches of an uncontested line, in this order:
- committed: a proof reaches them. No capture still to come can change that.
- truncated: a committed batch of a higher epoch lies at or below them, or one of a lower epoch at their
  offsets; then they are gone for good. That one replica held them in one capture and another epoch there in
  another is no proof: a log that still has them may bring them back, also to that replica.
- uncommitted, as of a time: so many voters, captured after the append, lacked them that the others are no
  majority, neither of the set in force nor of a next one. They may still commit.
- undecided: everything else.

An example, from tests/golden/uncommitted-truncation. Leader 1 of voters 1, 2 and 3 adds voter 4 at offset 355
of epoch 1 while nodes 2 and 3 are down. Captures of that moment show that voters 2 and 3 lack the record, and
1 and 4 are no majority of {1,2,3,4}: uncommitted. Later nodes 2 and 3 elect node 2, whose epoch 3 begins at
352. Its first metadata batch proves its LEADER_CHANGE at 352 committed. Offset 355 of epoch 1 lies above a
committed batch of a higher epoch: truncated, for good. {1,2,3} was the newest committed set all the time.

7. Rules

The same reasoning finds faults. If no majority can have stored what a leader reported as its high watermark,
if a replica lost what was committed, if a LEADER_CHANGE names voters that its log does not have, then a rule
of KRaft was broken. A finding needs positive evidence: what was not captured breaks no rule.
raft/rules.py leads from each rule to its source, to the function that keeps it and to the one that judges it.

Where to find what

    messages, format    Kafka's messages and files: bytes in, values out
    raft                logs, epochs, voter sets, the high watermark; the rules and their invariants
    protocol            a replica as a pure step function; simulation runs quorums of them
    evidence            sections 1 to 6: facts, lineage, in_force, majority, lower_bounds, log_ends,
                        truncation, commit; conclusions joins them and rows are the tables
    findings            section 7: rules judged on captures, recovery advice, one offset explained
    plan                what Kafka would answer to a change of the voters, asked of the protocol engine
    image, columnar     metadata records as the cluster's state, and as Arrow columns

Nothing here knows Spark or reads a clock.
"""
