"""KRaft's protocol as a pure step function: a replica and an event in, the next replica and messages out.

Sources: KIP-595 (elections, fetching), KIP-630 (snapshots), KIP-853 (changing voters), KIP-996 (pre-vote),
and Kafka's KafkaRaftClient where the text leaves it open. Messages are values, not bytes; time is a tick
(read it as a millisecond); logs, voter sets and high watermarks are those of kraft_core.raft.
"""
