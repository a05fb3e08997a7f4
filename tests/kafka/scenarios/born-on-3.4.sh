#!/bin/bash
# A static quorum born on Kafka 3.4: before KAFKA-15345 the leader of an empty log may write records before its
# LEADER_CHANGE. Needs bin/get 3.4.1 4.3.1.
NAME=born-on-3.4; V=3.4.1; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CTRLS="1 2 3"; for i in 1 2 3; do PORT[$i]=2960$i; done; PORT[11]=29611; SEG=32768; SNAP=4000
STATIC="1@127.0.0.1:29601,2@127.0.0.1:29602,3@127.0.0.1:29603"
cid
for i in 1 2 3; do fmt c $i; done; fmt b 11
QB=127.0.0.1:29611
for i in 1 2 3; do start c $i; done; start b 11; sleep 12; waitleader; q born
ops 127.0.0.1:29611 127.0.0.1:29612 <<S
waitbrokers 1
topic old1 20 1
cfgspam topic:old1 40
S
waitleader; O=$L; kill9 $O; sleep 6; waitleader $O; start c $O; sleep 5; q after-kill
ops 127.0.0.1:29611 127.0.0.1:29612 <<S
topic old2 10 1
cfgspam topic:old1 20
S
q final
waitleader; stop 11; for i in 1 2 3; do [ $i != "$L" ] && stop $i; done; stop $L
save "" 1 2 3; dumps "" 1 2 3
