package org.apache.kafka.raft.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.ExternalKRaftMetrics;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.ValidOffsetAndEpoch;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.serialization.RecordSerde;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.snapshot.RawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;
import org.apache.kafka.storage.internals.log.EpochEntry;

/**
 * Carries out the operations of a plan (JSON lines on stdin) on a real KafkaRaftLog with a real
 * KRaftControlRecordStateMachine over it, and prints each with what Kafka answered and was in afterwards:
 * the log-replay format of tests/traces/README.md. Argument: a folder for the logs.
 */
public final class ReplayLog {
    private static final int MAX_BATCH_BYTES = 8 * 1024 * 1024;
    private static final TopicPartition PARTITION = new TopicPartition("__cluster_metadata", 0);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path folder;
    private final VoterSet staticVoters;
    private final int segmentBytes;
    private KafkaRaftLog log;
    private KRaftControlRecordStateMachine reader;

    private ReplayLog(Path folder, JsonNode head) throws Exception {
        this.folder = Files.createDirectories(folder.resolve("__cluster_metadata-0"));
        this.segmentBytes = head.get("segment_bytes").asInt();
        this.staticVoters = head.has("static_raw") ? voters(head.get("static_raw")) : VoterSet.empty();
        if (head.has("bootstrap_raw")) {
            Files.write(this.folder.resolve("00000000000000000000-0000000000.checkpoint"), bytes(head.get("bootstrap_raw")));
        }
        open();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // where Kafka's logging goes
        BufferedReader plan = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        ReplayLog replay = null;
        for (String text = plan.readLine(); text != null; text = plan.readLine()) {
            ObjectNode line = (ObjectNode) JSON.readTree(text);
            if (!line.has("op")) {
                if (replay != null) {
                    replay.log.close();
                }
                replay = new ReplayLog(Path.of(arguments[0], "case-" + line.get("case").asInt()), line);
            } else {
                replay.carryOut(line);
            }
            line.remove("probes");
            out.println(line);
        }
        out.close();
        System.exit(0);
    }

    private void open() throws Exception {
        AbstractConfig config = new AbstractConfig(MetadataLogConfig.CONFIG_DEF, Map.of(
            MetadataLogConfig.INTERNAL_METADATA_LOG_SEGMENT_BYTES_CONFIG, segmentBytes,
            MetadataLogConfig.INTERNAL_METADATA_MAX_BATCH_SIZE_IN_BYTES_CONFIG, MAX_BATCH_BYTES), false);
        log = KafkaRaftLog.createLog(
            PARTITION, Uuid.METADATA_TOPIC_ID, folder.toFile(), Time.SYSTEM, new AtOnce(), new MetadataLogConfig(config), 1);
        reader = readerOver(log);
        reader.updateState();
    }

    /** The constructor's arguments are found by their types: releases differ in them. */
    private KRaftControlRecordStateMachine readerOver(KafkaRaftLog log) throws ReflectiveOperationException {
        ExternalKRaftMetrics external = ignored -> { };
        List<Object> known = List.of(
            staticVoters, log, new Bytes(), BufferSupplier.NO_CACHING, MAX_BATCH_BYTES, new LogContext(),
            new KafkaRaftMetrics(new Metrics(), "raft"), external);
        Constructor<?> only = KRaftControlRecordStateMachine.class.getConstructors()[0];
        Object[] arguments = Arrays.stream(only.getParameterTypes()).map(type -> known.stream()
            .filter(value -> type.isInstance(value) || (type == int.class && value instanceof Integer))
            .findFirst().orElseThrow()).toArray();
        return (KRaftControlRecordStateMachine) only.newInstance(arguments);
    }

    private void carryOut(ObjectNode line) throws Exception {
        try {
            operate(line);
        } catch (RuntimeException error) {
            line.put("error", error.getClass().getSimpleName());
        }
        line.set("state", state(line.get("probes")));
    }

    private void operate(ObjectNode line) throws Exception {
        switch (line.get("op").asText()) {
            case "start" -> { }
            case "append_leader" -> {
                log.appendAsLeader(records(line), line.get("epoch").asInt());
                reader.updateState();
            }
            case "append_follower" -> {
                log.appendAsFollower(records(line), line.get("epoch").asInt());
                reader.updateState();
            }
            case "new_epoch" -> {
                if (line.get("leader").asBoolean()) {
                    log.initializeLeaderEpoch(line.get("epoch").asInt());
                }
            }
            case "hwm" -> log.updateHighWatermark(new LogOffsetMetadata(line.get("offset").asLong()));
            case "diverging" -> {
                long truncatedTo = log.truncateToEndOffset(
                    new OffsetAndEpoch(line.get("offset").asLong(), line.get("epoch").asInt()));
                reader.truncateNewEntries(truncatedTo);
                line.put("truncated_to", truncatedTo);
            }
            case "snapshot" -> writeSnapshot(line);
            case "install_snapshot" -> {
                try (RawSnapshotWriter writer = log.createNewSnapshotUnchecked(id(line)).orElseThrow()) {
                    writer.append(records(line));
                    writer.freeze();
                }
                line.put("truncated", log.truncateToLatestSnapshot());
                reader.updateState();
            }
            case "delete_before" -> line.put("result", log.deleteBeforeSnapshot(id(line)));
            case "restart" -> {
                log.close();
                open();
            }
            default -> throw new AssertionError(line.get("op").asText());
        }
    }

