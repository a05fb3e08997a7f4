#!/bin/bash
# Functions of the scenarios. Before sourcing, set NAME; BASE (folder of scenarios) and V (release) have defaults.
. "$(dirname "${BASH_SOURCE[0]}")/../bin/env.sh"
V=${V:-4.3.1}; OUT=${BASE:-$W/scenarios}/$NAME; RUN=$W/run/$NAME
export V
rm -rf "$OUT" "$RUN"; mkdir -p "$OUT/quorum" "$OUT/dump" "$OUT/logs" "$RUN"
declare -A PID PORT KVER EXTRA
CTRL_EXTRA=${CTRL_EXTRA:-}; SEG=${SEG:-65536}; SNAP=${SNAP:-40000}
now() { date +%s%3N; }
tl() { echo "- $(now) $*" >> "$OUT/timeline.md"; echo "$(now) $*"; }
hdr() { echo "$*" >> "$OUT/timeline.md"; }
k() { $G/bin/k "$@"; }
cid() { CID=$(k $V storage random-uuid); hdr "# $NAME"; hdr ""; hdr "kafka version: $V; cluster id: $CID"; hdr ""; }
bootservers() { local s=""; for i in $CTRLS; do s="$s,127.0.0.1:${PORT[$i]}"; done; echo ${s#,}; }
segprops() { case ${1:-$V} in 4.1*|4.2*|4.3*|4.4*) echo "internal.metadata.log.segment.bytes=$SEG";; *) echo "metadata.log.segment.min.bytes=12"; echo "metadata.log.segment.bytes=$SEG";; esac; }
ctrlcfg() { # id [version]
 local i=$1 v=${KVER[$1]:-$V}
 { echo "process.roles=controller"; echo "node.id=$i"; echo "listeners=CONTROLLER://127.0.0.1:${PORT[$i]}"
   case $v in 3.[0-8].*) ;; *) echo "advertised.listeners=CONTROLLER://127.0.0.1:${PORT[$i]}";; esac
   echo "controller.listener.names=CONTROLLER"; echo "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"
   if [ -n "$STATIC" ]; then echo "controller.quorum.voters=$STATIC"; else echo "controller.quorum.bootstrap.servers=$(bootservers)"; fi
   echo "log.dirs=$RUN/node-$i"; echo "metadata.log.dir=$RUN/node-$i"; segprops $v
   echo "metadata.log.max.record.bytes.between.snapshots=$SNAP"; echo "metadata.log.max.snapshot.interval.ms=${SNAPMS:-0}"
   echo "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"; echo "super.users=User:ANONYMOUS;User:admin"
   case $v in 3.[0-5].*) ;; *) echo "delegation.token.secret.key=golden-secret";; esac; echo "broker.session.timeout.ms=4000"; echo "broker.heartbeat.interval.ms=1000"
   echo "num.network.threads=1"; echo "num.io.threads=2"; printf "%b\n" "$CTRL_EXTRA"; printf "%b\n" "${EXTRA[$i]}"; } > $RUN/c$i.properties; }
