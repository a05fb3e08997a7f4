package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import kafka.server.ControllerConfigurationValidator;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsAssignment;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableReplicaAssignment;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopicConfig;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.errors.EventHandlerExceptionInfo;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.DefaultSupportedConfigChecker;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Answers each line, a cluster and a request about its topics as JSON, with what the ReplicationControlManager
 * and the ConfigurationControlManager of the jars answer, and the records that they would write.
 */
public class TopicRequests {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<Map<String, String>, KafkaConfig> FILES = new HashMap<>();

    private ReplicationControlManager replication;
    private ConfigurationControlManager configuration;
    private ObjectNode answer = JSON.createObjectNode();

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println("= " + new TopicRequests().answer(JSON.readTree(line)));
        }
        out.flush();
    }

    private ObjectNode answer(JsonNode asked) throws Exception {
        try {
            open(asked);
            List<ApiMessageAndVersion> records = ask(asked.get("ask").asText(), asked.get("request"));
            ArrayNode written = answer.putArray("records");
            for (ApiMessageAndVersion record : records) {
                ObjectNode each = written.addObject();
                each.put("type", MetadataRecordType.fromId(record.message().apiKey()).name());
                each.put("version", record.version());
                each.set("value", MetadataJsonConverters.writeJson(record.message(), record.version()));
            }
        } catch (Throwable thrown) {
            EventHandlerExceptionInfo info =
                EventHandlerExceptionInfo.fromInternal(thrown, () -> OptionalInt.empty());
            ApiError error = ApiError.fromThrowable(info.effectiveExternalException());
            answer = JSON.createObjectNode();
            answer.put("error", error.error().name());
            answer.put("text", error.message());
            if (error.error() == Errors.UNKNOWN_SERVER_ERROR) {
                thrown.printStackTrace();
            }
        }
        return answer;
    }

    private void open(JsonNode asked) throws Exception {
        Map<String, String> file = new LinkedHashMap<>();
        asked.get("file").fields().forEachRemaining(each -> file.put(each.getKey(), each.getValue().asText()));
        KafkaConfig config = FILES.computeIfAbsent(file, TopicRequests::kafkaConfig);
        SnapshotRegistry registry = registry();
        FeatureControlManager features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(1, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(1)))
            .build();
        features.replay(level("metadata.version", asked.get("metadataVersion").asInt()));
        if (asked.get("elr").asInt() > 0) {
            features.replay(level("eligible.leader.replicas.version", asked.get("elr").asInt()));
        }
        ClusterControlManager cluster = new ClusterControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setTime(Time.SYSTEM)
            .setFeatureControlManager(features)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(asked.get("seed").asLong())))
            .setBrokerShutdownHandler((id, isClean, records) -> { })
            .build();
        cluster.activate();
        configuration = new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setFeatureControl(features)
            .setKafkaConfigSchema(KafkaRaftServer.configSchema())
            .setStaticConfig(config.originals())
            .setValidator(new ControllerConfigurationValidator(config))
            .setExistenceChecker(this::checkExistence)
            .setSupportedConfigChecker(new DefaultSupportedConfigChecker())
            .setNodeId(1)
            .build();
        replication = new ReplicationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setConfigurationControl(configuration)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .setDefaultNumPartitions(config.getInt("num.partitions"))
            .setDefaultReplicationFactor(config.getInt("default.replication.factor").shortValue())
            .build();
        for (JsonNode broker : asked.get("brokers")) {
            int id = broker.get("id").asInt();
            RegisterBrokerRecord record = new RegisterBrokerRecord()
                .setBrokerId(id)
                .setBrokerEpoch(7)
                .setIncarnationId(new Uuid(1, id))
                .setRack(broker.get("rack").isNull() ? null : broker.get("rack").asText())
                .setFenced(broker.get("fenced").asBoolean())
                .setInControlledShutdown(broker.get("inControlledShutdown").asBoolean())
                .setLogDirs(uuids(broker.get("logDirs")));
            if (!broker.get("cordonedLogDirs").isNull()) {
                record.setCordonedLogDirs(uuids(broker.get("cordonedLogDirs")));
            }
            cluster.replay(record, 7);
            if (broker.get("stopping").asBoolean()) {
                cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(id, 100);
            }
        }
        for (JsonNode each : asked.get("configs")) {
            configuration.replay(new ConfigRecord()
                .setResourceType((byte) each.get(0).asInt())
                .setResourceName(each.get(1).asText())
                .setName(each.get(2).asText())
                .setValue(each.get(3).asText()));
        }
        for (JsonNode topic : asked.get("topics")) {
            Uuid id = Uuid.fromString(topic.get("id").asText());
            replication.replay(new TopicRecord().setName(topic.get("name").asText()).setTopicId(id));
            for (JsonNode each : topic.get("partitions")) {
                replication.replay(new PartitionRecord()
                    .setTopicId(id)
                    .setPartitionId(each.get("partitionId").asInt())
                    .setReplicas(ids(each.get("replicas")))
                    .setDirectories(uuids(each.get("directories")))
                    .setIsr(ids(each.get("isr")))
                    .setRemovingReplicas(ids(each.get("removingReplicas")))
                    .setAddingReplicas(ids(each.get("addingReplicas")))
                    .setEligibleLeaderReplicas(ids(each.get("eligibleLeaderReplicas")))
                    .setLastKnownElr(ids(each.get("lastKnownElr")))
                    .setLeader(each.get("leader").asInt())
                    .setLeaderRecoveryState((byte) each.get("leaderRecoveryState").asInt())
                    .setLeaderEpoch(3)
                    .setPartitionEpoch(4));
            }
        }
    }

    private void checkExistence(ConfigResource resource) {
        if (replication.getTopicId(resource.name()) == null) {
            throw new UnknownTopicOrPartitionException("The topic '" + resource.name() + "' does not exist.");
        }
    }

    private List<ApiMessageAndVersion> ask(String ask, JsonNode request) throws Exception {
        ControllerRequestContext context = new ControllerRequestContext(
            new RequestHeaderData(), KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
        switch (ask) {
            case "create": {
                CreateTopicsRequestData data = new CreateTopicsRequestData()
                    .setValidateOnly(request.get("validateOnly").asBoolean());
                for (JsonNode topic : request.get("topics")) data.topics().add(creatable(topic));
                var result = replication.createTopics(context, data, Set.of(), false);
                result.response().topics().forEach(topic ->
                    result(topic.name(), topic.errorCode(), topic.errorMessage()));
                return result.records();
            }
            case "add-partitions": {
                List<CreatePartitionsTopic> topics = new ArrayList<>();
                for (JsonNode topic : request.get("topics")) {
                    CreatePartitionsTopic each = new CreatePartitionsTopic()
                        .setName(topic.get("name").asText())
                        .setCount(topic.get("count").asInt())
                        .setAssignments(null);
                    if (!topic.get("assignments").isNull()) {
                        each.setAssignments(new ArrayList<>());
                        for (JsonNode replicas : topic.get("assignments")) {
                            each.assignments().add(new CreatePartitionsAssignment().setBrokerIds(ids(replicas)));
                        }
                    }
                    topics.add(each);
                }
                var result = replication.createPartitions(context, topics);
                result.response().forEach(topic ->
                    result(topic.name(), topic.errorCode(), topic.errorMessage()));
                return result.records();
            }
            case "delete": {
                List<Uuid> topics = uuids(request.get("topics"));
                var result = replication.deleteTopics(context, topics);
                topics.forEach(id -> result(id.toString(), result.response().get(id)));
                return result.records();
            }
            case "configure": {
                Map<ConfigResource, Map<String, Map.Entry<OpType, String>>> changes = new LinkedHashMap<>();
                for (JsonNode topic : request.get("topics")) {
                    Map<String, Map.Entry<OpType, String>> ops = new HashMap<>();
                    for (JsonNode op : topic.get("changes")) {
                        String value = op.get(2).isNull() ? null : op.get(2).asText();
                        ops.put(op.get(1).asText(), new SimpleEntry<>(OpType.valueOf(op.get(0).asText()), value));
                    }
                    changes.put(new ConfigResource(ConfigResource.Type.TOPIC, topic.get("name").asText()), ops);
                }
                var result = configuration.incrementalAlterConfigs(changes, false, false);
                changes.keySet().forEach(each -> result(each.name(), result.response().get(each)));
                return result.records();
            }
            case "elect": {
                ElectLeadersRequestData data = new ElectLeadersRequestData()
                    .setElectionType((byte) request.get("electionType").asInt());
                for (JsonNode topic : request.get("topics")) {
                    data.topicPartitions().add(new ElectLeadersRequestData.TopicPartitions()
                        .setTopic(topic.get("name").asText())
                        .setPartitions(ids(topic.get("partitions"))));
                }
                var result = replication.electLeaders(data);
                result.response().replicaElectionResults().forEach(topic ->
                    topic.partitionResult().forEach(each -> result(
                        topic.topic() + "-" + each.partitionId(), each.errorCode(), each.errorMessage())));
                return result.records();
            }
            default: {
                AlterPartitionReassignmentsRequestData data = new AlterPartitionReassignmentsRequestData()
                    .setAllowReplicationFactorChange(request.get("allowReplicationFactorChange").asBoolean());
                for (JsonNode topic : request.get("topics")) {
                    ReassignableTopic each = new ReassignableTopic().setName(topic.get("name").asText());
                    for (JsonNode partition : topic.get("partitions")) {
                        JsonNode replicas = partition.get("replicas");
                        each.partitions().add(new ReassignablePartition()
                            .setPartitionIndex(partition.get("partitionId").asInt())
                            .setReplicas(replicas.isNull() ? null : ids(replicas)));
                    }
                    data.topics().add(each);
                }
                var result = replication.alterPartitionReassignments(data);
                result.response().responses().forEach(topic ->
                    topic.partitions().forEach(each -> result(
                        topic.name() + "-" + each.partitionIndex(), each.errorCode(), each.errorMessage())));
                return result.records();
            }
        }
    }

    private static CreatableTopic creatable(JsonNode topic) {
        CreatableTopic made = new CreatableTopic()
            .setName(topic.get("name").asText())
            .setNumPartitions(topic.get("partitions").asInt())
            .setReplicationFactor((short) topic.get("replicationFactor").asInt());
        for (JsonNode each : topic.get("assignments")) {
            made.assignments().mustAdd(new CreatableReplicaAssignment()
                .setPartitionIndex(each.get(0).asInt())
                .setBrokerIds(ids(each.get(1))));
        }
        for (JsonNode each : topic.get("configs")) {
            made.configs().mustAdd(new CreatableTopicConfig()
                .setName(each.get(0).asText())
                .setValue(each.get(1).isNull() ? null : each.get(1).asText()));
        }
        return made;
    }

    private void result(String name, ApiError error) {
        result(name, error.error().code(), error.message());
    }

    private void result(String name, short code, String text) {
        answer.withArray("results").addArray().add(name).add(Errors.forCode(code).name()).add(text);
    }

    private static KafkaConfig kafkaConfig(Map<String, String> file) {
        Properties properties = new Properties();
        properties.putAll(Map.of(
            "process.roles", "controller",
            "node.id", "1",
            "controller.quorum.voters", "1@localhost:9093",
            "controller.listener.names", "CONTROLLER",
            "listeners", "CONTROLLER://localhost:9093"));
        properties.putAll(file);
        return new KafkaConfig(properties, false);
    }

    /** LogContext, its only argument, is of another package in 4.4. */
    private static SnapshotRegistry registry() throws Exception {
        Constructor<?> made = SnapshotRegistry.class.getConstructors()[0];
        Object context = made.getParameterTypes()[0].getConstructor().newInstance();
        return (SnapshotRegistry) made.newInstance(context);
    }

    private static FeatureLevelRecord level(String name, int level) {
        return new FeatureLevelRecord().setName(name).setFeatureLevel((short) level);
    }

    private static List<Integer> ids(JsonNode list) {
        List<Integer> found = new ArrayList<>();
        list.forEach(each -> found.add(each.asInt()));
        return found;
    }

    private static List<Uuid> uuids(JsonNode list) {
        List<Uuid> found = new ArrayList<>();
        list.forEach(each -> found.add(Uuid.fromString(each.asText())));
        return found;
    }
}
