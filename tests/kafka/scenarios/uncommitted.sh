#!/bin/bash
NAME=uncommitted-truncation; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
useout() { tail -c 0 /dev/null; local prev=$OUT; OUT=$W/scenarios/$1; rm -rf $OUT; mkdir -p $OUT/quorum $OUT/dump $OUT/logs; hdr "# $1"; hdr ""; hdr "kafka version: $V; cluster id: $CID; this is a CONTINUATION of the cluster of scenario $(basename $prev) (same nodes, same logs)"; hdr ""; }
CTRLS="1 2 3 4"; for i in 1 2 3 4; do PORT[$i]=2910$i; done; PORT[11]=29111
CTRL_EXTRA="controller.quorum.fetch.timeout.ms=15000"; EXTRA[4]="controller.quorum.fetch.timeout.ms=600000"; EXTRA[11]="controller.quorum.fetch.timeout.ms=2000"
SEG=32768; SNAP=25000
cid
fmt c 1 --standalone; for i in 2 3 4; do fmt c $i --no-initial-controllers; done; fmt b 11 --no-initial-controllers
for i in 1 2 3 4; do start c $i; done; sleep 6; waitleader; addc 2; addc 3; start b 11
ops 127.0.0.1:29111 127.0.0.1:29112 <<E
waitbrokers 1
topic base 60 1
cfgspam topic:base 150
acl topic base literal User:alice READ ALLOW
E
q steady h
bgops() { (timeout 40 java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=$G/bin/log4j2-quiet.xml -cp "$W/classes:$W/kafka-4.3.1/libs/*" Ops 127.0.0.1:29111 > $RUN/bgops.out 2>&1) & BG=$!; }
partial() { # variant(add|remove|addcommit) 
 waitleader; OL=$L; FOL=""; for i in $VOTERS; do [ $i != $OL ] && FOL="$FOL $i"; done
 tl "leader=$OL followers=$FOL ; LAST describe before the pause:"; q before-pause
 for f in $FOL; do pause $f; done
 sleep 0.5
 tl "issue membership change in background (CLI will time out or be cut by the leader's death)"
 case $1 in add*) (QN="$OL" addc 4 > $RUN/bg.out 2>&1) & BGC=$!;; remove) X=$(echo $FOL | awk '{print $1}'); tl "removing follower $X"; (QN="$OL" remc $X > $RUN/bg.out 2>&1) & BGC=$!;; esac
 sleep 2.5
 bgops <<E
topic uncommitted-$1 5 1
cfg topic:base retention.ms=424242
E
 sleep 2
 QN="$OL" q during-uncommitted h
 save before 1 2 3 4; }
VOTERS="1 2 3"
# ---- 1: AddVoter uncommitted then truncated
partial add
kill9 $OL; tl "the VotersRecord with voter 4 was never acked by a majority of {1,2,3,4}: it is UNCOMMITTED and must disappear"
for f in $FOL; do cont $f; done
QN="$FOL" waitleader $OL; NL=$L; QN="$FOL" q new-leader-$NL
sleep 2; start c $OL; sleep 6; q old-leader-restarted h
ops 127.0.0.1:29111 127.0.0.1:29112 <<E
waitbrokers 1
topic after-truncation 10 1
cfgspam topic:base 60
E
q after h
save after 1 2 3 4
for i in 1 2 3 4; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; cp $OUT/logs/c$i.log $RUN/c$i.part1.log; gzip -f $OUT/logs/c$i.log; done; rm -f $OUT/logs/b*
kill $BGC $BG 2>/dev/null
dumps before 1 2 3 4; dumps after 1 2 3 4
tl "done part 1"
# ---- 2: RemoveVoter uncommitted then truncated
restart_logs() { for i in 1 2 3 4; do stop $i; done; for i in 1 2 3 4; do start c $i; done; stop 11; start b 11; sleep 6; waitleader; }
useout uncommitted-removal; restart_logs; q steady
partial remove
kill9 $OL; tl "the VotersRecord without $X needs {new set majority}: UNCOMMITTED, must disappear"
for f in $FOL; do cont $f; done
QN="$FOL" waitleader $OL; NL=$L; QN="$FOL" q new-leader-$NL
sleep 2; start c $OL; sleep 6; q old-leader-restarted h
ops 127.0.0.1:29111 127.0.0.1:29112 <<E
waitbrokers 1
topic after-removal-truncation 10 1
cfgspam topic:base 30
E
q after h; save after 1 2 3 4
for i in 1 2 3 4; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done; rm -f $OUT/logs/b*
kill $BGC $BG 2>/dev/null
dumps before $OL $X; dumps after 1 2 3
tl "done part 2"
# ---- 3: AddVoter uncommitted at copy time, then COMMITTED
useout uncommitted-then-committed; restart_logs; q steady
partial addcommit
for f in $FOL; do cont $f; done; tl "followers resumed before the check-quorum timeout: the same VotersRecord becomes COMMITTED"
sleep 4; q after-resume h
wait $BGC; cat $RUN/bg.out; wait $BG; cat $RUN/bgops.out; sed 's/^/- bg /' $RUN/bgops.out >> $OUT/timeline.md
sleep 1; q after h; save after 1 2 3 4
for i in 1 2 3 4; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done; rm -f $OUT/logs/b*
dumps before $OL 4; dumps after 1 4
tl "done part 3"
