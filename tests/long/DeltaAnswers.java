import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * Replays metadata records as the metadata loader of every node does. A line: the values of records in base64, and "|"
 * where a MetadataDelta ends and is applied to the image. Answers the topics of the image by their ids, each
 * ID=NAME[PARTITION:epoch:isr:elr ...], or what the delta threw.
 */
public class DeltaAnswers {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println("= " + answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) {
        MetadataImage image = MetadataImage.EMPTY;
        try {
            MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
            for (String word : words) {
                if (word.equals("|")) {
                    image = delta.apply(MetadataProvenance.EMPTY);
                    delta = new MetadataDelta.Builder().setImage(image).build();
                } else {
                    ByteBuffer value = ByteBuffer.wrap(Base64.getDecoder().decode(word));
                    ByteBufferAccessor bytes = new ByteBufferAccessor(value);
                    delta.replay(MetadataRecordSerde.INSTANCE.read(bytes, value.remaining()).message());
                }
            }
            image = delta.apply(MetadataProvenance.EMPTY);
        } catch (RuntimeException thrown) {
            return "threw " + thrown;
        }
        TreeSet<String> topics = new TreeSet<>();
        for (TopicImage topic : image.topics().topicsById().values()) {
            TreeSet<String> partitions = new TreeSet<>();
            for (var each : new TreeMap<>(topic.partitions()).entrySet()) {
                PartitionRegistration of = each.getValue();
                partitions.add(each.getKey() + ":" + of.partitionEpoch + ":" + plain(of.isr) + ":" + plain(of.elr));
            }
            topics.add(topic.id() + "=" + topic.name() + "[" + String.join(" ", partitions) + "]");
        }
        return String.join(" ", topics);
    }

    private static String plain(int[] ids) {
        return Arrays.toString(ids).replaceAll("[\\[\\] ]", "");
    }
}
