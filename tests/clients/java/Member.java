import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of a group: reads a topic until its standard input ends, and tells each thing that happens by one line.
 *
 * <p>Arguments: the topic, then settings of the consumer. It commits what each poll brought before it polls again.
 */
public class Member {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : List.of(arguments).subList(1, arguments.length)) {
            settings.put(argument.substring(0, argument.indexOf('=')), argument.substring(argument.indexOf('=') + 1));
        }
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(arguments[0]), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                tell("assigned", partitions);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                tell("revoked", partitions);
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                tell("lost", partitions);
            }
        });
        Thread ender = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (IOException gone) {
                // it has ended too
            }
            consumer.wakeup();
        });
        ender.setDaemon(true);
        ender.start();
        try (consumer) {
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                for (ConsumerRecord<byte[], byte[]> one : records) {
                    System.out.println("read " + one.partition() + " " + one.offset());
                }
                if (!records.isEmpty()) {
                    consumer.commitSync();
                    System.out.println("committed");
                }
            }
        } catch (WakeupException over) {
            System.out.println("over");
        } catch (Exception error) {
            System.out.println("error " + error.getClass().getSimpleName());
        }
    }

    static void tell(String what, Collection<TopicPartition> partitions) {
        String numbers =
            partitions.stream().map(one -> one.partition()).sorted().map(String::valueOf).collect(Collectors.joining(" "));
        System.out.println((what + " " + numbers).trim());
    }
}
