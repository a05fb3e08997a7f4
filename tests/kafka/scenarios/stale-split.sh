#!/bin/bash
# usage: stale-split.sh [split|snapshot|removed]...   (default: all three, ~3 min each)
# Reproduces on a real 5-node KRaft cluster (Kafka 4.3.1, 127.0.0.1:29701-29705, -Xmx256m each) that a replica which
# truncates to T and then replicates a VotersRecord at V with T <= V < old end offset E never applies that record.
# SUFFIX=-x writes to stale-<variant>-x instead of replacing stale-<variant>
# Needs bin/get 4.3.1.
if [ $# != 1 ]; then for v in ${*:-split snapshot removed}; do "$0" $v || exit 1; done; exit; fi
VAR=$1; NAME=stale-$VAR$SUFFIX; SNAP=1000000000; [ $VAR = snapshot ] && SNAP=60000
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
exec > >(tee $OUT/run.out) 2>&1
CTRLS="1 2 3 4 5"; for i in $CTRLS; do PORT[$i]=2970$i; done; SEG=16777216
CTRL_EXTRA="controller.quorum.fetch.timeout.ms=10000\ncontroller.quorum.election.timeout.ms=1000\nmetadata.max.idle.interval.ms=500"
JV="java -Xmx96m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=$G/bin/log4j2-quiet.xml -cp $W/classes:$W/kafka-4.3.1/libs/*"
spam() { local o; o=$(timeout 60 $JV Spam "$@" 2>/dev/null); local rc=$?; tl "client writes via $1: $o"; return $rc; }
jmx() { local a="" i; for i in $1; do a="$a $i:${PID[$i]}"; done; timeout 40 $JV Jmx $a 2>&1 | tee -a $OUT/jmx.txt | sed 's/^/- /' | tee -a $OUT/timeline.md; }
ll() { grep -hE "$2" $OUT/logs/c$1.log; }                         # server log lines of one node
lastleo() { jmx "$1" | sed -n 's/.*log-end-offset=\([0-9]*\).*/\1/p' | tail -1; }
retry() { local n=0; until "$@"; do n=$((n+1)); [ $n -ge 15 ] && return 1; sleep 1.5; done; }
chk() { if [ "$2" = "$3" ]; then tl "CHECK ok: $1: $2"; else tl "CHECK DIFFERENT: $1: got '$2', predicted '$3'"; fi; }
voters() { jmx "$1" | sed -n 's/.*number-of-voters=\([0-9]*\).*/\1/p' | tail -1; }
logvoters() { # label node : last VotersRecord of that saved log, "offset ids"
 grep -h 'KRaftVoters' $OUT/dump/$1-node-$2/0*.log.txt | tail -1 | sed -E 's/^.*offset: ([0-9]+).*$/\1 &/' | awk '{o=$1; s=$0; r=""; while (match(s,/"voterId":[0-9]+/)) { r=r" "substr(s,RSTART+10,RLENGTH-10); s=substr(s,RSTART+RLENGTH) } print o":"r}'; }
waitlog() { local n=0; until grep -qE "$2" $OUT/logs/c$1.log; do n=$((n+1)); [ $n -ge ${3:-80} ] && { tl "no line '$2' in the log of node $1"; return 1; }; sleep 0.5; done; }

cid; hdr "variant: $VAR. All controller-only nodes. fetch timeout 10 s (leader check-quorum 15 s), election timeout 1 s, NoOp every 0.5 s, snapshot after $SNAP bytes."; hdr ""
D1=$(k $V storage random-uuid); D2=$(k $V storage random-uuid); D3=$(k $V storage random-uuid); D4=$(k $V storage random-uuid); D5=$(k $V storage random-uuid)
IC="1@127.0.0.1:29701:$D1,2@127.0.0.1:29702:$D2,3@127.0.0.1:29703:$D3"; INIT="1 2 3"; OBS="4 5"
for i in $INIT; do fmt c $i --initial-controllers "$IC"; done; for i in $OBS; do fmt c $i --no-initial-controllers; done
for i in $CTRLS; do start c $i; done; sleep 6; QN=1 waitleader; spam 127.0.0.1:2970$L 2 50 base 8000; q steady
L1=$L; F=""; for i in $INIT; do [ $i != $L1 ] && F="$F $i"; done
tl "L1=$L1 (leader of epoch $(awk '/^LeaderEpoch/{print $2}' $(ls $OUT/quorum/*status-steady.txt))) other voters=$F observers=$OBS"
# ---- 1. L1 appends records nobody replicates
for i in $F $OBS; do pause $i; done
sleep 1.5 # the fetches in flight return first
spam 127.0.0.1:2970$L1 4 400 uncommitted 3000
jmx $L1; save before $L1
pause $L1; E=0
# ---- 2. the others elect L2, which commits membership changes at offsets below E
for i in $F $OBS; do cont $i; done
QN="$F" waitleader $L1 || QN="$F" waitleader $L1; L2=$L; FO=""; for i in $F; do [ $i != $L2 ] && FO=$i; done
tl "L2=$L2 third voter FO=$FO"; QN="$F"; q new-leader; unset QN
if [ $VAR = removed ]; then QN="$F" retry addc 4; QN="$F" retry remc $L1; TRUE="$(echo $F 4 | tr ' ' '\n' | sort -n | xargs)"
else QN="$F" retry addc 4; QN="$F" retry addc 5; TRUE="1 2 3 4 5"; fi
TRUEN=$(echo $TRUE | wc -w)
QN="$F" q changed; sleep 2; jmx "$F $OBS"; save changed $L2 $FO 4 5
# ---- 3. L1 wakes up, learns the new epoch, truncates without a restart
cont $L1; waitlog $L1 'Truncated to offset' || exit 1; sleep 4
ll $L1 'Truncated to offset|Latest set of voters|Completed transition' | sed 's/^/- log of L1: /' | cut -c1-600 | tee -a $OUT/timeline.md
jmx "$CTRLS"; save after $CTRLS; q after-truncation h
dumps before $L1; dumps after $CTRLS
E=$(grep -hoE 'lastOffset: [0-9]+' $OUT/dump/before-node-$L1/0*.log.txt | tail -1 | awk '{print $2+1}'); T=$(ll $L1 'Truncated to offset' | sed -n 's/.*Truncated to offset \([0-9]*\).*/\1/p' | tail -1)
tl "E (end offset of L1 before) = $E, T (truncated to) = $T, last VotersRecord in L1's own log now = $(logvoters after $L1), in L2's log = $(logvoters after $L2)"
chk "live number-of-voters of L1 (node $L1) after truncation, log says $TRUEN" "$(voters $L1)" 3
chk "live number-of-voters of L2 (node $L2)" "$(voters $L2)" $TRUEN
chk "live number-of-voters of FO (node $FO)" "$(voters $FO)" $TRUEN
# ---- 4. still stale after L1 has replicated past E
if [ $VAR != split ] || true; then for n in 1 2 3; do spam 127.0.0.1:2970$L2 4 400 past-E-$n 8000; done; sleep 3; fi
jmx "$CTRLS"; q past-E h; LEO=$(lastleo $L1); tl "end offset of L1 is now $LEO, E was $E"
chk "live number-of-voters of L1 after its log passed E" "$(voters $L1)" 3
save past-E $CTRLS

if [ $VAR = split ]; then
 # ---- 5. L1 is elected and commits with 2 of 5
 REST="$L2 $OBS"; for i in $REST; do pause $i; done; tl "only L1=$L1 and FO=$FO run now: 2 of the 5 true voters. Truth: no leader can be elected, nothing can commit"
 n=0; until [ "$(ll $L1 'Completed transition to Leader' | wc -l)" -ge 2 ] || [ $n -ge 80 ]; do n=$((n+1)); sleep 0.5; done; sleep 3
 [ $n -ge 80 ] && { tl "NOT REPRODUCED: L1 was not elected in 40 s"; exit 1; }
 QN="$L1" q stale-leader h; spam 127.0.0.1:2970$L1 2 100 committed-by-2-of-5 8000; QN="$L1" q stale-leader-committed h; jmx "$L1 $FO"; save two-of-five $L1 $FO
 ll $L1 'Completed transition' | tail -4 | sed 's/^/- log of L1: /' | cut -c1-900 | tee -a $OUT/timeline.md
 # ---- 6. the true majority elects another leader and commits different records at the same offsets
 pause $L1; pause $FO; for i in $REST; do cont $i; done; sleep 1
 n=0; until [ "$(for i in $REST; do tail -n 400 $OUT/logs/c$i.log; done | grep -c "Completed transition to Leader")" -ge 2 ] || [ $n -ge 80 ]; do n=$((n+1)); sleep 0.5; done; sleep 2
 QN="$REST" waitleader; L3=$L; QN="$REST" q true-leader h; spam 127.0.0.1:2970$L3 2 100 committed-by-3-of-5 8000; QN="$REST" q true-leader-committed h; jmx "$REST"; save three-of-five $REST
 for i in $REST; do ll $i 'Completed transition' | tail -3 | sed "s/^/- log of node $i: /" | cut -c1-700 | tee -a $OUT/timeline.md; done
 # ---- 7. heal
 cont $L1; cont $FO; sleep 25; for i in $CTRLS; do kill -0 ${PID[$i]} 2>/dev/null && tl "node $i alive" || tl "node $i DEAD"; done
 QN="$REST" q healed h; jmx "$CTRLS"; save healed $CTRLS
 for i in $CTRLS; do ll $i 'ERROR|FATAL|below the current high|Truncated to offset|Exception' | grep -v 'INFO.*Config' | tail -8 | sed "s/^/- log of node $i: /" | cut -c1-500 | tee -a $OUT/timeline.md; done
 dumps two-of-five $L1 $FO; dumps three-of-five $REST; dumps healed $CTRLS
 # ---- 8. restart L1
 kill -0 ${PID[$L1]} 2>/dev/null && stop $L1; start c $L1; sleep 10; jmx $L1; save after-restart $L1; dumps after-restart $L1
 ll $L1 'Starting voters are' | tail -1 | sed 's/^/- log of L1: /' | cut -c1-900 | tee -a $OUT/timeline.md
 chk "live number-of-voters of L1 after a restart" "$(voters $L1)" 5
 # ---- 9. restart whoever died, see which of the two committed histories survives
 for i in $CTRLS; do kill -0 ${PID[$i]} 2>/dev/null || start c $i; done; sleep 15; waitleader; q all-restarted h; jmx "$CTRLS"; save final $CTRLS; dumps final $CTRLS
 for i in $CTRLS; do tl "node $i final log: ConfigRecords committed-by-2-of-5 = $(cat $OUT/dump/final-node-$i/0*.log.txt | grep -c committed-by-2-of-5), committed-by-3-of-5 = $(cat $OUT/dump/final-node-$i/0*.log.txt | grep -c committed-by-3-of-5)"; done
fi
if [ $VAR = snapshot ]; then
 # ---- 5. L1 writes its stale set into a checkpoint; a restart does not heal it
 n=0; until ls $RUN/node-$L1/__cluster_metadata-0/*.checkpoint 2>/dev/null | grep -vq '0000000000-0000000000' || [ $n -ge 40 ]; do n=$((n+1)); sleep 0.5; done
 spam 127.0.0.1:2970$L2 4 400 snap 8000; sleep 4; save with-checkpoint $CTRLS; dumps with-checkpoint $CTRLS
 for i in $CTRLS; do for c in $(ls $OUT/dump/with-checkpoint-node-$i/*-*.checkpoint.txt); do tl "node $i checkpoint $(basename $c .checkpoint.txt): VotersRecord ids =$(grep -h KRaftVoters $c | grep -oE '"voterId":[0-9]+' | cut -d: -f2 | tr '\n' ' ' | sed 's/^/ /')"; done; done
 stop $L1; start c $L1; sleep 9
 ll $L1 'Starting voters are|Loading snapshot' | tail -2 | sed 's/^/- log of L1 after restart: /' | cut -c1-900 | tee -a $OUT/timeline.md
 jmx "$CTRLS"; save after-restart $CTRLS; dumps after-restart $L1
 chk "live number-of-voters of L1 after a restart from its own checkpoint (truth $TRUEN)" "$(voters $L1)" 3
 # ---- 6. L1 leads; add-controller 4 again
 for i in $L2 4 5; do pause $i; done; tl "only L1 and FO run: L1 is elected by its stale set; then 4 and 5 come back and follow it"
 N0=$(ll $L1 'Completed transition to Leader' | wc -l); n=0; until [ "$(ll $L1 'Completed transition to Leader' | wc -l)" -gt $N0 ] || [ $n -ge 80 ]; do n=$((n+1)); sleep 0.5; done
 cont 4; cont 5; sleep 12; QN="$L1" q stale-leader h; jmx "$L1 $FO 4 5"
 QN=$L1; retry addc 4; q after-duplicate-add h; unset QN; sleep 2; jmx "$L1 $FO 4 5"; cont $L2; sleep 6; jmx "$CTRLS"; save after-duplicate-add $CTRLS; dumps after-duplicate-add $CTRLS
 for i in $CTRLS; do ll $i 'Latest set of voters' | tail -1 | sed "s/^/- log of node $i: /" | cut -c1-900 | tee -a $OUT/timeline.md; done
 tl "last VotersRecord in L1's log: $(logvoters after-duplicate-add $L1)"
fi
if [ $VAR = removed ]; then
 # ---- 5. the removed node still takes part in elections and wins one
 for i in $L2 4; do pause $i; done; tl "only L1=$L1, FO=$FO and observer 5 run; truth: voters are $TRUE, node $L1 is not one of them and must never lead; $FO alone (1 of 3) can commit nothing"
 N0=$(ll $L1 'Completed transition to Leader' | wc -l); n=0; until [ "$(ll $L1 'Completed transition to Leader' | wc -l)" -gt $N0 ] || [ $n -ge 80 ]; do n=$((n+1)); sleep 0.5; done; sleep 3
 QN="$L1" q removed-node-leads h; jmx "$L1 $FO 5"; spam 127.0.0.1:2970$L1 2 100 under-removed-leader 8000; QN="$L1" q removed-node-committed; jmx "$L1 $FO 5"; save removed-leads $L1 $FO
 ll $L1 'Completed transition' | tail -4 | sed 's/^/- log of L1: /' | cut -c1-900 | tee -a $OUT/timeline.md
 cont $L2; cont 4; sleep 15; QN="$F 4" q resumed h; jmx "$CTRLS"
 stop $L1; start c $L1; sleep 9; jmx "$L1"; save after-restart $L1; dumps after-restart $L1; dumps removed-leads $L1 $FO
 ll $L1 'Starting voters are' | tail -1 | sed 's/^/- log of L1: /' | cut -c1-900 | tee -a $OUT/timeline.md
 chk "live number-of-voters of removed L1 after a restart" "$(voters $L1)" $TRUEN
fi
stopall; sleep 1
for i in $CTRLS; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done
python3 $G/gen/stale_truth.py $OUT; tl done
