#!/bin/bash
NAME=election-storm; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CTRLS="1 2 3"; for i in 1 2 3; do PORT[$i]=2930$i; done; SEG=${ESEG:-1000}; SNAP=100000000
CTRL_EXTRA="metadata.max.idle.interval.ms=0\ncontroller.quorum.election.timeout.ms=1000\ncontroller.quorum.fetch.timeout.ms=2000"
cid; hdr "segment bytes $SEG, metadata.max.idle.interval.ms=0 (no NoOpRecord)"
D1=$(k $V storage random-uuid); D2=$(k $V storage random-uuid); D3=$(k $V storage random-uuid)
IC="1@127.0.0.1:29301:$D1,2@127.0.0.1:29302:$D2,3@127.0.0.1:29303:$D3"
for i in 1 2 3; do fmt c $i --initial-controllers "$IC"; done
for i in 1 2 3; do start c $i; done; sleep 5; waitleader; q steady
for n in $(seq 1 8); do
  waitleader; O=$L; if [ $((n%3)) = 0 ]; then stop $O; else kill9 $O; fi; sleep 3.5; waitleader $O; q storm-$n
  start c $O; sleep 3
done
for n in $(seq 9 20); do
  waitleader; O=$L; QN=""; for i in 1 2 3; do [ $i != $O ] && QN="$QN $i"; done
  pause $O; sleep 5; cont $O; sleep 1; unset QN
done
waitleader; q final h
# all stop together, start only two: more epochs
for i in 1 2 3; do kill9 $i; done; sleep 1; for i in 1 2 3; do start c $i; done; sleep 5; waitleader; q after-all-killed h
for i in 1 2 3; do [ $i != $L ] && stop $i; done; stop $L
save "" 1 2 3; dumps "" 1 2 3
for i in 1 2 3; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done
tl done
