package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.ZkMigrationStateRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * What controllers of 3.9 without zookeeper.metadata.migration.enable do, in the state of each line: STATE LEVEL, and
 * the ids of brokers registered in ZooKeeper mode. Answers: the state that the controller writes as it becomes active
 * or -, and how it answers the registration of a broker in ZooKeeper mode, and of one in KRaft mode.
 */
public class MigrationAnswers {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("= " + answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) {
        short level = Short.parseShort(words[1]);
        SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(1, QuorumFeatures.defaultFeatureMap(true), List.of(1)))
            .build();
        features.replay(new FeatureLevelRecord().setName("metadata.version").setFeatureLevel(level));
        features.replay(new ZkMigrationStateRecord().setZkMigrationState(Byte.parseByte(words[0])));
        ClusterControlManager cluster = new ClusterControlManager.Builder()
            .setClusterId("c")
            .setTime(Time.SYSTEM)
            .setSnapshotRegistry(registry)
            .setSessionTimeoutNs(9_000_000_000L)
            .setFeatureControlManager(features)
            .setReplicaPlacer(new StripedReplicaPlacer(new java.util.Random(0)))
            .setBrokerUncleanShutdownHandler((id, records) -> { })
            .setInterBrokerListenerName("PLAINTEXT")
            .build();
        cluster.activate();
        for (int nth = 2; nth < words.length; nth++) {
            cluster.replay(new RegisterBrokerRecord().setBrokerId(Integer.parseInt(words[nth]))
                .setIsMigratingZkBroker(true).setIncarnationId(Uuid.randomUuid()).setFenced(false), nth);
        }
        String written = ActivationRecordsGenerator
            .recordsForNonEmptyLog(message -> { }, -1L, false, features, MetadataVersion.fromFeatureLevel(level))
            .records().stream()
            .map(record -> String.valueOf(((ZkMigrationStateRecord) record.message()).zkMigrationState()))
            .collect(Collectors.joining(","));
        return (written.isEmpty() ? "-" : written) + " " + registered(cluster, features, true) + " "
            + registered(cluster, features, false);
    }

    private static String registered(ClusterControlManager cluster, FeatureControlManager features, boolean isMigrating) {
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData()
            .setBrokerId(99).setClusterId("c").setIncarnationId(Uuid.randomUuid()).setIsMigratingZkBroker(isMigrating)
            .setLogDirs(List.of(Uuid.fromString("d5efUia_RsKg158_0afzxQ")));
        request.listeners().add(new BrokerRegistrationRequestData.Listener().setName("PLAINTEXT").setHost("h").setPort(1));
        request.features().add(new BrokerRegistrationRequestData.Feature().setName("metadata.version")
            .setMinSupportedVersion((short) 1).setMaxSupportedVersion((short) 21));
        try {
            cluster.registerBroker(request, 100, features.finalizedFeatures(Long.MAX_VALUE));
            return "accepted";
        } catch (Exception error) {
            return error.getClass().getSimpleName();
        }
    }
}
