package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Answers each line with what the ReplicationControlManager of the jars does when a broker goes: of each
 * partition leader:isr:effective min ISR. A line: metadata.version;ELR's level;brokers;configs;partitions;how;
 * broker. A broker: id,fenced,shutting down,directories; a config: type,resource,name,value; a partition, of a
 * topic t0, t1, ... of its own: replicas,directories,isr,elr,last known elr,leader. Lists are joined by +,
 * entries by spaces.
 */
public class BrokerLosses {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("= " + answer(line.split(";", -1)));
        }
    }

    private static String answer(String[] asked) throws Exception {
        SnapshotRegistry registry = registry();
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(1, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(1)))
            .build();
        features.replay(level("metadata.version", asked[0]));
        if (!asked[1].equals("0")) features.replay(level("eligible.leader.replicas.version", asked[1]));
        ClusterControlManager cluster = new ClusterControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setTime(Time.SYSTEM)
            .setFeatureControlManager(features)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(0)))
            .setBrokerShutdownHandler((id, isClean, records) -> { })
            .build();
        ConfigurationControlManager configs = new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setFeatureControl(features)
            .setKafkaConfigSchema(KafkaRaftServer.configSchema())
            .setNodeId(1)
            .build();
        ReplicationControlManager manager = new ReplicationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setConfigurationControl(configs)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .build();
        for (String broker : entries(asked[2])) {
            String[] parts = broker.split(",", -1);
            cluster.replay(new RegisterBrokerRecord()
                .setBrokerId(Integer.parseInt(parts[0]))
                .setBrokerEpoch(7)
                .setIncarnationId(new Uuid(1, Long.parseLong(parts[0])))
                .setFenced(parts[1].equals("1"))
                .setInControlledShutdown(parts[2].equals("1"))
                .setLogDirs(uuids(parts[3])), 7);
        }
        for (String config : entries(asked[3])) {
            String[] parts = config.split(",", -1);
            configs.replay(new ConfigRecord()
                .setResourceType(Byte.parseByte(parts[0]))
                .setResourceName(parts[1])
                .setName(parts[2])
                .setValue(parts[3]));
        }
        Map<Integer, Uuid> topics = new TreeMap<>();
        for (String partition : entries(asked[4])) {
            int nth = topics.size();
            Uuid topic = new Uuid(2, nth + 1);
            topics.put(nth, topic);
            String[] parts = partition.split(",", -1);
            manager.replay(new TopicRecord().setName("t" + nth).setTopicId(topic));
            manager.replay(new PartitionRecord()
                .setTopicId(topic)
                .setPartitionId(0)
                .setReplicas(ids(parts[0]))
                .setDirectories(uuids(parts[1]))
                .setIsr(ids(parts[2]))
                .setEligibleLeaderReplicas(ids(parts[3]))
                .setLastKnownElr(ids(parts[4]))
                .setLeader(Integer.parseInt(parts[5]))
                .setLeaderEpoch(3)
                .setPartitionEpoch(4));
        }
        List<ApiMessageAndVersion> records = new ArrayList<>();
        int broker = Integer.parseInt(asked[6]);
        switch (asked[5]) {
            case "fence" -> manager.handleBrokerFenced(broker, records);
            case "shutdown" -> manager.handleBrokerInControlledShutdown(broker, 7, records);
            default -> manager.handleBrokerUnregistered(broker, 7, records);
        }
        for (ApiMessageAndVersion record : records) {
            if (record.message() instanceof PartitionChangeRecord change) manager.replay(change);
        }
        return topics.entrySet().stream().map(topic -> {
            PartitionRegistration partition = manager.getPartition(topic.getValue(), 0);
            String isr = Arrays.stream(partition.isr).mapToObj(Integer::toString)
                .collect(Collectors.joining("+"));
            return partition.leader + ":" + isr + ":" + manager.getTopicEffectiveMinIsr("t" + topic.getKey());
        }).collect(Collectors.joining(" "));
    }

    /** LogContext, its only argument, is of another package in 4.4. */
    private static SnapshotRegistry registry() throws Exception {
        Constructor<?> made = SnapshotRegistry.class.getConstructors()[0];
        Object context = made.getParameterTypes()[0].getConstructor().newInstance();
        return (SnapshotRegistry) made.newInstance(context);
    }

    private static FeatureLevelRecord level(String name, String level) {
        return new FeatureLevelRecord().setName(name).setFeatureLevel(Short.parseShort(level));
    }

    private static List<String> entries(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(" "));
    }

    private static List<String> parts(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split("\\+"));
    }

    private static List<Integer> ids(String text) {
        return parts(text).stream().map(Integer::valueOf).collect(Collectors.toList());
    }

    private static List<Uuid> uuids(String text) {
        return parts(text).stream().map(Uuid::fromString).collect(Collectors.toList());
    }
}
