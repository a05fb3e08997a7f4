"""Entries of a node's configuration file whose values Kafka takes whatever stands in other entries.

Releases 4.3 and 4.4; tests/long/test_format.py compares them with the jars (AbstractKafkaConfig.CONFIG_DEF).
Of other entries, whether Kafka takes a value is not declared here: ranges of their own, rules between
several of them, classes that must exist.
"""

from __future__ import annotations

_FROM = {
    0: """
        add.partitions.to.txn.retry.backoff.max.ms controller.performance.always.log.threshold.ms
        controller.quorum.append.linger.ms controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.socket.timeout.ms
        default.replication.factor delete.records.purgatory.purge.interval.requests
        fetch.purgatory.purge.interval.requests group.initial.rebalance.delay.ms
        initial.broker.registration.timeout.ms log.flush.interval.ms
        log.flush.offset.checkpoint.interval.ms log.flush.scheduler.interval.ms
        log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes log.initial.task.delay.ms
        log.segment.delete.delay.ms max.incremental.fetch.session.cache.slots message.max.bytes
        metadata.log.max.snapshot.interval.ms metadata.log.segment.ms metadata.max.idle.interval.ms
        metadata.max.retention.bytes metadata.max.retention.ms num.replica.alter.log.dirs.threads
        offset.metadata.max.bytes producer.purgatory.purge.interval.requests request.timeout.ms
        server.max.startup.time.ms socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms socket.receive.buffer.bytes socket.send.buffer.bytes
    """,
    1: """
        add.partitions.to.txn.retry.backoff.ms background.threads controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes kafka.metrics.polling.interval.secs
        leader.imbalance.check.interval.seconds log.dir.failure.timeout.ms log.flush.interval.messages
        log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms
        max.request.partition.size.limit metadata.log.max.record.bytes.between.snapshots
        metrics.num.samples metrics.sample.window.ms min.insync.replicas num.io.threads
        num.network.threads num.partitions num.recovery.threads.per.data.dir num.replica.fetchers
        offsets.topic.num.partitions offsets.topic.replication.factor
        producer.id.expiration.check.interval.ms producer.id.expiration.ms queued.max.requests
        share.coordinator.state.topic.min.isr share.coordinator.state.topic.replication.factor
        socket.listen.backlog.size socket.request.max.bytes transaction.state.log.min.isr
        transaction.state.log.num.partitions transaction.state.log.replication.factor
        unclean.leader.election.interval.ms
    """,
    1024 * 1024: "log.segment.bytes",
}
ACCEPTED_FROM = {name: least for least, names in _FROM.items() for name in names.split()}
"""Numbers: name -> the least value that Kafka takes, or more than that."""

_TEXTS = """
    authorizer.class.name broker.rack delegation.token.secret.key replica.selector.class sasl.jaas.config
    sasl.kerberos.kinit.cmd sasl.kerberos.service.name sasl.mechanism.controller.protocol
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name
    sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url security.providers
    ssl.endpoint.identification.algorithm ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""
FREE_TEXTS = frozenset(_TEXTS.split())
"""Texts and passwords that Kafka takes as they are when it reads the file: a node may fail on them later."""
