package org.apache.kafka.controller;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.metadata.VersionRange;

/**
 * Answers each line with what the FeatureControlManager of the jars says of it: NONE, or ERROR and its words.
 * A line: leader;controllers that must register;nodes;finalized;updates;upgrade or downgrade. A node:
 * L (the leader), B or C, its id, =, and feature:low:high, separated by commas; nodes by spaces.
 */
public class FeatureAnswers {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ApiError answer = answer(line.split(";", -1));
            System.out.println(answer.error() + " " + (answer.message() == null ? "" : answer.message()));
        }
    }

    private static ApiError answer(String[] asked) {
        List<Integer> named = new ArrayList<>();
        for (String id : asked[1].split(" ")) {
            if (!id.isEmpty()) named.add(Integer.valueOf(id));
        }
        TreeMap<Integer, Map<String, VersionRange>> brokers = new TreeMap<>();
        TreeMap<Integer, Map<String, VersionRange>> controllers = new TreeMap<>();
        Map<String, VersionRange> local = Map.of();
        for (String node : asked[2].split(" ")) {
            String[] parts = node.split("=", -1);
            Map<String, VersionRange> features = features(parts[1]);
            if (parts[0].charAt(0) == 'L') {
                local = features;
            } else {
                boolean isBroker = parts[0].charAt(0) == 'B';
                (isBroker ? brokers : controllers).put(Integer.valueOf(parts[0].substring(1)), features);
            }
        }
        FeatureControlManager manager = new FeatureControlManager.Builder()
            .setQuorumFeatures(new QuorumFeatures(Integer.parseInt(asked[0]), local, named))
            .setClusterFeatureSupportDescriber(new ClusterFeatureSupportDescriber() {
                @Override
                public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> brokerSupported() {
                    return brokers.entrySet().iterator();
                }

                @Override
                public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> controllerSupported() {
                    return controllers.entrySet().iterator();
                }
            })
            .build();
        levels(asked[3]).forEach((name, level) ->
            manager.replay(new FeatureLevelRecord().setName(name).setFeatureLevel(level)));
        HashMap<String, Short> updates = levels(asked[4]); // not copied: its capacity decides the order
        HashMap<String, FeatureUpdate.UpgradeType> types = new HashMap<>();
        FeatureUpdate.UpgradeType type = asked[5].equals("upgrade")
            ? FeatureUpdate.UpgradeType.UPGRADE : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE;
        updates.keySet().forEach(name -> types.put(name, type));
        return manager.updateFeatures(updates, types, false, 0).response();
    }

    private static Map<String, VersionRange> features(String text) {
        HashMap<String, VersionRange> found = new HashMap<>();
        for (String feature : text.split(",")) {
            String[] parts = feature.split(":");
            if (parts.length == 3) {
                found.put(parts[0], VersionRange.of(Integer.parseInt(parts[1]), Integer.parseInt(parts[2])));
            }
        }
        return found;
    }

    private static HashMap<String, Short> levels(String text) {
        HashMap<String, Short> found = new HashMap<>();
        for (String feature : text.split(",")) {
            String[] parts = feature.split(":");
            if (parts.length == 2) found.put(parts[0], Short.valueOf(parts[1]));
        }
        return found;
    }
}
