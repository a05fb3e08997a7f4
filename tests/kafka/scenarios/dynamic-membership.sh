#!/bin/bash
NAME=dynamic-membership; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CTRLS="1 2 3"; PORT[1]=29001; PORT[2]=29002; PORT[3]=29003; PORT[11]=29011; PORT[12]=29021
cid
fmt c 1 --standalone --release-version 4.0-IV3 --add-scram 'SCRAM-SHA-256=[name=boot,password=boot-secret]'
fmt c 2 --no-initial-controllers --release-version 4.0-IV3; fmt c 3 --no-initial-controllers --release-version 4.0-IV3
for b in 11 12; do fmt b $b --no-initial-controllers --release-version 4.0-IV3; done
start c 1; sleep 3; waitleader; q standalone
start c 2; start c 3; sleep 5; q observers
addc 2; q added2; addc 3; sleep 1; q added3 h
start b 11; start b 12
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
waitbrokers 2
features
topic t-small 3 1
topic t-rf2 6 2 min.insync.replicas=1 cleanup.policy=compact
topic t-wide 200 2
topic t-del 50 1
topicassign t-assign 11 12 11 12
cfg topic:t-small retention.ms=60000 max.message.bytes=200000
cfg broker: log.retention.ms=123456
cfg broker:11 log.cleaner.threads=1
cfg metrics:sub1 interval.ms=60000 metrics=org.apache.kafka.consumer.
cfg group:g1 consumer.session.timeout.ms=50000
uncfg topic:t-small max.message.bytes
cfgspam topic:t-small 60
addparts t-rf2 9
acl topic t-small literal User:alice READ ALLOW
acl topic t- prefixed User:bob WRITE ALLOW
acl group * literal User:eve ALL DENY
acl cluster kafka-cluster literal User:carol DESCRIBE ALLOW
delacl topic t-small
scram alice 256 secret1
scram alice 512 secret2
scram bob 512 secret3
delscram bob 512
quota user=alice producer_byte_rate 1048576
quota user=alice,client-id=c1 consumer_byte_rate 2048
quota user=<default> request_percentage 55.5
quota ip=127.0.0.9 connection_creation_rate 10
quota user=alice producer_byte_rate null
token
sleep 1500
renewtoken
sleep 1000
expiretoken
sleep 500
token
produce t-small 5
reassign t-assign 0 12
reassign t-rf2 0 12
reassign t-rf2 1 12,11
sleep 1500
reassigning
elect
deltopic t-del
feature metadata.version 26
feature group.version 1
feature transaction.version 2
feature eligible.leader.replicas.version 1
cfg broker: min.insync.replicas=1
cfg topic:t-rf2 min.insync.replicas=2
features
E
q after-ops h
waitleader; OLD=$L; kill9 $OLD; waitleader $OLD; q after-kill-$OLD
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
topic t-after-kill1 30 2
cfgspam topic:t-after-kill1 40
E
start c $OLD; sleep 5; q restarted-$OLD
# broker fence
kill9 12; sleep 7; q broker12-fenced
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
brokers
cfgspam topic:t-small 30
E
start b 12
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
waitbrokers 2
sleep 3000
elect
feature metadata.version 30
feature share.version 1
feature streams.version 1
E
# remove a follower, then re-add
waitleader; F=; for i in 1 2 3; do [ $i != $L ] && F=$i; done
remc $F; sleep 1; q removed-follower-$F
addc $F; sleep 1; q readded-follower-$F
# leader removes itself
waitleader; LL=$L; remc $LL; sleep 4; waitleader; q leader-$LL-removed-itself h
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
cfgspam topic:t-small 20
topic t-x 20 1
E
addc $LL; sleep 1; q readded-exleader-$LL
# UpdateVoter: port change of a non-leader
waitleader; U=; for i in 3 2 1; do [ $i != $L ] && U=$i; done
stop $U; PORT[$U]=$((PORT[$U]+50)); start c $U; sleep 8; q updatevoter-port-$U
# UpdateVoter of leader (its port changes, must be re-elected or follower)
waitleader; U=$L; kill9 $U; PORT[$U]=$((PORT[$U]+60)); start c $U; waitleader $U; sleep 8; q updatevoter-port-exleader-$U h
# unregister broker 12
stop 12; sleep 2
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
unregister 12
deltopic t-assign
cfgspam topic:t-small 60
topic t-last 100 1
feature streams.version 0 SAFE_DOWNGRADE
brokers
features
E
q before-restart-all
stop 11; for i in 1 2 3; do stop $i; done
save before-restart 1 2 3
for i in 1 2 3; do start c $i; done; start b 11; sleep 6; waitleader; q after-restart-all
ops 127.0.0.1:29011 127.0.0.1:29012 <<E
cfgspam topic:t-small 20
E
q final h
stop 11; FO=; waitleader; for i in 1 2 3; do [ $i != $L ] && stop $i; done; stop $L
save "" 1 2 3; DM=both dumps "" 1; DM=meta dumps "" 2 3
rm -rf $OUT/before-restart
for i in 1 2 3; do greplogs $OUT/logs/c$i.log | cut -c1-1500 > $OUT/logs/c$i.grep.txt; gzip -f $OUT/logs/c$i.log; done; rm -f $OUT/logs/b*.log
tl done
