import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.MetadataRecordSerde;

/**
 * Decodes a segment or checkpoint with Kafka's own classes, checksums checked, again and again in one warm JVM.
 * Prints the number of records and the shortest time of a round in seconds.
 * Arguments: the file, and for how many seconds to go on.
 */
public class WarmDecoder {
  public static void main(String[] arguments) throws Exception {
    ByteBuffer file;
    try (FileChannel channel = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.READ)) {
      file = ByteBuffer.allocate((int) channel.size());
      while (file.hasRemaining() && channel.read(file) >= 0) {}
      file.flip();
    }
    long end = System.nanoTime() + (long) (Double.parseDouble(arguments[1]) * 1e9);
    long best = Long.MAX_VALUE, records = 0;
    do {
      long start = System.nanoTime();
      records = decode(file.duplicate());
      best = Math.min(best, System.nanoTime() - start);
    } while (System.nanoTime() < end);
    System.out.println(records + " " + best / 1e9);
  }

  static volatile Object kept;

  static long decode(ByteBuffer file) {
    long records = 0;
    for (RecordBatch batch : MemoryRecords.readableRecords(file).batches()) {
      batch.ensureValid();
      for (Record record : batch) {
        kept = decode(batch, record);
        records++;
      }
    }
    return records;
  }

  static Object decode(RecordBatch batch, Record record) {
    if (!batch.isControlBatch())
      return MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(record.value()), record.valueSize());
    switch (ControlRecordType.parse(record.key())) {
      case LEADER_CHANGE: return ControlRecordUtils.deserializeLeaderChangeMessage(record);
      case SNAPSHOT_HEADER: return ControlRecordUtils.deserializeSnapshotHeaderRecord(record);
      case SNAPSHOT_FOOTER: return ControlRecordUtils.deserializeSnapshotFooterRecord(record);
      case KRAFT_VERSION: return ControlRecordUtils.deserializeKRaftVersionRecord(record);
      case KRAFT_VOTERS: return ControlRecordUtils.deserializeVotersRecord(record);
      default: return record;
    }
  }
}