brokercfg() { # id ; PORT[id] plaintext, PORT+1000? sasl = PORT[id]+1
 local i=$1; { echo "process.roles=broker"; echo "node.id=$i"; echo "listeners=PLAINTEXT://127.0.0.1:${PORT[$i]},SASL://127.0.0.1:$((PORT[$i]+1))"; echo "advertised.listeners=PLAINTEXT://127.0.0.1:${PORT[$i]},SASL://127.0.0.1:$((PORT[$i]+1))"
   echo "controller.listener.names=CONTROLLER"; echo "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"; echo "inter.broker.listener.name=PLAINTEXT"
   echo "sasl.enabled.mechanisms=PLAIN"; echo 'listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-pw" user_admin="admin-pw";'
   if [ -n "$STATIC" ]; then echo "controller.quorum.voters=$STATIC"; else echo "controller.quorum.bootstrap.servers=$(bootservers)"; fi
   echo "log.dirs=$RUN/broker-$i/a,$RUN/broker-$i/b"; segprops ${KVER[$i]:-$V}; echo "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"; echo "super.users=User:ANONYMOUS;User:admin"; case ${KVER[$i]:-$V} in 3.[0-5].*) ;; *) echo "delegation.token.secret.key=golden-secret";; esac
   echo "offsets.topic.replication.factor=1"; echo "offsets.topic.num.partitions=2"; echo "transaction.state.log.replication.factor=1"; echo "transaction.state.log.num.partitions=2"; echo "share.coordinator.state.topic.replication.factor=1";echo "share.coordinator.state.topic.num.partitions=2"; echo "broker.heartbeat.interval.ms=1000"; echo "broker.session.timeout.ms=4000"; echo "log.cleaner.enable=true"; echo "log.cleaner.dedupe.buffer.size=2097152"
   echo "num.network.threads=1"; echo "num.io.threads=2"; printf "%b\n" "${EXTRA[$i]}"; } > $RUN/b$i.properties; }
fmt() { # kind(c|b) id args...
 local kd=$1 i=$2; shift 2; [ $kd = c ] && ctrlcfg $i || brokercfg $i; k ${KVER[$i]:-$V} storage format -t $CID -c $RUN/$kd$i.properties "$@" > $RUN/fmt.$i.out 2>&1; local rc=$?; tl "format $kd$i $* rc=$rc: $(tr '\n' ' ' < $RUN/fmt.$i.out | cut -c1-300)"; }
