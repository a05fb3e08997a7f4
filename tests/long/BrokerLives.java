package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Lives of brokers by the ClusterControlManager, ReplicationControlManager and BrokerHeartbeatManager of the jars.
 * Each line is an operation at an offset and a time in ms, and is answered with an error, or with the reply and the
 * records about brokers: new CLUSTER TIMEOUT FEATURES; register OFFSET MS ID CLUSTER INCARNATION FEATURES DIRS ZK;
 * heartbeat OFFSET MS ID EPOCH METADATA FENCE SHUTDOWN OFFLINE; unregister OFFSET MS ID; stale OFFSET MS;
 * lead OFFSET MS ID, which gives a broker a partition of its own. Empty lists are a dash.
 */
public class BrokerLives {
    private static final class SetTime implements Time {
        private long ms;

        @Override
        public long milliseconds() {
            return ms;
        }

        @Override
        public long nanoseconds() {
            return ms * 1_000_000;
        }

        @Override
        public void sleep(long ms) { }

        @Override
        public void waitObject(Object obj, Supplier<Boolean> condition, long deadlineMs) { }
    }

    private final SetTime time = new SetTime();
    private final Map<String, Short> finalized;
    private final ClusterControlManager cluster;
    private final ReplicationControlManager manager;
    private long topics = 0;

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        BrokerLives lives = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("new")) {
                lives = new BrokerLives(words);
            } else {
                System.out.println("= " + lives.answer(words));
            }
        }
    }

    private BrokerLives(String[] words) throws Exception {
        Constructor<?> made = SnapshotRegistry.class.getConstructors()[0];
        Object context = made.getParameterTypes()[0].getConstructor().newInstance();
        SnapshotRegistry registry = (SnapshotRegistry) made.newInstance(context);
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(1, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(1)))
            .build();
        finalized = new TreeMap<>();
        for (String feature : list(words[3])) {
            String[] parts = feature.split(":");
            finalized.put(parts[0], Short.valueOf(parts[1]));
            features.replay(new FeatureLevelRecord().setName(parts[0]).setFeatureLevel(Short.parseShort(parts[1])));
        }
        ReplicationControlManager[] later = new ReplicationControlManager[1];
        cluster = new ClusterControlManager.Builder()
            .setClusterId(words[1])
            .setSessionTimeoutNs(Long.parseLong(words[2]) * 1_000_000)
            .setSnapshotRegistry(registry)
            .setTime(time)
            .setFeatureControlManager(features)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
            .setBrokerShutdownHandler((id, isClean, records) -> later[0].handleBrokerShutdown(id, isClean, records))
            .build();
        manager = new ReplicationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setConfigurationControl(new ConfigurationControlManager.Builder()
                .setSnapshotRegistry(registry)
                .setFeatureControl(features)
                .setKafkaConfigSchema(KafkaRaftServer.configSchema())
                .build())
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .build();
        later[0] = manager;
        cluster.activate();
    }

    private String answer(String[] words) {
        long offset = Long.parseLong(words[1]);
        time.ms = Long.parseLong(words[2]);
        try {
            switch (words[0]) {
                case "register":
                    return register(words, offset);
                case "heartbeat":
                    return heartbeat(words, offset);
                case "unregister":
                    return replayed(manager.unregisterBroker(Integer.parseInt(words[3])).records(), offset);
                case "stale":
                    List<ApiMessageAndVersion> records = new ArrayList<>();
                    ControllerResult<Boolean> result = manager.maybeFenceOneStaleBroker();
                    for (; result.response(); result = manager.maybeFenceOneStaleBroker()) {
                        replayed(result.records(), offset);
                        records.addAll(result.records());
                    }
                    return text(records);
                default:
                    Uuid topic = new Uuid(2, ++topics);
                    int broker = Integer.parseInt(words[3]);
                    manager.replay(new TopicRecord().setName("t" + topics).setTopicId(topic));
                    manager.replay(new PartitionRecord().setTopicId(topic).setPartitionId(0)
                        .setReplicas(List.of(broker)).setIsr(List.of(broker)).setLeader(broker)
                        .setDirectories(List.of(new Uuid(0, 1))));
                    return "";
            }
        } catch (Exception error) {
            return Errors.forException(error) + " " + error.getMessage();
        }
    }

    private String register(String[] words, long offset) {
        BrokerRegistrationRequestData.FeatureCollection features = new BrokerRegistrationRequestData.FeatureCollection();
        for (String feature : list(words[6])) {
            String[] parts = feature.split(":");
            features.add(new BrokerRegistrationRequestData.Feature().setName(parts[0])
                .setMinSupportedVersion(Short.parseShort(parts[1]))
                .setMaxSupportedVersion(Short.parseShort(parts[2])));
        }
        BrokerRegistrationRequestData request = new BrokerRegistrationRequestData()
            .setBrokerId(Integer.parseInt(words[3]))
            .setClusterId(words[4])
            .setIncarnationId(Uuid.fromString(words[5]))
            .setFeatures(features)
            .setLogDirs(uuids(words[7]))
            .setIsMigratingZkBroker(words[8].equals("1"));
        var result = cluster.registerBroker(request, offset, new FinalizedControllerFeatures(finalized, 0), true);
        return "epoch " + result.response().epoch() + " " + replayed(result.records(), offset);
    }

    private String heartbeat(String[] words, long offset) {
        int broker = Integer.parseInt(words[3]);
        long epoch = Long.parseLong(words[4]);
        cluster.trackBrokerHeartbeat(broker, epoch);
        var registered = cluster.registerBrokerRecordOffset(broker);
        if (registered.isEmpty()) { // as QuorumController.processBrokerHeartbeat
            return "STALE_BROKER_EPOCH Receive a heartbeat from broker " + broker + " before registration";
        }
        BrokerHeartbeatRequestData request = new BrokerHeartbeatRequestData()
            .setBrokerId(broker)
            .setBrokerEpoch(epoch)
            .setCurrentMetadataOffset(Long.parseLong(words[5]))
            .setWantFence(words[6].equals("1"))
            .setWantShutDown(words[7].equals("1"))
            .setOfflineLogDirs(uuids(words[8]));
        request.setCordonedLogDirs(null);
        ControllerResult<BrokerHeartbeatReply> result =
            manager.processBrokerHeartbeat(request, registered.getAsLong());
        BrokerHeartbeatReply reply = result.response();
        String records = replayed(result.records(), offset);
        if (reply.inControlledShutdown()) {
            cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(broker, offset);
        }
        return "reply " + bit(reply.isCaughtUp()) + bit(reply.isFenced()) + bit(reply.inControlledShutdown())
            + bit(reply.shouldShutDown()) + " " + records;
    }

    private String replayed(List<ApiMessageAndVersion> records, long offset) {
        for (ApiMessageAndVersion record : records) {
            if (record.message() instanceof RegisterBrokerRecord register) {
                cluster.replay(register, offset);
            } else if (record.message() instanceof BrokerRegistrationChangeRecord change) {
                cluster.replay(change);
            } else if (record.message() instanceof UnregisterBrokerRecord unregister) {
                cluster.replay(unregister);
            } else if (record.message() instanceof PartitionChangeRecord change) {
                manager.replay(change);
            }
        }
        return text(records);
    }

    private static String text(List<ApiMessageAndVersion> records) {
        return records.stream().map(BrokerLives::text).filter(each -> !each.isEmpty()).sorted()
            .collect(Collectors.joining(" "));
    }

    private static String text(ApiMessageAndVersion record) {
        if (record.message() instanceof RegisterBrokerRecord register) {
            return "R," + register.brokerId() + "," + register.brokerEpoch() + "," + register.incarnationId() + ","
                + bit(register.fenced()) + "," + bit(register.inControlledShutdown()) + "," + dirs(register.logDirs());
        }
        if (record.message() instanceof BrokerRegistrationChangeRecord change) {
            return "C," + change.brokerId() + "," + change.brokerEpoch() + "," + change.fenced() + ","
                + change.inControlledShutdown() + "," + dirs(change.logDirs());
        }
        if (record.message() instanceof UnregisterBrokerRecord unregister) {
            return "U," + unregister.brokerId() + "," + unregister.brokerEpoch();
        }
        return "";
    }

    private static String bit(boolean is) {
        return is ? "1" : "0";
    }

    private static String dirs(List<Uuid> dirs) {
        return dirs.stream().map(Uuid::toString).sorted().collect(Collectors.joining("+"));
    }

    private static List<String> list(String text) {
        return text.equals("-") ? List.of() : List.of(text.split(","));
    }

    private static List<Uuid> uuids(String text) {
        return list(text).stream().map(Uuid::fromString).collect(Collectors.toList());
    }
}
