import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An idempotent and a transactional producer that go on until standard input ends: numbered messages to the
 * topics "plain" and "together". Then it prints how many of each were acknowledged, or fails.
 */
public final class KeepProducing {
    private static final int TOGETHER = 5;
    private static volatile boolean isOver;

    public static void main(String[] args) throws Exception {
        AtomicInteger acknowledged = new AtomicInteger();
        AtomicInteger committed = new AtomicInteger();
        Thread plain = started(() -> plain(args[0], acknowledged));
        Thread together = started(() -> together(args[0], committed));
        while (System.in.read() >= 0) {
            Thread.onSpinWait();
        }
        isOver = true;
        plain.join();
        together.join();
        System.out.println(acknowledged + " " + committed);
    }

    private static Thread started(Runnable work) {
        Thread thread = new Thread(work);
        thread.setUncaughtExceptionHandler((one, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        thread.start();
        return thread;
    }

    private static KafkaProducer<String, String> producer(String servers, Map<String, Object> more) {
        Map<String, Object> given = new HashMap<>(more);
        given.put("bootstrap.servers", servers);
        given.put("acks", "all");
        given.put("max.block.ms", 600_000);
        given.put("delivery.timeout.ms", 600_000);
        given.put("request.timeout.ms", 5_000);
        return new KafkaProducer<>(given, new StringSerializer(), new StringSerializer());
    }

    private static String message(int nth) {
        return String.format("message-%06d", nth);
    }

    private static void plain(String servers, AtomicInteger acknowledged) {
        try (var producer = producer(servers, Map.of("enable.idempotence", true))) {
            for (int nth = 0; !isOver; nth++) {
                producer.send(new ProducerRecord<>("plain", message(nth)), (sent, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                        Runtime.getRuntime().halt(1);
                    }
                    acknowledged.incrementAndGet();
                });
                pause(50);
            }
        }
    }

    private static void together(String servers, AtomicInteger committed) {
        Map<String, Object> more = Map.of("transactional.id", "together", "transaction.timeout.ms", 600_000);
        try (var producer = producer(servers, more)) {
            producer.initTransactions();
            while (!isOver) {
                producer.beginTransaction();
                for (int nth = 0; nth < TOGETHER; nth++) {
                    producer.send(new ProducerRecord<>("together", message(committed.get() + nth)));
                }
                producer.commitTransaction();
                committed.addAndGet(TOGETHER);
                pause(200);
            }
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException interrupted) {
            isOver = true;
        }
    }
}