start() { local kd=$1 i=$2; [ $kd = c ] && ctrlcfg $i || brokercfg $i; $G/bin/k ${KVER[$i]:-$V} server $RUN/$kd$i.properties >> $OUT/logs/$kd$i.log 2>&1 & PID[$i]=$!; tl "start $kd$i pid=${PID[$i]} port=${PORT[$i]} version=${KVER[$i]:-$V}"; }
stop() { local i=$1; kill -TERM ${PID[$i]} 2>/dev/null; local n=0; while kill -0 ${PID[$i]} 2>/dev/null && [ $n -lt 150 ]; do sleep 0.1; n=$((n+1)); done; kill -0 ${PID[$i]} 2>/dev/null && kill -9 ${PID[$i]}; wait ${PID[$i]} 2>/dev/null; tl "clean stop (SIGTERM) node $i after ${n}00ms"; }
kill9() { local i=$1; kill -9 ${PID[$i]}; wait ${PID[$i]} 2>/dev/null; tl "kill -9 node $i"; }
pause() { kill -STOP ${PID[$1]}; tl "SIGSTOP node $1"; }
cont() { kill -CONT ${PID[$1]}; tl "SIGCONT node $1"; }
boot() { if [ -n "$QB" ]; then echo "--bootstrap-server $QB"; else echo "--bootstrap-controller $(bc)"; fi; }
bc() { local s="" i; for i in ${QN:-$CTRLS}; do [ -n "${PID[$i]}" ] && kill -0 ${PID[$i]} 2>/dev/null && s="$s,127.0.0.1:${PORT[$i]}"; done; echo ${s#,}; }
status() { timeout 40 $G/bin/k $V metadata-quorum $(boot) describe --status; }
leader() { timeout 9 $G/bin/k $V metadata-quorum $(boot) describe --status 2>/dev/null | awk "/^LeaderId/{print \$2}"; }
q() { # tag
 local t; t=$(now); timeout 40 $G/bin/k $V metadata-quorum $(boot) describe --status > $OUT/quorum/$t-status-$1.txt 2>&1
 local t2; t2=$(now); timeout 40 $G/bin/k $V metadata-quorum $(boot) describe --replication > $OUT/quorum/$t2-replication-$1.txt 2>&1
 [ "$2" = h ] && { t2=$(now); timeout 40 $G/bin/k $V metadata-quorum $(boot) describe --replication --human-readable > $OUT/quorum/$t2-replication-human-$1.txt 2>&1; }
 tl "quorum[$1] leader=$(awk '/^LeaderId/{print $2}' $OUT/quorum/$t-status-$1.txt) epoch=$(awk '/^LeaderEpoch/{print $2}' $OUT/quorum/$t-status-$1.txt) hw=$(awk '/^HighWatermark/{print $2}' $OUT/quorum/$t-status-$1.txt) voters=$(grep ^CurrentVoters $OUT/quorum/$t-status-$1.txt | cut -d: -f2- | tr -d '\t') observers=$(grep ^CurrentObservers $OUT/quorum/$t-status-$1.txt | cut -d: -f2-| tr -d '\t')"; }
waitleader() { local n=0 l; while [ $n -lt 40 ]; do l=$(leader); [ -n "$l" ] && [ "$l" != "-1" ] && [ "$l" != "$1" ] && { L=$l; tl "leader is $L"; return 0; }; sleep 0.5; n=$((n+1)); done; tl "NO LEADER after wait"; return 1; }
addc() { local i=$1; shift; timeout 90 $G/bin/k $V metadata-quorum --command-config $RUN/c$i.properties --bootstrap-controller $(bc) add-controller "$@" > $RUN/out 2>&1; local rc=$?; tl "add-controller $i rc=$rc: $(tr '\n' ' ' < $RUN/out | cut -c1-500)"; return $rc; }
dirid() { awk -F= '/^directory.id/{print $2}' $RUN/node-$1/meta.properties; }
remc() { local i=$1 d=${2:-$(dirid $1)}; timeout 90 $G/bin/k $V metadata-quorum --bootstrap-controller $(bc) remove-controller --controller-id $i --controller-directory-id $d > $RUN/out 2>&1; local rc=$?; tl "remove-controller $i@$d rc=$rc: $(tr '\n' ' ' < $RUN/out | cut -c1-500)"; return $rc; }
ops() { # bootstrap sasl <<script
 timeout 280 java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile=$G/bin/log4j2-quiet.xml -cp "$W/classes:$W/kafka-4.3.1/libs/*" Ops $1 $2 > $RUN/ops.out 2>&1; sed 's/^/- /' $RUN/ops.out >> $OUT/timeline.md; cat $RUN/ops.out; }
save() { # label dirs: copies controller dirs to OUT[/label]/node-<id>
 local lab=$1 i d; shift; for i in "$@"; do d=$OUT/${lab:+$lab/}node-$i; rm -rf $d; mkdir -p $d; (cd $RUN/node-$i && tar cf - --exclude='*.index*' --exclude='*.timeindex*' --exclude='*.txnindex' --exclude='.lock' --exclude='*.lock' .) | tar xf - -C $d; done; tl "saved dirs label='${lab}' nodes=$*"; }
dumps() { # label nodes
 local lab=$1 i; shift; for i in "$@"; do local d=$OUT/${lab:+$lab/}node-$i; local m=${DM:-meta}; (cd $d; java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile=$G/bin/log4j2-quiet.xml -cp "$W/classes:$W/kafka-4.3.1/libs/*" DumpAll $OUT/dump/${lab:+$lab-}node-$i $m $(ls bootstrap.checkpoint __cluster_metadata-0/*.log __cluster_metadata-0/*.checkpoint 2>/dev/null)); done; tl "dumped label='${lab}' nodes=$*"; }
greplogs() { grep -hE 'Truncat(ed|ing)|[Vv]oter|Completed transition|diverg|[Rr]esign|high watermark|checkpoint' "$@" | grep -vE 'INFO (KafkaConfig|.*Config) values|^\s' ; }
stopall() { local i; for i in "${!PID[@]}"; do kill -0 ${PID[$i]} 2>/dev/null && { kill -CONT ${PID[$i]}; kill -9 ${PID[$i]}; }; done; }
trap stopall EXIT
