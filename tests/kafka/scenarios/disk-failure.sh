#!/bin/bash
NAME=disk-failure; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CTRLS="1 2 3"; for i in 1 2 3; do PORT[$i]=2920$i; done; SEG=16384; SNAP=12000
cid
# 3 initial controllers given at format time (--initial-controllers)
D1=$(k $V storage random-uuid); D2=$(k $V storage random-uuid); D3=$(k $V storage random-uuid)
IC="1@127.0.0.1:29201:$D1,2@127.0.0.1:29202:$D2,3@127.0.0.1:29203:$D3"
for i in 1 2 3; do fmt c $i --initial-controllers "$IC"; done
for i in 1 2 3; do start c $i; done; sleep 5; waitleader; q steady h
sleep 15
F=; for i in 1 2 3; do [ $i != $L ] && F=$i; done
OLDDIR=$(dirid $F); tl "disk failure of follower $F (directory id $OLDDIR)"; kill9 $F; save before-wipe 1 2 3
rm -rf $RUN/node-$F; tl "wiped dir of node $F"
fmt c $F --no-initial-controllers; start c $F; sleep 8; tl "new directory id of node $F: $(dirid $F)"; q reformatted-$F h
save reformatted-not-added $F
addc $F; sleep 1; q added-new-dir-$F h
remc $F $OLDDIR; sleep 1; q removed-old-dir-$F h
addc $F; tl "(expected failure above: duplicate voter)"
sleep 10; q final h
for i in 1 2 3; do [ $i != $L ] && stop $i; done; stop $L
save "" 1 2 3; dumps "" 1 2 3; dumps before-wipe $F; dumps reformatted-not-added $F
for i in 1 2 3; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done
tl done
