import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Makes metadata by Kafka's Admin alone: each line of standard input is JSON, the first one the servers, each
 * other one a thing. Prints "made", or the error's message, for each.
 */
public final class MakeMetadata {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String servers = JSON.readTree(in.readLine()).get("servers").asText();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                try {
                    make(admin, JSON.readTree(line));
                    System.out.println("made");
                } catch (Exception error) {
                    System.out.println(String.valueOf(error.getMessage()).replace('\n', ' '));
                }
            }
        }
    }

    private static void make(Admin admin, JsonNode thing) throws Exception {
        switch (thing.get("make").asText()) {
            case "topic" -> admin.createTopics(List.of(topic(thing))).all().get();
            case "configs" -> admin.incrementalAlterConfigs(Map.of(resource(thing), sets(thing))).all().get();
            case "acl" -> admin.createAcls(List.of(acl(thing))).all().get();
            case "quotas" -> admin.alterClientQuotas(List.of(quotas(thing))).all().get();
            case "move" -> admin.alterPartitionReassignments(Map.of(
                new TopicPartition(text(thing, "topic"), thing.get("partition").asInt()),
                Optional.of(new NewPartitionReassignment(replicas(thing.get("replicas")))))).all().get();
            case "user" -> admin.alterUserScramCredentials(List.of(user(thing))).all().get();
            default -> throw new IllegalArgumentException(thing.toString());
        }
    }

    private static NewTopic topic(JsonNode thing) {
        Map<Integer, List<Integer>> assignment = new HashMap<>();
        for (JsonNode replicas : thing.get("assignment")) {
            assignment.put(assignment.size(), replicas(replicas));
        }
        return new NewTopic(text(thing, "name"), assignment).configs(texts(thing.get("configs")));
    }

    private static List<Integer> replicas(JsonNode given) {
        List<Integer> brokers = new ArrayList<>();
        given.forEach(broker -> brokers.add(broker.asInt()));
        return brokers;
    }

    private static ConfigResource resource(JsonNode thing) {
        return new ConfigResource(ConfigResource.Type.valueOf(text(thing, "type")), text(thing, "name"));
    }

    private static List<AlterConfigOp> sets(JsonNode thing) {
        List<AlterConfigOp> made = new ArrayList<>();
        texts(thing.get("configs")).forEach((name, value) ->
            made.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        return made;
    }

    private static AclBinding acl(JsonNode thing) {
        return new AclBinding(
            new ResourcePattern(
                ResourceType.valueOf(text(thing, "resource_type")),
                text(thing, "resource_name"),
                PatternType.valueOf(text(thing, "pattern_type"))),
            new AccessControlEntry(
                text(thing, "principal"),
                text(thing, "host"),
                AclOperation.valueOf(text(thing, "operation")),
                AclPermissionType.valueOf(text(thing, "permission_type"))));
    }

    private static ClientQuotaAlteration quotas(JsonNode thing) {
        Map<String, String> entity = new HashMap<>();
        thing.get("entity").properties().forEach(part ->
            entity.put(part.getKey(), part.getValue().isNull() ? null : part.getValue().asText()));
        List<ClientQuotaAlteration.Op> made = new ArrayList<>();
        thing.get("quotas").properties().forEach(each ->
            made.add(new ClientQuotaAlteration.Op(each.getKey(), each.getValue().asDouble())));
        return new ClientQuotaAlteration(new ClientQuotaEntity(entity), made);
    }

    private static UserScramCredentialUpsertion user(JsonNode thing) {
        ScramMechanism mechanism = ScramMechanism.fromMechanismName(text(thing, "mechanism"));
        var info = new ScramCredentialInfo(mechanism, thing.get("iterations").asInt());
        return new UserScramCredentialUpsertion(text(thing, "name"), info, "pw".getBytes(StandardCharsets.UTF_8));
    }

    private static String text(JsonNode thing, String name) {
        return thing.get(name).asText();
    }

    private static Map<String, String> texts(JsonNode given) {
        Map<String, String> made = new HashMap<>();
        given.properties().forEach(each -> made.put(each.getKey(), each.getValue().asText()));
        return made;
    }
}
