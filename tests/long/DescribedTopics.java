package org.apache.kafka.tools;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import kafka.server.ConfigHelper;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.PartitionReassignment;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.DescribeConfigsRequestData.DescribeConfigsResource;
import org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.metadata.MetadataCache;

import scala.jdk.javaapi.CollectionConverters;

/**
 * What kafka-topics --describe prints of clusters that standard input describes, one of JSON a line: a broker
 * and its configs, topics with their configs and partitions. Printed by the tool's own classes, of the answers
 * that a broker's own classes give; only the requests between them are left out. After each cluster: a line "end".
 */
public final class DescribedTopics {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            describe(JSON.readTree(line));
            System.out.println("end");
        }
    }

    private static void describe(JsonNode cluster) {
        KafkaConfig broker = broker(cluster);
        Map<String, JsonNode> byName = new TreeMap<>();
        cluster.get("topics").forEach(topic -> byName.put(topic.get("name").asText(), topic));
        // KafkaAdminClient collects by the sorted names that TopicCommand asks, then DescribeTopicsResult.
        Map<String, JsonNode> asked = new HashMap<>(byName.size());
        byName.forEach(asked::put);
        Map<String, JsonNode> answered = new HashMap<>(asked.size());
        asked.forEach(answered::put);
        for (JsonNode topic : answered.values()) {
            describe(topic, configs(broker, topic));
        }
    }

    private static void describe(JsonNode topic, Config configs) {
        String name = topic.get("name").asText();
        JsonNode partitions = topic.get("partitions");
        JsonNode first = partitions.get(0);
        int factor = first.get("replicas").size() - first.get("adding").size();
        Uuid id = Uuid.fromString(topic.get("id").asText());
        new TopicCommand.TopicDescription(name, id, partitions.size(), factor, configs).printDescription();
        int number = 0;
        for (JsonNode partition : partitions) {
            int leader = partition.get("leader").asInt();
            var info = new TopicPartitionInfo(number++, leader < 0 ? null : node(leader), nodes(partition, "replicas"),
                nodes(partition, "isr"), nodes(partition, "elr"), nodes(partition, "last_known_elr"));
            List<Integer> adding = ids(partition, "adding");
            List<Integer> removing = ids(partition, "removing");
            PartitionReassignment moving = adding.isEmpty() && removing.isEmpty() ? null
                : new PartitionReassignment(ids(partition, "replicas"), adding, removing);
            new TopicCommand.PartitionDescription(name, info, configs, moving).printDescription();
        }
    }

    private static Config configs(KafkaConfig broker, JsonNode topic) {
        Properties own = properties(topic.get("configs"));
        ConfigRepository repository = new ConfigRepository() {
            @Override
            public Properties config(ConfigResource resource) {
                return own;
            }
        };
        MetadataCache cache = (MetadataCache) Proxy.newProxyInstance(DescribedTopics.class.getClassLoader(),
            new Class<?>[] {MetadataCache.class}, (proxy, method, given) -> true);
        var resource = new DescribeConfigsResource()
            .setResourceType(ConfigResource.Type.TOPIC.id()).setResourceName(topic.get("name").asText());
        var asked = CollectionConverters.asScala(List.of(resource)).toList();
        var results = new ConfigHelper(cache, broker, repository).describeConfigs(asked, false, false);
        Collection<ConfigEntry> entries = new ArrayList<>();
        results.head().configs().forEach(each -> {
            boolean isDefault = each.configSource() == ConfigSource.DEFAULT_CONFIG.id();
            var source = isDefault ? ConfigEntry.ConfigSource.DEFAULT_CONFIG
                : ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG;
            entries.add(new ConfigEntry(each.name(), each.value(), source, each.isSensitive(), each.readOnly(),
                List.of(), ConfigEntry.ConfigType.UNKNOWN, null));
        });
        return new Config(entries);
    }

    private static KafkaConfig broker(JsonNode cluster) {
        int id = cluster.get("broker").asInt();
        Properties given = new Properties();
        given.put("process.roles", "broker");
        given.put("node.id", String.valueOf(id));
        given.put("controller.listener.names", "CONTROLLER");
        given.put("controller.quorum.bootstrap.servers", "localhost:1");
        given.put("listeners", "PLAINTEXT://localhost:2");
        given.put("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT");
        KafkaConfig config = new KafkaConfig(given, false);
        config.dynamicConfig().initialize(scala.Option.empty());
        config.dynamicConfig().updateDefaultConfig(properties(cluster.get("of_all")), false);
        config.dynamicConfig().updateBrokerConfig(id, properties(cluster.get("of_broker")), false);
        return config;
    }

    private static Properties properties(JsonNode given) {
        Properties made = new Properties();
        given.properties().forEach(each -> made.put(each.getKey(), each.getValue().asText()));
        return made;
    }

    private static List<Integer> ids(JsonNode partition, String name) {
        List<Integer> made = new ArrayList<>();
        partition.get(name).forEach(each -> made.add(each.asInt()));
        return made;
    }

    private static List<Node> nodes(JsonNode partition, String name) {
        return ids(partition, name).stream().map(DescribedTopics::node).toList();
    }

    private static Node node(int id) {
        return new Node(id, "localhost", 2);
    }
}
