import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.QuorumController;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.LoaderManifest;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.image.publisher.MetadataPublisher;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.BatchReader;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.raft.VoterSet;
import org.apache.kafka.raft.internals.RecordsBatchReader;
import org.apache.kafka.raft.internals.RecordsIterator;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.SnapshotReader;

/**
 * Reads each directory __cluster_metadata-0 that a line names, as the classes of the jars do when a node starts:
 * the newest checkpoint, and the log from there on. Prints for each line "raft", "controller" and "loader", each
 * followed by a tab and what that part throws, or OK; then "end".
 * raft: every batch, and the control records (KRaftControlRecordStateMachine, on every node).
 * controller: QuorumController, which then becomes the leader and does what leaders do from time to time: it fences
 * brokers, elects and balances leaders, and deletes expired tokens. loader: MetadataLoader (on every node).
 */
public class LoadAnswers {
    private static final int BATCH_BYTES = 8 * 1024 * 1024;
    private static final String BASE = "org.apache.kafka.";
    private static final String MIN_ISR = "min.insync.replicas";
    private static final String UNCLEAN = "unclean.leader.election.enable";
    /** After so long the controller's periodic tasks run, and sessions of brokers end. */
    private static final int PERIOD_MS = 20;
    private static final MetadataRecordSerde SERDE = MetadataRecordSerde.INSTANCE;

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Log log = new Log(new File(line));
            System.out.println("raft\t" + words(raft(log)));
            System.out.println("controller\t" + words(controller(log)));
            System.out.println("loader\t" + words(loader(log)));
            System.out.println("end");
        }
        System.exit(0);
    }

    private static String words(Throwable thrown) {
        if (thrown == null) return "OK";
        List<String> chain = new ArrayList<>();
        for (Throwable each = thrown; each != null; each = each.getCause()) chain.add(each.toString());
        return String.join(" <- ", chain).replace('\n', ' ').replace('\t', ' ');
    }

    // --- the files of a directory

    private static class Log {
        final File directory;
        final File checkpoint;
        final long start;
        final List<Object> parts = new ArrayList<>();
        final List<Long> ends = new ArrayList<>();
        long end;

        Log(File directory) throws Exception {
            this.directory = directory;
            File[] files = directory.listFiles();
            Arrays.sort(files);
            File newest = null;
            for (File file : files) {
                if (file.getName().matches("\\d{20}-\\d{10}\\.checkpoint")) newest = file;
            }
            checkpoint = newest;
            start = newest == null ? 0 : Long.parseLong(newest.getName().substring(0, 20));
            end = start;
            for (File file : files) {
                if (!file.getName().matches("\\d{20}\\.log") || file.length() == 0) continue;
                Object records = call(type("common.record.internal.FileRecords", "common.record.FileRecords"), null,
                    "open", file);
                int position = 0;
                for (Object batch : (Iterable<?>) call(null, records, "batches")) {
                    long next = (Long) call(null, batch, "nextOffset");
                    if (next > start) break;
                    position += (Integer) call(null, batch, "sizeInBytes");
                }
                if (position == file.length()) continue;
                parts.add(call(null, records, "slice", position, (int) file.length() - position));
                for (Object batch : (Iterable<?>) call(null, records, "batches")) {
                    end = (Long) call(null, batch, "nextOffset");
                }
                ends.add(end);
            }
        }

        @SuppressWarnings("unchecked")
        SnapshotReader<ApiMessageAndVersion> snapshot() throws Exception {
            Class<?> files = type("snapshot.FileRawSnapshotReader");
            Method open = Arrays.stream(files.getMethods()).filter(m -> m.getName().equals("open")).findAny().get();
            Object id = open.getParameterTypes()[1].getConstructors()[0].newInstance(
                start, Integer.parseInt(checkpoint.getName().substring(21, 31)));
            Object raw = open.invoke(null, directory.toPath(), id);
            return (SnapshotReader<ApiMessageAndVersion>) call(RecordsSnapshotReader.class, null, "of",
                raw, SERDE, buffers(), BATCH_BYTES, true, context());
        }

        /** Each part of the log, as one read of the raft client. */
        @SuppressWarnings("unchecked")
        List<BatchReader<ApiMessageAndVersion>> readers() throws Exception {
            List<BatchReader<ApiMessageAndVersion>> found = new ArrayList<>();
            long base = start;
            for (int nth = 0; nth < parts.size(); nth++) {
                org.apache.kafka.raft.internals.CloseListener<BatchReader<ApiMessageAndVersion>> none = reader -> { };
                found.add((BatchReader<ApiMessageAndVersion>) call(RecordsBatchReader.class, null, "of",
                    base, parts.get(nth), SERDE, buffers(), BATCH_BYTES, none, true, context()));
                base = ends.get(nth);
            }
            return found;
        }
    }

    // --- what the parts of a node do with them

    private static Throwable raft(Log log) {
        try {
            if (log.checkpoint != null) {
                SnapshotReader<ApiMessageAndVersion> reader = log.snapshot();
                while (reader.hasNext()) control(reader.next());
            }
            for (Object part : log.parts) {
                Object[] given = {part, SERDE, buffers(), BATCH_BYTES, true, context()};
                RecordsIterator<?> batches = (RecordsIterator<?>) make(RecordsIterator.class, given);
                while (batches.hasNext()) control(batches.next());
            }
            return null;
        } catch (Throwable thrown) {
            return thrown;
        }
    }

    private static void control(Batch<?> batch) {
        for (ControlRecord record : batch.controlRecords()) {
            if (record.message() instanceof VotersRecord voters) VoterSet.fromVotersRecord(voters);
            if (record.message() instanceof KRaftVersionRecord version) {
                KRaftVersion.fromFeatureLevel(version.kRaftVersion());
            }
        }
    }

    private static class Faults implements FaultHandler {
        volatile Throwable first;

        @Override
        public RuntimeException handleFault(String words, Throwable cause) {
            if (first == null) first = cause == null ? new RuntimeException(words) : new RuntimeException(words, cause);
            return new RuntimeException(words, cause);
        }
    }

    @SuppressWarnings("unchecked")
    private static Throwable controller(Log log) throws Exception {
        Faults fatal = new Faults(), inTasks = new Faults();
        RaftClient.Listener<ApiMessageAndVersion>[] registered = new RaftClient.Listener[1];
        long[] end = {log.end};
        RaftClient<ApiMessageAndVersion> raft = (RaftClient<ApiMessageAndVersion>) Proxy.newProxyInstance(
            LoadAnswers.class.getClassLoader(), new Class<?>[] {RaftClient.class}, (proxy, method, given) ->
                switch (method.getName()) {
                    case "register" -> {
                        registered[0] = (RaftClient.Listener<ApiMessageAndVersion>) given[0];
                        yield null;
                    }
                    case "prepareAppend" -> end[0] += ((List<?>) given[1]).size();
                    case "highWatermark" -> OptionalLong.of(end[0]);
                    case "logEndOffset" -> end[0];
                    case "leaderAndEpoch" -> new LeaderAndEpoch(OptionalInt.empty(), 0);
                    case "nodeId" -> OptionalInt.of(1);
                    case "latestSnapshotId", "createSnapshot", "voterNode" -> Optional.empty();
                    case "kraftVersion" -> KRaftVersion.KRAFT_VERSION_1;
                    case "shutdown" -> CompletableFuture.completedFuture(null);
                    case "toString" -> "raft";
                    default -> null;
                });
        String features = Arrays.stream(QuorumFeatures.class.getMethods()).map(Method::getName)
            .filter(name -> name.equals("defaultFeatureMap")).findFirst().orElse("defaultSupportedFeatureMap");
        QuorumController controller = new QuorumController.Builder(1, "judge")
            .setTime(Time.SYSTEM)
            .setRaftClient(raft)
            .setQuorumFeatures(new QuorumFeatures(1,
                (Map) call(QuorumFeatures.class, null, features, false), List.of(1)))
            .setConfigSchema(schema())
            .setStaticConfig(Map.of(UNCLEAN, "true"))
            .setSessionTimeoutNs(PERIOD_MS * 1_000_000L)
            .setLeaderImbalanceCheckIntervalNs(OptionalLong.of(PERIOD_MS * 1_000_000L))
            .setUncleanLeaderElectionCheckIntervalMs(PERIOD_MS)
            .setDelegationTokenSecretKey("secret")
            .setDelegationTokenCache(new DelegationTokenCache(List.of()))
            .setDelegationTokenExpiryCheckIntervalMs(PERIOD_MS)
            .setBootstrapMetadata(BootstrapMetadata.fromVersion(MetadataVersion.latestProduction(), "judge"))
            .setFatalFaultHandler(fatal)
            .setNonFatalFaultHandler(inTasks)
            .build();
        RaftClient.Listener<ApiMessageAndVersion> listener = registered[0];
        try {
            if (log.checkpoint != null) listener.handleLoadSnapshot(log.snapshot());
            for (BatchReader<ApiMessageAndVersion> reader : log.readers()) listener.handleCommit(reader);
            listener.handleLeaderChange(new LeaderAndEpoch(OptionalInt.of(1), 1 << 20));
        } catch (Throwable thrown) {
            return thrown;
        }
        CountDownLatch handled = new CountDownLatch(1); // by an event behind those above
        Method append = QuorumController.class.getDeclaredMethod("appendControlEvent", String.class, Runnable.class);
        append.setAccessible(true);
        append.invoke(controller, "end", (Runnable) handled::countDown);
        if (!handled.await(20, TimeUnit.SECONDS)) fatal.handleFault("the events were not handled");
        if (fatal.first == null) Thread.sleep(6 * PERIOD_MS);
        controller.close();
        return fatal.first == null ? inTasks.first : fatal.first;
    }

    private static KafkaConfigSchema schema() {
        ConfigDef defined = new ConfigDef()
            .define(MIN_ISR, ConfigDef.Type.INT, 1, ConfigDef.Importance.HIGH, "")
            .define(UNCLEAN, ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.HIGH, "");
        return new KafkaConfigSchema(
            Map.of(ConfigResource.Type.BROKER, defined, ConfigResource.Type.TOPIC, defined),
            Map.of(MIN_ISR, List.of(new ConfigSynonym(MIN_ISR)), UNCLEAN, List.of(new ConfigSynonym(UNCLEAN))));
    }

    private static Throwable loader(Log log) throws Exception {
        Faults fatal = new Faults();
        CountDownLatch published = new CountDownLatch(1);
        MetadataLoader loader = new MetadataLoader.Builder().setTime(Time.SYSTEM).setFaultHandler(fatal)
            .setHighWaterMarkAccessor(() -> OptionalLong.of(log.end)).build();
        loader.installPublishers(List.of(new MetadataPublisher() {
            @Override
            public String name() {
                return "judge";
            }

            @Override
            public void onMetadataUpdate(MetadataDelta delta, MetadataImage image, LoaderManifest manifest) {
                published.countDown();
            }
        }));
        try {
            if (log.checkpoint != null) loader.handleLoadSnapshot(log.snapshot());
            for (BatchReader<ApiMessageAndVersion> reader : log.readers()) loader.handleCommit(reader);
            // It looks every 100 ms whether all is loaded, and then gives its publishers the image once more.
            for (int nth = 0; nth < 30 && fatal.first == null; nth++) {
                if (published.await(10, TimeUnit.MILLISECONDS)) break;
            }
        } catch (Throwable thrown) {
            return thrown;
        }
        loader.close();
        return fatal.first;
    }

    // --- what is in another package, or takes other parameters, in other releases

    private static Class<?> type(String... names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName(BASE + name);
            } catch (ClassNotFoundException elsewhere) {
                continue;
            }
        }
        throw new ClassNotFoundException(names[0]);
    }

    private static Object buffers() throws Exception {
        Class<?> type = type("common.utils.internals.BufferSupplier", "common.utils.BufferSupplier");
        return type.getField("NO_CACHING").get(null);
    }

    private static Object context() throws Exception {
        return type("common.utils.internals.LogContext", "common.utils.LogContext").getConstructor().newInstance();
    }

    private static Object call(Class<?> type, Object on, String name, Object... given) throws Exception {
        for (Method method : (type == null ? on.getClass() : type).getMethods()) {
            if (!method.getName().equals(name)) continue;
            Object[] fitting = fitting(method.getParameterTypes(), given);
            if (fitting == null) continue;
            method.setAccessible(true);
            try {
                return method.invoke(on, fitting);
            } catch (java.lang.reflect.InvocationTargetException thrown) {
                if (thrown.getCause() instanceof RuntimeException cause) throw cause;
                throw thrown;
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static Object make(Class<?> type, Object... given) throws Exception {
        for (var constructor : type.getConstructors()) {
            Object[] fitting = fitting(constructor.getParameterTypes(), given);
            if (fitting != null) return constructor.newInstance(fitting);
        }
        throw new NoSuchMethodException(type.getName());
    }

    /** The first of the given values, if as many fit these parameters; null if not. */
    private static Object[] fitting(Class<?>[] parameters, Object[] given) {
        if (parameters.length > given.length) return null;
        for (int nth = 0; nth < parameters.length; nth++) {
            Class<?> wanted = parameters[nth];
            if (wanted == int.class) wanted = Integer.class;
            if (wanted == long.class) wanted = Long.class;
            if (wanted == boolean.class) wanted = Boolean.class;
            if (!wanted.isInstance(given[nth])) return null;
        }
        return Arrays.copyOf(given, parameters.length);
    }
}
