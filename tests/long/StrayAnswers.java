import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Stream;
import kafka.log.LogManager;
import kafka.server.builders.LogManagerBuilder;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Function1;

/**
 * Loads the log directories of a broker with Kafka's LogManager. A line: the broker's id, the directories separated by
 * commas, and TOPIC_ID:PARTITION=REPLICAS of each partition. Answers: the directories of partitions that it renamed to
 * -stray, or what it threw.
 */
public class StrayAnswers {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("= " + answer(line.split(" ")));
        }
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        int brokerId = Integer.parseInt(words[0]);
        List<File> dirs = Stream.of(words[1].split(",")).map(File::new).toList();
        Map<String, List<Integer>> replicas = new HashMap<>();
        for (int nth = 2; nth < words.length; nth++) {
            String[] parts = words[nth].split("=");
            replicas.put(parts[0], Stream.of(parts[1].split(",")).map(Integer::valueOf).toList());
        }
        LogConfig config = new LogConfig(new Properties());
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        LogManager manager = new LogManagerBuilder()
            .setLogDirs(dirs)
            .setConfigRepository(topic -> new Properties())
            .setInitialDefaultConfig(config)
            .setCleanerConfig(new CleanerConfig(false))
            .setScheduler(scheduler)
            .setBrokerTopicStats(new BrokerTopicStats())
            .setLogDirFailureChannel(new LogDirFailureChannel(dirs.size()))
            .setTime(Time.SYSTEM)
            .build();
        Function1<UnifiedLog, Object> isStray = log -> log.topicId().isEmpty()
            || org.apache.kafka.storage.internals.log.LogManager.isStrayReplica(
                replicas.getOrDefault(log.topicId().get() + ":" + log.topicPartition().partition(), List.of()), brokerId, log);
        try {
            manager.loadLogs(config, new scala.collection.immutable.HashMap<>(), isStray);
        } catch (Throwable error) {
            return "threw " + error.getClass().getName() + ": " + error.getMessage();
        } finally {
            scheduler.shutdown();
        }
        TreeSet<String> stray = new TreeSet<>();
        for (File dir : dirs) {
            for (File each : new ArrayList<>(List.of(dir.listFiles()))) {
                if (each.getName().endsWith("-stray")) {
                    stray.add(each.getName().substring(0, each.getName().indexOf('.')) + "@" + dir.getName());
                }
            }
        }
        return String.join(" ", stray);
    }
}
