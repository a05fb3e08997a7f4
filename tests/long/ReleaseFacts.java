import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;

/** Prints what a release's jars know of features and records, one fact a line. */
public class ReleaseFacts {
    private static final String COMMON = "org.apache.kafka.server.common.";

    public static void main(String[] args) throws Exception {
        Class<?> versions = Class.forName(COMMON + "MetadataVersion");
        short production = level(versions.getMethod("latestProduction").invoke(null));
        System.out.println("testing " + level(versions.getMethod("latestTesting").invoke(null)));
        for (Object version : versions.getEnumConstants()) {
            if (level(version) > 0) {
                Object changes = versions.getMethod("didMetadataChange").invoke(version);
                String known = level(version) > production ? "preview" : String.valueOf(changes);
                System.out.println("level " + level(version) + " " + version + " " + known);
            }
        }
        Class<?> quorum = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        for (Method method : quorum.getMethods()) {
            if (method.getName().startsWith("default") && method.getParameterCount() == 1) {
                new TreeMap<>((Map<?, ?>) method.invoke(null, false))
                    .forEach((name, range) -> System.out.println("supports " + name + " " + range));
            }
        }
        features(versions);
        Class<?> records = Class.forName("org.apache.kafka.common.metadata.MetadataRecordType");
        for (Object record : records.getEnumConstants()) {
            Object id = records.getMethod("id").invoke(record);
            System.out.println("record " + id + " " + records.getMethod("highestSupportedVersion").invoke(record));
        }
    }

    private static void features(Class<?> versions) throws Exception {
        Class<?> features;
        try {
            features = Class.forName(COMMON + "Feature");
        } catch (ClassNotFoundException before4) {
            return;
        }
        Class<?> version = Class.forName(COMMON + "FeatureVersion");
        for (Object feature : features.getEnumConstants()) {
            Object name = features.getMethod("featureName").invoke(feature);
            if (name.toString().contains("test.")) continue;
            for (Object each : (Object[]) features.getMethod("featureVersions").invoke(feature)) {
                Object known = version.getMethod("featureLevel").invoke(each);
                Object since = version.getMethod("bootstrapMetadataVersion").invoke(each);
                Object needs = new TreeMap<>((Map<?, ?>) version.getMethod("dependencies").invoke(each));
                System.out.println("feature " + name + " " + known + " " + level(since) + " " + needs);
            }
            for (Object metadata : versions.getEnumConstants()) {
                Object given = features.getMethod("defaultLevel", versions).invoke(feature, metadata);
                System.out.println("default " + name + " " + level(metadata) + " " + given);
            }
        }
    }

    private static short level(Object version) throws Exception {
        return (short) version.getClass().getMethod("featureLevel").invoke(version);
    }
}
