#!/bin/bash
NAME=v4.4.0-mini; . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CTRLS="1 2"; PORT[1]=29601; PORT[2]=29602; PORT[11]=29611; for i in 1 2 11; do KVER[$i]=4.4.0; done; SEG=32768; SNAP=20000
cid; hdr "servers are 4.4.0; CLI tools are 4.3.1 (kafka-tools 4.4.0 is not on Maven Central here)"
fmt c 1 --standalone; fmt c 2 --no-initial-controllers; fmt b 11 --no-initial-controllers
start c 1; start c 2; sleep 5; waitleader; q one; addc 2; start b 11
ops 127.0.0.1:29611 127.0.0.1:29612 <<E
waitbrokers 1
features
topic x 60 1
cfgspam topic:x 80
acl topic x literal User:alice READ ALLOW
scram a 256 pw
quota user=a producer_byte_rate 5
token
produce x 2
deltopic x
topic y 30 1
E
q two h
kill9 11; sleep 5; waitleader; kill9 $L; start c $L; sleep 5; waitleader; q after-kill h
for i in 1 2; do [ $i != $L ] && stop $i; done; stop $L
save "" 1 2
for i in 1 2; do mkdir -p $OUT/dump/node-$i; for f in $OUT/node-$i/__cluster_metadata-0/*.{log,checkpoint} $OUT/node-$i/bootstrap.checkpoint; do k 4.3.1 dump-log --cluster-metadata-decoder --files $f > $OUT/dump/node-$i/$(basename $f).txt 2>&1; done; done
for i in 1 2; do greplogs $OUT/logs/c$i.log | cut -c1-1200 > $OUT/logs/c$i.grep.txt; gzip -9 -f $OUT/logs/c$i.log; done; rm -f $OUT/logs/b*
tl done
