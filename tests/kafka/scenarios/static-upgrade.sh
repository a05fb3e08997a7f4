#!/bin/bash
NAME=static-upgrade; V=3.9.2; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CTRLS="1 2 3"; for i in 1 2 3 4; do PORT[$i]=2940$i; done; PORT[11]=29411; SEG=32768; SNAP=25000
STATIC="1@127.0.0.1:29401,2@127.0.0.1:29402,3@127.0.0.1:29403"
cid
for i in 1 2 3; do fmt c $i --release-version 3.3-IV3; done; fmt b 11 --release-version 3.3-IV3
QB=127.0.0.1:29411
for i in 1 2 3; do start c $i; done; start b 11; sleep 8; waitleader; q static-392 h
ops 127.0.0.1:29411 127.0.0.1:29412 <<E
waitbrokers 1
features
topic old1 40 1
cfgspam topic:old1 80
acl topic old1 literal User:alice READ ALLOW
produce old1 2
E
kill9 11; sleep 7; start b 11
waitleader; O=$L; kill9 $O; sleep 5; waitleader $O; start c $O; sleep 4; q static-after-kill
ops 127.0.0.1:29411 127.0.0.1:29412 <<E
waitbrokers 1
features
topic mv33 10 1
feature metadata.version 14
scram u1 256 pw
feature metadata.version 21
cfgspam topic:old1 60
delacl topic old1
deltopic old1
topic old2 40 1
feature metadata.version 99
feature kraft.version 1
features
E
tl "(kraft.version upgrade above on 3.9.2: see result)"
q static-before-upgrade h
waitleader; stop 11; for i in 1 2 3; do [ $i != "$L" ] && stop $i; done; kill -0 ${PID[$L]} 2>/dev/null && stop $L
save at-3.9.2 1 2 3
QB=; V=4.3.1; export V; tl "same dirs, binaries now $V, still static voters"
for i in 1 2 3; do start c $i; done; start b 11; sleep 8; waitleader; q static-431 h
ops 127.0.0.1:29411 127.0.0.1:29412 <<E
waitbrokers 1
feature metadata.version 30
cfgspam topic:old2 20
features
E
save at-4.3.1-static 1
waitleader; timeout 60 $G/bin/k $V features --bootstrap-controller $(bc) upgrade --feature kraft.version=1 > $RUN/out 2>&1; tl "kafka-features upgrade --feature kraft.version=1 rc=$?: $(tr '\n' ' ' < $RUN/out | cut -c1-400)"
sleep 2; q kraft-version-1 h
# switch config to dynamic (bootstrap.servers), restart rolling
unset STATIC
for i in 1 2 3; do stop $i; start c $i; sleep 6; waitleader; done; q rolled-to-bootstrap-servers
CTRLS="1 2 3 4"; fmt c 4 --no-initial-controllers; start c 4; sleep 6; addc 4; sleep 1; q added4 h
waitleader; R=; for i in 1 2 3; do [ $i != $L ] && R=$i; done; remc $R; sleep 1; q removed-$R h
ops 127.0.0.1:29411 127.0.0.1:29412 <<E
cfgspam topic:old2 60
E
q final
stop 11; for i in 1 2 3 4; do [ $i != $L ] && stop $i; done; stop $L
save "" 1 2 3 4; dumps at-3.9.2 1; dumps "" 1 4; dumps at-4.3.1-static 1
# also dump the 3.9.2 dirs with the 3.9.2 tool
mkdir -p $OUT/dump/at-3.9.2-node-1-by-3.9.2-tool; cd $OUT/at-3.9.2/node-1; for f in __cluster_metadata-0/*.log __cluster_metadata-0/*.checkpoint bootstrap.checkpoint; do [ -f $f ] && k 3.9.2 dump-log --cluster-metadata-decoder --files $f > $OUT/dump/at-3.9.2-node-1-by-3.9.2-tool/$(basename $f).txt 2>&1; done
for i in 1 2 3 4; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done; rm -f $OUT/logs/b*
tl done