    private void writeSnapshot(ObjectNode line) {
        OffsetAndEpoch id = id(line);
        Optional<RawSnapshotWriter> writer = log.createNewSnapshot(id);
        line.put("created", writer.isPresent());
        writer.ifPresent(raw -> {
            KRaftVersion version = reader.kraftVersionAtOffset(id.offset() - 1);
            Optional<VoterSet> voters = reader.voterSetAtOffset(id.offset() - 1);
            try (RecordsSnapshotWriter<byte[]> records = new RecordsSnapshotWriter.Builder()
                .setRawSnapshotWriter(raw).setTime(Time.SYSTEM).setMemoryPool(MemoryPool.NONE)
                .setMaxBatchSizeBytes(MAX_BATCH_BYTES).setKraftVersion(version).setVoterSet(voters).build(new Bytes())) {
                records.freeze();
            }
            reader.truncateOldEntries(id.offset());
            line.put("snap_kv", version.featureLevel());
            if (version.featureLevel() > 0) {
                voters.ifPresent(held -> line.set("snap_voters", rows(held)));
            }
            line.put("raw", Base64.getEncoder().encodeToString(file(id)));
        });
    }

    private byte[] file(OffsetAndEpoch id) {
        try {
            return Files.readAllBytes(folder.resolve(String.format("%020d-%010d.checkpoint", id.offset(), id.epoch())));
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private ObjectNode state(JsonNode probes) throws Exception {
        ObjectNode state = JSON.createObjectNode();
        state.put("leo", log.endOffset().offset());
        state.put("start", log.startOffset());
        state.put("hwm", log.highWatermark().offset());
        state.set("last_epoch", answer(() -> JSON.getNodeFactory().numberNode(log.lastFetchedEpoch())));
        state.set("snap_first", pair(log.earliestSnapshotId().orElse(null)));
        state.set("snap_last", pair(log.latestSnapshotId().orElse(null)));
        ArrayNode epochs = state.putArray("epochs");
        for (EpochEntry entry : log.log().leaderEpochCache().epochEntries()) {
            epochs.addArray().add(entry.epoch()).add(entry.startOffset());
        }
        ArrayNode ends = state.putArray("eoe");
        for (int epoch = 0; epoch < probes.get("eoe").asInt(); epoch++) {
            int asked = epoch;
            ends.add(answer(() -> pair(log.endOffsetForEpoch(asked))));
        }
        ArrayNode valid = state.putArray("valid");
        for (JsonNode probe : probes.get("valid")) {
            ArrayNode row = valid.addArray().add(probe.get(0)).add(probe.get(1));
            try {
                ValidOffsetAndEpoch answer = log.validateOffsetAndEpoch(probe.get(0).asLong(), probe.get(1).asInt());
                row.add(answer.kind().name());
                row.add(answer.offsetAndEpoch().offset()).add(answer.offsetAndEpoch().epoch());
            } catch (KafkaException broken) {
                row.add(broken.getClass().getSimpleName());
            }
        }
        describe(state, probes.get("vat"));
        return state;
    }

    private void describe(ObjectNode state, JsonNode offsets) throws Exception {
        Object voters = read(reader, "voterSetHistory");
        NavigableMap<Long, ?> sets = entries(read(voters, "votersHistory"));
        NavigableMap<Long, ?> versions = entries(read(reader, "kraftVersionHistory"));
        OptionalLong at = reader.lastVoterSetOffset();
        state.put("next", (Long) read(reader, "nextOffset"));
        state.set("voters", rows(reader.lastVoterSet()));
        state.put("voters_at", at.isPresent() ? (Long) at.getAsLong() : null);
        state.put("kv", reader.lastKraftVersion().featureLevel());
        ArrayNode vh = state.putArray("vh");
        sets.forEach((offset, set) -> vh.addArray().add(offset).add(((VoterSet) set).size()));
        ArrayNode kvh = state.putArray("kvh");
        versions.forEach((offset, version) -> kvh.addArray().add(offset).add(((KRaftVersion) version).featureLevel()));
        state.put("uncommitted", at.isPresent() && at.getAsLong() >= log.highWatermark().offset());
        ArrayNode vat = state.putArray("vat");
        for (JsonNode offset : offsets) {
            ArrayNode answer = vat.addArray().add(offset);
            try {
                Optional<VoterSet> set = reader.voterSetAtOffset(offset.asLong());
                answer.add(set.isPresent() ? ids(set.get()) : JSON.nullNode());
                answer.add(reader.kraftVersionAtOffset(offset.asLong()).featureLevel());
            } catch (IllegalArgumentException beyond) {
                answer.add(beyond.getClass().getSimpleName());
            }
        }
        compareWithRebuilt(state, at);
    }

    private void compareWithRebuilt(ObjectNode state, OptionalLong at) throws ReflectiveOperationException {
        KRaftControlRecordStateMachine rebuilt = readerOver(log);
        rebuilt.updateState();
        OptionalLong truth = rebuilt.lastVoterSetOffset();
        boolean same = rebuilt.lastVoterSet().equals(reader.lastVoterSet())
            && rebuilt.lastKraftVersion() == reader.lastKraftVersion();
        if (!same) {
            ObjectNode fresh = state.putObject("fresh");
            fresh.set("voters", rows(rebuilt.lastVoterSet()));
            fresh.put("voters_at", truth.isPresent() ? (Long) truth.getAsLong() : null);
            fresh.put("kv", rebuilt.lastKraftVersion().featureLevel());
        }
        if (!truth.equals(at)) {
            state.put("fresh_at", truth.isPresent() ? (Long) truth.getAsLong() : null);
        }
    }

    /** The answer, or the name of what is thrown where the log has lost its epochs. */
    private static JsonNode answer(Supplier<JsonNode> ask) {
        try {
            return ask.get();
        } catch (KafkaException broken) {
            return JSON.getNodeFactory().textNode(broken.getClass().getSimpleName());
        }
    }

    @SuppressWarnings("unchecked")
    private static NavigableMap<Long, ?> entries(Object history) throws Exception {
        return (NavigableMap<Long, ?>) read(history, "history");
    }

    private static Object read(Object from, String name) throws Exception {
        Field field = from.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(from);
    }

    private static byte[] bytes(JsonNode base64) {
        return Base64.getDecoder().decode(base64.asText());
    }

    private static MemoryRecords records(JsonNode line) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(line.get("raw"))));
    }

    private static OffsetAndEpoch id(JsonNode line) {
        return new OffsetAndEpoch(line.get("id").get(0).asLong(), line.get("id").get(1).asInt());
    }

    private static VoterSet voters(JsonNode votersRecord) {
        ByteBuffer buffer = ByteBuffer.wrap(bytes(votersRecord));
        return VoterSet.fromVotersRecord(new VotersRecord(
            new org.apache.kafka.common.protocol.ByteBufferAccessor(buffer), (short) 0));
    }

    private static JsonNode pair(OffsetAndEpoch id) {
        return id == null ? JSON.nullNode() : JSON.createArrayNode().add(id.offset()).add(id.epoch());
    }

    private static ArrayNode ids(VoterSet voters) {
        ArrayNode ids = JSON.createArrayNode();
        voters.voterIds().stream().sorted().forEach(ids::add);
        return ids;
    }

    private static ArrayNode rows(VoterSet voters) {
        ArrayNode rows = JSON.createArrayNode();
        TreeMap<Integer, VotersRecord.Voter> sorted = new TreeMap<>();
        voters.toVotersRecord((short) 0).voters().forEach(voter -> sorted.put(voter.voterId(), voter));
        for (VotersRecord.Voter voter : sorted.values()) {
            ArrayNode row = rows.addArray().add(voter.voterId());
            row.add(voter.voterDirectoryId().equals(Uuid.ZERO_UUID) ? null : voter.voterDirectoryId().toString());
            ArrayNode endpoints = row.addArray();
            voter.endpoints().forEach(end -> endpoints.addArray().add(end.name()).add(end.host()).add(end.port()));
            row.add(voter.kRaftVersionFeature().minSupportedVersion());
            row.add(voter.kRaftVersionFeature().maxSupportedVersion());
        }
        return rows;
    }

    /** Runs what is due at once in the caller's thread, so that a restart finds it done; deletes nothing later. */
    private static final class AtOnce implements Scheduler {
        private static final ScheduledExecutorService NEVER = Executors.newSingleThreadScheduledExecutor();

        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (delayMs <= 0 && periodMs < 0) {
                task.run();
            }
            return NEVER.schedule(() -> { }, 1, TimeUnit.DAYS);
        }

        @Override
        public void resizeThreadPool(int size) { }
    }

    /** Data records are opaque here. */
    private static final class Bytes implements RecordSerde<byte[]> {
        @Override
        public int recordSize(byte[] data, ObjectSerializationCache cache) {
            return data.length;
        }

        @Override
        public void write(byte[] data, ObjectSerializationCache cache, Writable out) {
            out.writeByteArray(data);
        }

        @Override
        public byte[] read(Readable input, int size) {
            return input.readArray(size);
        }
    }
}
