import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group: BOOTSTRAP GROUP TOPIC, then names and values of settings. It says what it gets, a line a
 * record, and does with it what the record's value begins with: accept, release, reject, renew or keep.
 */
public class Share {
    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("group.id", given[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        for (int at = 3; at + 1 < given.length; at += 2) {
            settings.put(given[at], given[at + 1]);
        }
        Thread reader = new Thread(() -> {
            try {
                System.in.read();
            } catch (java.io.IOException ignored) {
                // it has ended, too
            }
            System.exit(0);
        });
        reader.setDaemon(true);
        reader.start();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(given[2]));
            System.out.println("ready");
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<String, String> record : records) {
                    System.out.println(record.offset() + " " + record.deliveryCount().get() + " " + record.value());
                    String wish = record.value().split(" ")[0];
                    boolean again = record.deliveryCount().get() > 1;
                    switch (wish) {
                        case "release" -> consumer.acknowledge(record, again ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                        case "always" -> consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        case "reject" -> consumer.acknowledge(record, AcknowledgeType.REJECT);
                        default -> consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    }
                }
                if (!records.isEmpty()) {
                    consumer.commitSync().forEach((partition, error) -> error.ifPresent(
                        one -> System.out.println("failed " + partition + " " + one)));
                }
            }
        }
    }
}
