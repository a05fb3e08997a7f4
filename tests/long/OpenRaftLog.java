import java.io.File;
import java.util.HashMap;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.util.KafkaScheduler;

/** Opens a directory __cluster_metadata-0, and prints its start, end, last epoch and newest checkpoint. */
public final class OpenRaftLog {
    public static void main(String[] args) throws Exception {
        Map<String, Object> given = new HashMap<>();
        MetadataLogConfig config = new MetadataLogConfig(new AbstractConfig(MetadataLogConfig.CONFIG_DEF, given, false));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        KafkaRaftLog log = KafkaRaftLog.createLog(new TopicPartition("__cluster_metadata", 0),
            Uuid.METADATA_TOPIC_ID, new File(args[0]), Time.SYSTEM, scheduler, config, 1);
        var newest = log.latestSnapshotId().orElseThrow();
        System.out.println(log.startOffset() + " " + log.endOffset().offset() + " " + log.lastFetchedEpoch() + " "
            + newest.offset() + " " + newest.epoch());
        log.close();
        scheduler.shutdown();
    }
}
